// test/exec/exec.test.ts: `ags exec` behaves as if the command ran directly.
// needs: sandbox
import { expect, test } from 'vitest';
import { CALLERS, createMachine } from '../harness.ts';

test.each(CALLERS)('as %s: output, errors, input and exit code are passed through unchanged', async (caller) => {
  using machine = createMachine(caller, { disk: true });
  const run = await machine.ags(['exec', '--', 'sh', '-c', 'cat; echo problem >&2; exit 7'], {
    input: 'from outside\n',
  });
  expect(run).toEqual({ code: 7, signal: null, stdout: 'from outside\n', stderr: 'problem\n' });
  expect(machine.tasks()).toEqual([]);
});

test.each(CALLERS)(
  'as %s: the repository is at its own path, with uncommitted work, and stays unchanged',
  async (caller) => {
    using machine = createMachine(caller, { disk: true });
    machine.write('src/a.txt', 'edited, not committed\n');
    machine.write('new.txt', 'untracked\n');
    const run = await machine.ags([
      'exec',
      '--',
      'sh',
      '-c',
      'pwd; cat src/a.txt new.txt; echo changed > src/a.txt; rm new.txt; git status --short',
    ]);
    expect(run.stdout).toBe(`${machine.project}\nedited, not committed\nuntracked\n M src/a.txt\n`);
    expect(machine.read('src/a.txt')).toBe('edited, not committed\n');
    expect(machine.read('new.txt')).toBe('untracked\n');
  },
);
