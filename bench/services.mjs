// bench/services.mjs: services beside a task: the time until a seeded database answers, by its size, and the cost of the listener.
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { interleave, measure } from './measure.mjs';
import { medianRatio, ms, number, spread, summary, wall } from './stats.mjs';
import { calm, emptyDirectory, run } from './fixture.mjs';

const ASK = ['psql', '-Atc', 'select 1'];
const SCAN = ['psql', '-Atc', 'select sum(length(t)) from big'];

/** The manual way: a new cluster, the seed, and the first answer. */
const BY_HAND = `set -e; dir=$(mktemp -d); bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
"$bin/initdb" -D "$dir/pg" -U app --auth=trust --no-sync > /dev/null
"$bin/pg_ctl" -D "$dir/pg" -w -l "$dir/log" -o "-c listen_addresses='' -k $dir -c fsync=off" start > /dev/null
psql -X -q -h "$dir" -U app -d postgres -c 'create database app'
psql -X -q -h "$dir" -U app -d app -f - > /dev/null
psql -X -h "$dir" -U app -d app -Atc 'select 1' > /dev/null
"$bin/pg_ctl" -D "$dir/pg" -m immediate stop > /dev/null; rm -rf "$dir"`;

export async function benchServices(fixture, { rounds, megabytes }) {
  const actor = fixture.actors.user;
  const sized = megabytes.map((size) => [size, benchSize(fixture, actor, size, rounds)]);
  const listener = benchListener(fixture, actor, rounds);
  return {
    title: 'Services',
    text: [
      'The time until the PostgreSQL of a task, seeded earlier, has answered `select 1`, as whole commands (`ags exec -- psql`). For comparison: the same command without services (`ags exec -- true`), a new cluster with the same seed made by hand without a sandbox, and `cp -a` of the seeded data directory, the cost of a copy for each task. "First scan" also reads the whole table, which copies its files into the task.',
      'The listener: redis-benchmark in the sandbox of a task, against a Redis that is a service and against one that it started itself; one client and small values for round trips, four clients and values of 100 kB for throughput.',
    ].join('\n\n'),
    tables: [
      {
        caption: 'until a seeded database has answered',
        head: [
          'data',
          'ags exec, no service',
          'seeded service',
          'with first scan',
          'by hand',
          'cp -a',
          'by hand, times ours',
        ],
        rows: sized.map(([size, { plain, seeded, scan, byHand, copy }]) => [
          `${size} MB`,
          ...[plain, seeded, scan, byHand, copy].map((runs) => ms(wall(runs))),
          `${number(medianRatio(byHand, seeded))} ×`,
        ]),
      },
      {
        caption: 'through the listener, and without it',
        head: ['', 'service', 'in the same sandbox', 'ratio'],
        rows: [
          ['round trips a second, one client', ...pair(listener.trips)],
          ['MB a second, four clients', ...pair(listener.bytes)],
        ],
      },
    ],
    bars: [],
  };
}

function pair({ service, beside }) {
  const ratio = summary(service.map((value, i) => value / beside[i]));
  return [spread(summary(service)), spread(summary(beside)), spread(ratio)];
}

function benchSize(fixture, actor, size, rounds) {
  const seed = `create table big as select i, repeat(md5(i::text), 30) as t from generate_series(1, ${size * 1000}) i;\n`;
  const path = project(actor, `services-${size}`, 'services: { db: { preset: postgres, seed: [seed.sql] } }\n', {
    'seed.sql': seed,
  });
  const ags = (...command) => measure(actor, fixture.ags('exec', '--', ...command), { cwd: path });
  const state = join(actor.home, '.local/state/ags');
  run(actor, ['rm', '-rf', join(state, 'layers')]);
  ags(...ASK);
  const [files] = dataLayers(join(state, 'layers'));
  const copy = join(actor.home, `copy-${size}`);
  calm(fixture);
  const found = interleave(
    { rounds, seconds: 120 },
    {
      plain: () => measure(actor, fixture.ags('exec', '--no-services', '--', 'true'), { cwd: path }),
      seeded: () => ags(...ASK),
      scan: () => ags(...SCAN),
      copy() {
        const done = measure(actor, ['cp', '-a', files, copy]);
        run(actor, ['rm', '-rf', copy]);
        return done;
      },
    },
  );
  // One round is enough for a slow and clear result.
  found.byHand = Array.from({ length: size > 10 ? 1 : rounds }, () =>
    measure(known(actor), ['sh', '-c', BY_HAND], { cwd: '/', input: seed }),
  );
  return found;
}

/** initdb requires a user name, which the measuring user does not have. */
function known(actor) {
  return process.getuid() === 0 ? { ...actor, identity: { uid: 65_534, gid: 65_534 } } : actor;
}

function dataLayers(layers) {
  return readdirSync(layers)
    .flatMap((name) => readdirSync(join(layers, name)).map((one) => join(layers, name, one, 'files')))
    .filter((path) => path.includes('/data-') && existsSync(path));
}

const COMPARE = `redis-server --port 7000 --save '' > /dev/null & until redis-cli -p 7000 ping > /dev/null 2>&1; do sleep 0.05; done
for port in 6379 7000; do
  redis-benchmark -p $port -t get -c 1 -n 20000 --csv | tail -1
  redis-benchmark -p $port -t set -c 4 -d 100000 -n 10 -q > /dev/null
  redis-cli -p $port --no-raw eval "redis.call('set', 'key:000000000000', string.rep('x', 100000))" 0 > /dev/null
  redis-benchmark -p $port -t get -c 4 -d 100000 -n 4000 --csv | tail -1
done; kill %1`;

function benchListener(fixture, actor, rounds) {
  const path = project(actor, 'services-listener', 'services: { cache: redis }\n', {});
  const found = { trips: { service: [], beside: [] }, bytes: { service: [], beside: [] } };
  for (let round = 0; round < rounds; round += 1) {
    const { stdout } = measure(actor, fixture.ags('exec', '--', 'bash', '-c', COMPARE), { cwd: path });
    const rates = [...stdout.matchAll(/^"GET","([\d.]+)"/gm)].map(([, rate]) => Number(rate));
    if (rates.length !== 4) throw new Error(`redis-benchmark said: ${stdout}`);
    found.trips.service.push(rates[0]);
    found.bytes.service.push(rates[1] / 10);
    found.trips.beside.push(rates[2]);
    found.bytes.beside.push(rates[3] / 10);
  }
  return found;
}

function project(actor, name, config, files) {
  const path = emptyDirectory(actor, name);
  for (const [file, content] of Object.entries({ 'ags.yaml': config, ...files }))
    writeFileSync(join(path, file), content);
  run(actor, ['git', 'init', '-q'], { cwd: path });
  return path;
}
