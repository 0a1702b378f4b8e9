// test/results/conflicts.test.ts: the user continues to work while a sandbox runs and before the review of its changes.
// needs: sandbox
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMachine, type Machine, USUAL } from '../harness.ts';
import { text } from '../merge/checks/place.ts';

/** Runs `inside` in a sandbox, then `outside` on the host, and returns the reviewed file. */
async function both(machine: Machine, inside: string, outside: () => void): Promise<unknown> {
  await machine.ags(['exec', '--', 'sh', '-c', inside]);
  outside();
  const shown = await machine.ags(['review', '@', '--json']);
  return (JSON.parse(shown.stdout) as { changes: { path: string; kind: string; conflict: string }[] }).changes.map(
    ({ path, kind, conflict }) => ({ path, kind, conflict }),
  );
}

describe.each(USUAL)('as %s', (caller) => {
  const files = { 'file.txt': text(), 'other.txt': 'other\n' };

  test('edits in different places are merged, and the review offers the merged text', async () => {
    using machine = createMachine(caller, { files });
    const found = await both(machine, "sed -i 's/line 11/SANDBOX/' file.txt", () =>
      machine.write('file.txt', text({ 2: 'USER' })),
    );
    expect(found).toEqual([{ path: 'file.txt', kind: 'modified', conflict: 'merges' }]);
    expect((await machine.ags(['review', '@', '--accept-all'])).code).toBe(0);
    expect(machine.read('file.txt')).toBe(text({ 2: 'USER', 11: 'SANDBOX' }));
    expect(machine.tasks()).toEqual([]);
  });

  test('edits in the same place are a conflict, and the user keeps theirs', async () => {
    using machine = createMachine(caller, { files });
    const found = await both(machine, "sed -i 's/line 2$/SANDBOX/' file.txt", () =>
      machine.write('file.txt', text({ 2: 'USER' })),
    );
    expect(found).toEqual([{ path: 'file.txt', kind: 'modified', conflict: 'conflicts' }]);
    expect((await machine.ags(['review', '@', '--accept', 'file.txt'])).code).toBe(7);
    await machine.ags(['review', '@', '--accept-all']);
    expect(machine.read('file.txt')).toBe(text({ 2: 'USER' }));
    expect(machine.tasks()).toHaveLength(1);
  });

  test.each([
    [
      'the user deleted a file that the sandbox changed',
      'echo more >> file.txt',
      (m: Machine) => rmSync(join(m.project, 'file.txt')),
      (m: Machine) => !m.has('file.txt'),
    ],
    [
      'the user changed a file that the sandbox deleted',
      'rm file.txt',
      (m: Machine) => m.write('file.txt', 'mine\n'),
      (m: Machine) => m.read('file.txt') === 'mine\n',
    ],
    [
      'the user changed a file that the sandbox renamed',
      'mv file.txt moved.txt',
      (m: Machine) => m.write('file.txt', text({ 1: 'mine' })),
      (m: Machine) => m.read('file.txt') === text({ 1: 'mine' }),
    ],
    [
      'both created a file with the same name',
      'echo theirs > new.txt',
      (m: Machine) => m.write('new.txt', 'mine\n'),
      (m: Machine) => m.read('new.txt') === 'mine\n',
    ],
  ])('%s: nothing of the user is lost', async (_, inside, outside, kept) => {
    using machine = createMachine(caller, { files });
    const found = (await both(machine, inside, () => outside(machine))) as { conflict: string }[];
    expect(found.some(({ conflict }) => conflict === 'conflicts')).toBe(true);
    await machine.ags(['review', '@', '--accept-all']);
    expect(kept(machine)).toBe(true);
  });

  test('the same edit on both sides is no change', async () => {
    using machine = createMachine(caller, { files });
    expect(
      await both(machine, "sed -i 's/line 2$/SAME/' file.txt", () => machine.write('file.txt', text({ 2: 'SAME' }))),
    ).toEqual([]);
  });

  test('a file that the user only touched is no conflict', async () => {
    using machine = createMachine(caller, { files });
    expect(
      await both(machine, "sed -i 's/line 2$/SANDBOX/' file.txt", () => machine.write('file.txt', text())),
    ).toEqual([{ path: 'file.txt', kind: 'modified', conflict: 'none' }]);
  });

  test("the sandbox starts from the user's uncommitted work", async () => {
    using machine = createMachine(caller, { files });
    machine.write('file.txt', text({ 1: 'BEFORE' }));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await both(machine, "sed -i 's/line 2$/SANDBOX/' file.txt", () => undefined)).toEqual([
      { path: 'file.txt', kind: 'modified', conflict: 'none' },
    ]);
    await machine.ags(['review', '@', '--accept-all']);
    expect(machine.read('file.txt')).toBe(text({ 1: 'BEFORE', 2: 'SANDBOX' }));
  });

  test('switching the branch meanwhile loses nothing', async () => {
    using machine = createMachine(caller, { files });
    machine.git('checkout', '-q', '-b', 'side');
    machine.write('file.txt', text({ 5: 'SIDE' }));
    machine.git('commit', '-qam', 'side');
    machine.git('checkout', '-q', 'main');
    await both(machine, "sed -i 's/line 11/SANDBOX/' file.txt", () => machine.git('checkout', '-q', 'side'));
    await machine.ags(['review', '@', '--accept-all']);
    expect(machine.read('file.txt')).toBe(text({ 5: 'SIDE', 11: 'SANDBOX' }));
  });
});
