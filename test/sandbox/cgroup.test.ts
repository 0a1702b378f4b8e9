// The choice of a sandbox's cgroup, and whether this machine's cgroups enforce limits, report use, kill and clean up.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { chooseCgroup, scopeArgv, type CgroupInput, type CgroupPlan } from '../../src/sandbox/watch/cgroup-plan.ts';
import { openCgroup, removeStale, staleCgroups, type Cgroup } from '../../src/sandbox/watch/cgroup.ts';
import type { Limits } from '../../src/protocol/spec.ts';
import { given, until } from '../exec/given.ts';

const MiB = 2 ** 20;
const CGROUPS = '/sys/fs/cgroup';
const limits: Limits = {
  processes: 50,
  memoryBytes: 64 * MiB,
  openFiles: 256,
  fileBytes: 8 * MiB,
  diskBytes: 64 * MiB,
  tmpBytes: 16 * MiB,
  cpuSeconds: null,
  wallSeconds: null,
  cpus: null,
};

const scratch = mkdtempSync(join(tmpdir(), 'ags-cgroup-'));
chmodSync(scratch, 0o755);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const groups: Cgroup[] = [];
afterEach(() => groups.splice(0).forEach((group) => group.kill()));

// The launcher enters a cgroup in this way.
const ENTER = 'set -e; while [ "$1" != -- ]; do echo 0 > "$1"; shift; done; shift; exec "$@"';
const uid = process.getuid?.() ?? 0;
const thisMachine: CgroupInput = {
  root: CGROUPS,
  uid,
  self: readFileSync('/proc/self/cgroup', 'utf8'),
  runtimeDir: `/run/user/${uid}`,
  cacheDir: join(scratch, 'cache'),
  bootId: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
};
const plan = await chooseCgroup(thisMachine);
const ready = plan.kind !== 'none' && plan.holds.includes('memory') && plan.holds.includes('pids');
const withCgroup = given(ready, 'a cgroup with memory and pids');

describe('the choice of a cgroup', () => {
  const choose = (root: string, self: string, more: Partial<CgroupInput> = {}): Promise<CgroupPlan> =>
    chooseCgroup({
      root,
      uid: 0,
      self,
      runtimeDir: join(root, 'run'),
      cacheDir: join(root, 'cache'),
      bootId: 'boot-1',
      systemdRun: join(root, 'systemd-run'),
      ...more,
    });

  test('on version 2 the sandbox is placed beside its launcher, below the nearest group that delegates memory and pids', async () => {
    const root = tree('delegated', {
      'cgroup.controllers': 'cpu memory pids',
      'cgroup.subtree_control': 'cpu memory pids',
      'cgroup.procs': '',
      'user/cgroup.subtree_control': 'cpu memory pids',
      'user/cgroup.type': 'domain',
      'user/cgroup.procs': '',
      'user/memory.max': 'max',
      'user/pids.max': '9000',
      'user/term/cgroup.subtree_control': '',
      'user/term/cgroup.type': 'domain',
      'user/term/cgroup.procs': '1',
      'user/term/memory.max': 'max',
      'user/term/pids.max': '700',
    });
    expect(await choose(root, '0::/user/term\n')).toEqual({
      kind: 'v2',
      parent: join(root, 'user'),
      holds: ['memory', 'pids', 'cpu'],
      enable: [],
      processesAtMost: 700,
    });
  });

  test('a sandbox stays below the memory limit of its launcher', async () => {
    const root = tree('limited', {
      'cgroup.controllers': 'memory pids',
      'cgroup.subtree_control': 'memory pids',
      'cgroup.procs': '',
      'job/cgroup.subtree_control': '',
      'job/cgroup.type': 'domain',
      'job/cgroup.procs': '1',
      'job/memory.max': '1000000',
      'job/pids.max': 'max',
    });
    expect(await choose(root, '0::/job\n')).toEqual({
      kind: 'none',
      why: 'the launcher itself runs under a memory limit, which a sandbox must not leave',
    });
  });

  test('controllers are enabled only in the real root group, never in that of a container', async () => {
    const bare = { 'cgroup.controllers': 'cpuset cpu memory pids', 'cgroup.subtree_control': '', 'cgroup.procs': '1' };
    const root = tree('true-root', bare);
    expect(await choose(root, '0::/\n')).toEqual({
      kind: 'v2',
      parent: root,
      holds: ['memory', 'pids'],
      enable: ['memory', 'pids'],
      processesAtMost: null,
    });
    const container = tree('container', { ...bare, 'cgroup.type': 'domain' });
    expect(await choose(container, '0::/\n')).toEqual({
      kind: 'none',
      why: 'no cgroup with memory and pids is writable',
    });
    expect(await choose(root, '0::/../host\n')).toEqual({
      kind: 'none',
      why: 'the launcher runs outside of the cgroups it can see',
    });
  });

  test('on version 1 each controller is used below the launcher’s group', async () => {
    const root = tree('v1', {
      'memory/job/cgroup.procs': '',
      'pids/cgroup.procs': '',
      'unified/cgroup.controllers': '',
    });
    expect(await choose(root, '8:pids:/\n4:memory:/job\n1:cpu,cpuacct:/\n0::/\n')).toEqual({
      kind: 'v1',
      parents: { memory: join(root, 'memory/job'), pids: join(root, 'pids') },
      holds: ['memory', 'pids'],
    });
    expect(await choose(root, '4:memory:/elsewhere\n0::/\n')).toEqual({
      kind: 'none',
      why: 'cgroup v1 can only be used by root',
    });
  });

  test('a user manager is probed once per boot for scopes that enforce limits', async () => {
    const root = tree('scope', {
      'cgroup.controllers': 'memory pids',
      'run/systemd/private': '',
      'user.slice/user-1001.slice/user@1001.service/cgroup.controllers': 'cpu memory pids',
    });
    // Replaces systemd-run: prints the result of the probe in a scope, and logs that it ran.
    writeFileSync(
      join(root, 'systemd-run'),
      `#!/bin/sh\necho asked >> ${root}/asked\nprintf '/u/ags.slice/ags-probe.scope\\n67108864\\n64\\n'\n`,
      { mode: 0o755 },
    );
    const self = '0::/user.slice/session.scope\n';
    const plan: CgroupPlan = {
      kind: 'scope',
      systemdRun: join(root, 'systemd-run'),
      slice: join(root, 'u/ags.slice'),
      manager: join(root, 'user.slice/user-1001.slice/user@1001.service'),
      runtimeDir: join(root, 'run'),
      holds: ['memory', 'pids', 'cpu'],
    };
    expect(await choose(root, self, { uid: 1001 })).toEqual(plan);
    expect(await choose(root, self, { uid: 1001 })).toEqual(plan);
    expect(readFileSync(join(root, 'asked'), 'utf8')).toBe('asked\n');
    expect(await choose(root, self, { uid: 1001, bootId: 'boot-2' })).toEqual(plan);
    expect(readFileSync(join(root, 'asked'), 'utf8')).toBe('asked\nasked\n');
    // systemd accepted the limit but did not set it.
    writeFileSync(join(root, 'systemd-run'), "#!/bin/sh\nprintf '/u/ags.slice/ags-probe.scope\\nmax\\n64\\n'\n", {
      mode: 0o755,
    });
    expect(await choose(root, self, { uid: 1001, bootId: 'boot-3' })).toEqual({
      kind: 'none',
      why: 'the service manager of this user does not answer systemd-run --user --scope',
    });
  });

  test('a scope is requested with limits on memory, swap and tasks', async () => {
    expect(scopeArgv('/usr/bin/systemd-run', 'ags-x.1.2.3', { memoryBytes: 1024, processes: 7, cpus: null })).toEqual([
      '/usr/bin/systemd-run',
      '--user',
      '--scope',
      '--quiet',
      '--collect',
      '--slice=ags.slice',
      '--unit=ags-x.1.2.3.scope',
      '-p',
      'MemoryMax=1024',
      '-p',
      'MemorySwapMax=0',
      '-p',
      'TasksMax=7',
      '--',
    ]);
    await using scope = openCgroup(
      {
        kind: 'scope',
        systemdRun: '/usr/bin/systemd-run',
        slice: join(scratch, 'ags.slice'),
        manager: scratch,
        runtimeDir: '/run/user/1',
        holds: ['memory', 'pids'],
      },
      'x',
      limits,
    );
    expect({ enterFiles: scope.enterFiles, env: scope.env }).toEqual({
      enterFiles: [],
      env: { XDG_RUNTIME_DIR: '/run/user/1' },
    });
    // The scope is removed before ags can read it; its parent group still counts the kill.
    writeFileSync(join(scratch, 'memory.events'), 'low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\noom_group_kill 0\n');
    expect(scope.stats()).toEqual({ memoryBytes: 0, peakBytes: 0, oomKills: 1, processes: 0, forksRefused: 0 });
  });
});

describe('a cgroup of this machine', () => {
  withCgroup('kills a process that exceeds the memory limit, reports it, and leaves nothing behind', async () => {
    const group = opened('test', limits);
    const hog = started(group, [
      'perl',
      '-e',
      'select undef, undef, undef, 0.3; $x = "a" x (200 * 1024 * 1024); print "got it"',
    ]);
    expect(await hog).toEqual({ stdout: '', signal: 'SIGKILL' });
    const { oomKills, peakBytes } = group.stats() ?? { oomKills: 0, peakBytes: 0 };
    expect(oomKills).toBe(1);
    if (plan.kind !== 'scope') expect(peakBytes).toBeGreaterThan(32 * MiB);
    expect(peakBytes).toBeLessThanOrEqual(64 * MiB);
    await group[Symbol.asyncDispose]();
    expect(groupsNamed(group.name)).toEqual([]);
  });

  withCgroup('limits a fork bomb, and kills all of it when closed', async () => {
    const group = opened('test', { ...limits, memoryBytes: 256 * MiB });
    // Doubles up to the limit and keeps trying; without a limit it stops at 256.
    const bomb = started(group, [
      'perl',
      '-e',
      'for (1 .. 8) { select undef, undef, undef, 0.01 until defined fork } sleep 30',
    ]);
    await until(() => (group.stats()?.forksRefused ?? 0) > 0);
    expect(group.stats()?.processes).toBe(limits.processes + 16);
    const pids = processesIn(group.name);
    expect(pids.length).toBe(limits.processes + 16);
    await group[Symbol.asyncDispose]();
    expect(groupsNamed(group.name)).toEqual([]);
    expect(pids.filter(isAlive)).toEqual([]);
    expect((await bomb).signal).toBe('SIGKILL');
  });

  withCgroup(
    'of a killed owner is found, emptied and removed; that of a living owner is kept',
    async () => {
      await using mine = opened('mine', limits);
      const living = started(mine, ['sleep', '60']);
      await until(() => processesIn(mine.name).length > 0);
      const owner = spawn(process.execPath, ['--input-type=module', '-e', orphanScript()], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const name = await new Promise<string>((resolve) =>
        owner.stdout.once('data', (line: Buffer) => resolve(line.toString().trim())),
      );
      await until(() => processesIn(name).length > 0);
      const [orphan = 0] = processesIn(name);
      // Ignores cgroups that other processes left here.
      const stale = (): string[] =>
        staleCgroups(CGROUPS)
          .filter((directory) => [name, mine.name].some((one) => directory.includes(one)))
          .toSorted();
      expect(stale()).toEqual([]);
      owner.kill('SIGKILL');
      await new Promise((resolve) => owner.once('close', resolve));
      const orphaned = groupsNamed(name);
      expect(stale()).toEqual(orphaned);
      for (const directory of orphaned) expect(await removeStale(directory)).toEqual([directory]);
      expect(await removeStale(groupsNamed(mine.name)[0] ?? '')).toEqual([]);
      expect([groupsNamed(name), isAlive(orphan)]).toEqual([[], false]);
      expect(processesIn(mine.name).length).toBe(1);
      mine.kill();
      expect((await living).signal).toBe('SIGKILL');
    },
    120_000,
  );

  withCgroup('is never opened under a name that ags does not use', () => {
    for (const id of ['../x', 'a/b', 'a.1.2.3', ''])
      expect(() => openCgroup(plan, id, limits)).toThrow('cannot name a control group');
  });
});

/** Enters the group before the command starts, as the launcher does; an ordinary user's launcher is in its own namespace by then. */
function started(group: Cgroup, command: readonly string[]): Promise<{ stdout: string; signal: string | null }> {
  const namespace =
    uid === 0 ? [] : ['unshare', '--user', '--map-root-user', '--mount', '--propagation', 'private', '--'];
  const [file = '', ...args] = [
    ...group.prefix,
    ...namespace,
    '/bin/sh',
    '-c',
    ENTER,
    'sh',
    ...group.enterFiles,
    '--',
    ...command,
  ];
  const child = spawn(file, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: '/usr/bin:/bin', ...group.env },
  });
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  return new Promise((resolve) => child.once('close', (_, signal) => resolve({ stdout, signal })));
}

/** A process that opens a group, starts a detached process in it, and waits to be killed. */
function orphanScript(): string {
  const source = join(import.meta.dirname, '../..', 'src');
  const compile = [
    '--ignoreConfig',
    '--outDir',
    scratch,
    '--rootDir',
    source,
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--lib',
    'es2023,esnext.disposable',
    '--types',
    'node',
    '--allowImportingTsExtensions',
    '--rewriteRelativeImportExtensions',
    '--skipLibCheck',
  ];
  const tsc = spawnSync(
    join(source, '../node_modules/.bin/tsc'),
    [...compile, join(source, 'sandbox/watch/cgroup.ts')],
    {
      encoding: 'utf8',
    },
  );
  writeFileSync(join(scratch, 'package.json'), '{"type":"module"}');
  expect(tsc.stdout).toBe('');
  return `import { spawn } from 'node:child_process';
    import { openCgroup } from ${JSON.stringify(join(scratch, 'sandbox/watch/cgroup.js'))};
    const group = openCgroup(${JSON.stringify(plan)}, 'orphan', ${JSON.stringify(limits)});
    const [file, ...args] = [...group.prefix, '/bin/sh', '-c', ${JSON.stringify(ENTER)}, 'sh', ...group.enterFiles, '--', 'sleep', '61'];
    spawn(file, args, { detached: true, stdio: 'ignore', env: { PATH: '/usr/bin:/bin', ...group.env } });
    console.log(group.name);
    setInterval(() => undefined, 1000);`;
}

function opened(id: string, within: Limits): Cgroup {
  const group = openCgroup(plan, id, within);
  groups.push(group);
  return group;
}

function groupsNamed(name: string): string[] {
  const found = spawnSync('find', [CGROUPS, '-type', 'd', '-name', `${name}*`], { encoding: 'utf8' });
  return found.stdout
    .split('\n')
    .filter((line) => line !== '')
    .toSorted();
}

/** A zombie has no program. */
function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}/exe`);
}

function processesIn(name: string): number[] {
  const [directory] = groupsNamed(name);
  if (directory === undefined) return [];
  return readFileSync(join(directory, 'cgroup.procs'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map(Number);
}

function tree(name: string, files: Readonly<Record<string, string>>): string {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(scratch, name, path)), { recursive: true });
    writeFileSync(join(scratch, name, path), content);
  }
  return join(scratch, name);
}
