// test/faults/checker.proof.test.ts: plants each kind of damage, and verifies that the checker finds it.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CALLERS } from '../harness.ts';
import { findDamage, remember, type Ledger } from './checker.ts';
import { createGround, OWN, type Ground } from './ground.ts';
import { findLeft } from './left.ts';
import { createLedger } from './rounds.ts';

const TAG = `p${randomBytes(5).toString('hex')}`;
const TASK = `${TAG}-task`;
let ground: Ground;
let ledger: Ledger;

beforeAll(async () => {
  ground = await createGround(CALLERS[0] ?? 'user');
  ledger = createLedger(ground);
  const goal = `write: ${TASK}/a.txt one // commit: First // write: ${TASK}/b.txt two // commit: Second`;
  const made = await ground.ags('start', TASK, goal, '-a', 'demo');
  expect(made.code, made.stderr).toBe(0);
  expect((await ground.ags('merge', TASK, '-y')).code).toBe(0);
  ledger.moves.push({ kind: 'merge', task: TASK });
  remember(ground, ledger);
  await ground.ags('cleanup', '--yes', '--older-than', '1d');
}, 120_000);
afterAll(() => ground[Symbol.asyncDispose]());

const at = (...parts: string[]): string => join(ground.stateDir, ...parts);
const events = (): string => at('tasks', TASK, 'events.jsonl');
const git = (...args: string[]): string => ground.machine.git(...args).trim();

/** Changes a file, runs `look`, and restores the file. */
function withFile(file: string, change: (text: string) => string | null, look: () => string[]): string[] {
  const before = readFileSync(file, 'utf8');
  const after = change(before);
  if (after === null) rmSync(file);
  else writeFileSync(file, after);
  try {
    return look();
  } finally {
    writeFileSync(file, before);
  }
}

const damage = (): string[] => findDamage(ground, ledger);
const merges = (): string => at('merges', readDir(at('merges')));
const readDir = (dir: string): string =>
  ground
    .sh(`ls ${dir.replace(/^\/proc\/\d+\/root/, '')}`)
    .trim()
    .split('\n')[0] ?? '';

test('the checker finds nothing in an undamaged project', async () => {
  expect(damage()).toEqual([]);
  expect(await findLeft(ground, TAG)).toEqual([]);
});

test.each([
  ['an invalid line', (text: string) => `${text}{"seq":\n`, 'a line is not an event'],
  ['a skipped number', (text: string) => text.replace('"seq":3', '"seq":4'), 'event 3 has the number 4'],
  ['a duplicated line', (text: string) => text + text.split('\n').at(-2) + '\n', 'has the number'],
  [
    'a changed line',
    (text: string) => text.replace('"preparing"', '"prepared"'),
    'does not match the hash of the one before',
  ],
  ['lost events', (text: string) => text.split('\n').slice(0, -2).join('\n') + '\n', 'observed events are missing'],
])('events: %s', (_, change, found) => {
  expect(withFile(events(), change, damage)).toContainEqual(expect.stringContaining(found));
});

test('the checker finds a lost commit and a duplicated commit', () => {
  const tip = git('rev-parse', `ags/${TASK}`);
  git('update-ref', `refs/heads/ags/${TASK}`, `${tip}~1`);
  expect(damage()).toContain(`${TASK}: the commit "Second" is 0 times on its branch`);
  const twice = git('commit-tree', `${tip}^{tree}`, '-p', tip, '-m', 'Second');
  git('update-ref', `refs/heads/ags/${TASK}`, twice);
  expect(damage()).toContain(`${TASK}: the commit "Second" is 2 times on its branch`);
  git('update-ref', '-d', `refs/heads/ags/${TASK}`);
  expect(damage()).toContain(`${TASK}: the branch is missing, although the agent has worked`);
  git('update-ref', `refs/heads/ags/${TASK}`, tip);
});

test('the checker finds a file whose content on the branch is wrong', () => {
  const tip = git('rev-parse', `ags/${TASK}`);
  const other = git('commit-tree', `${ledger.begin}^{tree}`, '-p', tip, '-m', 'Emptied');
  git('update-ref', `refs/heads/ags/${TASK}`, other);
  expect(damage()).toContain(`${TASK}: ${TASK}/a.txt has the wrong content on its branch`);
  git('update-ref', `refs/heads/ags/${TASK}`, tip);
});

test('the checker finds a lost message', () => {
  ledger.messages.push({ task: TASK, text: 'hello' });
  expect(damage()).toEqual([`${TASK}: the message "hello" is lost`]);
  ledger.messages.pop();
});

test('the checker finds merges that are lost, reported twice, unfinished, or missing from a moved branch', () => {
  const record = join(merges(), '000001.json');
  expect(withFile(record, () => null, damage)).toEqual([
    expect.stringContaining('main is at'),
    `the merge of ${TASK} was reported as done, but is missing`,
    `${TASK}: merge is reported 1 times, done 0 times`,
  ]);
  writeFileSync(join(merges(), 'pending.json'), '{}');
  expect(damage()).toEqual(['a merge is unfinished']);
  rmSync(join(merges(), 'pending.json'));
  const tip = git('rev-parse', 'main');
  const again = git('commit-tree', `${tip}^{tree}`, '-p', tip, '-m', `Again\n\nAgs-Task: ${TASK}`);
  git('update-ref', 'refs/heads/main', again);
  expect(damage()).toEqual([
    expect.stringContaining('main is at'),
    expect.stringContaining(`${TASK} is on main more than once`),
  ]);
  git('update-ref', 'refs/heads/main', tip);
});

test('the checker finds a merge without content', () => {
  const tip = git('rev-parse', 'main');
  const again = git('commit-tree', `${tip}^{tree}`, '-p', tip, '-m', `Again\n\nAgs-Task: ${TASK}`);
  const record = join(merges(), '000002.json');
  writeFileSync(record, JSON.stringify({ kind: 'merge', task: TASK, from: tip, to: again }));
  git('update-ref', 'refs/heads/main', again);
  expect(damage()).toEqual([
    `the merge of ${TASK} has no content`,
    expect.stringContaining(`${TASK} is on main more than once`),
    `${TASK}: merge is reported 1 times, done 2 times`,
  ]);
  git('update-ref', 'refs/heads/main', tip);
  rmSync(record);
});

test('a removed task that was merged twice is not a lost merge', async () => {
  const task = `${TAG}-twice`;
  const begin = git('rev-parse', 'main');
  const of: Ledger = { begin, seen: new Map(), messages: [], moves: [], precious: new Set(), wentOn: new Set() };
  for (const args of [
    ['start', task, `write: ${task}.txt 1 // commit: Once`, '-a', 'demo'],
    ['merge', task, '-y'],
    ['send', task, `write: ${task}-more.txt 2 // commit: Twice`],
  ])
    expect(await ground.ags(...args)).toMatchObject({ code: 0 });
  while (ground.processes().some(({ role }) => role === 'runner')) await sleep(50);
  remember(ground, of);
  expect(await ground.ags('merge', task, '-y')).toMatchObject({ code: 0 });
  expect(await ground.ags('rm', '--yes', task)).toMatchObject({ code: 0 });
  const found = (one: Ledger): string[] => findDamage(ground, one).filter((text) => text.includes('more than once'));
  expect(found(of)).toEqual([]);
  expect(found({ ...of, wentOn: new Set() })).toEqual([expect.stringContaining(`${task} is on main`)]);
  expect(await ground.ags('undo')).toMatchObject({ code: 0 });
  expect(await ground.ags('undo')).toMatchObject({ code: 0 });
});

test('the checker finds changed user files, unexpected files and an inconsistent index', () => {
  ground.machine.write('own.txt', 'overwritten\n');
  ground.machine.write('f1.txt', 'new\n');
  ground.machine.write('unexpected.txt', 'x\n');
  git('add', 'f1.txt');
  expect(damage()).toEqual([
    'own.txt of the user was changed',
    'the work tree has unexpected changes: f1.txt unexpected.txt; allowed: none',
    'the index differs from main: f1.txt',
  ]);
  git('reset', '-q', 'f1.txt');
  git('checkout', '-q', 'f1.txt');
  rmSync(join(ground.machine.project, 'unexpected.txt'));
  ground.machine.write('own.txt', OWN['own.txt']);
});

test('removing a task whose work reached main another way loses nothing; removing unmerged work does', async () => {
  const goal = (text: string): string => `write: ${TASK}/a.txt ${text} // commit: ${text}`;
  for (const [name, text] of [
    ['same', 'one'],
    ['other', 'another'],
  ] as const)
    expect((await ground.ags('start', `${TAG}-${name}`, goal(text), '-a', 'demo', '--base', ledger.begin)).code).toBe(
      0,
    );
  remember(ground, ledger);
  expect([...ledger.precious]).toEqual([`${TAG}-other`]);
  expect((await ground.ags('rm', '--yes', `${TAG}-same`, `${TAG}-other`)).code).toBe(0);
  expect(damage()).toEqual([expect.stringMatching(`^${TAG}-other is gone with its work; last event: .*run.ended`)]);
  ledger.precious.clear();
});

test('removing a task whose work was applied to the work tree loses nothing', async () => {
  const name = `${TAG}-applied`;
  expect((await ground.ags('start', name, `write: ${name}.txt 1 // commit: One`, '-a', 'demo')).code).toBe(0);
  remember(ground, ledger);
  expect([...ledger.precious]).toEqual([name]);
  expect((await ground.ags('apply', name)).code).toBe(0);
  remember(ground, ledger);
  expect([...ledger.precious]).toEqual([]);
  rmSync(join(ground.machine.project, `${name}.txt`));
  await ground.ags('rm', '--yes', name);
  expect(damage()).toEqual([]);
});

test('the checker finds a task that disappeared with its work', () => {
  ledger.precious.add('never-was');
  expect(damage()).toEqual(['never-was is gone with its work; last event: ']);
  ledger.precious.delete('never-was');
});

test('the checker finds orphaned processes, control groups, mounts, locks, sockets, temporary files and branches', async () => {
  const child = spawn('sleep', ['300'], { env: ground.machine.env });
  const planted = [
    at('queue.lock'),
    at('tasks', TASK, 'run.json.12.tmp'),
    at('tasks', TASK, 'control'),
    at('tasks', '.new-1-x'),
    join(merges(), 'pending.json.12.tmp'),
    join(ground.machine.home, '.cache/ags/plan-x'),
    join(ground.machine.project, '.ags-tmp-1'),
    join(ground.machine.project, '.git/index.lock'),
    `/tmp/ags-${TAG}.sock`,
  ];
  for (const file of planted) appendFileSync(file, '');
  git('update-ref', 'refs/heads/ags/orphan', 'main');
  const group = '/sys/fs/cgroup/pids';
  const made = join(group, `ags-${TAG}-x.1.1.1`);
  const hasGroup = tryTo(() => mkdirSync(made));
  const where = ground.machine.project.replace(/project$/, 'mounted');
  ground.sh(`mkdir ${where}; mount -t tmpfs tmpfs ${where}`);
  const left = await findLeft(ground, TAG, 0);
  ground.sh(`umount ${where}; rmdir ${where}`);
  if (hasGroup) tryTo(() => rmSync(made, { recursive: false }));
  ground.sh(`rmdir ${made} || true`);
  git('update-ref', '-d', 'refs/heads/ags/orphan');
  for (const file of planted) rmSync(file);
  child.kill('SIGKILL');
  expect(left.map((one) => one.replace(/\d{3,}/g, 'N').slice(0, 40))).toHaveLength(
    planted.length + 3 + (hasGroup ? 1 : 0),
  );
  for (const word of [
    'process',
    'mount',
    'queue.lock',
    'run.json.12.tmp',
    'control',
    '.new-1-x',
    'pending.json.12.tmp',
    'plan-x',
    '.ags-tmp-1',
    'index.lock',
    '.sock',
    'ags/orphan',
    ...(hasGroup ? ['control group'] : []),
  ])
    expect(left).toContainEqual(expect.stringContaining(word));
  expect(await findLeft(ground, TAG)).toEqual([]);
});

function tryTo(act: () => void): boolean {
  try {
    act();
    return true;
  } catch {
    return false;
  }
}
