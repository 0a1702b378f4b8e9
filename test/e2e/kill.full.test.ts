// test/e2e/kill.full.test.ts: kill -9 at any moment. No process and no mount stays, every file of the project is its old or its
// new self, no change is lost, and the next command works.
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine, type Machine } from '../harness.ts';
import { leftovers, sandboxProcesses, signalAgs } from './leftovers.ts';
import { openScreen } from './screen.ts';

const ROUNDS = 16;
const FILES = Array.from({ length: 40 }, (_, i) => `f${i}.txt`);

/** The moments of a command that takes `wholeMs`, from the first to a little after the last, the early ones closer together. */
const moments = (rounds: number, wholeMs: number): number[] =>
  Array.from({ length: rounds }, (_, i) => (i / rounds) ** 1.3 * wholeMs * 1.1);

async function howLong(work: () => Promise<unknown>): Promise<number> {
  const begun = Date.now();
  await work();
  return Date.now() - begun;
}

/** On a machine that is busy now and then, the shortest of some is nearest to the truth: a moment after the end is none. */
async function atLeast(work: () => Promise<unknown>): Promise<number> {
  return Math.min(await howLong(work), await howLong(work), await howLong(work));
}

/** Starts it, kills it after a while, and waits until it is dead. */
async function killed(machine: Machine, args: readonly string[], afterMs: number): Promise<boolean> {
  const child = machine.start(args);
  const ended = new Promise<boolean>((resolve) => child.on('exit', (_code, signal) => resolve(signal === 'SIGKILL')));
  child.stdout?.resume();
  child.stderr?.resume();
  child.stdin?.end();
  await Promise.race([sleep(afterMs), ended]);
  child.kill('SIGKILL');
  return ended;
}

/** Without those on their way in or out, which `ags cleanup` removes: they have a dot before their name. */
const whole = (machine: Machine): string[] => machine.tasks().filter((name) => !name.startsWith('.'));

function strayFiles(machine: Machine): string[] {
  return readdirSync(machine.project).filter((name) => name.startsWith('.ags-tmp-'));
}

describe.each(CALLERS)('as %s', (caller) => {
  test('while a sandbox starts, runs and is cleared away', async () => {
    using machine = createMachine(caller);
    await machine.ags(['exec', '--', 'true']);
    const wholeMs = await atLeast(() => machine.ags(['exec', '--', 'true']));
    let hits = 0;
    for (const [i, afterMs] of moments(ROUNDS, wholeMs).entries()) {
      const command = i % 3 === 0 ? ['true'] : ['sh', '-c', 'echo x > src/a.txt; sleep 77777'];
      if (await killed(machine, ['exec', '--review', 'later', '--', ...command], afterMs)) hits++;
      expect({ afterMs, left: await leftovers(machine) }).toEqual({ afterMs, left: [] });
    }
    expect(hits).toBeGreaterThan(ROUNDS / 2);
    expect(machine.git('status', '--short')).toBe('');
    expect(await machine.ags(['exec', '--', 'cat', 'src/a.txt'])).toMatchObject({
      code: 0,
      stdout: 'one\ntwo\nthree\n',
    });
    expect(await machine.ags(['cleanup', '--all', '--older-than', '0s', '--yes'])).toMatchObject({ code: 0 });
    expect(machine.tasks()).toEqual([]);
    expect(readdirSync(machine.stateDir).toSorted()).toEqual(['tasks', 'whiteout']);
  }, 180_000);

  test('while changes are taken out of a sandbox', async () => {
    using machine = createMachine(caller, { files: Object.fromEntries(FILES.map((name) => [name, 'old\n'])) });
    const change = ['exec', '--name', 'work', '--', 'sh', '-c', 'for f in f*.txt; do echo new > $f; done'];
    const runMs = await howLong(() => machine.ags(['exec', '--', 'true']));
    const wholeMs = await howLong(() => machine.ags(change));
    await machine.ags(['review', '--discard-all']);
    for (const afterMs of moments(8, wholeMs - runMs)) {
      await killed(machine, change, runMs + afterMs);
      expect({ afterMs, left: await leftovers(machine) }).toEqual({ afterMs, left: [] });
      expect(machine.git('status', '--short')).toBe('');
      for (const task of whole(machine)) {
        const { changes } = JSON.parse((await machine.ags(['review', task, '--json'])).stdout) as {
          changes: unknown[];
        };
        // Killed before the command had ended, or after: what it has done by then is there.
        expect(changes.length).toBeLessThanOrEqual(FILES.length);
        await machine.ags(['review', task, '--discard-all']);
      }
      for (const task of whole(machine)) await machine.ags(['rm', task, '--yes']);
    }
    await machine.ags(['cleanup', '--yes']);
    expect(machine.tasks()).toEqual([]);
  }, 120_000);

  test('while changes are put into the project: each file is old or new, and the rest is taken the next time', async () => {
    using machine = createMachine(caller, { files: Object.fromEntries(FILES.map((name) => [name, 'old\n'])) });
    const many = 'for f in f*.txt; do echo new > $f; done; for i in $(seq 1 60); do echo made > made$i.txt; done';
    expect((await machine.ags(['exec', '--name', 'work', '--', 'sh', '-c', many])).code).toBe(0);
    const lookMs = await atLeast(() => machine.ags(['review', '--json']));
    let rounds = 0;
    for (; rounds < 25 && whole(machine).length > 0; rounds++) {
      await killed(machine, ['review', '--accept-all'], lookMs * 0.3 + rounds * 12);
      for (const name of FILES) expect(['old\n', 'new\n']).toContain(machine.read(name));
      for (const name of readdirSync(machine.project).filter((one) => one.startsWith('made')))
        expect(machine.read(name)).toBe('made\n');
    }
    if (whole(machine).length > 0) {
      const last = await machine.ags(['review', '--accept-all']);
      // Killed when everything was taken and only the task was left to be removed: that, and nothing else, is no task to review.
      if (last.code !== 0)
        expect(last).toMatchObject({
          code: 3,
          stderr: expect.stringContaining('No task of this project has changes to review.') as string,
        });
    }
    expect(await machine.ags(['cleanup', '--yes'])).toMatchObject({ code: 0 });
    expect(rounds).toBeGreaterThan(3);
    expect(machine.tasks()).toEqual([]);
    expect(strayFiles(machine)).toEqual([]);
    expect(FILES.map((name) => machine.read(name))).toEqual(FILES.map(() => 'new\n'));
    expect(readdirSync(machine.project).filter((name) => name.startsWith('made')).length).toBe(60);
    expect(await leftovers(machine)).toEqual([]);
  }, 120_000);

  test('while a review takes the changes out and shows them: the next one shows the same', async () => {
    using machine = createMachine(caller, { files: Object.fromEntries(FILES.map((name) => [name, 'old\n'])) });
    const script = 'for f in f*.txt; do echo new > $f; done';
    await machine.ags(['exec', '--name', 'work', '--', 'sh', '-c', script]);
    const [id = ''] = machine.tasks();
    // As it was when the sandbox had just ended.
    const forget = (): void => {
      for (const name of ['capture.json', 'changes.json', 'staging.git'])
        rmSync(join(machine.stateDir, 'tasks', id, name), { recursive: true, force: true });
    };
    forget();
    const whole = async (): Promise<string> => (await machine.ags(['review', '--json'])).stdout;
    const wholeMs = await atLeast(() => {
      forget();
      return whole();
    });
    const expected = await whole();
    let hits = 0;
    for (const afterMs of moments(12, wholeMs)) {
      forget();
      if (await killed(machine, ['review', '--json'], afterMs)) hits++;
      expect({ afterMs, left: await leftovers(machine) }).toEqual({ afterMs, left: [] });
      expect({ afterMs, shown: await whole() }).toEqual({ afterMs, shown: expected });
      expect(machine.git('status', '--short')).toBe('');
    }
    expect(hits).toBeGreaterThan(3);
    expect(await machine.ags(['review', '--accept-all'])).toMatchObject({ code: 0 });
    expect(FILES.map((name) => machine.read(name))).toEqual(FILES.map(() => 'new\n'));
    expect(machine.tasks()).toEqual([]);
  }, 120_000);

  test('while a review waits for an answer: nothing is decided, and the next one asks the same', async () => {
    using machine = createMachine(caller, { files: { 'a.txt': 'old\n', 'b.txt': 'old\n' } });
    await machine.ags(['exec', '--name', 'work', '--', 'sh', '-c', 'echo new > a.txt; echo new > b.txt']);
    using screen = await openScreen(machine);
    for (const keys of ['', 'y', 'yd']) {
      screen.type('ags review\n');
      await screen.until(/\[1\/2\][\s\S]*> ?$/);
      if (keys !== '') screen.type(keys);
      if (keys !== '') await screen.until(/\[2\/2\][\s\S]*> ?$/);
      signalAgs(machine, 'KILL');
      expect((await screen.ended()).code).toBe(137);
      expect([machine.read('a.txt'), machine.read('b.txt'), machine.tasks().length]).toEqual(['old\n', 'old\n', 1]);
      await screen.clear();
    }
    screen.type('ags review\n');
    await screen.until(/\[1\/2\][\s\S]*> ?$/);
    screen.type('yy');
    expect(await screen.ended()).toMatchObject({ code: 0 });
    expect([machine.read('a.txt'), machine.read('b.txt'), machine.tasks()]).toEqual(['new\n', 'new\n', []]);
  });

  test('when bubblewrap itself is killed, the sandbox ends and ags says so by its exit code', async () => {
    using machine = createMachine(caller);
    await machine.ags(['exec', '--', 'true']);
    for (const which of [0, 1]) {
      const child = machine.start(['exec', '--', 'sh', '-c', 'setsid sleep 77777 & echo ready; sleep 77777']);
      await new Promise((resolve) => child.stdout?.once('data', resolve));
      const bwraps = sandboxProcesses(machine)
        .filter((one) => /^\d+ \S*bwrap /.test(one))
        .map((one) => Number.parseInt(one, 10))
        .toSorted((a, b) => a - b);
      const ended = new Promise((resolve) => child.on('exit', (code) => resolve(code)));
      // The outer one watches; the inner one is the first process of the sandbox.
      expect(bwraps).toHaveLength(2);
      process.kill(bwraps[which] ?? process.pid, 'SIGKILL');
      expect(await ended).toBe(137);
      expect(await leftovers(machine)).toEqual([]);
    }
    expect(machine.tasks()).toEqual([]);
  });
});
