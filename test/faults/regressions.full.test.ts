// test/faults/regressions.full.test.ts: reproduces the faults that rounds have found.
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stagingGit } from '../../src/git/host-git.ts';
import { writeHostTree, type HostFile } from '../../src/git/staging/host-tree.ts';
import { ownerGit, readRef } from '../../src/git/owner-git.ts';
import { openEvents, readEvents } from '../../src/store/events.ts';
import { explainDiskErrors } from '../../src/run/disk-errors.ts';
import { putMessage, takeMessage } from '../../src/agent-run/inbox.ts';
import { openOutput } from '../../src/run/output-reader.ts';
import { CALLERS, giveTo } from '../harness.ts';
import { eventsOf, findDamage, list, type Ledger } from './checker.ts';
import { CAN_FILL, createGround, endIfThere, readIfThere, type Ground } from './ground.ts';
import { createLedger } from './rounds.ts';

let ground: Ground;
let ledger: Ledger;
beforeAll(async () => {
  ground = await createGround(CALLERS[0] ?? 'user');
  ledger = createLedger(ground);
});
afterAll(() => ground[Symbol.asyncDispose]());

async function work(name: string, goal: string, ...more: string[]): Promise<void> {
  const made = await ground.ags('start', name, goal, '-a', 'demo', ...more);
  expect(made.code, made.stdout + made.stderr).toBe(0);
}

const at = (...parts: string[]): string => join(ground.stateDir, ...parts);
const ended = async (): Promise<void> => {
  while (ground.processes().some(({ role }) => role === 'runner')) await sleep(50);
};
/** Damage of this task only: another test reports the rest. */
const damageOf = (name: string): string[] => findDamage(ground, ledger).filter((one) => one.includes(name));

/** Writes the run's file as a killed runner leaves it. */
function cutOff(name: string, ...forget: string[]): void {
  const file = at('tasks', name, 'run.json');
  const run = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  const kept = Object.entries(run).filter(([key]) => !forget.includes(key));
  const runner = { pid: 4_194_303, startTicks: 'another boot:1' };
  writeFileSync(file, JSON.stringify({ ...Object.fromEntries(kept), state: 'running', runner }));
}

test('a merge that is killed after it is reported is not reported again', async () => {
  await work('told', 'write: told.txt 1 // commit: Told');
  expect((await ground.ags('merge', 'told', '-y')).code).toBe(0);
  const dir = at('merges', readdirSync(at('merges'))[0] ?? '');
  const record = JSON.parse(readFileSync(join(dir, '000001.json'), 'utf8')) as unknown;
  const pending = { record, files: join(dir, 'place-x/files'), workTree: null, index: [] };
  writeFileSync(join(dir, 'pending.json'), JSON.stringify(pending));
  expect((await ground.ags('list')).code).toBe(0);
  expect(damageOf('told')).toEqual([]);
});

test("a merge while the task's runner is queued keeps event numbers consecutive", async () => {
  await work('waits', 'write: waits.txt 1 // commit: Waits', '--max-parallel', '1');
  const other = ground.start('start', 'other', 'wait: 600', '-a', 'demo', '--max-parallel', '9');
  while (!eventsOf(ground.stateDir, 'other').some(({ type }) => type === 'run.started')) await sleep(50);
  expect((await ground.ags('send', 'waits', 'write: more.txt 2')).code).toBe(0);
  while (!eventsOf(ground.stateDir, 'waits').some(({ type }) => type === 'run.waiting')) await sleep(50);
  const merged = await ground.ags('merge', 'waits', '-y');
  expect(merged.code, merged.stderr).toBe(0);
  expect((await ground.ags('stop', 'other')).code).toBe(0);
  await other.ended;
  await ended();
  expect(damageOf('waits')).toEqual([]);
  expect(ground.machine.git('show', 'ags/waits:more.txt')).toBe('2\n');
});

test('a message that a killed runner had accepted is delivered by the next runner', async () => {
  await work('message', 'write: first.txt 1');
  const inbox = at('tasks/message/inbox');
  // A late kill comes after the delivery; then the test repeats it.
  for (let n = 1; list(inbox).length === 0; n++) {
    expect(n).toBeLessThan(20);
    const text = `write: second.txt ${n}`;
    expect((await ground.ags('send', 'message', text)).code).toBe(0);
    const { runner } = JSON.parse(readFileSync(at('tasks/message/run.json'), 'utf8')) as { runner: { pid: number } };
    while (list(inbox).some((name) => name.endsWith('.txt'))) await sleep(1);
    endIfThere(runner.pid);
    await ended();
    ledger.messages.push({ task: 'message', text });
  }
  const second = ledger.messages.at(-1)?.text.split(' ').at(-1);
  expect(damageOf('message')).toEqual([]);
  expect((await ground.ags('send', 'message', 'write: third.txt 3')).code).toBe(0);
  await ended();
  expect(ground.machine.git('show', 'ags/message:second.txt')).toBe(`${second}\n`);
  expect(ground.machine.git('show', 'ags/message:third.txt')).toBe('3\n');
});

test("messages keep their order when the clock goes back, and a dead runner's message is not overwritten", () => {
  const place = { inbox: at('inbox-order') };
  putMessage(place, 'first', 5000);
  // The runner accepts the message and dies before it delivers it.
  expect(takeMessage(place)?.text).toBe('first');
  putMessage(place, 'second', 5000);
  putMessage(place, 'third', 2000);
  putMessage(place, 'fourth', 6000);
  const message = takeMessage(place);
  expect(message?.text).toBe('first\n\nsecond\n\nthird\n\nfourth');
  message?.drop();
  expect(list(place.inbox)).toEqual([]);
});

test('a clock that jumps forward does not shorten the time of checks', async () => {
  await work('checked', 'write: checked.txt 1');
  const config = '../../.config/ags/config.yaml';
  const before = ground.machine.read(config);
  const [first, go] = ['echo begun; while ! test -s go; do sleep 0.1; done', 'true'];
  ground.machine.write(config, `${before}checks: {timeout: 10m, run: ['${first}', '${go}']}\n`);
  ground.movable = true;
  const checking = ground.start('check', 'checked');
  ground.movable = false;
  await once(checking.child.stdout as Readable, 'data');
  ground.moveClock(86_400);
  const inside = ground.processes().find(({ command }) => command.includes('test -s go'));
  writeFileSync(`/proc/${inside?.pid}/cwd/go`, 'go');
  const { code, stdout, stderr } = await checking.ended;
  ground.moveClock(0);
  ground.machine.write(config, before);
  expect(code, stdout + stderr).toBe(0);
});

test('checks whose end cannot be written do not count as running', async () => {
  await work('unwritten', 'write: unwritten.txt 1');
  const checking = ground.start('check', 'unwritten', '--run', 'echo begun; sleep 3');
  await once(checking.child.stdout as Readable, 'data');
  // A directory blocks the path of the next record.
  mkdirSync(at(`tasks/unwritten/checks.json.${checking.child.pid}.tmp`));
  expect((await checking.ended).code).not.toBe(0);
  expect(list(at('tasks/unwritten'))).not.toContain('checks.json');
});

test('an agent that was killed before its first output receives its goal again', async () => {
  await work('forgot', 'append: log.txt goal');
  cutOff('forgot', 'session');
  expect((await ground.ags('send', 'forgot', 'append: log.txt more')).code).toBe(0);
  await ended();
  expect(ground.machine.git('show', 'ags/forgot:log.txt')).toBe('goal\ngoal\nmore\n');
});

test.runIf(CAN_FILL)('work that a full disk blocked is kept and reaches the branch once there is space', async () => {
  await work('full', 'say: nothing to do');
  const running = ground.start('send', 'full', 'write: full.txt 1 // commit: Full // wait: 1');
  while (!eventsOf(ground.stateDir, 'full').some(({ type, outcome }) => type === 'tool.finished' && outcome === 'done'))
    await sleep(20);
  await sleep(300);
  ground.fillDisk();
  await running.ended;
  await ended();
  ground.freeDisk();
  expect((await ground.ags('cleanup', '--yes')).code).toBe(0);
  expect(await ground.ags('diff', 'full', '--name-only')).toMatchObject({ code: 0, stdout: 'full.txt\n' });
  expect(damageOf('full')).toEqual([]);
});

test('removing a task that was killed before it recorded its branch also removes the branch', async () => {
  await work('unknown', 'write: unknown.txt 1');
  cutOff('unknown', 'result');
  expect((await ground.ags('rm', '--yes', 'unknown')).code).toBe(0);
  expect(ground.machine.git('for-each-ref', 'refs/heads/ags/unknown')).toBe('');
});

test('a task whose restart was killed still exists and can be restarted', async () => {
  await work('anew', 'write: anew.txt 1');
  // A directory blocks the restart here.
  mkdirSync(at('tasks/anew/earlier/1/staging.git/in-the-way'), { recursive: true });
  giveTo(at('tasks/anew/earlier'), ground.machine.uid);
  expect((await ground.ags('restart', 'anew')).code).not.toBe(0);
  expect((await ground.ags('exec', '--', 'true')).code).toBe(0);
  expect((await ground.ags('show', 'anew')).code).toBe(0);
  expect((await ground.ags('restart', 'anew')).code).toBe(0);
  expect(ground.machine.git('show', 'ags/anew:anew.txt')).toBe('1\n');
  expect((await ground.ags('rm', '--yes', 'anew')).code).toBe(0);
  expect(ground.machine.git('for-each-ref', 'refs/heads/ags/anew*')).toBe('');
});

test.runIf(CAN_FILL)(
  'start, check, merge, restart and send report a full disk in one sentence, not as a bug',
  async () => {
    await work('said', 'write: said.txt 1');
    ground.fillDisk();
    const checked = await ground.ags('check', 'said', '--run', 'true');
    const started = await ground.ags('start', 'none', 'write: none.txt 1', '-a', 'demo');
    const merged = await ground.ags('merge', 'said', '-y');
    const restarted = await ground.ags('restart', 'said', '-d');
    const sent = await ground.ags('send', 'said', 'write: more.txt 1');
    ground.freeDisk();
    expect(list(at('tasks/said')).filter((name) => /lock/.test(name))).toEqual([]);
    for (const { code, stderr } of [checked, started, merged, restarted, sent]) {
      expect(code, stderr).toBe(9);
      expect(stderr).toContain('There is no room left on the disk');
    }
    expect((await ground.ags('merge', 'said', '-y')).code).toBe(0);
  },
);

test.runIf(CAN_FILL)('a disk that fills up when a service is ready ends no command silently', async () => {
  const config = '../../.config/ags/config.yaml';
  const before = ground.machine.read(config);
  const service = `{run: 'echo up; exec sleep 60', ports: [7777], ready: {command: 'sleep 0.5'}}`;
  ground.machine.write(config, `${before}services:\n  slow: ${service}\n`);
  const running = ground.start('exec', '--name', 'served', '--review', 'later', '--', 'sleep', '2');
  const isUp = (): boolean =>
    list(at('tasks')).some((name) => (readIfThere(at('tasks', name, 'services/tasks/slow/service.log')) ?? '') !== '');
  while (!isUp() && !running.isOver()) await sleep(5);
  expect(running.isOver()).toBe(false);
  // Repeats: a process that ends for lack of space frees some.
  for (; !running.isOver(); await sleep(20)) ground.fillDisk();
  const { stderr } = await running.ended;
  ground.freeDisk();
  ground.machine.write(config, before);
  expect(stderr).toMatch(/no room left|the disk is nearly full/);
  expect(stderr).not.toMatch(/bug in ags|^node:/m);
});

test('a full disk is reported in one sentence even if the clean-up fails for it too', async () => {
  const refuse = (): never => {
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  };
  const told = explainDiskErrors({ stateDir: '/state', cacheDir: '/cache' }, async () => {
    using _first = { [Symbol.dispose]: refuse };
    using _second = { [Symbol.dispose]: refuse };
    refuse();
  });
  await expect(told).rejects.toMatchObject({ code: 'disk.full' });
});

test.runIf(CAN_FILL)('removing a task with an active mount succeeds, and clean-up removes the rest later', async () => {
  await work('mounted', 'write: mounted.txt 1');
  const inside = ground.machine.stateDir;
  ground.sh(`mount -t tmpfs tmpfs ${inside}/tasks/mounted/run/merged`);
  expect(await ground.ags('rm', '--yes', 'mounted')).toMatchObject({ code: 0 });
  // Clean-up reports what it could not remove.
  const cleaned = await ground.ags('cleanup', '--yes');
  expect({ code: cleaned.code, said: cleaned.stdout + cleaned.stderr }).toEqual({
    code: 1,
    said: expect.stringContaining('.removing-mounted') as string,
  });
  expect(cleaned.stderr).not.toContain('bug');
  expect(list(at('tasks'))).toContain('.removing-mounted');
  ground.sh(`umount ${inside}/tasks/.removing-mounted/run/merged`);
  expect(await ground.ags('cleanup', '--yes')).toMatchObject({ code: 0 });
  expect(list(at('tasks')).filter((name) => name.includes('mounted'))).toEqual([]);
});

test('output of checks and services is shown on a full disk without a crash', () => {
  const shown: string[] = [];
  using printed = openOutput('/dev/full', (text) => shown.push(text));
  printed.text('one\n');
  printed.bytes(Buffer.from('two\n'));
  printed.end();
  expect([shown.join(''), printed.tail()]).toEqual(['one\ntwo\n', ['one', 'two']]);
});

test('a killed git is not reported as a bug', async () => {
  const done = stagingGit('/nonexistent', ['-c', 'alias.gone=!kill -9 $PPID', 'gone']);
  await expect(done).rejects.toMatchObject({ code: 'program.killed' });
});

test('a git that is killed during a checkout is not reported as a bug', async () => {
  const staging = join(ground.machine.root, 'taking.git');
  await stagingGit('/', ['init', '--quiet', '--bare', staging]);
  const importers = (): number[] =>
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => readIfThere(`/proc/${pid}/cmdline`)?.includes(`${staging}\0fast-import`))
      .map(Number);
  function* files(): Generator<HostFile> {
    yield { path: 'a', mode: '100644', content: { bytes: 1, chunks: [Buffer.from('a')] } };
    while (importers().length === 0);
    for (const pid of importers()) endIfThere(pid);
    yield { path: 'b', mode: '100644', content: { bytes: 1, chunks: [Buffer.from('b')] } };
  }
  await expect(writeHostTree(staging, files())).rejects.toMatchObject({ code: 'program.killed' });
});

test('a git that is killed or fails while it looks for a branch does not count as a missing branch', async () => {
  const gitDir = join(ground.machine.project, '.git');
  expect(await readRef(gitDir, 'refs/heads/main')).toMatch(/^[0-9a-f]{40}$/);
  expect(await readRef(gitDir, 'refs/heads/none')).toBe(null);
  await expect(ownerGit(gitDir, ['-c', 'alias.gone=!kill -9 $PPID', 'gone'])).rejects.toMatchObject({
    code: 'program.killed',
  });
  await expect(readRef(ground.machine.home, 'refs/heads/main')).rejects.toThrow('git for-each-ref failed');
});

test.runIf(CAN_FILL)('an unfinished line on a full disk does not corrupt the next event', () => {
  const file = at('events.jsonl');
  using events = openEvents(file, 't', () => new Date());
  events.append({ type: 'agent.said', text: 'before' });
  ground.fillDisk();
  expect(() => events.append({ type: 'agent.said', text: 'x'.repeat(100_000) })).toThrow('ENOSPC');
  ground.freeDisk();
  events.append({ type: 'agent.said', text: 'after' });
  const { events: all, brokenAt } = readEvents(file);
  expect({ brokenAt, texts: all.map((event) => ('text' in event ? event.text : null)) }).toEqual({
    brokenAt: null,
    texts: ['before', 'after'],
  });
});
