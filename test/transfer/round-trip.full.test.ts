// test/transfer/round-trip.full.test.ts: a task is exported on one machine and continues on another.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readEvents } from '../../src/store/events.ts';
import { type Caller, ONE, USUAL } from '../harness.ts';
import { createAgentMachine, type AgentMachine } from '../agent-run/place.ts';
import { readParts, writeParts } from './parts.ts';

const GOAL =
  'write: a.txt one // commit: Own commit // write: sub/b.txt two // run: pwd // fetch: https://no.example/ // say: done';

type Source = AgentMachine & { readonly file: string };
const SOURCES = new Map<Caller, Source>();
afterAll(() => {
  for (const source of SOURCES.values()) source[Symbol.dispose]();
});

/** A machine with an exported, finished task. The tests of a caller share it, because none changes the task. */
async function source(caller: Caller): Promise<Source> {
  const known = SOURCES.get(caller);
  if (known !== undefined) return known;
  const machine = createAgentMachine(caller);
  const made = Object.assign(machine, { file: join(machine.home, 'work.ags') });
  SOURCES.set(caller, made);
  const run = await machine.runDemo('work', GOAL);
  expect(run.state, run.reason).toBe('ready');
  const done = await machine.ags(['export', 'work', made.file]);
  expect(done, done.stderr).toMatchObject({ code: 0, stdout: `${made.file}\n` });
  return made;
}

/** Another user's machine with the same repository. */
function otherMachine(from: AgentMachine): AgentMachine {
  const machine = createAgentMachine(from.caller);
  machine.git('fetch', '-q', from.project, `${from.task('work').goal?.base}`);
  machine.git('reset', '-q', '--hard', 'FETCH_HEAD');
  return machine;
}

const commits = (machine: AgentMachine, branch: string): string => machine.git('log', '--format=%H %T %an %s', branch);

/** The log without the machine's own values. */
function told(machine: AgentMachine): unknown[] {
  const rest = machine
    .events('work')
    .filter(({ type }) => type !== 'run.imported' && !type.startsWith('merge.'))
    .map(({ seq: _seq, prev: _prev, ...event }) => event);
  return JSON.parse(JSON.stringify(rest).replaceAll(machine.project, '<project>')) as unknown[];
}

describe.each(USUAL)('as %s', (caller) => {
  test('another machine with the repository gets the same commits, history and facts, and merges to the same tree', async () => {
    const here = await source(caller);
    using there = otherMachine(here);
    const before = there.git('status', '--porcelain') + there.git('for-each-ref');
    const done = await there.ags(['import', here.file]);
    expect(done, done.stderr).toMatchObject({ code: 0, stdout: 'work\n' });
    expect(commits(there, 'ags/work')).toBe(commits(here, 'ags/work'));
    expect(there.run('work')).toMatchObject({
      state: 'ready',
      exitCode: 0,
      turns: 1,
      result: { files: 2, added: 2, removed: 0 },
      startedAtMs: here.run('work').startedAtMs,
    });
    expect(there.task('work')).toMatchObject({
      goal: { text: GOAL, agent: 'demo', baseRef: 'refs/heads/main', base: here.task('work').goal?.base },
      project: there.project,
      imported: { file: 'work.ags', format: 1, name: 'work', merges: [] },
    });
    expect(told(there)).toEqual(told(here));
    expect(there.events('work').find((event) => event['output'] === `${there.project}\n`)).toBeDefined();
    expect(readEvents(join(there.stateDir, 'tasks/work/events.jsonl')).brokenAt).toBe(null);
    expect((await there.ags(['net', 'log', 'work'])).stdout).toContain('no.example:443');
    expect((await there.ags(['show', 'work'])).stdout).toContain('from work.ags (format 1), originally named work');
    // The import changed nothing else.
    const branch = there.git('for-each-ref', 'refs/heads/ags/work');
    expect(there.git('status', '--porcelain') + there.git('for-each-ref').replace(branch, '')).toBe(before);
    for (const machine of [here, there]) expect(await machine.ags(['merge', 'work', '-y'])).toMatchObject({ code: 0 });
    expect(there.git('rev-parse', 'main^{tree}')).toBe(here.git('rev-parse', 'main^{tree}'));
    expect(there.read('sub/b.txt')).toBe('two\n');
  });

  test('without a repository the import creates one, and messages, merges and restarts work there', async () => {
    const here = await source(caller);
    using there = createAgentMachine(caller);
    const cwd = join(there.home, 'fresh');
    const refused = await there.ags(['import', here.file]);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('--into');
    expect(there.tasks()).toEqual([]);
    const done = await there.ags(['import', here.file, '--into', '../../fresh']);
    expect(done, done.stderr).toMatchObject({ code: 0, stdout: 'work\n' });
    const git = (...args: string[]): string => there.git('-C', cwd, ...args);
    const base = here.task('work').goal?.base;
    expect(git('status', '--porcelain', '--branch')).toBe('## main\n');
    expect(git('rev-parse', 'main').trim()).toBe(base);
    expect(git('fsck', '--strict')).not.toMatch(/error|missing/);
    expect(readFileSync(join(cwd, 'README.md'), 'utf8')).toBe(here.git('show', `${base}:README.md`));
    const sent = await there.ags(['send', 'work', 'run: cat a.txt sub/b.txt // append: a.txt more // say: on'], {
      cwd,
    });
    expect(sent, sent.stderr).toMatchObject({ code: 0 });
    const run = await there.until('work', ['ready', 'failed', 'no-changes']);
    expect(run, run.reason).toMatchObject({ state: 'ready', turns: 2, result: { files: 2, added: 3 } });
    expect(there.events('work').findLast((event) => event['exitCode'] === 0 && 'output' in event)).toMatchObject({
      output: 'one\ntwo\n',
    });
    expect(git('log', '--format=%s', 'main..ags/work').trim().split('\n')).toHaveLength(3);
    expect(git('show', 'ags/work:a.txt')).toBe('one\nmore\n');
    expect(await there.ags(['merge', 'work', '-y'], { cwd })).toMatchObject({ code: 0 });
    expect(readFileSync(join(cwd, 'a.txt'), 'utf8')).toBe('one\nmore\n');
    expect((await there.ags(['restart', 'work'], { cwd })).code).toBe(0);
    const again = await there.until('work', ['ready', 'failed', 'no-changes']);
    expect(again).toMatchObject({ state: 'ready', number: 2, result: { files: 2, added: 2 } });
    expect(git('rev-parse', 'ags/work.1~3').trim()).toBe(base);
  });
});

const CALLER: Caller = ONE;

test('an import into the same repository is a separate task, a second import another one, and each can be removed', async () => {
  const here = await source(CALLER);
  expect(await here.ags(['import', here.file])).toMatchObject({ code: 0, stdout: 'work-2\n' });
  here.git('branch', 'ags/work-3');
  expect(await here.ags(['import', here.file])).toMatchObject({ code: 0, stdout: 'work-4\n' });
  expect(here.tasks().toSorted()).toEqual(['work', 'work-2', 'work-4']);
  for (const name of ['work-2', 'work-4']) expect(commits(here, `ags/${name}`)).toBe(commits(here, 'ags/work'));
  expect((await here.ags(['rm', 'work-2', '-y'])).stdout).toContain('and branch ags/work-2');
  expect(await here.ags(['diff', 'work-4', '--name-only'])).toMatchObject({ code: 0, stdout: 'a.txt\nsub/b.txt\n' });
  expect((await here.ags(['rm', 'work-4', '-y'])).code).toBe(0);
});

test('--thin leaves the history out and needs a repository that has it', async () => {
  const here = await source(CALLER);
  const file = join(here.home, 'thin.ags');
  expect(await here.ags(['export', 'work', file, '--thin'])).toMatchObject({ code: 0 });
  expect(Object.keys(readParts(file).members)).toEqual(['work.pack', 'events.jsonl.gz', 'network.jsonl.gz']);
  using there = otherMachine(here);
  expect(await there.ags(['import', file, '--into', join(there.home, 'fresh')])).toMatchObject({ code: 2, stdout: '' });
  expect(existsSync(join(there.home, 'fresh'))).toBe(false);
  expect(await there.ags(['import', file])).toMatchObject({ code: 0, stdout: 'work\n' });
  expect(commits(there, 'ags/work')).toBe(commits(here, 'ags/work'));
  expect(await here.ags(['export', 'work', file])).toMatchObject({ code: 2 });
  expect(await here.ags(['export', 'work', file, '--force'])).toMatchObject({ code: 0 });
});

test('a merged task stays merged if the branch has the merge, and otherwise says where it was merged', async () => {
  const here = await source(CALLER);
  if (here.run('work').state !== 'merged') expect((await here.ags(['merge', 'work', '-y'])).code).toBe(0);
  const file = join(here.home, 'merged.ags');
  expect(await here.ags(['export', 'work', file])).toMatchObject({ code: 0 });
  const { stdout } = await here.ags(['import', file]);
  expect(here.run(stdout.trim()).state).toBe('merged');
  await here.ags(['rm', stdout.trim(), '-y']);
  using there = createAgentMachine(CALLER);
  expect(await there.ags(['import', file, '--into', join(there.home, 'fresh')])).toMatchObject({ stdout: 'work\n' });
  expect(there.run('work').state).toBe('ready');
  expect((await there.ags(['show', 'work'])).stdout.replaceAll(/\s+/g, ' ')).toContain('there it was merged into main');
});

test('a fork includes the work it started from and is compared with the same commit', async () => {
  const here = await source(CALLER);
  using there = otherMachine(here);
  const parts = readParts(here.file);
  const { root, commit } = parts.manifest.work;
  // As a fork records it: it started from another task's work and has none of its own.
  parts.manifest.work.base = commit;
  expect(await there.ags(['import', await writeParts(there, 'fork.ags', parts)])).toMatchObject({ code: 0 });
  expect(there.task('work').goal).toMatchObject({ base: commit, origin: root });
  const file = join(there.home, 'again.ags');
  expect(await there.ags(['export', 'work', file])).toMatchObject({ code: 0 });
  expect(readParts(file).manifest.work).toEqual(parts.manifest.work);
  expect(await there.ags(['diff', 'work', '--name-only'])).toMatchObject({ stdout: 'a.txt\nsub/b.txt\n' });
});

test('10,000 files arrive unchanged', async () => {
  const here = await source(CALLER);
  const parts = readParts(here.file);
  const { root } = parts.manifest.work;
  const directory = mkdtempSync('/tmp/ags-many-');
  const git = (args: string[], input?: string | Buffer): Buffer =>
    execFileSync('git', ['-C', directory, ...args], { input, maxBuffer: 2 ** 28 });
  try {
    git(['init', '-q', '--bare']);
    git(['unpack-objects', '-q'], parts.members['base.pack']);
    const files = Array.from({ length: 10_000 }, (_, i) => `M 644 inline d/${i}.txt\ndata <<E\n${i}\nE\n`).join('');
    const who = 'committer A <a@example.test> 0 +0000\ndata <<E\nmany\nE\n';
    git(['fast-import', '--quiet'], `commit refs/heads/many\n${who}from ${root}\n${files}\ndone\n`);
    parts.manifest.work.base = root;
    parts.manifest.work.commit = git(['rev-parse', 'many']).toString('utf8').trim();
    parts.members['work.pack'] = git(['pack-objects', '--revs', '--stdout', '-q'], `many\n^${root}\n`);
    using there = otherMachine(here);
    expect(await there.ags(['import', await writeParts(there, 'many.ags', parts)])).toMatchObject({ code: 0 });
    expect(there.run('work').result).toMatchObject({ files: 10_000, added: 10_000, removed: 0 });
    const again = join(there.home, 'again.ags');
    expect(await there.ags(['export', 'work', again])).toMatchObject({ code: 0 });
    expect(await there.ags(['import', again, '--into', join(there.home, 'fresh')])).toMatchObject({ code: 0 });
    const tree = git(['rev-parse', 'many^{tree}']).toString('utf8');
    expect(there.git('-C', join(there.home, 'fresh'), 'rev-parse', 'ags/work-2^{tree}')).toBe(tree);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test('a running task exports the work of its last turn, and nothing during its first', async () => {
  using here = createAgentMachine(CALLER);
  await here.ags(['start', 'long', 'say: up // wait: 60', '-a', 'demo', '-d']);
  await here.event('long', 'agent.said');
  const file = join(here.home, 'long.ags');
  const first = await here.ags(['export', 'long', file]);
  expect(first).toMatchObject({ code: 7, stdout: '' });
  expect(first.stderr).toContain('ags stop long');
  await here.ags(['stop', 'long', '--force']);
  await here.until('long', ['stopped']);
  await here.ags(['send', 'long', 'write: one.txt x']);
  await here.until('long', ['ready']);
  await here.ags(['send', 'long', 'write: later.txt x // say: third // wait: 60']);
  await here.event('long', 'agent.said', (event) => event['text'] === 'third');
  const running = await here.ags(['export', 'long', file]);
  expect(running).toMatchObject({ code: 0 });
  expect(running.stderr).toContain('its work since the last turn is not in the file');
  expect(await here.ags(['import', file])).toMatchObject({ stdout: 'long-2\n' });
  expect(here.run('long-2')).toMatchObject({ state: 'stopped', reason: 'It was running when it was exported.' });
  expect(here.branch('long-2')).toEqual(['README.md', 'one.txt', 'src/a.txt']);
  await here.ags(['stop', 'long', '--force']);
  await here.until('long', ['stopped']);
});

test('commands are not exported, because they have no branch; an unwritable target is reported', async () => {
  const here = await source(CALLER);
  const before = here.tasks();
  await here.ags(['exec', '--name', 'cmd', '--review', 'later', '--', 'touch', 'x']);
  const name = here.tasks().find((one) => !before.includes(one)) ?? '';
  expect(await here.ags(['export', name])).toMatchObject({ code: 2, stdout: '' });
  expect(await here.ags(['export', 'work', join(here.home, 'nowhere/x.ags')])).toMatchObject({ code: 3, stdout: '' });
  expect(await here.ags(['export', 'work', here.home, '--force'])).toMatchObject({ code: 3, stdout: '' });
  expect(readdirSync(join(here.home, '..')).filter((one) => one.includes('.part'))).toEqual([]);
  expect(here.tasks().filter((one) => one.startsWith('.'))).toEqual([]);
});
