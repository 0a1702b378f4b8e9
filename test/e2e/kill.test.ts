// test/e2e/kill.test.ts: kill -9 at any moment. No process and no mount stays, every file of the project is its old or its
// new self, no change is lost, and the next command works.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine, type Machine } from '../harness.ts';
import { leftovers, sandboxProcesses } from './leftovers.ts';

const ROUNDS = 60;
const FILES = Array.from({ length: 40 }, (_, i) => `f${i}.txt`);

/** The moments of a command that takes `wholeMs`, from the first to a little after the last, the early ones closer together. */
const moments = (rounds: number, wholeMs: number): number[] =>
  Array.from({ length: rounds }, (_, i) => (i / rounds) ** 1.3 * wholeMs * 1.1);

async function howLong(work: () => Promise<unknown>): Promise<number> {
  const begun = Date.now();
  await work();
  return Date.now() - begun;
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
    const wholeMs = await howLong(() => machine.ags(['exec', '--', 'true']));
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
    const lookMs = await howLong(() => machine.ags(['review', '--json']));
    let rounds = 0;
    for (; rounds < 25 && whole(machine).length > 0; rounds++) {
      await killed(machine, ['review', '--accept-all'], lookMs * 0.3 + rounds * 12);
      for (const name of FILES) expect(['old\n', 'new\n']).toContain(machine.read(name));
      for (const name of readdirSync(machine.project).filter((one) => one.startsWith('made')))
        expect(machine.read(name)).toBe('made\n');
    }
    if (whole(machine).length > 0) expect(await machine.ags(['review', '--accept-all'])).toMatchObject({ code: 0 });
    expect(await machine.ags(['cleanup', '--yes'])).toMatchObject({ code: 0 });
    expect(rounds).toBeGreaterThan(3);
    expect(machine.tasks()).toEqual([]);
    expect(strayFiles(machine)).toEqual([]);
    expect(FILES.map((name) => machine.read(name))).toEqual(FILES.map(() => 'new\n'));
    expect(readdirSync(machine.project).filter((name) => name.startsWith('made')).length).toBe(60);
    expect(await leftovers(machine)).toEqual([]);
  }, 120_000);

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
      process.kill(bwraps[which] ?? 0, 'SIGKILL');
      expect(await ended).toBe(137);
      expect(await leftovers(machine)).toEqual([]);
    }
    expect(machine.tasks()).toEqual([]);
  });
});

describe.each(CALLERS)('at once, as %s', (caller) => {
  test('two reviews of one task: one works, the other is told so', async () => {
    using machine = createMachine(caller, { files: Object.fromEntries(FILES.map((name) => [name, 'old\n'])) });
    await machine.ags(['exec', '--name', 'work', '--', 'sh', '-c', 'for f in f*.txt; do echo new > $f; done']);
    const runs = await Promise.all([1, 2, 3].map(() => machine.ags(['review', '@', '--accept-all'])));
    const done = runs.filter((run) => run.code === 0);
    expect(done.length).toBeGreaterThanOrEqual(1);
    for (const run of runs.filter((one) => one.code !== 0)) {
      // Too early, or so late that the task was gone.
      expect(run.stderr).toMatch(/Another ags command is working on|has no tasks|no task/i);
      expect([3, 7]).toContain(run.code);
    }
    expect(done.map((run) => Number(/(\d+) taken/.exec(run.stderr)?.[1])).reduce((a, b) => a + b, 0)).toBe(
      FILES.length,
    );
    expect(FILES.map((name) => machine.read(name))).toEqual(FILES.map(() => 'new\n'));
    expect(machine.tasks()).toEqual([]);
  });

  test('twelve sandboxes over one repository, all writing the same file: none sees another', async () => {
    using machine = createMachine(caller);
    await machine.ags(['exec', '--', 'true']);
    const script =
      'echo $1 > src/a.txt; echo $1 > own-$1.txt; git -c user.name=A -c user.email=a@b commit -qam $1; sleep 0.3; cat src/a.txt; ls; git log --format=%s | head -1';
    const runs = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        machine.ags(['exec', '--name', `run${i}`, '--', 'sh', '-c', script, 'sh', String(i)]),
      ),
    );
    expect(runs.map(({ code, stdout }) => ({ code, stdout }))).toEqual(
      runs.map((_, i) => ({ code: 0, stdout: `${i}\nREADME.md\nown-${i}.txt\nsrc\n${i}\n` })),
    );
    expect(machine.git('status', '--short')).toBe('');
    const tasks = machine.tasks();
    expect(tasks.length).toBe(12);
    const [first = '', second = ''] = tasks;
    expect(await machine.ags(['review', first, '--accept-all'])).toMatchObject({ code: 0 });
    // The same file again: the first answer counts as the user's own change.
    expect(await machine.ags(['review', second, '--accept-all'])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('1 taken, 0 thrown away, 1 left.') as string,
    });
    expect(readFileSync(join(machine.project, 'src/a.txt'), 'utf8')).toBe(`${/^run(\d+)-/.exec(first)?.[1]}\n`);
    expect(await machine.ags(['cleanup', '--all', '--older-than', '0s', '--yes'])).toMatchObject({ code: 0 });
    expect(machine.tasks()).toEqual([]);
    expect(await leftovers(machine)).toEqual([]);
  });
});
