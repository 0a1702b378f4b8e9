// test/e2e/both-sides.full.test.ts: the user keeps working while a sandbox runs and while its changes are reviewed.
// No edit of the user is overwritten unseen.
import { existsSync, lchownSync, lstatSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMachine, type Machine, USUAL } from '../harness.ts';
import { openScreen } from './screen.ts';

/** Differs in every file, because similar files count as renames. */
const text = (name: string): string =>
  Array.from({ length: 20 }, (_, i) => `line ${i + 1}\n${name.repeat(3)} ${i}\n`).join('');
const edit = (before: string, line: number, to: string): string => before.replace(`line ${line}\n`, `${to}\n`);

/** Gives files to the machine's user; call it only for files that the test changes, because a new owner is a change. */
function own(machine: Machine, ...names: string[]): void {
  if (process.getuid?.() === 0)
    for (const name of names) lchownSync(join(machine.project, name), machine.uid, machine.uid);
}

/** Saves like an editor: writes a new file and renames it. */
function save(machine: Machine, name: string, content: string): void {
  const at = join(machine.project, name);
  writeFileSync(`${at}.tmp`, content);
  own(machine, `${name}.tmp`);
  renameSync(`${at}.tmp`, at);
}

/** Starts a sandbox, does `work` outside, then lets the sandbox run its script. */
async function meanwhile(machine: Machine, script: string, work: () => void): Promise<void> {
  const child = machine.start([
    'exec',
    '--name',
    'both',
    '--',
    'sh',
    '-c',
    `cat *.txt > /dev/null; echo ready; read go; ${script}`,
  ]);
  const ended = new Promise((resolve) => child.on('close', resolve));
  await new Promise((resolve) => child.stdout?.once('data', resolve));
  // The clock of the file system may lag by a tick.
  await new Promise((resolve) => setTimeout(resolve, 20));
  work();
  child.stdin?.end('go\n');
  expect(await ended).toBe(0);
}

interface Seen {
  readonly changes: readonly { path: string; kind: string; conflict: string }[];
}

describe.each(USUAL)('as %s', (caller) => {
  test('edited, replaced, deleted and new files on both sides are merged if that is clean, else a conflict', async () => {
    const names = [
      'merged.txt',
      'clash.txt',
      'replaced.txt',
      'user-deletes.txt',
      'agent-deletes.txt',
      'both-delete.txt',
      'same.txt',
      'only-agent.txt',
      'only-user.txt',
    ];
    using machine = createMachine(caller, { files: Object.fromEntries(names.map((name) => [name, text(name)])) });
    const script = [
      "for f in merged clash replaced same user-deletes only-agent; do sed -i '3s/.*/agent/' $f.txt; done",
      'rm agent-deletes.txt both-delete.txt',
      'echo agent > new.txt',
      'echo same > new-same.txt',
    ].join('; ');
    await meanwhile(machine, script, () => {
      writeFileSync(join(machine.project, 'merged.txt'), edit(text('merged.txt'), 18, 'user'));
      writeFileSync(join(machine.project, 'clash.txt'), edit(text('clash.txt'), 2, 'user'));
      save(machine, 'replaced.txt', edit(text('replaced.txt'), 18, 'user'));
      save(machine, 'same.txt', edit(text('same.txt'), 2, 'agent'));
      save(machine, 'only-user.txt', edit(text('only-user.txt'), 2, 'user'));
      save(machine, 'agent-deletes.txt', edit(text('agent-deletes.txt'), 2, 'user'));
      unlinkSync(join(machine.project, 'user-deletes.txt'));
      unlinkSync(join(machine.project, 'both-delete.txt'));
      writeFileSync(join(machine.project, 'new.txt'), 'user\n');
      writeFileSync(join(machine.project, 'new-same.txt'), 'same\n');
      own(machine, 'new.txt', 'new-same.txt');
    });
    const { changes } = JSON.parse((await machine.ags(['review', '--json'])).stdout) as Seen;
    expect(changes.map(({ path, kind, conflict }) => `${kind} ${path} ${conflict}`).toSorted()).toEqual([
      'deleted agent-deletes.txt conflicts',
      'modified clash.txt conflicts',
      'modified merged.txt merges',
      'modified new.txt conflicts',
      'modified only-agent.txt none',
      'modified replaced.txt merges',
      'new user-deletes.txt conflicts',
    ]);
    expect(await machine.ags(['review', '--accept', 'clash.txt'])).toMatchObject({
      code: 7,
      stderr: expect.stringContaining('clash.txt also changed on your side') as string,
    });
    const taken = await machine.ags(['review', '--accept-all']);
    expect(taken).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('3 taken, 0 thrown away, 4 left.') as string,
    });
    const expected = {
      'merged.txt': edit(edit(text('merged.txt'), 18, 'user'), 2, 'agent'),
      'replaced.txt': edit(edit(text('replaced.txt'), 18, 'user'), 2, 'agent'),
      'clash.txt': edit(text('clash.txt'), 2, 'user'),
      'same.txt': edit(text('same.txt'), 2, 'agent'),
      'only-agent.txt': edit(text('only-agent.txt'), 2, 'agent'),
      'only-user.txt': edit(text('only-user.txt'), 2, 'user'),
      'agent-deletes.txt': edit(text('agent-deletes.txt'), 2, 'user'),
      'new.txt': 'user\n',
      'new-same.txt': 'same\n',
    };
    for (const [name, content] of Object.entries(expected))
      expect({ name, content: machine.read(name) }).toEqual({ name, content });
    expect([machine.has('user-deletes.txt'), machine.has('both-delete.txt')]).toEqual([false, false]);
  });

  test('a branch switched outside while the sandbox runs is kept', async () => {
    using machine = createMachine(caller, { files: { 'a.txt': text('a.txt'), 'b.txt': text('b.txt') } });
    machine.git('switch', '-q', '-c', 'other');
    machine.write('a.txt', edit(text('a.txt'), 2, 'other branch'));
    machine.git('commit', '-q', '-a', '-m', 'other');
    machine.git('switch', '-q', 'main');
    await meanwhile(machine, "sed -i '3s/.*/agent/' a.txt b.txt; git branch --show-current > branch.txt", () =>
      machine.git('switch', '-q', 'other'),
    );
    expect(await machine.ags(['review', '--accept-all'])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('2 taken, 0 thrown away, 1 left.') as string,
    });
    expect(machine.read('a.txt')).toBe(edit(text('a.txt'), 2, 'other branch'));
    expect(machine.read('b.txt')).toBe(edit(text('b.txt'), 2, 'agent'));
    expect(machine.read('branch.txt')).toBe('main\n');
  });

  test('a file that the user changes between the question and the answer is left alone', async () => {
    using machine = createMachine(caller, {
      files: { 'a.txt': 'a\n', 'b.txt': 'b\n', 'c.txt': 'c\n', 'd/e.txt': 'e\n' },
    });
    using screen = await openScreen(machine);
    await machine.ags([
      'exec',
      '--name',
      'work',
      '--',
      'sh',
      '-c',
      'for f in a.txt b.txt c.txt d/e.txt; do echo agent > $f; done; echo agent > new.txt',
    ]);
    screen.type('ags review\n');
    await screen.until(/\[1\/5\][\s\S]*\? more >$/);
    const outside = join(machine.home, 'precious');
    writeFileSync(outside, 'precious\n');
    writeFileSync(join(machine.project, 'a.txt'), 'user\n');
    rmSync(join(machine.project, 'b.txt'));
    symlinkSync(outside, join(machine.project, 'b.txt'));
    rmSync(join(machine.project, 'd'), { recursive: true });
    symlinkSync(machine.home, join(machine.project, 'd'));
    writeFileSync(join(machine.project, 'new.txt'), 'user\n');
    own(machine, 'b.txt', 'd', 'new.txt');
    screen.press('Y');
    const { shown, code } = await screen.ended();
    expect(code).toBe(7);
    expect(
      shown
        .split('\n')
        .filter((line) => line.startsWith('  not taken'))
        .toSorted(),
    ).toEqual([
      '  not taken: a.txt: it was changed on your side',
      '  not taken: b.txt: it became a symbolic link on your side',
      '  not taken: d/e.txt: "d" is a symbolic link on your side; nothing is written or deleted through it.',
      '  not taken: new.txt: a file was created on your side',
    ]);
    expect(shown).toContain('\n1 taken, 0 thrown away, 4 left.');
    expect([machine.read('a.txt'), machine.read('c.txt'), machine.read('new.txt')]).toEqual([
      'user\n',
      'agent\n',
      'user\n',
    ]);
    expect(lstatSync(join(machine.project, 'b.txt')).isSymbolicLink()).toBe(true);
    expect([machine.read('b.txt'), existsSync(join(machine.home, 'e.txt'))]).toEqual(['precious\n', false]);
  });
});
