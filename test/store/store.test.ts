// test/store/store.test.ts: the event log, task files, locks, and trees that are hard to remove.
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { removeTree, replaceFile } from '../../src/lib/files.ts';
import { isAlive, ownIdentity } from '../../src/lib/process/liveness.ts';
import { tryLock } from '../../src/lib/process/lock.ts';
import { advance } from '../../src/protocol/run-state.ts';
import { appendEvent, readEvents } from '../../src/store/events.ts';

function scratch(): { path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'ags-store-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

const DEAD = JSON.stringify({ pid: 4_194_303, startTicks: 'another boot:1' });

const at = new Date('2026-01-02T03:04:05Z');

test('events are numbered and chained', () => {
  using dir = scratch();
  const log = join(dir.path, 'events.jsonl');
  for (const type of ['review.dropped', 'review.taken', 'review.dropped'] as const)
    appendEvent(log, { task: 't', at }, { type, paths: [] });
  const { events, brokenAt } = readEvents(log);
  expect(events.map((event) => [event.seq, event.type])).toEqual([
    [1, 'review.dropped'],
    [2, 'review.taken'],
    [3, 'review.dropped'],
  ]);
  expect(brokenAt).toBe(null);
});

test.each([
  ['changed', (lines: string[]) => lines.map((line) => line.replace('review.taken', 'review.faked'))],
  ['removed', (lines: string[]) => [lines[0] ?? '', lines[2] ?? '']],
  ['swapped', (lines: string[]) => [lines[0] ?? '', lines[2] ?? '', lines[1] ?? '']],
])('an event that was %s afterwards is detected', (_, tamper) => {
  using dir = scratch();
  const log = join(dir.path, 'events.jsonl');
  for (const type of ['review.dropped', 'review.taken', 'review.dropped'] as const)
    appendEvent(log, { task: 't', at }, { type, paths: [] });
  writeFileSync(log, `${tamper(readFileSync(log, 'utf8').trim().split('\n')).join('\n')}\n`);
  expect(readEvents(log).brokenAt).not.toBe(null);
});

test('a line cut by a power failure does not stop the log', () => {
  using dir = scratch();
  const log = join(dir.path, 'events.jsonl');
  appendEvent(log, { task: 't', at }, { type: 'review.dropped', paths: [] });
  appendFileSync(log, '{"seq":2,"at":"20');
  appendFileSync(log, '\n');
  appendEvent(log, { task: 't', at }, { type: 'review.taken', paths: [] });
  expect(readEvents(log).events.at(-1)?.seq).toBe(2);
});

test('a file is replaced completely, and a failed write keeps the old one', () => {
  using dir = scratch();
  const file = join(dir.path, 'task.json');
  replaceFile(file, 'old');
  expect(() => replaceFile(join(dir.path, 'missing/task.json'), 'new')).toThrow('ENOENT');
  replaceFile(file, 'new', { durable: true });
  expect(readFileSync(file, 'utf8')).toBe('new');
});

test('a lock has one owner, and a dead process owns none', async () => {
  using dir = scratch();
  const path = join(dir.path, 'lock');
  const first = tryLock(path);
  expect(first).not.toBe(null);
  expect(tryLock(path)).toBe(null);
  first?.[Symbol.dispose]();
  const child = spawn('true');
  await new Promise((resolve) => child.on('close', resolve));
  writeFileSync(path, JSON.stringify({ pid: child.pid, startTicks: ownIdentity().startTicks }));
  using second = tryLock(path);
  expect(second).not.toBe(null);
});

test('when many processes find a dead owner at once, one takes the lock over', async () => {
  using dir = scratch();
  // Each round has its own lock and start time; no process releases a lock.
  const program = `const { tryLock } = await import(process.argv[1]);
    for (let round = 0, at = Number(process.argv[3]); round < 30; round++, at += 20) {
      while (Date.now() < at);
      if (tryLock(process.argv[2] + round) !== null) console.log(round);
    }
    console.log('over');
    process.stdin.resume();`;
  const path = join(dir.path, 'lock-');
  for (let round = 0; round < 30; round++) writeFileSync(`${path}${round}`, round % 2 === 0 ? '' : DEAD);
  const lock = new URL('../../dist/lib/process/lock.js', import.meta.url).href;
  const begin = String(Date.now() + 1500);
  const children = Array.from({ length: 6 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', program, lock, path, begin]),
  );
  const winners = await Promise.all(
    children.map(async (child) => {
      let out = '';
      await new Promise<void>((resolve) =>
        child.stdout.on('data', (chunk: Buffer) => {
          out += chunk.toString('utf8');
          if (out.endsWith('over\n')) resolve();
        }),
      );
      return out.split('\n').filter((line) => /^\d+$/.test(line));
    }),
  );
  // Every owner lives until the last process has looked.
  for (const child of children) child.stdin.end();
  expect(
    winners
      .flat()
      .map(Number)
      .toSorted((a, b) => a - b),
  ).toEqual(Array.from({ length: 30 }, (_, round) => round));
});

test('a reused pid does not count as the old process', () => {
  expect(isAlive(ownIdentity())).toBe(true);
  expect(isAlive({ pid: process.pid, startTicks: 'another boot:1' })).toBe(false);
  expect(isAlive({ pid: process.pid, startTicks: '' })).toBe(false);
});

test('a tree is removed, whatever an agent did to it', async () => {
  using dir = scratch();
  const root = join(dir.path, 'task');
  mkdirSync(join(root, 'closed/inner'), { recursive: true });
  writeFileSync(join(root, 'closed/inner/file'), '');
  const deep = 'd'.repeat(200);
  // Deeper than any path can name, made step by step.
  const shell = `i=0; while [ $i -lt 40 ]; do mkdir ${deep} && cd ${deep} || exit 1; i=$((i+1)); done`;
  await new Promise<void>((resolve) =>
    spawn('sh', ['-c', `${shell}; chmod 000 ${root}/closed/inner ${root}/closed`], { cwd: root }).on('close', () =>
      resolve(),
    ),
  );
  removeTree(root);
  expect(existsSync(root)).toBe(false);
});

test('a run changes state only as the table allows', () => {
  expect(advance('running', 'ready')).toBe('ready');
  expect(() => advance('discarded', 'ready')).toThrow('illegal move of a run: from discarded to ready');
});
