// test/e2e/kill.full.test.ts: kill -9 at any moment. No process or mount stays, every file of the project is either old or new,
// no change is lost, and the next command works.
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine, type Machine } from '../harness.ts';
import { killed, leftovers, sandboxProcesses, signalAgs } from './leftovers.ts';
import { openScreen } from './screen.ts';

const ROUNDS = 16;
const FILES = Array.from({ length: 40 }, (_, i) => `f${i}.txt`);

/** Delays from the start of a command to a little after its end at `wholeMs`, the early ones closer together. */
const moments = (rounds: number, wholeMs: number): number[] =>
  Array.from({ length: rounds }, (_, i) => (i / rounds) ** 1.3 * wholeMs * 1.1);

async function howLong(work: () => Promise<unknown>): Promise<number> {
  const begun = Date.now();
  await work();
  return Date.now() - begun;
}

/** The shortest of three durations, because on a busy machine the others put too many kills after the end. */
async function atLeast(work: () => Promise<unknown>): Promise<number> {
  return Math.min(await howLong(work), await howLong(work), await howLong(work));
}

/** Tasks without those half made or half removed, which start with a dot and which `ags cleanup` removes. */
const whole = (machine: Machine): string[] => machine.tasks().filter((name) => !name.startsWith('.'));

function orphanFiles(machine: Machine): string[] {
  return readdirSync(machine.project).filter((name) => name.startsWith('.ags-tmp-'));
}

describe.each(CALLERS)('as %s', (caller) => {
  test('while a sandbox starts, runs and is removed', async () => {
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

  test('while changes are copied out of a sandbox', async () => {
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
        // The kill came before or after the end of the command, so any number of changes may exist.
        expect(changes.length).toBeLessThanOrEqual(FILES.length);
        await machine.ags(['review', task, '--discard-all']);
      }
      for (const task of whole(machine)) await machine.ags(['rm', task, '--yes']);
    }
    await machine.ags(['cleanup', '--yes']);
    expect(machine.tasks()).toEqual([]);
  }, 120_000);

  test('while changes are applied to the project: each file is old or new, and the next review takes the rest', async () => {
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
      // Only a task whose changes were all applied before the kill has nothing left to review.
      if (last.code !== 0)
        expect(last).toMatchObject({
          code: 3,
          stderr: expect.stringContaining('No task of this project has changes to review.') as string,
        });
    }
    expect(await machine.ags(['cleanup', '--yes'])).toMatchObject({ code: 0 });
    expect(rounds).toBeGreaterThan(3);
    expect(machine.tasks()).toEqual([]);
    expect(orphanFiles(machine)).toEqual([]);
    expect(FILES.map((name) => machine.read(name))).toEqual(FILES.map(() => 'new\n'));
    expect(readdirSync(machine.project).filter((name) => name.startsWith('made')).length).toBe(60);
    expect(await leftovers(machine)).toEqual([]);
  }, 120_000);

  test('while a review collects and shows the changes: the next one shows the same', async () => {
    using machine = createMachine(caller, { files: Object.fromEntries(FILES.map((name) => [name, 'old\n'])) });
    const script = 'for f in f*.txt; do echo new > $f; done';
    await machine.ags(['exec', '--name', 'work', '--', 'sh', '-c', script]);
    const [id = ''] = machine.tasks();
    // Restores the state right after the end of the sandbox.
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

  test('while a review waits for an answer: no answer is applied, and the next one asks the same', async () => {
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

  test('when bubblewrap itself is killed, the sandbox ends and ags exits with 137', async () => {
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
      // The outer process watches the inner one, the first process of the sandbox.
      expect(bwraps).toHaveLength(2);
      process.kill(bwraps[which] ?? process.pid, 'SIGKILL');
      expect(await ended).toBe(137);
      expect(await leftovers(machine)).toEqual([]);
    }
    expect(machine.tasks()).toEqual([]);
  });
});
