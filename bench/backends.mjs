// bench/backends.mjs: the time until the first output of a command in a sandbox of each backend: one and many at once, with services and
// without, compared with the engines and bubblewrap alone.
import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createUser } from '../scripts/podman-user.mjs';
import { crowd } from './crowd.mjs';
import { plainBwrap } from './start-up.mjs';
import { ms, ratio, spread } from './stats.mjs';
import { makeRepository, run, settle, wait, which } from './fixture.mjs';

const IMAGE = 'ags-bench-empty:latest';
const SERVICES = 'services: { db: postgres, cache: redis }\n';
const ONCE_THEY_ANSWER = 'psql -Atc "select 1" > /dev/null && redis-cli -h cache ping > /dev/null && exec cat';

export async function benchBackends(fixture, effort) {
  const engines = ['docker', 'podman'].filter(answers);
  const user = process.getuid() === 0 && engines.includes('podman') ? createUser('ags-bench') : null;
  try {
    const tables = [];
    for (const actor of actorsOf(fixture, user)) tables.push(...(await compare(fixture, actor, engines, effort)));
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

/** Podman needs an ordinary user with subordinate IDs. */
function actorsOf(fixture, user) {
  const { user: ordinary, root } = fixture.actors;
  if (user === null) return Object.values(fixture.actors);
  const known = { ...ordinary, uid: user.uid, home: user.home, identity: { uid: user.uid, gid: user.uid } };
  return [{ ...known, env: { ...ordinary.env, ...user.env } }, root];
}

function answers(engine) {
  return which(engine) !== null && spawnSync(engine, ['info'], { stdio: 'ignore' }).status === 0;
}

async function compare(fixture, actor, engines, { rounds, crowds }) {
  const project = makeRepository(actor, 'backends', 50);
  await wait(2100);
  settle(actor, project);
  // Access to Docker is equivalent to root.
  const usable = engines.filter((engine) => engine === 'podman' || actor.uid === 0);
  for (const engine of usable) importEmpty(actor, engine);
  writeFileSync(join(project, 'ags.yaml'), SERVICES);
  const ours = (backend, ...rest) => fixture.ags('exec', '--backend', backend, ...rest);
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

/** Large crowds take longer, so they get fewer rounds. */
const fewer = (count, rounds) => (count === 1 ? rounds : Math.ceil(rounds / 3));

async function measureAll(actor, project, variants, count, rounds) {
  const names = Object.keys(variants);
  const results = Object.fromEntries(names.map((name) => [name, []]));
  // The first round fills caches, and ags tests a whole sandbox once per boot.
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

/** The command line of a careful user. */
function plainEngine(engine) {
  const options = ['--rm', '-i', '--network', 'none', '--read-only', '--cap-drop', 'ALL', '-v', '/usr:/usr:ro'];
  // Podman's default limits may exceed those of the machine.
  const limits = ['nofile', 'nproc'].flatMap((name) => ['--ulimit', `${name}=4096:4096`]);
  return [engine, 'run', ...options, ...limits, '--entrypoint', '/usr/bin/cat', IMAGE];
}

function importEmpty(actor, engine) {
  const dir = join(actor.home, `empty-${engine}`);
  mkdirSync(join(dir, 'usr'), { recursive: true });
  for (const name of ['bin', 'lib', 'lib64', 'sbin']) symlinkSync(`usr/${name}`, join(dir, name));
  run(actor, ['sh', '-c', 'tar -C "$1" -cf - . | "$2" import - "$3"', 'sh', dir, engine, IMAGE]);
}
