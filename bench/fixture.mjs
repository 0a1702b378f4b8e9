// bench/fixture.mjs: everything that is measured, in one temporary directory: the built command and its peers, users with their own homes, and
// repositories of known size. The command is a copy of exactly the package, so a concurrent build does not affect it.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

// Differs from the tests' uid, because processes of the user are counted.
const ORDINARY = 43_434;
const IDENTITY = {
  GIT_AUTHOR_NAME: 'Dev',
  GIT_AUTHOR_EMAIL: 'dev@example.test',
  GIT_COMMITTER_NAME: 'Dev',
  GIT_COMMITTER_EMAIL: 'dev@example.test',
};

export function createFixture(root, peers, quick) {
  const dir = mkdtempSync(join(tmpdir(), 'ags-bench-'));
  chmodSync(dir, 0o755);
  const ags = installAgs(root, join(dir, 'ags'));
  if (peers !== null) cpSync(peers, join(dir, 'peers/node_modules'), { recursive: true });
  const isRoot = process.getuid() === 0;
  const actors = {
    user: makeActor(dir, 'user', isRoot ? ORDINARY : process.getuid()),
    ...(isRoot ? { root: makeActor(dir, 'root', 0) } : {}),
  };
  return {
    dir,
    quick,
    /** The ordinary user, and root if this process is root. */
    actors,
    ags: (...args) => [ags, ...args],
    /** null: not available on this machine. */
    srt:
      peers === null
        ? null
        : (...args) => [
            process.execPath,
            join(dir, 'peers/node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js'),
            ...args,
          ],
    [Symbol.dispose]: () => {
      spawnSync('chmod', ['-R', 'u+rwX', dir]);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Copies the files of the package. */
function installAgs(root, to) {
  for (const part of ['bin', 'package.json', 'dist/bundle', 'dist/web'])
    cpSync(join(root, part), join(to, part), { recursive: true });
  return join(to, 'bin/ags');
}

function makeActor(dir, name, uid) {
  const home = join(dir, name);
  mkdirSync(home);
  const identity = process.getuid() === 0 ? { uid, gid: uid } : {};
  if (process.getuid() === 0) chownSync(home, uid, uid);
  const env = {
    HOME: home,
    PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
    LANG: 'C.UTF-8',
    GIT_CONFIG_NOSYSTEM: '1',
  };
  return { name, uid, home, env, identity };
}

/** Runs a program as the actor, unmeasured. */
export function run(actor, argv, { cwd = actor.home, input } = {}) {
  return execFileSync(argv[0], argv.slice(1), {
    ...actor.identity,
    cwd,
    input,
    env: { ...actor.env, ...IDENTITY },
    encoding: 'utf8',
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    maxBuffer: 256 * 1024 ** 2,
  });
}

export function emptyDirectory(actor, name) {
  const at = join(actor.home, name);
  mkdirSync(at);
  if (actor.identity.uid !== undefined) chownSync(at, actor.uid, actor.uid);
  return at;
}

/** A clean checkout of `files` small files, a hundred per directory, with one commit. */
export function makeRepository(actor, name, files) {
  const at = emptyDirectory(actor, name);
  run(actor, ['git', 'init', '-q', '-b', 'main'], { cwd: at });
  run(actor, ['git', '-c', 'core.compression=1', 'fast-import', '--quiet'], { cwd: at, input: history(files) });
  run(actor, ['git', 'reset', '-q', '--hard'], { cwd: at });
  return at;
}

function history(files) {
  const parts = ['commit refs/heads/main\ncommitter Dev <dev@example.test> 1700000000 +0000\ndata 5\nfirst\n'];
  for (let i = 0; i < files; i += 1) {
    const text = `file ${i}\n${`A line of file ${i}.\n`.repeat(10 + (i % 40))}`;
    parts.push(`M 100644 inline ${filePath(i)}\ndata ${text.length}\n${text}\n`);
  }
  return parts.join('');
}

export const filePath = (i) => `src/d${Math.floor(i / 100)}/f${i}.txt`;

/** Makes the index newer than the files some seconds later, by one more commit; git would otherwise reread files as new as their index. */
export function settle(actor, repository) {
  const readme = join(repository, 'README.md');
  writeFileSync(readme, '# A project\n');
  if (actor.identity.uid !== undefined) chownSync(readme, actor.uid, actor.uid);
  utimesSync(readme, 1_700_000_000, 1_700_000_000);
  run(actor, ['git', 'add', 'README.md'], { cwd: repository });
  run(actor, ['git', 'commit', '-q', '-m', 'second'], { cwd: repository });
}

/** Flushes pending writes, so that they do not slow the next measurement. */
export function calm(fixture) {
  if (fixture.quick) return;
  spawnSync('sync', ['-f', fixture.dir]);
}

/** Waits until other programs are nearly idle, or gives up. */
export async function quiet(fixture) {
  calm(fixture);
  if (fixture.quick) return;
  for (let tries = 0; tries < QUIET_TRIES; tries += 1) {
    const before = cpuTimes();
    await wait(1000);
    const after = cpuTimes();
    if ((after.idle - before.idle) / (after.all - before.all) > QUIET_IDLE) return;
  }
}

const QUIET_TRIES = 10;
const QUIET_IDLE = 0.85;

function cpuTimes() {
  const times = cpus().map((cpu) => cpu.times);
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  return { idle: sum(times.map(({ idle }) => idle)), all: sum(times.map((one) => sum(Object.values(one)))) };
}

export const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The path of a program, or null. */
export function which(program) {
  return (
    ['/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin']
      .map((dir) => join(dir, program))
      .find((path) => existsSync(path)) ?? null
  );
}
