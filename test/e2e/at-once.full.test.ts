// test/e2e/at-once.full.test.ts: many sandboxes over one project, and many reviews of one task, at the same time.
// In any order, an accepted change is never overwritten by a later one.
import { describe, expect, test } from 'vitest';
import { createMachine, type Machine, USUAL } from '../harness.ts';
import { leftovers } from './leftovers.ts';
import { openScreen } from './screen.ts';

const SANDBOXES = 12;
const FILES = Array.from({ length: 40 }, (_, i) => `f${i}.txt`);
const LINES = Array.from({ length: 100 }, (_, i) => `line ${i + 1}`);

interface Listed {
  readonly changes: readonly { readonly path: string; readonly kind: string; readonly conflict: string }[];
}

async function look(machine: Machine, task: string): Promise<string[]> {
  const { changes } = JSON.parse((await machine.ags(['review', task, '--json'])).stdout) as Listed;
  return changes.map(({ path, kind, conflict }) => `${kind} ${path} ${conflict}`).toSorted();
}

describe.each(USUAL)('as %s', (caller) => {
  test('twelve sandboxes write the same files: none sees another, and no accepted change overwrites another', async () => {
    using machine = createMachine(caller, {
      files: { 'README.md': '# project\n', 'lines.txt': `${LINES.join('\n')}\n`, 'same.txt': 'old\n' },
    });
    await machine.ags(['exec', '--', 'true']);
    // Each changes its own line of one file, and overwrites two more files, one of them new.
    const script =
      'sed -i "$((1 + $1 * 8))s/.*/by $1/" lines.txt; echo $1 > same.txt; echo $1 > new.txt; git -c user.name=A -c user.email=a@b commit -qam $1; sleep 0.3; cat same.txt; ls; git log --format=%s | head -1';
    const runs = await Promise.all(
      Array.from({ length: SANDBOXES }, (_, i) =>
        machine.ags(['exec', '--name', `run${i}`, '--', 'sh', '-c', script, 'sh', String(i)]),
      ),
    );
    expect(runs.map(({ code, stdout }) => ({ code, stdout }))).toEqual(
      runs.map((_, i) => ({ code: 0, stdout: `${i}\nREADME.md\nlines.txt\nnew.txt\nsame.txt\n${i}\n` })),
    );
    expect(machine.git('status', '--short')).toBe('');
    const tasks = machine.tasks().toSorted();
    expect(tasks.length).toBe(SANDBOXES);
    const numberOf = (task: string): number => Number(/^run(\d+)-/.exec(task)?.[1]);
    const [first = '', ...others] = tasks;
    const winner = `${numberOf(first)}\n`;
    const lines = [...LINES];

    expect(await look(machine, first)).toEqual([
      'modified lines.txt none',
      'modified same.txt none',
      'new new.txt none',
    ]);
    expect(await machine.ags(['review', first, '--accept-all'])).toMatchObject({ code: 0 });
    lines[numberOf(first) * 8] = `by ${numberOf(first)}`;
    for (const task of others) {
      expect(await look(machine, task)).toEqual([
        'modified lines.txt merges',
        'modified new.txt conflicts',
        'modified same.txt conflicts',
      ]);
      expect(await machine.ags(['review', task, '--accept-all'])).toMatchObject({
        code: 0,
        stderr: expect.stringContaining('1 taken, 0 thrown away, 2 left.') as string,
      });
      lines[numberOf(task) * 8] = `by ${numberOf(task)}`;
      expect([machine.read('lines.txt'), machine.read('same.txt'), machine.read('new.txt')]).toEqual([
        `${lines.join('\n')}\n`,
        winner,
        winner,
      ]);
    }
    expect(await machine.ags(['cleanup', '--all', '--older-than', '0s', '--yes'])).toMatchObject({ code: 0 });
    expect(machine.tasks()).toEqual([]);
    expect(await leftovers(machine)).toEqual([]);
  }, 120_000);

  test('of three reviews of one task, one works and the others say that the task is busy', async () => {
    using machine = createMachine(caller, { files: Object.fromEntries(FILES.map((name) => [name, 'old\n'])) });
    await machine.ags(['exec', '--name', 'work', '--', 'sh', '-c', 'for f in f*.txt; do echo new > $f; done']);
    const runs = await Promise.all([1, 2, 3].map(() => machine.ags(['review', '@', '--accept-all'])));
    const done = runs.filter((run) => run.code === 0);
    expect(done.length).toBeGreaterThanOrEqual(1);
    for (const run of runs.filter((one) => one.code !== 0)) {
      // While another review works on the task, or after it removed the task.
      expect(run.stderr).toMatch(/Another ags command is working on|has no tasks|no task/i);
      expect([3, 7]).toContain(run.code);
    }
    expect(done.map((run) => Number(/(\d+) taken/.exec(run.stderr)?.[1])).reduce((a, b) => a + b, 0)).toBe(
      FILES.length,
    );
    expect(FILES.map((name) => machine.read(name))).toEqual(FILES.map(() => 'new\n'));
    expect(machine.tasks()).toEqual([]);
  });

  test('a review that waits for an answer blocks other commands on the task, and carries out the answer', async () => {
    using machine = createMachine(caller, { files: { 'a.txt': 'old\n', 'b.txt': 'old\n' } });
    await machine.ags(['exec', '--name', 'work', '--', 'sh', '-c', 'echo new > a.txt; echo new > b.txt']);
    const [task = ''] = machine.tasks();
    using screen = await openScreen(machine);
    screen.type('ags review\n');
    await screen.until(/\[1\/2\][\s\S]*> ?$/);
    const busy = {
      code: 7,
      stdout: '',
      stderr: `ags: Another ags command is working on ${task}.\n     Try again when it is done.\n`,
    };
    for (const args of [
      ['review', task],
      ['review', task, '--accept-all'],
      ['review', task, '--discard-all'],
      ['diff', task],
    ])
      expect(await machine.ags(args)).toMatchObject(busy);
    expect(await machine.ags(['rm', task, '--yes'])).toMatchObject({ code: 7 });
    expect([machine.tasks(), machine.git('status', '--short')]).toEqual([[task], '']);
    screen.type('yn');
    expect(await screen.ended()).toMatchObject({ code: 0 });
    expect([machine.read('a.txt'), machine.read('b.txt')]).toEqual(['new\n', 'old\n']);
    expect(await machine.ags(['review', task, '--accept-all'])).toMatchObject({ code: 0 });
    expect([machine.read('b.txt'), machine.tasks()]).toEqual(['new\n', []]);
  });
});
