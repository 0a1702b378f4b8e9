// test/review/apply.test.ts: applies accepted changes to the user's files, beside a canary directory. Parts that need another user, a full disk or a
// kill run the compiled code in a child process.
// uses: sandbox
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { openDirectory } from '../../src/lib/descend.ts';
import { applyChange, hostState, type ApplyOp, type ApplyOutcome } from '../../src/review/apply.ts';
import { applyAll, recover, undoJournal, type PlannedChange } from '../../src/review/journal.ts';
import { HAS_SANDBOX } from '../harness.ts';

const root = process.geteuid?.() === 0;
const repository = join(import.meta.dirname, '../..');
let scratch = '';
let built = '';
let project = '';
let outside = '';

beforeAll(() => {
  scratch = fs.realpathSync(fs.mkdtempSync('/var/tmp/ags-apply-'));
  fs.chmodSync(scratch, 0o755);
  built = join(scratch, 'built');
  execFileSync(join(repository, 'node_modules/.bin/tsc'), ['-p', repository, '--noCheck', '--outDir', built]);
  fs.writeFileSync(join(built, 'package.json'), '{"type":"module"}');
});
afterAll(() => fs.rmSync(scratch, { recursive: true }));
beforeEach(() => {
  const place = fs.mkdtempSync(join(scratch, 'case-'));
  fs.chmodSync(place, 0o755);
  project = join(place, 'project');
  outside = join(place, 'outside');
  fs.mkdirSync(project);
  fs.mkdirSync(outside);
  fs.writeFileSync(join(outside, 'canary'), 'untouched');
});

const write = (path: string, text = 'new', mode: '100644' | '100755' = '100644'): ApplyOp => ({
  kind: 'write',
  path,
  mode,
  bytes: Buffer.from(text),
});
const link = (path: string, target: string): ApplyOp => ({ kind: 'symlink', path, target });
const remove = (path: string, ...prune: string[]): ApplyOp => ({ kind: 'delete', path, prune });
const plan = (...ops: ApplyOp[]): PlannedChange[] => ops.map((op) => ({ op, expect: hostState(project, op.path) }));
const apply = (op: ApplyOp): Promise<ApplyOutcome> => applyChange({ project, op, expect: hostState(project, op.path) });
const journal = (): string => join(dirname(project), 'journal');

function put(path: string, text: string, mode = 0o644): void {
  fs.mkdirSync(dirname(join(project, path)), { recursive: true });
  fs.writeFileSync(join(project, path), text);
  fs.chmodSync(join(project, path), mode);
}

/** Every path below a directory: a file's text, a link's target, or null for a directory. */
function tree(at = project): Record<string, string | null> {
  const entries = fs.readdirSync(at, { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    entries
      .map((entry) => {
        const full = join(entry.parentPath, entry.name);
        const path = full.slice(at.length + 1);
        if (entry.isSymbolicLink()) return [path, `-> ${fs.readlinkSync(full)}`] as const;
        return [path, entry.isFile() ? fs.readFileSync(full, 'utf8') : null] as const;
      })
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

const modeOf = (path: string): string => (fs.lstatSync(join(project, path)).mode & 0o7777).toString(8);

/** Runs ES module code against the compiled sources and returns the JSON value that it prints. */
function inChild(code: string, more: { user?: number; before?: string; lib?: string } = {}): unknown {
  const lib = more.lib ?? built;
  const imports = `import * as fs from 'node:fs';
    import { openDirectory } from '${lib}/lib/descend.js';
    import { applyChange, hostState } from '${lib}/review/apply.js';
    import { applyAll } from '${lib}/review/journal.js';`;
  const become =
    more.user === undefined ? [] : ['setpriv', `--reuid=${more.user}`, `--regid=${more.user}`, '--clear-groups'];
  const space = more.before === undefined ? [] : ['unshare', '-Urm', 'sh', '-ec', `${more.before}\nexec "$@"`, 'sh'];
  const command = [...become, ...space, process.execPath, '--input-type=module', '-e', `${imports}\n${code}`];
  const done = spawnSync('env', ['--', ...command], { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(done.stderr);
  return JSON.parse(done.stdout);
}

describe('a file', () => {
  test('that is new gets mode 644 or 755 under the umask, as do its directories', async () => {
    expect(await apply(write('a/b/run', '#!', '100755'))).toBe('applied');
    expect(await apply(write('a/text'))).toBe('applied');
    expect([modeOf('a'), modeOf('a/b'), modeOf('a/b/run'), modeOf('a/text')]).toEqual(['755', '755', '755', '644']);
    expect(tree()).toEqual({ a: null, 'a/b': null, 'a/b/run': '#!', 'a/text': 'new' });
    const code = `process.umask(0o077);
      await applyChange({ project: '${project}', expect: null, op: { kind: 'write', path: 'p/q', mode: '100755', bytes: Buffer.from('') } });
      console.log('null');`;
    inChild(code);
    expect([modeOf('p'), modeOf('p/q')]).toEqual(['700', '700']);
  });

  test.each([
    ['600', '100644', '600'],
    ['600', '100755', '700'],
    ['755', '100644', '644'],
    ['640', '100755', '750'],
    ['4755', '100755', '755'],
    ['6644', '100644', '644'],
  ] as const)('with mode %s that is replaced by a %s has mode %s afterwards (A107)', async (before, mode, after) => {
    put('f', 'old', Number.parseInt(before, 8));
    expect(await apply(write('f', 'new', mode))).toBe('applied');
    expect([modeOf('f'), tree()]).toEqual([after, { f: 'new' }]);
  });

  test('with a hard link outside the project is replaced, not written into (A11, A115)', async () => {
    fs.linkSync(join(outside, 'canary'), join(project, 'f'));
    expect(await apply(write('f'))).toBe('applied');
    expect([tree(), tree(outside)]).toEqual([{ f: 'new' }, { canary: 'untouched' }]);
  });

  test('with two hard links inside becomes two files (A115)', async () => {
    await apply(write('one', 'same'));
    await apply(write('two', 'same'));
    const [one, two] = ['one', 'two'].map((name) => fs.statSync(join(project, name)));
    expect([one?.nlink, two?.nlink, one?.ino === two?.ino]).toEqual([1, 1, false]);
  });

  test('replaces a symbolic link, not its target', async () => {
    fs.symlinkSync(join(outside, 'canary'), join(project, 'f'));
    expect(await apply(write('f'))).toBe('applied');
    expect([tree(), tree(outside)]).toEqual([{ f: 'new' }, { canary: 'untouched' }]);
  });

  test.each(['\x1b]0;title\x07', '%s%n', 'new\nline', '-rf', ' ', 'a\\b', '*', '[x]', '$(touch x)', 'é', '\u202etxt'])(
    'may have the strange name %j unchanged (A19, A113)',
    async (name) => {
      expect(await apply(write(`${name}/${name}`))).toBe('applied');
      expect(tree()).toEqual({ [name]: null, [`${name}/${name}`]: 'new' });
      expect(await apply(remove(`${name}/${name}`, name))).toBe('applied');
      expect(tree()).toEqual({});
    },
  );

  test.runIf(root)("written by root belongs to the directory's owner, and a replaced one keeps its owner", async () => {
    fs.chownSync(project, 1001, 1002);
    put('f', 'old');
    fs.chownSync(join(project, 'f'), 1003, 1004);
    for (const op of [write('d/new'), link('d/link', 'x'), write('f')]) await apply(op);
    const owners = ['d', 'd/new', 'd/link', 'f']
      .map((path) => fs.lstatSync(join(project, path)))
      .map(({ uid, gid }) => [uid, gid]);
    expect(owners).toEqual([
      [1001, 1002],
      [1001, 1002],
      [1001, 1002],
      [1003, 1004],
    ]);
  });
});

describe('nothing is written or deleted', () => {
  test.each([write('lnk/canary'), write('lnk/new/f'), link('lnk/l', 'x'), remove('lnk/canary'), write('d/lnk/canary')])(
    'through a symbolic link (A3, A106): $kind $path',
    async (op) => {
      fs.mkdirSync(join(project, 'd'));
      fs.symlinkSync('../outside', join(project, 'lnk'));
      fs.symlinkSync('../../outside', join(project, 'd/lnk'));
      const at = op.path.startsWith('d/') ? 'd/lnk' : 'lnk';
      const refused = { refused: `"${at}" is a symbolic link on your side; nothing is written or deleted through it.` };
      expect(hostState(project, op.path)).toBe(null);
      expect(await applyChange({ project, op, expect: null })).toEqual(refused);
      expect(tree(outside)).toEqual({ canary: 'untouched' });
    },
  );

  test('through a link that is accepted together with the file below it (A118)', async () => {
    const changes = plan(link('lnk', '../outside'), write('lnk/f'));
    const refused = '"lnk" is a symbolic link on your side; nothing is written or deleted through it.';
    expect(await applyAll({ project, changes, journal: journal() })).toEqual([
      { path: 'lnk', outcome: 'applied' },
      { path: 'lnk/f', outcome: { refused } },
    ]);
    expect(tree(outside)).toEqual({ canary: 'untouched' });
  });

  test.each([
    '../../x',
    '../outside/canary',
    'a/../../outside/canary',
    '/etc/x',
    '.git/hooks/x',
    '.GIT/x',
    'sub/.git/config',
    '.git',
    'git~1/x',
    '.git ',
    '.g\u200cit/x',
    '',
    '.',
    './f',
    'a//b',
    'a/',
    'a\0b',
    '\ud800',
    'x'.repeat(256),
    `${'d/'.repeat(3000)}f`,
  ])('under the path %j (A99, A118)', async (path) => {
    const before = tree(dirname(project));
    for (const op of [write(path), link(path, 'x'), remove(path)]) {
      expect(await applyChange({ project, op, expect: null })).toEqual({ refused: expect.any(String) as string });
    }
    expect(hostState(project, path)).toBe(null);
    expect(tree(dirname(project))).toEqual(before);
  });

  test('after a directory is replaced by a link between check and write (A5)', async () => {
    put('d/f', 'old');
    const expect1 = hostState(project, 'd/f');
    fs.renameSync(join(project, 'd'), join(project, 'moved'));
    fs.symlinkSync('../outside', join(project, 'd'));
    for (const op of [write('d/f'), remove('d/f'), link('d/f', 'x')]) {
      expect(await applyChange({ project, op, expect: expect1 })).toEqual({
        refused: expect.stringContaining('symbolic link') as string,
      });
    }
    expect([tree(), tree(outside)]).toEqual([
      { d: '-> ../outside', moved: null, 'moved/f': 'old' },
      { canary: 'untouched' },
    ]);
  });

  test('while another process keeps swapping a directory and a link (A5)', { timeout: 60_000 }, async () => {
    put('d/f', 'old');
    const flip = `const fs = require('node:fs'); process.chdir(${JSON.stringify(project)}); console.log('on');
      for (;;) {
        try { fs.renameSync('d', 'real'); fs.symlinkSync('../outside', 'd'); fs.unlinkSync('d'); fs.renameSync('real', 'd'); }
        // The apply may have created its own "d" meanwhile.
        catch { try { fs.rmSync('d', { recursive: true, force: true }); fs.renameSync('real', 'd'); } catch {} }
      }`;
    const flipping = spawn(process.execPath, ['-e', flip], { stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise((resolve) => flipping.stdout.once('data', resolve));
    const outcomes = new Set<string>();
    try {
      // On a busy machine, repeats until both outcomes have occurred.
      const end = Date.now() + 45_000;
      for (
        let round = 0;
        round < 3000 || (!(outcomes.has('applied') && outcomes.has('refused')) && Date.now() < end);
        round++
      ) {
        const outcome = await apply(write(`d/${round % 5}`));
        outcomes.add(typeof outcome === 'string' ? outcome : (Object.keys(outcome)[0] ?? ''));
      }
    } finally {
      flipping.kill('SIGKILL');
    }
    await new Promise((resolve) => flipping.once('exit', resolve));
    expect(tree(outside)).toEqual({ canary: 'untouched' });
    // Both outcomes prove that the swap hit the apply.
    expect([...outcomes].sort()).toEqual(expect.arrayContaining(['applied', 'refused']) as string[]);
  });

  test('in a project that is a link, or is behind a link', async () => {
    fs.symlinkSync('outside', join(dirname(project), 'alias'));
    fs.symlinkSync('.', join(dirname(project), 'here'));
    for (const name of ['alias', 'here/outside', 'gone']) {
      const there = join(dirname(project), name);
      await expect(applyChange({ project: there, op: write('f'), expect: null })).rejects.toMatchObject({
        code: 'project.unsuitable',
      });
    }
    expect(tree(outside)).toEqual({ canary: 'untouched' });
  });
});

describe('O_NOFOLLOW', () => {
  test('prevents entering a link: without it the same code writes outside', () => {
    fs.symlinkSync('../outside', join(project, 'lnk'));
    expect([enterLink(built), tree(outside)]).toEqual(['ENOTDIR', { canary: 'untouched' }]);
    const weak = join(dirname(project), 'weak');
    fs.cpSync(built, weak, { recursive: true });
    const source = fs.readFileSync(join(built, 'lib/descend.js'), 'utf8');
    const weakened = source.replace('O_PATH | O_DIRECTORY | O_NOFOLLOW', 'O_PATH | O_DIRECTORY');
    expect(weakened).not.toBe(source);
    fs.writeFileSync(join(weak, 'lib/descend.js'), weakened);
    expect([enterLink(weak), tree(outside)]).toEqual(['written', { canary: 'untouched', f: '' }]);
  });

  test('protects files, too: no read or write through a link, and a fifo does not block', () => {
    fs.symlinkSync('../outside/canary', join(project, 'lnk'));
    fs.symlinkSync('../outside/new', join(project, 'dangling'));
    execFileSync('mkfifo', [join(project, 'fifo')]);
    using directory = openDirectory(project);
    expect(() => directory.readFile('lnk', 100)).toThrow(/ELOOP/);
    expect(() => directory.digest('lnk')).toThrow(/ELOOP/);
    expect(() => directory.copyTo('lnk', directory, 'copy')).toThrow(/ELOOP/);
    expect(() => directory.writeNew('dangling', Buffer.from('x'), 0o644)).toThrow(/EEXIST/);
    expect(() => directory.readFile('fifo', 100)).toThrow(/EINVAL/);
    fs.writeFileSync(join(project, 'mine'), 'mine');
    fs.writeFileSync(join(project, 'other'), 'other');
    expect(() => directory.link('other', 'mine')).toThrow(/EEXIST/);
    for (const name of ['', '.', '..', 'a/b', '/etc', 'a\0']) expect(() => directory.lstat(name)).toThrow(/EINVAL/);
    expect(tree(outside)).toEqual({ canary: 'untouched' });
  });

  test('leaks no descriptor, also when a call fails', async () => {
    fs.symlinkSync('../outside', join(project, 'lnk'));
    put('a/b/c', '');
    await apply(write('a/b/c'));
    const before = openDescriptors();
    for (const op of [
      write('a/b/c'),
      write('lnk/x'),
      write('n/e/w'),
      remove('n/e/w', 'n/e', 'n'),
      write('a/b'),
      write('.git/x'),
    ])
      await apply(op);
    const directory = openDirectory(project);
    expect(() => directory.child('lnk')).toThrow(/ENOTDIR/);
    expect(() => directory.readFile('a', 1)).toThrow(/EINVAL/);
    directory[Symbol.dispose]();
    expect(() => directory.lstat('a')).toThrow(/closed/);
    expect(() => directory.list(1)).toThrow(/closed/);
    expect(() => openDirectory(join(project, 'lnk'))).toThrow(/ENOTDIR/);
    expect(openDescriptors()).toBe(before);
  });
});

describe('a file that changed meanwhile', () => {
  test.each([
    ['was edited', () => fs.appendFileSync(join(project, 'f'), '!'), 'it was changed on your side'],
    [
      'was saved by an editor that renames',
      () => (put('tmp', 'old'), fs.renameSync(join(project, 'tmp'), join(project, 'f'))),
      'it was changed on your side',
    ],
    ['got another mode', () => fs.chmodSync(join(project, 'f'), 0o600), 'it was changed on your side'],
    ['was deleted', () => fs.unlinkSync(join(project, 'f')), 'it was deleted on your side'],
    [
      'became a link',
      () => (fs.unlinkSync(join(project, 'f')), fs.symlinkSync('../outside/canary', join(project, 'f'))),
      'it became a symbolic link on your side',
    ],
    [
      'became a directory',
      () => (fs.unlinkSync(join(project, 'f')), fs.mkdirSync(join(project, 'f'))),
      'it became a directory on your side',
    ],
  ] as const)('%s, and is left alone', async (_, change, changed) => {
    put('f', 'old');
    const expected = hostState(project, 'f');
    change();
    const before = tree();
    for (const op of [write('f'), link('f', 'x'), remove('f')]) {
      expect(await applyChange({ project, op, expect: expected })).toEqual({ changed });
    }
    expect([tree(), tree(outside)]).toEqual([before, { canary: 'untouched' }]);
  });

  test('is kept if it appeared meanwhile, and no directory is created for it', async () => {
    put('d/f', 'mine');
    expect(await applyChange({ project, op: write('d/f'), expect: null })).toEqual({
      changed: 'a file was created on your side',
    });
    expect(await applyChange({ project, op: write('gone/f'), expect: hostState(project, 'd/f') })).toEqual({
      changed: 'it was deleted on your side',
    });
    expect(tree()).toEqual({ d: null, 'd/f': 'mine' });
  });

  test('is noticed at the last moment, after the new text was written', async () => {
    put('f', 'old');
    const op = write('f');
    // The apply reads the bytes after its first check of the file.
    const late = Object.defineProperty({ ...op }, 'bytes', {
      get: () => (put('f', 'edited'), Buffer.from('new')),
    }) as ApplyOp;
    expect(await applyChange({ project, op: late, expect: hostState(project, 'f') })).toEqual({
      changed: 'it was changed on your side',
    });
    const appears = Object.defineProperty({ ...write('new/g') }, 'bytes', {
      get: () => (put('new/g', 'mine'), Buffer.from('new')),
    }) as ApplyOp;
    expect(await applyChange({ project, op: appears, expect: null })).toEqual({
      changed: 'a file was created on your side',
    });
    expect(tree()).toEqual({ f: 'edited', new: null, 'new/g': 'mine' });
  });
});

describe('a deletion', () => {
  test('removes emptied directories only if the sandbox removed them, and never one with other files', async () => {
    put('a/b/c/f', '');
    put('keep/f', '');
    put('shared/f', '');
    put('shared/mine', '');
    for (const op of [remove('a/b/c/f', 'a/b/c', 'a/b'), remove('keep/f'), remove('shared/f', 'shared')])
      expect(await apply(op)).toBe('applied');
    expect(tree()).toEqual({ a: null, keep: null, shared: null, 'shared/mine': '' });
  });

  test('deletes a link itself, refuses a directory or a pipe, and accepts a missing file', async () => {
    fs.symlinkSync('../outside', join(project, 'lnk'));
    fs.mkdirSync(join(project, 'd'));
    execFileSync('mkfifo', [join(project, 'p')]);
    expect([
      await apply(remove('lnk')),
      await apply(remove('d')),
      await apply(remove('p')),
      await apply(remove('none/x')),
    ]).toEqual([
      'applied',
      { refused: 'It is a directory on your side.' },
      { refused: 'It is a device, a pipe or a socket on your side.' },
      'applied',
    ]);
    expect([Object.keys(tree()), tree(outside)]).toEqual([['d', 'p'], { canary: 'untouched' }]);
  });
});

describe('a change of type', () => {
  test('between directory and file works in both directions and any order', async () => {
    put('d/x', 'x');
    put('d/y/z', 'z');
    put('f', 'f');
    const changes = plan(
      write('d', 'now a file'),
      write('f/a/b', 'now below'),
      remove('d/x', 'd'),
      remove('d/y/z', 'd/y', 'd'),
      remove('f'),
    );
    const done = await applyAll({ project, changes, journal: journal() });
    expect(done.map(({ outcome }) => outcome)).toEqual(['applied', 'applied', 'applied', 'applied', 'applied']);
    expect(tree()).toEqual({ d: 'now a file', f: null, 'f/a': null, 'f/a/b': 'now below' });
    await undoJournal(journal());
    expect(tree()).toEqual({ d: null, 'd/x': 'x', 'd/y': null, 'd/y/z': 'z', f: 'f' });
  });

  test('never loses a file outside the change', async () => {
    put('d/x', 'x');
    put('d/secret', 'mine');
    put('f', 'f');
    expect(
      await applyAll({ project, changes: plan(remove('d/x', 'd'), write('d'), write('f/a')), journal: journal() }),
    ).toEqual([
      { path: 'f/a', outcome: { refused: '"f" is a file on your side, where this change needs a directory.' } },
      { path: 'd/x', outcome: 'applied' },
      {
        path: 'd',
        outcome: { refused: 'It is a directory on your side, with files that are not part of this change.' },
      },
    ]);
    expect(tree()).toEqual({ d: null, 'd/secret': 'mine', f: 'f' });
  });
});

describe('a file system error', () => {
  const attempt = `const project = process.cwd();
    const outcome = await applyChange({ project, expect: hostState(project, 'old'), op: { kind: 'write', path: 'old', mode: '100644', bytes: Buffer.alloc(1 << 20) } });
    const deep = await applyChange({ project, expect: null, op: { kind: 'write', path: 'a/b/c', mode: '100644', bytes: Buffer.alloc(1 << 20) } });
    console.log(JSON.stringify({ outcome, deep, left: fs.readdirSync('.', { recursive: true }) }));`;

  test.runIf(HAS_SANDBOX)('a full disk changes nothing and leaves nothing behind', () => {
    const before = `mount -t tmpfs -o size=128k tmpfs '${project}'; cd '${project}'; echo x > old`;
    const refused = { refused: 'The disk is full.' };
    expect(inChild(attempt, { before })).toEqual({ outcome: refused, deep: refused, left: ['old'] });
  });

  test.runIf(HAS_SANDBOX)('a read-only file system changes nothing and leaves nothing behind', () => {
    const before = `mount -t tmpfs tmpfs '${project}'; cd '${project}'; echo x > old; mount -o remount,bind,ro '${project}'`;
    const refused = { refused: 'The file system is read-only.' };
    expect(inChild(attempt, { before })).toEqual({ outcome: refused, deep: refused, left: ['old'] });
  });

  test('a directory of another user changes nothing and leaves nothing behind', () => {
    put('old', '');
    fs.chmodSync(project, 0o555);
    const code = `process.chdir('${project}');\n${attempt}`;
    const refused = { refused: 'Permission is denied in this directory.' };
    expect(inChild(code, root ? { user: 1001 } : {})).toEqual({ outcome: refused, deep: refused, left: ['old'] });
    fs.chmodSync(project, 0o755);
  });

  test.runIf(HAS_SANDBOX)('a failed backup for the journal stops the apply before the first file', () => {
    put('a', 'x'.repeat(300_000));
    put('b', 'b');
    const space = join(dirname(project), 'space');
    fs.mkdirSync(space);
    const code = `const project = '${project}';
      const change = (path) => ({ op: { kind: 'delete', path }, expect: hostState(project, path) });
      await applyAll({ project, changes: [change('b'), change('a')], journal: '${space}/journal' }).catch((error) => {
        console.log(JSON.stringify({ code: error.code, files: fs.readdirSync(project), left: fs.readdirSync('${space}') }));
      });`;
    expect(inChild(code, { before: `mount -t tmpfs -o size=128k tmpfs '${space}'` })).toEqual({
      code: 'disk.full',
      files: ['a', 'b'],
      left: [],
    });
  });
});

describe('the journal', () => {
  test('restores every file that still has the applied content, and names the others', async () => {
    put('edited', 'old');
    put('private', 'secret', 0o600);
    put('run', '#!', 0o750);
    put('later', 'old');
    fs.symlinkSync('before', join(project, 'link'));
    const changes = plan(
      write('edited'),
      remove('private'),
      write('run', '#! 2'),
      write('new/file'),
      link('link', 'after'),
      write('later'),
    );
    const before = tree();
    expect(
      (await applyAll({ project, changes, journal: journal() })).every(({ outcome }) => outcome === 'applied'),
    ).toBe(true);
    put('later', 'edited by the user since');
    const expected = [
      { path: 'private', outcome: 'restored' },
      { path: 'later', outcome: { changed: 'it was changed on your side since' } },
      ...['link', 'new/file', 'run', 'edited'].map((path) => ({ path, outcome: 'restored' })),
    ];
    expect(await undoJournal(journal())).toEqual(expected);
    expect(tree()).toEqual({ ...before, later: 'edited by the user since' });
    expect([modeOf('private'), modeOf('run')]).toEqual(['600', '750']);
    expect(await undoJournal(journal())).toEqual(expected);
  });

  test('keeps the old name of a renamed file when the new name cannot be written', async () => {
    put('old', 'text');
    fs.symlinkSync('../outside', join(project, 'lnk'));
    const [added, gone] = plan(write('lnk/new', 'text'), remove('old'));
    if (!added || !gone) throw new Error('no plan');
    const done = await applyAll({ project, changes: [{ ...gone, requires: 'lnk/new' }, added], journal: journal() });
    expect(done.map(({ path, outcome }) => [path, outcome === 'applied'])).toEqual([
      ['lnk/new', false],
      ['old', false],
    ]);
    expect(tree()).toEqual({ lnk: '-> ../outside', old: 'text' });
  });

  test('refuses paths that lead elsewhere, also during recovery', async () => {
    const changes = [remove('../outside/canary'), write('.git/hooks/x')].map((op) => ({ op, expect: null }));
    const done = await applyAll({ project, changes, journal: journal() });
    expect(done).toEqual(
      changes.toReversed().map(({ op }) => ({ path: op.path, outcome: { refused: expect.any(String) as string } })),
    );
    expect(await recover(journal())).toEqual({ kind: 'complete', changes: done });
    expect([tree(), tree(outside)]).toEqual([{}, { canary: 'untouched' }]);
  });

  test('distinguishes an unfinished, a missing and a damaged journal', async () => {
    expect(await recover(journal())).toEqual({ kind: 'nothing-begun' });
    fs.mkdirSync(journal());
    fs.writeFileSync(join(journal(), '0'), 'half a copy');
    expect(await recover(journal())).toEqual({ kind: 'nothing-begun' });
    fs.writeFileSync(join(journal(), 'journal.json'), '{"version":1,"steps":[{"temporary":"../../x"}]}');
    await expect(recover(journal())).rejects.toMatchObject({ code: 'state.damaged' });
  });

  test(
    'after kill -9 at any moment leaves no temporary file, and knows what was done (A18)',
    { timeout: 120_000 },
    async () => {
      const paths = Array.from({ length: 40 }, (_, index) =>
        index % 4 === 3 ? `fresh${index}/sub/file` : `f${index}`,
      );
      const reset = (): void => {
        fs.rmSync(project, { recursive: true });
        fs.rmSync(journal(), { recursive: true, force: true });
        fs.mkdirSync(project);
        for (const path of paths) if (path.startsWith('f') && !path.includes('/')) put(path, `old ${path}`);
      };
      const code = `import { hostState } from '${built}/review/apply.js';
      import { applyAll } from '${built}/review/journal.js';
      const project = '${project}', journal = '${journal()}';
      const ops = ${JSON.stringify(paths)}.map((path, index) => index % 4 === 1 ? { kind: 'delete', path }
        : { kind: 'write', path, mode: '100644', bytes: Buffer.from('new ' + path) });
      const changes = ops.map((op) => ({ op, expect: hostState(project, op.path) }));
      process.stdout.write('go');
      await applyAll({ project, changes, journal });
      process.stdout.write('done');`;
      const kinds = new Set<string>();
      for (let round = 0; round < 25; round++) {
        reset();
        const before = tree();
        await killed(code, round % 5 === 0 ? 0 : round * 4);
        const result = await recover(journal());
        kinds.add(result.kind);
        const reported =
          result.kind === 'nothing-begun' ? [] : result.changes.filter(({ outcome }) => outcome === 'applied');
        const after = tree();
        const differing = [...new Set([...filesOf(before), ...filesOf(after)])]
          .filter((path) => before[path] !== after[path])
          .sort();
        expect(reported.map(({ path }) => path).sort()).toEqual(differing);
        expect(
          Object.keys(after).filter(
            (path) => path.includes('.ags-tmp') || (after[path] === null && !differing.some((d) => d.startsWith(path))),
          ),
        ).toEqual([]);
        expect((await undoJournal(journal())).every(({ outcome }) => outcome === 'restored')).toBe(true);
        expect(tree()).toEqual(before);
      }
      // At least one kill interrupted the apply.
      expect([...kinds]).toContain('interrupted');
    },
  );

  test('recovers from a crash between writing a file and renaming it', async () => {
    put('f', 'old');
    await applyAll({ project, changes: plan(write('f'), write('new/dir/g')), journal: journal() });
    const file = JSON.parse(fs.readFileSync(join(journal(), 'journal.json'), 'utf8')) as {
      steps: { path: string; temporary: string }[];
    };
    // Simulates a crash after linking "f" and before renaming "g".
    const unfinished = { ...file, state: 'applying', steps: file.steps.map((step) => ({ ...step, outcome: null })) };
    fs.writeFileSync(join(journal(), 'journal.json'), JSON.stringify(unfinished));
    fs.linkSync(join(project, 'f'), join(project, file.steps[0]?.temporary ?? ''));
    fs.renameSync(join(project, 'new/dir/g'), join(project, 'new/dir', file.steps[1]?.temporary ?? ''));
    put('.ags-tmp-0123456789abcdef', 'not ours');
    expect(await recover(journal())).toEqual({
      kind: 'interrupted',
      changes: [
        { path: 'f', outcome: 'applied' },
        { path: 'new/dir/g', outcome: { refused: 'The apply was interrupted before this change.' } },
      ],
    });
    expect(tree()).toEqual({ '.ags-tmp-0123456789abcdef': 'not ours', f: 'new' });
  });
});

function enterLink(lib: string): unknown {
  const code = `const project = openDirectory('${project}');
    try { project.child('lnk').writeNew('f', Buffer.from(''), 0o644); console.log('"written"'); }
    catch (error) { console.log(JSON.stringify(error.code)); }`;
  return inChild(code, { lib });
}

function openDescriptors(): number {
  return fs.readdirSync('/proc/self/fd').length;
}

function filesOf(of: Record<string, string | null>): string[] {
  return Object.keys(of).filter((path) => of[path] !== null);
}

/** Starts the code and kills it when it is ready, or `waitMs` after its journal is written. */
async function killed(code: string, waitMs: number): Promise<void> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  if (waitMs > 0) await vi.waitUntil(() => fs.existsSync(join(journal(), 'journal.json')), { interval: 1 });
  await new Promise((resolve) => setTimeout(resolve, waitMs));
  child.kill('SIGKILL');
  await ended;
}
