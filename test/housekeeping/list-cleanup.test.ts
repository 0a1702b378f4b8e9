// test/housekeeping/list-cleanup.test.ts: what `ags list`, `ags rm` and `ags cleanup` show, remove and keep.
// uses: sandbox
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ChangeSet } from '../../src/protocol/changes.ts';
import type { RunFile } from '../../src/protocol/task.ts';
import { ownIdentity } from '../../src/lib/process/liveness.ts';
import { applyAll } from '../../src/review/journal.ts';
import { taskPaths } from '../../src/store/layout.ts';
import { writeRun, writeTask } from '../../src/store/tasks.ts';
import { planCleanup, sweep } from '../../src/housekeeping/cleanup.ts';
import { findTask } from '../../src/queries/find-task.ts';
import { listTasks } from '../../src/queries/list.ts';
import { findOrphans } from '../../src/housekeeping/orphans.ts';
import type { HostContext } from '../../src/run/host-context.ts';
import { leftovers } from '../e2e/leftovers.ts';
import { createMachine, HAS_SANDBOX, type Machine, USUAL } from '../harness.ts';

const HOUR = 3_600_000;
const DEAD = { pid: 1, startTicks: 'a boot long ago:1' };

describe('with tasks of every kind', () => {
  let dir = '';
  let context: HostContext;
  const project = (): string => join(dir, 'project');
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'ags-list-'));
    mkdirSync(project());
    context = {
      cwd: project(),
      home: join(dir, 'home'),
      stateDir: join(dir, 'state'),
      dataDir: join(dir, 'data'),
      cacheDir: join(dir, 'cache'),
      env: {},
      now: () => new Date(),
    } as unknown as HostContext;
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  interface Given {
    readonly state?: RunFile['state'];
    readonly ageMs?: number;
    readonly live?: boolean;
    /** Files in the upper. */
    readonly files?: readonly string[];
    readonly project?: string;
    readonly more?: Partial<RunFile>;
  }

  function task(id: string, given: Given = {}): ReturnType<typeof taskPaths> {
    const paths = taskPaths(context.stateDir, id);
    const startedAtMs = Date.now() - (given.ageMs ?? HOUR);
    mkdirSync(paths.upper, { recursive: true });
    for (const file of given.files ?? []) writeFileSync(join(paths.upper, file), 'changed\n');
    writeTask(paths, {
      version: 1,
      id,
      name: id,
      kind: 'exec',
      project: given.project ?? project(),
      git: true,
      command: ['npm', 'test'],
      createdAt: new Date(startedAtMs).toISOString(),
    });
    writeRun(paths, {
      version: 1,
      state: given.state ?? 'stopped',
      startedAtMs,
      exitCode: 0,
      label: 'native',
      workspace: 'overlay',
      hidden: [],
      revealed: [],
      base: null,
      objectFormat: 'sha1',
      runner: given.live === true ? ownIdentity() : DEAD,
      user: { uid: 1001, gid: 1001 },
      settled: [],
      ignoredDiscarded: false,
      ...given.more,
    });
    return paths;
  }

  const names = async (all = false): Promise<string[]> =>
    (await listTasks(context, { all, size: false })).tasks.map(({ name, state }) => `${name} ${state}`);

  describe('the list', () => {
    test('shows tasks to review first, then running tasks, then the rest, newest first', async () => {
      task('old-review', { files: ['a'], ageMs: 5 * HOUR });
      task('settled', { state: 'no-changes', ageMs: HOUR });
      task('killed', { state: 'running', ageMs: 3 * HOUR });
      task('killed-late', { state: 'running', files: ['a'], ageMs: 4 * HOUR });
      task('new-review', { state: 'ready', files: ['a'], ageMs: 2 * HOUR });
      task('runs', { state: 'running', live: true, ageMs: 6 * HOUR });
      expect(await names()).toEqual([
        'new-review ready',
        'killed-late interrupted',
        'old-review stopped',
        'runs running',
        'settled no-changes',
        'killed interrupted',
      ]);
    });

    test('shows this project, and with --all the others after it', async () => {
      task('elsewhere', { files: ['a'], project: '/somewhere/else', ageMs: 1 });
      task('here', { files: ['a'] });
      expect(await names()).toEqual(['here stopped']);
      expect((await listTasks(context, { all: false, size: false })).elsewhere).toBe(1);
      expect(await names(true)).toEqual(['here stopped', 'elsewhere stopped']);
    });

    test('counts unreviewed changes after the first count', async () => {
      const paths = task('counted', { files: ['a'], more: { settled: ['taken.txt'] } });
      const change = (path: string, lane: 'inert' | 'host'): ChangeSet['changes'][number] => ({
        path,
        kind: 'new',
        before: null,
        after: null,
        lane,
        reasons: [],
        conflict: 'none',
        ignored: false,
      });
      const set: ChangeSet = {
        id: 'x',
        changes: [change('taken.txt', 'inert'), change('left.txt', 'inert'), change('package.json', 'host')],
        refused: [],
        ignored: { files: 0, bytes: 0, reviewed: false },
      };
      writeFileSync(paths.changes, JSON.stringify(set));
      expect((await listTasks(context, { all: false, size: false })).tasks[0]).toMatchObject({
        changes: { files: 2, risky: 1 },
        needsReview: true,
      });
    });

    test('shows a damaged task, and all others despite it', async () => {
      task('fine', { files: ['a'] });
      writeFileSync(task('broken').run, '{"version": 1');
      expect(await names(true)).toEqual(['fine stopped', 'broken damaged']);
    });

    test('counts an unreadable task as changed', async () => {
      const paths = task('odd', { state: 'running' });
      rmSync(paths.upper, { recursive: true });
      writeFileSync(paths.upper, 'not a directory');
      expect((await listTasks(context, { all: false, size: false })).tasks[0]).toMatchObject({
        state: 'interrupted',
        changed: true,
        needsReview: true,
      });
    });
  });

  describe('a task is found', () => {
    const found = async (name?: string): Promise<string> => (await findTask(context, name)).task.id;

    test('by its name, by a unique prefix, and by its age', async () => {
      task('npm-test-4kd2', { files: ['a'], ageMs: 3 * HOUR });
      task('npm-test-9xyz', { files: ['a'], ageMs: HOUR });
      task('make-b2b2', { files: ['a'], ageMs: 2 * HOUR });
      task('make-b2b2-more', { files: ['a'], ageMs: 1, project: '/elsewhere' });
      expect(
        await Promise.all([
          found('npm-test-4kd2'),
          found('npm-test-9'),
          found('make-b2b2'),
          found('@'),
          found('@1'),
          found('@2'),
          found('@3'),
        ]),
      ).toEqual([
        'npm-test-4kd2',
        'npm-test-9xyz',
        'make-b2b2',
        'npm-test-9xyz',
        'npm-test-9xyz',
        'make-b2b2',
        'npm-test-4kd2',
      ]);
    });

    test('without a name if only one has changes, with a notice', async () => {
      task('one', { files: ['a'] });
      task('unchanged', { state: 'running' });
      task('runs', { state: 'running', live: true, files: ['a'] });
      task('elsewhere', { files: ['a'], project: '/elsewhere' });
      const said: string[] = [];
      expect((await findTask(context, undefined, { say: (text) => said.push(text) })).task.id).toBe('one');
      expect(said).toEqual(['using task one.']);
    });

    test('or the error lists the tasks', async () => {
      await expect(found()).rejects.toMatchObject({
        code: 'task.not-found',
        message: 'No task of this project has changes to review.',
      });
      await expect(found('@')).rejects.toMatchObject({ code: 'task.not-found' });
      task('npm-1', { files: ['a'], ageMs: HOUR });
      task('npm-2', { files: ['a'], ageMs: 2 * HOUR });
      await expect(found()).rejects.toMatchObject({ code: 'task.ambiguous', details: { tasks: ['npm-1', 'npm-2'] } });
      await expect(found('npm')).rejects.toMatchObject({
        code: 'task.ambiguous',
        details: { tasks: ['npm-1', 'npm-2'] },
      });
      for (const name of ['other', '', '.', '..', '../tasks/npm-1', 'npm-1/..', '@0', '@3', '@x', '\u001b[2J'])
        await expect(found(name)).rejects.toMatchObject({ code: 'task.not-found' });
    });
  });

  describe('cleanup', () => {
    async function cleaned(
      options: { all?: boolean; olderThanMs?: number } = {},
    ): Promise<{ removed: string[]; kept: string[] }> {
      const { items, kept } = await planCleanup(context, {
        all: options.all ?? false,
        olderThanMs: options.olderThanMs ?? 0,
      });
      // Other tests leave shared leftovers on this machine, too.
      const own = items.filter(({ kind }) => !['cgroup', 'process', 'container', 'image', 'volume'].includes(kind));
      const removed: string[] = [];
      for (const item of own) if (await item.remove()) removed.push(`${item.kind} ${item.name.replace(`${dir}/`, '')}`);
      return { removed, kept: kept.map(({ name }) => name) };
    }

    test('removes killed runs without changes and settled tasks, and keeps every change', async () => {
      task('killed', { state: 'running' });
      task('killed-early', { state: 'preparing' });
      task('killed-work', { state: 'running', files: ['work.txt'] });
      task('review', { files: ['a'] });
      task('merged', { state: 'merged', files: ['a'] });
      task('empty', { state: 'no-changes' });
      task('runs', { state: 'running', live: true });
      task('asks', { state: 'stopped', live: true });
      writeFileSync(task('broken').task, 'x');
      expect(await cleaned()).toEqual({
        removed: ['task empty', 'task killed', 'task killed-early', 'task merged'],
        kept: ['broken', 'killed-work', 'review'],
      });
      expect(readdirSync(join(context.stateDir, 'tasks'))).toEqual(['asks', 'broken', 'killed-work', 'review', 'runs']);
      expect(readFileSync(join(taskPaths(context.stateDir, 'killed-work').upper, 'work.txt'), 'utf8')).toBe(
        'changed\n',
      );
    });

    test('with --all removes changes, too, but never a running task', async () => {
      task('killed-work', { state: 'running', files: ['work.txt'] });
      task('review', { files: ['a'] });
      task('runs', { state: 'running', live: true, files: ['a'] });
      task('asks', { state: 'stopped', live: true, files: ['a'] });
      const { items } = await planCleanup(context, { all: true, olderThanMs: 0 });
      expect(items.filter((item) => item.losesWork).map(({ name }) => name)).toEqual(['killed-work', 'review']);
      expect(await cleaned({ all: true })).toEqual({ removed: ['task killed-work', 'task review'], kept: [] });
      expect(readdirSync(join(context.stateDir, 'tasks'))).toEqual(['asks', 'runs']);
    });

    test('keeps tasks that ended more recently than requested', async () => {
      task('old', { state: 'no-changes', ageMs: 9 * HOUR, more: { endedAtMs: Date.now() - 8 * HOUR } });
      task('recent', { state: 'no-changes', ageMs: 9 * HOUR, more: { endedAtMs: Date.now() - HOUR } });
      task('recent-work', { files: ['a'], ageMs: 2 * HOUR });
      expect(await cleaned({ all: true, olderThanMs: 3 * HOUR })).toEqual({
        removed: ['task old'],
        kept: ['recent-work'],
      });
    });

    test('keeps a task that another ags works on, even if that began after the scan', async () => {
      const paths = task('empty', { state: 'no-changes' });
      const { items } = await planCleanup(context, { all: false, olderThanMs: 0 });
      writeFileSync(paths.lock, JSON.stringify(ownIdentity()));
      expect(await items.find(({ name }) => name === 'empty')?.remove()).toBe(false);
      expect(await cleaned()).toEqual({ removed: [], kept: [] });
      expect(existsSync(paths.run)).toBe(true);
    });

    test('keeps a task whose work appeared after the scan', async () => {
      const paths = task('empty', { state: 'no-changes' });
      const { items } = await planCleanup(context, { all: false, olderThanMs: 0 });
      writeFileSync(join(paths.upper, 'late.txt'), 'work');
      expect(await items.find(({ name }) => name === 'empty')?.remove()).toBe(false);
      expect(existsSync(join(paths.upper, 'late.txt'))).toBe(true);
    });

    test('removes leftovers of killed commands once they are too old to be in use', async () => {
      const old = new Date(Date.now() - 2 * 60_000);
      const place = (path: string, age?: Date): void => {
        mkdirSync(dirname(join(dir, path)), { recursive: true });
        if (path.endsWith('/')) mkdirSync(join(dir, path));
        else writeFileSync(join(dir, path), 'x');
        if (age) utimesSync(join(dir, path), age, age);
      };
      const ancient = new Date(Date.now() - 31 * 24 * HOUR);
      for (const path of ['state/tasks/half/', 'state/probe-1/', 'cache/plan-1/']) place(path, old);
      for (const path of [
        `state/tasks/.new-${process.pid}-x/`,
        'state/tasks/.new-4194303-x/',
        'state/tasks/.removing-x/',
        'state/probe-2/',
        'cache/plan-2/',
        'state/trust.json',
        'state/trust.json.12.tmp',
        'cache/scan-1.json',
      ])
        place(path);
      place('state/trust.json.11.tmp', old);
      place('cache/scan-2.json', ancient);
      const paths = task('review', { files: ['a'] });
      writeFileSync(paths.lock, JSON.stringify(DEAD));
      writeFileSync(`${paths.lock}.999`, 'x');
      utimesSync(`${paths.lock}.999`, old, old);
      const { removed } = await cleaned();
      expect(removed.toSorted()).toEqual([
        'directory cache/plan-1',
        'directory state/probe-1',
        'directory state/tasks/.new-4194303-x',
        'directory state/tasks/.removing-x',
        'file cache/scan-2.json',
        'file state/trust.json.11.tmp',
        'lock review/lock',
        'lock review/lock.999',
        'task half',
      ]);
      expect(readdirSync(paths.root).toSorted()).toEqual(['run', 'run.json', 'task.json']);
    });

    test('keeps a task without its files if its upper has content', async () => {
      const paths = task('work', { files: ['a'] });
      rmSync(paths.run);
      const old = new Date(Date.now() - HOUR);
      utimesSync(paths.root, old, old);
      expect(await cleaned()).toEqual({ removed: [], kept: ['work'] });
      await sweep(context);
      expect(existsSync(join(paths.upper, 'a'))).toBe(true);
    });

    test('finishes a killed apply: removes its temporary file from the project and keeps the task', async () => {
      const paths = task('review', { files: ['a'] });
      mkdirSync(paths.journal);
      const journal = join(paths.journal, '0001');
      await applyAll({
        project: project(),
        journal,
        changes: [{ op: { kind: 'write', path: 'new.txt', mode: '100644', bytes: Buffer.from('new') }, expect: null }],
      });
      const file = JSON.parse(readFileSync(join(journal, 'journal.json'), 'utf8')) as {
        steps: { temporary: string; outcome: unknown }[];
      };
      const temporary = join(project(), file.steps[0]?.temporary ?? '');
      renameSync(join(project(), 'new.txt'), temporary);
      writeFileSync(
        join(journal, 'journal.json'),
        JSON.stringify({ ...file, state: 'applying', steps: file.steps.map((step) => ({ ...step, outcome: null })) }),
      );
      expect(await cleaned()).toEqual({ removed: ['apply review'], kept: ['review'] });
      expect(readdirSync(project())).toEqual([]);
      expect(await cleaned()).toEqual({ removed: [], kept: ['review'] });
    });

    test('sweeping removes only tasks without their files', async () => {
      mkdirSync(join(context.stateDir, 'tasks/half'), { recursive: true });
      task('killed', { state: 'running' });
      await sweep(context);
      expect(readdirSync(join(context.stateDir, 'tasks'))).toEqual(['killed']);
    });
  });
});

describe('processes of dead runners', () => {
  const started: ChildProcess[] = [];
  const pids: number[] = [];
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL');
    for (const pid of pids.splice(0)) spawnSync('kill', ['-9', String(pid)]);
  });
  const LAUNCHER = { PATH: '/usr/bin:/bin', AGS_RUN: 'some-task-4kd2' };

  /** Starts a process whose parent has exited. */
  async function orphan(env: Record<string, string>): Promise<number> {
    const out = execFileSync('sh', ['-c', 'sleep 300 > /dev/null 2>&1 & echo $!'], {
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const pid = Number(out);
    pids.push(pid);
    await sleep(50);
    return pid;
  }
  const orphans = (isLive: (task: string) => boolean = () => false): number[] =>
    findOrphans(isLive).map(({ pid }) => pid);

  test("are found by the launcher's arguments", async () => {
    const pid = await orphan(LAUNCHER);
    expect(orphans()).toContain(pid);
    expect(findOrphans(() => false).find((orphan) => orphan.pid === pid)?.task).toBe('some-task-4kd2');
  });

  test('do not include those of a live runner, whether or not its task is known here', async () => {
    const child = spawn('sleep', ['300'], { env: LAUNCHER, stdio: 'ignore' });
    started.push(child);
    await sleep(50);
    expect(orphans()).not.toContain(child.pid);
    const pid = await orphan(LAUNCHER);
    expect(orphans((task) => task === 'some-task-4kd2')).not.toContain(pid);
  });

  test('do not include a program that merely has the same variable', async () => {
    const pid = await orphan({ ...LAUNCHER, HOME: '/root' });
    const odd = await orphan({ ...LAUNCHER, AGS_RUN: '../../x' });
    expect(orphans()).not.toContain(pid);
    expect(orphans()).not.toContain(odd);
  });

  test('are killed by cleanup and by a sweep', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'ags-strays-'));
    const context = {
      stateDir: dir,
      dataDir: join(dir, 'data'),
      cacheDir: dir,
      home: dir,
      cwd: dir,
      env: {},
      now: () => new Date(),
    } as unknown as HostContext;
    try {
      const first = await orphan(LAUNCHER);
      const item = (await planCleanup(context, { all: false, olderThanMs: 0 })).items.find(
        ({ name }) => name === String(first),
      );
      expect(item).toMatchObject({ kind: 'process', why: 'process of some-task-4kd2, whose ags was killed' });
      expect(await item?.remove()).toBe(true);
      const second = await orphan(LAUNCHER);
      await sweep(context);
      expect([first, second].map((pid) => orphans().includes(pid))).toEqual([false, false]);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});

describe.each(USUAL)('the commands as %s', (caller) => {
  /** Starts a sandbox that runs until it is killed. */
  async function running(machine: Machine, name: string, script = 'sleep 300'): Promise<ChildProcess> {
    const child = machine.start([
      'exec',
      '--name',
      name,
      '--',
      'sh',
      '-c',
      `${script === 'sleep 300' ? '' : `${script}; `}echo ready; sleep 300`,
    ]);
    await new Promise<void>((resolve, reject) => {
      child.stdout?.once('data', () => resolve());
      child.once('exit', (code) => reject(new Error(`ended with ${code}`)));
    });
    return child;
  }
  const ended = (child: ChildProcess): Promise<void> => new Promise((resolve) => child.once('close', () => resolve()));

  test('a project without tasks suggests a first command', async () => {
    using machine = createMachine(caller);
    expect(await machine.ags(['list'])).toEqual({
      code: 0,
      signal: null,
      stdout: '',
      stderr: 'No task of this project is running or waiting for a review.\nStart one: ags exec -- <command>\n',
    });
    expect(await machine.ags(['list', '-q'])).toEqual({ code: 0, signal: null, stdout: '', stderr: '' });
    expect(JSON.parse((await machine.ags(['list', '--json'])).stdout)).toEqual({
      project: machine.project,
      elsewhere: 0,
      budgets: [],
      tasks: [],
    });
    // Other tests may have left control groups, which anyone may remove.
    expect(
      (await machine.ags(['cleanup'])).stdout.replace(
        /^Removed\n( {2}(cgroup|process) .*\n)+\n.*\n$/,
        'There is nothing to clean up in all projects.\n',
      ),
    ).toBe('There is nothing to clean up in all projects.\n');
  });

  test.runIf(HAS_SANDBOX)(
    'a killed ags leaves no process, and its task is listed, kept with changes and removed without',
    async () => {
      using machine = createMachine(caller);
      const idle = await running(machine, 'idle');
      const busy = await running(machine, 'busy', 'echo work > new.txt');
      for (const child of [idle, busy]) {
        child.kill('SIGKILL');
        await ended(child);
      }
      const listing = (await machine.ags(['list'])).stdout
        .split('\n')
        .map((line) => line.trim().split(/ {2,}/).slice(0, 3));
      expect(listing).toEqual([
        ['NAME', 'STATE', 'CHANGES'],
        [expect.stringMatching(/^busy-/), 'interrupted', 'yes'],
        ['ags was killed while the task ran.'],
        [expect.stringMatching(/^idle-/), 'interrupted', 'none'],
        ['ags was killed while the task ran.'],
        [''],
      ]);
      const before = machine.tasks();
      const dry = await machine.ags(['cleanup', '--dry-run']);
      expect(dry.stdout).toMatch(/^Would be removed\n(.*\n)* {2}task +idle-/);
      expect(machine.tasks()).toEqual(before);
      const { stdout } = await machine.ags(['cleanup']);
      expect(stdout).toMatch(/^Removed\n(.*\n)* {2}task +idle-.*interrupted, nothing left to review/);
      expect(stdout).toMatch(/ {2}ags review busy-\w+ {2}interrupted/);
      expect(machine.tasks()).toEqual(before.filter((id) => id.startsWith('busy-')));
      expect(await leftovers(machine)).toEqual([]);
    },
  );

  test.runIf(HAS_SANDBOX)(
    'cleanup and sweeping keep a running sandbox, also one of another state directory',
    async () => {
      using machine = createMachine(caller);
      const child = await running(machine, 'runs');
      // No file names its /etc copy any more; only the mount protects it.
      const cache = join(machine.home, '.cache/ags');
      const old = new Date(Date.now() - HOUR);
      rmSync(join(cache, 'etc.json'));
      mkdirSync(join(cache, 'etc-unused'));
      for (const name of readdirSync(cache).filter((entry) => entry.startsWith('etc-')))
        utimesSync(join(cache, name), old, old);
      expect((await machine.ags(['cleanup', '--all', '--yes'])).stdout).toContain('1 sandbox is running');
      expect(readdirSync(cache).filter((name) => name.startsWith('etc-'))).toEqual([
        expect.not.stringMatching('etc-unused'),
      ]);
      expect(
        (await machine.ags(['cleanup', '--all', '--yes'], { env: { XDG_STATE_HOME: join(machine.home, 'other') } }))
          .code,
      ).toBe(0);
      // This runner is the test process, which may belong to another user.
      const identity = process.getuid?.() === 0 ? { uid: machine.uid, gid: machine.uid } : {};
      const other = spawn('sleep', ['300'], {
        env: { PATH: '/usr/bin:/bin', AGS_RUN: 'other-4kd2' },
        stdio: 'ignore',
        ...identity,
      });
      await sleep(50);
      expect((await machine.ags(['cleanup'])).code).toBe(0);
      expect([child, other].map(({ exitCode, signalCode }) => exitCode ?? signalCode)).toEqual([null, null]);
      other.kill('SIGKILL');
      expect((await machine.ags(['list'])).stdout).toMatch(/runs-\w+ +running/);
      child.kill('SIGTERM');
      await ended(child);
    },
  );

  test.runIf(HAS_SANDBOX)('rm refuses a running task; with --force it leaves nothing behind', async () => {
    using machine = createMachine(caller);
    const child = await running(machine, 'runs');
    const [id = ''] = machine.tasks();
    expect(await machine.ags(['rm', 'runs'])).toEqual({
      code: 7,
      signal: null,
      stdout: '',
      stderr: `ags: ${id} is running.\n     To stop it and delete the changes: ags rm --force ${id}\n`,
    });
    expect(child.exitCode).toBe(null);
    const end = ended(child);
    expect(await machine.ags(['rm', '--force', 'runs'])).toEqual({
      code: 0,
      signal: null,
      stdout: expect.stringMatching(new RegExp(`^Removed ${id}, .* freed\\.\n$`)),
      stderr: '',
    });
    await end;
    expect({ tasks: machine.tasks(), left: await leftovers(machine), signal: child.signalCode }).toEqual({
      tasks: [],
      left: [],
      signal: 'SIGKILL',
    });
  });

  test.runIf(HAS_SANDBOX)('rm deletes no change without confirmation', async () => {
    using machine = createMachine(caller);
    await machine.ags([
      'exec',
      '--name',
      'work',
      '--',
      'sh',
      '-c',
      'echo x > new.txt; mkdir -p deep/er; chmod 000 deep',
    ]);
    const [id = ''] = machine.tasks();
    expect(await machine.ags(['rm', '@'])).toEqual({
      code: 2,
      signal: null,
      stdout: '',
      stderr: `ags: These tasks have unreviewed changes: ${id}\n     To delete them without a prompt: ags rm --yes ${id}\n`,
    });
    expect((await machine.ags(['rm', '--json', id])).code).toBe(2);
    expect(machine.tasks()).toEqual([id]);
    expect(JSON.parse((await machine.ags(['rm', '--yes', '--json', id, '@'])).stdout)).toEqual({
      removed: [{ name: id, freedBytes: expect.any(Number) }],
    });
    expect(machine.tasks()).toEqual([]);
    expect(machine.git('status', '--short')).toBe('');
  });

  test.runIf(HAS_SANDBOX)('rm removes a damaged task, and nothing outside the tasks directory', async () => {
    using machine = createMachine(caller);
    await machine.ags(['exec', '--name', 'work', '--', 'sh', '-c', 'echo x > new.txt']);
    const [id = ''] = machine.tasks();
    writeFileSync(join(machine.stateDir, 'tasks', id, 'run.json'), 'damaged');
    for (const name of ['../..', '..', '.', '', '/etc'])
      expect((await machine.ags(['rm', '--yes', '--force', '--', name])).code).toBe(3);
    expect((await machine.ags(['list', '--all'])).stdout).toMatch(new RegExp(`${id} +damaged`));
    expect((await machine.ags(['rm', '--yes', id])).code).toBe(0);
    expect(machine.tasks()).toEqual([]);
    expect(machine.has('README.md')).toBe(true);
  });

  test.runIf(HAS_SANDBOX)('cleanup confirms before it deletes changes, and refuses unknown time formats', async () => {
    using machine = createMachine(caller);
    await machine.ags(['exec', '--name', 'work', '--', 'sh', '-c', 'echo x > new.txt']);
    const [id = ''] = machine.tasks();
    expect(await machine.ags(['cleanup', '--all'])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(id) as string,
    });
    expect(await machine.ags(['cleanup', '--older-than', 'soon'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--older-than needs a time, not "soon".') as string,
    });
    expect(JSON.parse((await machine.ags(['cleanup', '--all', '--older-than', '1h', '--json'])).stdout)).toMatchObject({
      kept: [{ name: id, state: expect.any(String) as string, project: machine.project }],
    });
    expect(machine.tasks()).toEqual([id]);
    const done = JSON.parse((await machine.ags(['cleanup', '--all', '--yes', '--json'])).stdout) as {
      removed: { kind: string }[];
    };
    expect({ ...done, removed: done.removed.filter(({ kind }) => kind === 'task') }).toEqual({
      dryRun: false,
      removed: [
        {
          kind: 'task',
          name: id,
          why: 'ready, with unreviewed changes',
          bytes: expect.any(Number) as number,
          losesWork: true,
        },
      ],
      failed: [],
      kept: [],
      running: 0,
      freedBytes: expect.any(Number) as number,
    });
    expect(machine.tasks()).toEqual([]);
  });
});
