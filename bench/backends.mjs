// bench/backends.mjs: how long it takes until a command speaks in a sandbox of each backend, one and many at once, with services and
// without, beside the engines and bubblewrap by themselves.
import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createUser } from '../scripts/podman-user.mjs';
import { crowd } from './crowd.mjs';
import { plainBwrap } from './start-up.mjs';
import { ms, ratio, spread } from './stats.mjs';
import { makeRepository, run, settle, wait, which } from './world.mjs';

const IMAGE = 'ags-bench-empty:latest';
const SERVICES = 'services: { db: postgres, cache: redis }\n';
const ONCE_THEY_ANSWER = 'psql -Atc "select 1" > /dev/null && redis-cli -h cache ping > /dev/null && exec cat';

export async function benchBackends(world, effort) {
  const engines = ['docker', 'podman'].filter(answers);
  const user = process.getuid() === 0 && engines.includes('podman') ? createUser('ags-bench') : null;
  try {
    const tables = [];
    for (const actor of actorsOf(world, user)) tables.push(...(await compare(world, actor, engines, effort)));
    return {
      title: 'Backends',
      text: '`cat` in a repository of 50 files; the time is from the command line until it has answered a line. `docker run`, `podman run` and `bwrap` run directly, without a network and with the programs of this machine; they have neither a private workspace nor a gateway. For many at once, the time is until the last one has answered. With services, each has its own PostgreSQL (initialised earlier, a copy-on-write view of it) and Redis, in sandboxes of the same backend, and both have answered first.',
      tables,
      bars: [],
    };
  } finally {
    user?.[Symbol.dispose]();
  }
}

/** The ordinary user must be one that the machine knows: Podman gives its containers ids of that user's. */
function actorsOf(world, user) {
  const { user: ordinary, root } = world.actors;
  if (user === null) return Object.values(world.actors);
  const known = { ...ordinary, uid: user.uid, home: user.home, identity: { uid: user.uid, gid: user.uid } };
  return [{ ...known, env: { ...ordinary.env, ...user.env } }, root];
}

function answers(engine) {
  return which(engine) !== null && spawnSync(engine, ['info'], { stdio: 'ignore' }).status === 0;
}

async function compare(world, actor, engines, { rounds, crowds }) {
  const project = makeRepository(actor, 'backends', 50);
  await wait(2100);
  settle(actor, project);
  // Whoever may use Docker is root in all but name.
  const usable = engines.filter((engine) => engine === 'podman' || actor.uid === 0);
  for (const engine of usable) importEmpty(actor, engine);
  writeFileSync(join(project, 'ags.yaml'), SERVICES);
  const ours = (backend, ...rest) => world.ags('exec', '--backend', backend, ...rest);
  const alone = (backend) => ours(backend, '--no-services', '--', 'cat');
  const variants = {
    bwrap: plainBwrap(project, ['cat']),
    native: alone('native'),
    ...Object.fromEntries(
      usable.flatMap((engine) => [
        [`${engine} run`, plainEngine(engine)],
        [engine, alone(engine)],
      ]),
    ),
  };
  const withServices = Object.fromEntries(
    ['native', ...usable].map((backend) => [backend, ours(backend, '--', 'sh', '-c', ONCE_THEY_ANSWER)]),
  );
  try {
    const tables = [];
    for (const count of crowds)
      tables.push(table(actor, count, '', await measureAll(actor, project, variants, count, fewer(count, rounds))));
    for (const count of crowds) {
      const found = await measureAll(actor, project, withServices, count, fewer(count, Math.ceil(rounds / 3)));
      tables.push(table(actor, count, ', with services', found));
    }
    return tables;
  } finally {
    for (const engine of usable) run(actor, [engine, 'image', 'rm', '--force', IMAGE]);
  }
}

/** Many at once take as many times as long. */
const fewer = (count, rounds) => (count === 1 ? rounds : Math.ceil(rounds / 3));

async function measureAll(actor, project, variants, count, rounds) {
  const names = Object.keys(variants);
  const results = Object.fromEntries(names.map((name) => [name, []]));
  // The first round fills caches, and ags tries a whole sandbox out once per boot.
  for (let round = -1; round < rounds; round += 1)
    for (let i = 0; i < names.length; i += 1) {
      const name = names[(i + Math.max(round, 0)) % names.length];
      const { succeeded, upMs } = await crowd(actor, variants[name], project, round < 0 ? 1 : count, () => null);
      if (succeeded !== (round < 0 ? 1 : count)) throw new Error(`${name}: only ${succeeded} of ${count} have started`);
      if (round >= 0) results[name].push(upMs);
    }
  return results;
}

function table(actor, count, what, results) {
  const label = (name) => (/^(native|docker|podman)$/.test(name) ? `**ags, ${name}**` : `\`${name} …\``);
  return {
    caption: `${actor.uid === 0 ? 'As root' : 'As an ordinary user'}, ${count === 1 ? 'one' : `${count} at once`}${what}`,
    head: ['', 'ready after', 'over ags, native'],
    rows: Object.entries(results).map(([name, values]) => [
      label(name),
      ms(values),
      name === 'native' ? '' : `${spread(ratio(values, results.native))} ×`,
    ]),
  };
}

/** What a careful person would write by hand. */
function plainEngine(engine) {
  const options = ['--rm', '-i', '--network', 'none', '--read-only', '--cap-drop', 'ALL', '-v', '/usr:/usr:ro'];
  // Otherwise Podman asks for more than a machine may grant.
  const limits = ['nofile', 'nproc'].flatMap((name) => ['--ulimit', `${name}=4096:4096`]);
  return [engine, 'run', ...options, ...limits, '--entrypoint', '/usr/bin/cat', IMAGE];
}

function importEmpty(actor, engine) {
  const dir = join(actor.home, `empty-${engine}`);
  mkdirSync(join(dir, 'usr'), { recursive: true });
  for (const name of ['bin', 'lib', 'lib64', 'sbin']) symlinkSync(`usr/${name}`, join(dir, name));
  run(actor, ['sh', '-c', 'tar -C "$1" -cf - . | "$2" import - "$3"', 'sh', dir, engine, IMAGE]);
}
