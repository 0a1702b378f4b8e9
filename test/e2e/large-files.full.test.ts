// test/e2e/large-files.full.test.ts: large files of the user are compared with the sandbox's without being read into memory,
// and changes of very large ones are shown as usual.
import { chownSync, lstatSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMachine, type Machine, USUAL } from '../harness.ts';

const MB = 1024 * 1024;
const MEMORY_MB = 200;

interface Listed {
  readonly changes: readonly {
    path: string;
    from?: string;
    kind: string;
    lane: string;
    conflict: string;
    before: { bytes: number } | null;
  }[];
}

/** Makes a sparse file that needs no disk space; it ends with its name, so that no two have the same content. */
function makeLarge(machine: Machine, name: string, bytes: number): void {
  const at = join(machine.project, name);
  writeFileSync(at, '');
  truncateSync(at, bytes - name.length);
  writeFileSync(at, name, { flag: 'a' });
  if (machine.uid !== process.getuid?.()) chownSync(at, machine.uid, machine.uid);
}

/** The output of `ags review --json` and its peak memory. */
async function look(machine: Machine): Promise<{ changes: Listed['changes']; memoryMb: number }> {
  const measure = join(machine.root, 'measure.cjs');
  const file = join(machine.home, 'memory');
  writeFileSync(
    measure,
    `process.on('exit', () => require('node:fs').writeFileSync(${JSON.stringify(file)}, String(process.resourceUsage().maxRSS)))`,
  );
  const shown = await machine.ags(['review', '--json'], { env: { NODE_OPTIONS: `--require "${measure}"` } });
  expect(shown.code).toBe(0);
  const { changes } = JSON.parse(shown.stdout) as Listed;
  return { changes, memoryMb: Number(readFileSync(file, 'utf8')) / 1024 };
}

describe.each(USUAL)('as %s', (caller) => {
  test('many deleted large files are shown with no more memory than one', async () => {
    using machine = createMachine(caller);
    const names = Array.from({ length: 20 }, (_, i) => `${String.fromCharCode(97 + i)}.bin`);
    for (const name of names) makeLarge(machine, name, 15 * MB);
    await machine.ags(['exec', '--review', 'later', '--', 'sh', '-c', 'rm *.bin']);
    const { changes, memoryMb } = await look(machine);
    expect(changes.map(({ path, kind, before }) => ({ path, kind, bytes: before?.bytes }))).toEqual(
      names.map((path) => ({ path, kind: 'deleted', bytes: 15 * MB })),
    );
    expect(memoryMb).toBeLessThan(MEMORY_MB);
  }, 120_000);

  test('a very large file that was deleted, moved or made executable is shown as such, and accepted', async () => {
    using machine = createMachine(caller);
    makeLarge(machine, 'gone.bin', 300 * MB);
    for (const name of ['moved.bin', 'run.bin']) makeLarge(machine, name, 20 * MB);
    await machine.ags([
      'exec',
      '--review',
      'later',
      '--',
      'sh',
      '-c',
      'rm gone.bin; mv moved.bin there.bin; chmod +x run.bin; echo "Your own file is too large to be compared line by line." > lie.txt',
    ]);
    const { changes, memoryMb } = await look(machine);
    expect(
      changes
        .map(({ path, from, kind, conflict, before }) => ({ path, from, kind, conflict, bytes: before?.bytes }))
        .toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    ).toEqual([
      { path: 'gone.bin', from: undefined, kind: 'deleted', conflict: 'none', bytes: 300 * MB },
      { path: 'lie.txt', from: undefined, kind: 'new', conflict: 'none', bytes: undefined },
      { path: 'run.bin', from: undefined, kind: 'mode', conflict: 'none', bytes: 20 * MB },
      { path: 'there.bin', from: 'moved.bin', kind: 'renamed', conflict: 'none', bytes: 20 * MB },
    ]);
    expect(memoryMb).toBeLessThan(MEMORY_MB);
    const shown = await machine.ags(['diff']);
    expect(shown.stdout).toContain('gone.bin');
    expect(shown.stdout).toContain('300 MB before, 0 B after');
    const risky = changes.filter(({ lane }) => lane !== 'inert').map(({ path }) => `--risky=${path}`);
    expect(await machine.ags(['review', '--accept-all', ...risky], { timeoutMs: 100_000 })).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('4 taken, 0 thrown away, 0 left.') as string,
    });
    expect([machine.has('gone.bin'), machine.has('moved.bin')]).toEqual([false, false]);
    expect(lstatSync(join(machine.project, 'run.bin')).mode & 0o100).toBe(0o100);
    expect(lstatSync(join(machine.project, 'there.bin')).size).toBe(20 * MB);
  }, 180_000);

  test('a very large file that the user changed meanwhile is not deleted', async () => {
    using machine = createMachine(caller);
    makeLarge(machine, 'big.bin', 300 * MB);
    await machine.ags(['exec', '--review', 'later', '--', 'rm', 'big.bin']);
    writeFileSync(join(machine.project, 'big.bin'), 'more', { flag: 'a' });
    const { changes } = await look(machine);
    expect(changes.map(({ path, kind, conflict }) => ({ path, kind, conflict }))).toEqual([
      { path: 'big.bin', kind: 'deleted', conflict: 'conflicts' },
    ]);
    await machine.ags(['review', '--accept-all']);
    expect(machine.has('big.bin')).toBe(true);
  }, 120_000);
});
