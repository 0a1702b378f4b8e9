// test/e2e/review-flags.test.ts: the same review for scripts, and every kind of change there is.
// needs: sandbox
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMachine, giveTo, type Machine, type Result, USUAL } from '../harness.ts';

interface Listed {
  readonly changes: readonly {
    path: string;
    from?: string;
    kind: string;
    lane: string;
    conflict: string;
    ignored: boolean;
    before: { mode: string } | null;
    after: { mode: string } | null;
  }[];
  readonly refused: readonly { path: string; reason: string }[];
  readonly ignored: { files: number; bytes: number; reviewed: boolean };
}

const FILES = {
  'src/a.txt': 'a\n',
  'src/b.txt': 'b\n',
  'c.txt': 'c\n',
  'package.json': '{}\n',
  '.gitignore': 'build/\n',
};
const CHANGES = `echo A > src/a.txt; echo B > src/b.txt; echo C > c.txt; echo new > "src/n e w.txt"; echo '{ "scripts": { "test": "x" } }' > package.json; mkdir build; echo out > build/out`;

async function changed(machine: Machine, script: string): Promise<string> {
  const run = await machine.ags(['exec', '--name', 'work', '--', 'bash', '-c', script]);
  expect(run).toMatchObject({ code: 0, stdout: '' });
  const task = machine.tasks().at(-1) ?? '';
  expect(run.stderr).toContain(`changed; nothing was taken. Review them: ags review ${task}\n`);
  return task;
}

async function list(machine: Machine, ...args: string[]): Promise<Listed> {
  const run = await machine.ags(['review', ...args, '--json']);
  expect(run).toMatchObject({ code: 0 });
  return JSON.parse(run.stdout) as Listed;
}

const paths = (listed: Listed): string[] => listed.changes.map((change) => change.path);
const doc = (run: Result): unknown => JSON.parse(run.stdout);

describe.each(USUAL)('as %s', (caller) => {
  test('without a terminal ags asks nothing and takes nothing', async () => {
    using machine = createMachine(caller, { files: FILES });
    const task = await changed(machine, CHANGES);
    const run = await machine.ags(['review']);
    expect(run.code).toBe(0);
    expect(run.stdout.split('\n').filter((line) => /^[A-Z]/.test(line))).toEqual([
      'MODIFIED  package.json  ! runs on your machine',
      'MODIFIED  c.txt',
      'MODIFIED  src/a.txt',
      'MODIFIED  src/b.txt',
      'NEW       src/n e w.txt',
    ]);
    expect(run.stderr).toContain(
      `ags: using task ${task}.\n5 changes, 1 ignored file. Nothing was taken: there is no terminal for a review.\n`,
    );
    expect(machine.git('status', '--short')).toBe('');
    expect(paths(await list(machine))).toEqual(['package.json', 'c.txt', 'src/a.txt', 'src/b.txt', 'src/n e w.txt']);
    expect(machine.tasks()).toEqual([task]);
  });

  test('--accept takes paths, directories and patterns; --discard throws them away; the rest stays', async () => {
    using machine = createMachine(caller, { files: FILES });
    const task = await changed(machine, CHANGES);
    expect(
      doc(await machine.ags(['review', task, '--accept', 'src/n e w.txt', '--discard', 'src/b*', '--json'])),
    ).toEqual({ task, taken: ['src/n e w.txt'], failed: [], dropped: ['src/b.txt'], left: 4 });
    expect(paths(await list(machine, task))).toEqual(['package.json', 'c.txt', 'src/a.txt']);
    const rest = await machine.ags(['review', '--accept', 'src/']);
    expect(rest).toMatchObject({ code: 0, stdout: '' });
    expect(rest.stderr).toContain(`1 taken, 0 thrown away, 3 left. Review them: ags review ${task}\n`);
    expect(machine.git('status', '--short')).toBe(' M src/a.txt\n?? "src/n e w.txt"\n');
  });

  test('--accept-all takes no file that can run code; --risky takes one by its name', async () => {
    using machine = createMachine(caller, { files: FILES });
    const task = await changed(machine, CHANGES);
    expect(await machine.ags(['review', '--accept', 'package.json'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Review it, then name it: --risky package.json') as string,
    });
    expect(await machine.ags(['review', '--accept', '**'])).toMatchObject({ code: 0 });
    expect(machine.read('package.json')).toBe('{}\n');
    expect(await machine.ags(['review', '--accept-all'])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('0 taken, 0 thrown away, 2 left.') as string,
    });
    expect(await machine.ags(['review', '--risky', 'package.json', '--ignored', 'discard'])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('1 taken, 0 thrown away, 0 left.\n') as string,
    });
    expect(machine.read('package.json')).toBe('{ "scripts": { "test": "x" } }\n');
    expect(machine.has('build')).toBe(false);
    expect(machine.tasks()).not.toContain(task);
  });

  test('--discard-all throws everything away, ignored files too, except what is accepted by name', async () => {
    using machine = createMachine(caller, { files: FILES });
    await changed(machine, CHANGES);
    expect(await machine.ags(['review', '--discard-all', '--accept', 'c.txt'])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('1 taken, 4 thrown away, 0 left.\n') as string,
    });
    expect(machine.git('status', '--short')).toBe(' M c.txt\n');
    expect(machine.tasks()).toEqual([]);
  });

  test('--ignored review treats ignored files like all others', async () => {
    using machine = createMachine(caller, { files: FILES });
    await changed(machine, CHANGES);
    expect((await list(machine)).ignored).toEqual({ files: 1, bytes: 4, reviewed: false });
    expect(
      await machine.ags(['review', '--ignored', 'review', '--accept', 'build/out', '--discard', 'src/']),
    ).toMatchObject({ code: 0, stderr: expect.stringContaining('1 taken, 3 thrown away, 2 left.') as string });
    expect(machine.read('build/out')).toBe('out\n');
    expect(await machine.ags(['review', '--ignored', 'perhaps'])).toMatchObject({ code: 2 });
  });

  test('flags that make no sense change nothing', async () => {
    using machine = createMachine(caller, { files: FILES });
    const task = await changed(machine, CHANGES);
    for (const [flags, code] of [
      [['--accept', 'nothing-like-it'], 3],
      [['--accept', 'c.txt', '--discard', 'c.txt'], 2],
      [['--risky', 'nothing-like-it'], 3],
      [['--accept'], 2],
      [['--frob'], 2],
    ] as const)
      expect(await machine.ags(['review', task, ...flags])).toMatchObject({ code, stdout: '' });
    const failed = await machine.ags(['review', task, '--accept', 'no', '--json']);
    expect(JSON.parse(failed.stderr)).toMatchObject({ error: { code: 'path.not-found' } });
    expect(machine.git('status', '--short')).toBe('');
    expect(await machine.ags(['review', 'no-such-task'])).toMatchObject({ code: 3 });
    expect(paths(await list(machine, task))).toHaveLength(5);
  });

  test('ags diff shows the same changes: all, by file, as names, as numbers', async () => {
    using machine = createMachine(caller, { files: FILES });
    const task = await changed(machine, CHANGES);
    const whole = await machine.ags(['diff']);
    expect(whole).toMatchObject({ code: 0, stderr: `ags: using task ${task}.\n` });
    expect(whole.stdout).toContain('MODIFIED  c.txt\n@@ -1 +1 @@\n-c\n+C\n');
    expect(await machine.ags(['diff', task, '--name-only'])).toMatchObject({
      code: 0,
      stdout: 'package.json\nc.txt\nsrc/a.txt\nsrc/b.txt\nsrc/n e w.txt\n',
    });
    expect(await machine.ags(['diff', task, 'src/a.txt', '--stat'])).toMatchObject({
      code: 0,
      stdout: 'MODIFIED  src/a.txt  +1 -1\n1 file, +1 -1\n',
    });
    expect(await machine.ags(['diff', task, 'src', '--name-only'])).toMatchObject({
      code: 0,
      stdout: 'src/a.txt\nsrc/b.txt\nsrc/n e w.txt\n',
    });
    expect(await machine.ags(['diff', task, 'nowhere'])).toMatchObject({ code: 3 });
    expect(paths(doc(await machine.ags(['diff', task, '--json'])) as Listed)).toHaveLength(5);
    expect(machine.git('status', '--short')).toBe('');
  });

  test('ags diff --difftool gives plain copies to the tool of the user, and none to a tool that the project names', async () => {
    using machine = createMachine(caller, { files: { 'a.txt': 'a\n' } });
    const task = await changed(
      machine,
      `echo A > a.txt; chmod +x a.txt; ln -s /etc/passwd link; echo x > ';touch owned $(touch owned)'`,
    );
    machine.git('config', 'diff.tool', 'planted');
    machine.git('config', 'difftool.planted.cmd', 'touch "$HOME/planted"');
    const refused = await machine.ags(['diff', task, '--difftool']);
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.stderr).toContain('Your git settings name no diff tool.');
    writeFileSync(
      join(machine.home, 'tool.sh'),
      'stat -c "%A %F" "$2"; for one; do cat "$one"; basename "$one"; done; pwd',
    );
    writeFileSync(
      join(machine.home, '.gitconfig'),
      `[diff]\n\ttool = mine\n[difftool "mine"]\n\tcmd = sh ${machine.home}/tool.sh $LOCAL $REMOTE\n`,
    );
    const shown = await machine.ags(['diff', task, '--difftool']);
    const copy = '-rw------- regular file\n';
    const odd = '_touch_owned___touch_owned_';
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout.split(`${machine.home}\n`).toSorted()).toEqual([
      '',
      `${copy}${odd}\nx\n${odd}\n`,
      `${copy}a\na.txt\nA\na.txt\n`,
      `${copy}link\n/etc/passwdlink\n`,
    ]);
    expect(await machine.ags(['diff', task, '--tool', 'unheard-of'])).toMatchObject({ code: 2 });
    expect([readdirSync(machine.home).includes('planted'), machine.has('owned')]).toEqual([false, false]);
    // No copy stays behind.
    expect(readdirSync(join(machine.stateDir, 'tasks', task)).filter((name) => name.startsWith('compare'))).toEqual([]);
  });
});

describe.each(USUAL)('as %s', (caller) => {
  test('every kind of change is named and accepted exactly', async () => {
    using machine = createMachine(caller, {
      files: {
        'modified.txt': 'before\n',
        'deleted.txt': 'x\n',
        'moved.txt': `${'a line that stays\n'.repeat(20)}`,
        'script.txt': 'echo\n',
        'becomes-link': 'x\n',
        'becomes-dir': 'x\n',
        'dir-to-file/one': '1\n',
        'dir-to-file/two': '2\n',
        'dir-gone/deep/er/file': 'x\n',
        'dir-gone/other': 'y\n',
        'no-newline': 'end',
        'empty-before': '',
        'binary.dat': 'text\n',
        'same.txt': 'same\n',
      },
    });
    symlinkSync('modified.txt', join(machine.project, 'link'));
    symlinkSync('modified.txt', join(machine.project, 'link-to-file'));
    machine.git('add', '-A');
    machine.git('commit', '-q', '-m', 'links');
    const before = snapshot(machine.project);
    const script = [
      'echo after > modified.txt',
      'rm deleted.txt',
      'mkdir sub && mv moved.txt sub/renamed.txt && echo more >> sub/renamed.txt',
      'chmod +x script.txt',
      'ln -sf deleted.txt becomes-link',
      'rm becomes-dir && mkdir becomes-dir && echo in > becomes-dir/in',
      'rm -r dir-to-file && echo file > dir-to-file',
      'rm -r dir-gone',
      'printf "no end" > no-newline',
      'echo full > empty-before',
      ': > empty-after',
      "printf 'a\\0b\\377' > binary.dat",
      'ln -sfn script.txt link',
      'rm link-to-file && echo file > link-to-file',
      'ln -s ../.. up',
      'head -c 5000000 /dev/urandom > big.bin',
      'touch same.txt && cp same.txt /tmp/x && cat /tmp/x > same.txt',
    ].join('; ');
    const task = await changed(machine, script);
    const inside = snapshot(join(machine.stateDir, 'tasks', task, 'run/upper'));
    const listed = await list(machine);
    const kinds = listed.changes.map(
      (c) =>
        `${c.kind} ${c.from === undefined ? '' : `${c.from} -> `}${c.path}${c.before !== null && c.after !== null && c.before.mode !== c.after.mode ? ` ${c.before.mode} -> ${c.after.mode}` : ''}`,
    );
    expect(kinds.toSorted()).toEqual([
      'deleted becomes-dir',
      'deleted deleted.txt',
      'deleted dir-gone/deep/er/file',
      'deleted dir-gone/other',
      'deleted dir-to-file/one',
      'deleted dir-to-file/two',
      'mode script.txt 100644 -> 100755',
      'modified binary.dat',
      'modified empty-before',
      'modified modified.txt',
      'modified no-newline',
      'new becomes-dir/in',
      'new big.bin',
      'new dir-to-file',
      'new empty-after',
      'renamed moved.txt -> sub/renamed.txt',
      'symlink link',
      'symlink up',
      'type becomes-link 100644 -> 120000',
      'type link-to-file 120000 -> 100644',
    ]);
    const diff = (await machine.ags(['diff', task])).stdout;
    expect(diff).toContain('\\ No newline at end of file');
    expect(diff).toMatch(/MODIFIED {2}binary\.dat\n(.*\n)*? {2}binary/);
    expect(diff).toMatch(/NEW {7}big\.bin .*\n(.*\n)*? {2}too large to show/);
    expect(diff).toMatch(/SYMLINK {3}link\n(.*\n)*?- link to modified\.txt\n\+ link to script\.txt\n/);
    const risky = listed.changes.filter((c) => c.lane !== 'inert').flatMap((c) => ['--risky', c.path]);
    const run = await machine.ags(['review', task, '--accept-all', ...risky]);
    expect(run).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('20 taken, 0 thrown away, 0 left.\n') as string,
    });
    const after = { ...before, ...Object.fromEntries(Object.entries(inside).filter(([, value]) => value !== 'other')) };
    for (const gone of [
      'becomes-dir',
      'deleted.txt',
      'dir-gone/deep/er/file',
      'dir-gone/other',
      'dir-to-file/one',
      'dir-to-file/two',
      'moved.txt',
    ])
      delete after[gone];
    expect(snapshot(machine.project)).toEqual(after);
    expect(machine.has('dir-gone')).toBe(false);
    expect(machine.tasks()).toEqual([]);
  });

  test('names of every kind are shown escaped and accepted unchanged', async () => {
    using machine = createMachine(caller, { files: { 'a.txt': 'a\n' } });
    const names = [
      'with space',
      'tab\there',
      'new\nline',
      '-leading-dash',
      '--accept',
      'quo"te\'s',
      'back\\slash',
      'ünïcödé 雪 🦀',
      '$HOME',
      '*',
      '?x',
      '[y]',
      ':colon',
      ',comma',
      '#hash',
      '~tilde',
      '!bang',
      'trailing ',
      ' leading',
      'e\u0301 combining',
      `long-${'n'.repeat(240)}`,
      'esc\u001b[31m',
      'bell\u0007',
      'cr\rx',
      'rtl\u202Egnp.exe',
      'zero\u200Bwidth',
      'a/deep/er/-path',
    ];
    const script = `perl -e 'for (@ARGV) { if (m{(.*)/}) { my $p = ""; for (split m{/}, $1) { $p .= "$_/"; mkdir $p } } open my $f, ">", "./$_" or die "$_: $!"; print $f "x" }' -- "$@"`;
    const run = await machine.ags(['exec', '--name', 'names', '--', 'sh', '-c', script, 'sh', ...names]);
    expect(run).toMatchObject({ code: 0, stdout: '' });
    const listed = await list(machine);
    expect(paths(listed).toSorted()).toEqual(names.toSorted());
    const shown = await machine.ags(['review']);
    // eslint-disable-next-line no-control-regex
    expect(shown.stdout).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f\u202e\u200b]/u);
    expect(shown.stdout).toContain('NEW       new\\nline\n');
    expect(shown.stdout).toContain('NEW       esc\\x1b[31m');
    const [first = '', ...rest] = names;
    expect(
      await machine.ags(['review', ...rest.slice(0, 8).flatMap((name) => [`--accept=${name}`]), `--discard=${first}`]),
    ).toMatchObject({ code: 0, stderr: expect.stringContaining('8 taken, 1 thrown away') as string });
    const risky = (await list(machine)).changes.filter((c) => c.lane !== 'inert').map((c) => `--risky=${c.path}`);
    expect(await machine.ags(['review', '--accept-all', ...risky])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('18 taken, 0 thrown away, 0 left.\n') as string,
    });
    for (const name of rest) expect(readFileSync(join(machine.project, name), 'utf8')).toBe('x');
  });

  test('a file that cannot be accepted is named with its reason and does not block the rest', async () => {
    using machine = createMachine(caller, { files: { 'a.txt': 'a\n' } });
    const task = await changed(
      machine,
      `echo A > a.txt; mkfifo pipe; mkdir -p sub/.git/hooks && echo evil > sub/.git/hooks/post-checkout; perl -e 'open F, ">", "bad\\xffname"'; echo x > unreadable; chmod 0 unreadable`,
    );
    const listed = await list(machine);
    expect(paths(listed)).toEqual(['a.txt']);
    expect(listed.refused.map((one) => one.path).toSorted()).toEqual([
      'bad\\xffname',
      'pipe',
      'sub/.git',
      'unreadable',
    ]);
    expect(await machine.ags(['review', task, '--accept-all'])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('1 taken, 0 thrown away, 0 left.\n') as string,
    });
    expect(readdirSync(machine.project).toSorted()).toEqual(['.git', 'a.txt']);
  });

  test('the user’s file modes are kept unless the change sets them', async () => {
    using machine = createMachine(caller, { files: { 'private.txt': 'x\n', 'shared.txt': 'x\n' } });
    chmodSync(join(machine.project, 'private.txt'), 0o600);
    chmodSync(join(machine.project, 'shared.txt'), 0o664);
    await changed(machine, 'echo y > private.txt; echo y > shared.txt; chmod +x shared.txt');
    const risky = (await list(machine)).changes.filter((c) => c.lane !== 'inert').map((c) => `--risky=${c.path}`);
    expect(await machine.ags(['review', '--accept-all', ...risky])).toMatchObject({ code: 0 });
    expect(
      ['private.txt', 'shared.txt']
        .map((name) => lstatSync(join(machine.project, name)))
        .map(({ mode, uid }) => [(mode & 0o777).toString(8), uid]),
    ).toEqual([
      ['600', machine.uid],
      ['775', machine.uid],
    ]);
  });

  test('a directory without git is reviewed in the same way', async () => {
    using machine = createMachine(caller, { git: false, files: { 'a.txt': 'a\n', 'gone/x.txt': 'x\n' } });
    mkdirSync(join(machine.project, 'sub'));
    writeFileSync(join(machine.project, 'sub/secret.pem'), 'key\n');
    giveTo(machine.project, machine.uid);
    await changed(machine, 'echo A > a.txt; rm -r gone; echo n > sub/new.txt; test ! -e sub/secret.pem');
    expect((await list(machine)).changes.map((c) => `${c.kind} ${c.path}`)).toEqual([
      'modified a.txt',
      'deleted gone/x.txt',
      'new sub/new.txt',
    ]);
    expect(await machine.ags(['review', '--accept-all'])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('3 taken, 0 thrown away, 0 left.\n') as string,
    });
    expect(readdirSync(machine.project).toSorted()).toEqual(['a.txt', 'sub']);
    expect(machine.read('sub/secret.pem')).toBe('key\n');
  });
});

/** Every file with its mode and content, every link with its target. */
function snapshot(root: string): Record<string, string> {
  const found: Record<string, string> = {};
  const visit = (dir: string): void => {
    for (const name of readdirSync(join(root, dir))) {
      const path = dir === '' ? name : `${dir}/${name}`;
      const stat = lstatSync(join(root, path));
      if (path === '.git') continue;
      if (stat.isDirectory()) visit(path);
      else if (stat.isSymbolicLink()) found[path] = `-> ${readlinkSync(join(root, path))}`;
      else
        found[path] = stat.isFile()
          ? `${(stat.mode & 0o100) === 0 ? '644' : '755'} ${readFileSync(join(root, path)).toString('base64')}`
          : 'other';
    }
  };
  visit('');
  return found;
}
