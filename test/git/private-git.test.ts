// test/git/private-git.test.ts: ags reads a repository as git does, and the private git directory of a sandbox matches the user's, without
// secrets and without anything that runs.
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AgsError } from '../../src/protocol/errors.ts';
import { inspectRepository } from '../../src/git/inspect.ts';
import type { Repository } from '../../src/git/repository.ts';
import { readPlain } from '../../src/git/plain-repository.ts';
import { createPrivateGit } from '../../src/git/private-git.ts';

let scratch = '';
beforeAll(() => {
  scratch = realpathSync(mkdtempSync('/tmp/ags-git-'));
  mkdirSync(join(scratch, 'home'));
  writeFileSync(
    join(scratch, 'home/.gitconfig'),
    '[user]\n\tname = Dev\n\temail = dev@example.test\n[protocol "file"]\n\tallow = always\n[init]\n\tdefaultBranch = main\n',
  );
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function git(cwd: string, ...args: string[]): string {
  return execFileSync('git', args, {
    cwd,
    encoding: 'utf8',
    env: { PATH: '/usr/bin:/bin', HOME: join(scratch, 'home'), LC_ALL: 'C.UTF-8', GIT_CONFIG_NOSYSTEM: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  }).replace(/\n$/, '');
}

function tryGit(cwd: string, ...args: string[]): string {
  try {
    return git(cwd, ...args);
  } catch {
    return '';
  }
}

function commit(at: string, file: string, content = `${file}\n`): void {
  mkdirSync(dirname(join(at, file)), { recursive: true });
  writeFileSync(join(at, file), content);
  git(at, 'add', '-A');
  git(at, 'commit', '-q', '-m', file);
}

/** Creates a repository with two commits, three branches and two tags. */
function repository(): string {
  const at = mkdtempSync(join(scratch, 'r-'));
  if (!existsSync(join(scratch, 'model'))) makeRepository(join(scratch, 'model'));
  execFileSync('cp', ['-a', `${join(scratch, 'model')}/.`, at]);
  return at;
}

function makeRepository(at: string, ...init: string[]): string {
  mkdirSync(at);
  git(at, 'init', '-q', ...init);
  commit(at, 'a.txt');
  git(at, 'branch', 'other');
  git(at, 'tag', 'light');
  git(at, 'tag', '-a', '-m', 'annotated', 'heavy');
  commit(at, 'src/b.txt');
  git(at, 'branch', 'deep/er/name');
  return at;
}

const inspect = (cwd: string): Promise<Repository | null> =>
  inspectRepository(cwd, { home: join(scratch, 'home'), cacheDir: join(scratch, 'cache') });

/** The same facts from git itself. */
function asGitSays(cwd: string): Omit<Repository, 'settings'> {
  const rows = git(
    cwd,
    'for-each-ref',
    '--format=%(objectname)%09%(refname)%09%(symref)',
    'refs/heads',
    'refs/remotes',
    'refs/tags',
  )
    .split('\n')
    .filter((row) => row !== '')
    .map((row) => row.split('\t'));
  const headRef = tryGit(cwd, 'symbolic-ref', '-q', 'HEAD');
  return {
    root: git(cwd, 'rev-parse', '--show-toplevel'),
    gitDir: git(cwd, 'rev-parse', '--absolute-git-dir'),
    commonDir: realpathSync(git(cwd, 'rev-parse', '--path-format=absolute', '--git-common-dir')),
    objectFormat: git(cwd, 'rev-parse', '--show-object-format') as 'sha1',
    headRef: headRef === '' ? null : headRef,
    headCommit: tryGit(cwd, 'rev-parse', '-q', '--verify', 'HEAD^{commit}') || null,
    // The list already has the ref that a remote's HEAD points to.
    refs: rows
      .filter(([, name = '', target = '']) => target === '' || !name.startsWith('refs/remotes/'))
      .map(([oid = '', name = '']) => ({ name, oid })),
  };
}

/** `fast`: an ordinary repository, which ags must read without git. */
type Kind = readonly [name: string, fast: boolean, make: () => string];

const KINDS: readonly Kind[] = [
  ['loose refs', true, () => repository()],
  [
    'packed refs',
    true,
    () => {
      const at = repository();
      git(at, 'pack-refs', '--all');
      return at;
    },
  ],
  [
    'packed refs, some of them moved or deleted since',
    true,
    () => {
      const at = repository();
      git(at, 'pack-refs', '--all');
      git(at, 'branch', '-f', 'other', 'main');
      git(at, 'branch', '-D', 'deep/er/name');
      git(at, 'branch', 'deep/er/newer');
      commit(at, 'c.txt');
      return at;
    },
  ],
  ['a directory below the root', true, () => join(repository(), 'src')],
  [
    'a detached HEAD',
    true,
    () => {
      const at = repository();
      git(at, 'checkout', '-q', '--detach', 'other');
      return at;
    },
  ],
  [
    'a detached HEAD at a tag object',
    true,
    () => {
      const at = repository();
      git(at, 'checkout', '-q', 'heavy');
      return at;
    },
  ],
  [
    'no commit yet',
    true,
    () => {
      const at = mkdtempSync(join(scratch, 'r-'));
      git(at, 'init', '-q');
      return at;
    },
  ],
  [
    'an orphan branch beside others',
    true,
    () => {
      const at = repository();
      git(at, 'checkout', '-q', '--orphan', 'fresh');
      return at;
    },
  ],
  [
    'branch names beyond ASCII',
    true,
    () => {
      const at = repository();
      git(at, 'checkout', '-q', '-b', 'größe/日本');
      git(at, 'branch', '𝒳-beyond');
      git(at, 'branch', '\uE000-private');
      git(at, 'pack-refs', '--all');
      git(at, 'branch', 'größe/loose');
      return at;
    },
  ],
  [
    'a clone, with a remote’s HEAD',
    true,
    () => {
      const at = mkdtempSync(join(scratch, 'r-'));
      git(at, 'clone', '-q', repository(), '.');
      return at;
    },
  ],
  [
    'a merge in progress',
    true,
    () => {
      const at = repository();
      git(at, 'checkout', '-q', 'other');
      commit(at, 'src/b.txt', 'another\n');
      tryGit(at, 'merge', 'main');
      return at;
    },
  ],
  [
    'a rebase in progress',
    true,
    () => {
      const at = repository();
      git(at, 'checkout', '-q', 'other');
      commit(at, 'src/b.txt', 'another\n');
      tryGit(at, 'rebase', 'main');
      return at;
    },
  ],
  [
    'a lock file beside a ref',
    true,
    () => {
      const at = repository();
      writeFileSync(join(at, '.git/refs/heads/main.lock'), '');
      return at;
    },
  ],
  [
    'a shallow clone',
    true,
    () => {
      const at = mkdtempSync(join(scratch, 'r-'));
      git(at, 'clone', '-q', '--depth', '1', `file://${repository()}`, '.');
      return at;
    },
  ],
  [
    'a split index',
    true,
    () => {
      const at = repository();
      git(at, 'update-index', '--split-index');
      commit(at, 'c.txt');
      return at;
    },
  ],
  [
    'borrowed objects',
    true,
    () => {
      const at = mkdtempSync(join(scratch, 'r-'));
      git(at, 'clone', '-q', '--shared', repository(), '.');
      commit(at, 'own.txt');
      return at;
    },
  ],
  [
    'borrowed objects of borrowed objects, by a relative path and a link',
    false,
    () => {
      const first = repository();
      const second = mkdtempSync(join(scratch, 'r-'));
      git(second, 'clone', '-q', '--shared', first, '.');
      writeFileSync(
        join(second, '.git/objects/info/alternates'),
        `# a remark\n\n../../../${first.split('/').at(-1)}/.git/objects\n`,
      );
      commit(second, 'second.txt');
      const third = mkdtempSync(join(scratch, 'r-'));
      git(third, 'clone', '-q', '--shared', second, '.');
      // Relative paths start from the real location of the store.
      mkdirSync(join(scratch, 'elsewhere/deep'), { recursive: true });
      const moved = join(scratch, 'elsewhere/deep', `${third.split('/').at(-1)}`);
      renameSync(join(third, '.git/objects'), moved);
      writeFileSync(join(moved, 'info/alternates'), `../../../${second.split('/').at(-1)}/.git/objects\n`);
      symlinkSync(moved, join(third, '.git/objects'));
      commit(third, 'third.txt');
      return third;
    },
  ],
  [
    'submodules, one of them nested, one with a slash in its name',
    true,
    () => {
      const inner = repository();
      const middle = repository();
      git(middle, 'submodule', '--quiet', 'add', inner, 'inner');
      git(middle, 'commit', '-q', '-m', 'with inner');
      const at = repository();
      git(at, 'submodule', '--quiet', 'add', '--name', 'group/middle', middle, 'lib/middle');
      git(at, 'submodule', '--quiet', 'update', '--init', '--recursive');
      git(at, 'commit', '-q', '-m', 'with middle');
      writeFileSync(join(at, 'lib/middle/a.txt'), 'changed\n');
      return at;
    },
  ],
  [
    'a sparse checkout',
    false,
    () => {
      const at = repository();
      git(at, 'sparse-checkout', 'set', '--cone', 'src');
      return at;
    },
  ],
  [
    'a linked worktree',
    false,
    () => {
      const at = repository();
      const linked = `${at}-linked`;
      git(at, 'worktree', 'add', '-q', linked, 'other');
      writeFileSync(join(linked, 'a.txt'), 'changed\n');
      return linked;
    },
  ],
  [
    'a main work tree with linked ones',
    true,
    () => {
      const at = repository();
      git(at, 'worktree', 'add', '-q', `${at}-linked`, 'other');
      return at;
    },
  ],
  [
    'a directory inside a submodule',
    false,
    () => {
      const at = repository();
      git(at, 'submodule', '--quiet', 'add', repository(), 'sub');
      return join(at, 'sub');
    },
  ],
  [
    'a separate git directory',
    false,
    () => {
      const at = mkdtempSync(join(scratch, 'r-'));
      git(at, 'init', '-q', '--separate-git-dir', `${at}-git`);
      git(at, 'config', 'core.worktree', at);
      commit(at, 'a.txt');
      return at;
    },
  ],
  [
    'a symbolic link as .git',
    false,
    () => {
      const at = repository();
      renameSync(join(at, '.git'), `${at}-git`);
      symlinkSync(`${at}-git`, join(at, '.git'));
      git(at, 'config', 'core.worktree', at);
      return at;
    },
  ],
  [
    'a symbolic link as HEAD',
    false,
    () => {
      const at = repository();
      unlinkSync(join(at, '.git/HEAD'));
      symlinkSync('refs/heads/other', join(at, '.git/HEAD'));
      return at;
    },
  ],
  [
    'a symbolic branch',
    false,
    () => {
      const at = repository();
      git(at, 'symbolic-ref', 'refs/heads/alias', 'refs/heads/other');
      git(at, 'symbolic-ref', 'HEAD', 'refs/heads/alias');
      return at;
    },
  ],
  [
    'a HEAD outside of the branches',
    false,
    () => {
      const at = repository();
      git(at, 'update-ref', 'refs/odd/place', 'HEAD');
      git(at, 'symbolic-ref', 'HEAD', 'refs/odd/place');
      return at;
    },
  ],
  [
    'a ref in capital letters',
    false,
    () => {
      const at = repository();
      const file = join(at, '.git/refs/heads/other');
      writeFileSync(file, readFileSync(file, 'utf8').toUpperCase());
      return at;
    },
  ],
  [
    'an unrelated file among the refs',
    false,
    () => {
      const at = repository();
      writeFileSync(join(at, '.git/refs/heads/.DS_Store'), 'Bud1');
      return at;
    },
  ],
  [
    'refs that are linked from elsewhere in the git directory',
    false,
    () => {
      const at = repository();
      renameSync(join(at, '.git/refs/heads/deep'), join(at, '.git/deep'));
      symlinkSync('../../deep', join(at, '.git/refs/heads/deep'));
      return at;
    },
  ],
  ['SHA-256 object ids', false, () => makeRepository(join(scratch, 'sha256'), '--object-format=sha256')],
  [
    'SHA-256 object ids without a commit',
    false,
    () => {
      const at = mkdtempSync(join(scratch, 'r-'));
      git(at, 'init', '-q', '--object-format=sha256');
      return at;
    },
  ],
  [
    'a work tree elsewhere',
    false,
    () => {
      const at = repository();
      const elsewhere = `${at}-tree`;
      mkdirSync(elsewhere);
      writeFileSync(join(elsewhere, '.git'), `gitdir: ${join(at, '.git')}\n`);
      git(at, 'config', 'core.worktree', elsewhere);
      return elsewhere;
    },
  ],
  [
    'an unfinished .git inside a repository',
    false,
    () => {
      const at = repository();
      mkdirSync(join(at, 'src/.git'));
      return join(at, 'src');
    },
  ],
  [
    'a directory with a file called HEAD',
    false,
    () => {
      const at = repository();
      writeFileSync(join(at, 'src/HEAD'), 'a headline\n');
      return join(at, 'src');
    },
  ],
  [
    'a path with blanks, quotes and a line break in it',
    true,
    () => {
      const at = join(scratch, 'odd \'"\n$HOME');
      renameSync(repository(), at);
      return at;
    },
  ],
  ...(tryInit('--ref-format=reftable')
    ? [['refs in a table', false, () => makeRepository(join(scratch, 'reftable'), '--ref-format=reftable')] as Kind]
    : []),
];

function tryInit(option: string): boolean {
  const at = mkdtempSync('/tmp/ags-git-');
  try {
    execFileSync('git', ['init', '-q', option, at], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  } finally {
    rmSync(at, { recursive: true, force: true });
  }
}

describe.each(KINDS)('%s', (name, fast, make) => {
  let cwd = '';
  beforeAll(() => {
    cwd = make();
  });

  test('is read as git reads it', async () => {
    const truth = asGitSays(cwd);
    const plain = readPlain(cwd);
    const found = await inspect(cwd);
    if (found === null) throw new Error('no repository');
    const { settings, ...rest } = found;
    expect({ ...rest, commonDir: realpathSync(rest.commonDir) }).toEqual(truth);
    // The fast path is used only for ordinary repositories.
    if (fast) expect(plain).toEqual(truth);
    expect(settings.get('user.name')).toBe('Dev');
  });

  test('gives a private git directory in which git sees the same', async () => {
    const found = await inspect(cwd);
    if (found === null) throw new Error('no repository');
    const directory = mkdtempSync(join(scratch, 'p-'));
    const before = everything(found.commonDir);
    const shown = name.startsWith('borrowed') ? [scratch] : [];
    const made = createPrivateGit({ repository: found, directory, checkStat: 'full', shown });
    expect(everything(found.commonDir)).toEqual(before);
    expect(made.objects.every(({ from, to }) => existsSync(from) && to.startsWith('/run/ags/objects/'))).toBe(true);
    const inside = seenThrough(found, made);
    expect(inside.map((question) => question(directory))).toEqual(inside.map((question) => question(null)));
  });
});

// Remotes and reflogs stay outside, so git cannot name upstreams or the origin of a detached HEAD.
const LEFT_OUT = /^(?:Your branch [^]*?\n\n|HEAD detached (?:at|from) .*|Not currently on any branch\.)/m;

/** Asks the user's git directory (null) and the private one the same, with borrowed objects at their host paths. */
function seenThrough(
  found: Repository,
  made: ReturnType<typeof createPrivateGit>,
): ((directory: string | null) => string)[] {
  const toHost = (path: string): string => {
    const store = made.objects.find(({ to }) => to === path);
    if (store === undefined) throw new Error(`${path} is not mounted`);
    return store.from;
  };
  for (const file of readdirSync(made.directory, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('objects/info/alternates'),
  )) {
    const lines = readFileSync(join(made.directory, file), 'utf8')
      .split('\n')
      .filter((line) => line !== '');
    writeFileSync(join(made.directory, file), lines.map((line) => `${JSON.stringify(toHost(line))}\n`).join(''));
  }
  const ask =
    (...args: string[]) =>
    (directory: string | null): string =>
      tryGit(
        found.root,
        ...(directory === null ? [] : ['--git-dir', directory, '--work-tree', found.root]),
        ...args,
      ).replace(LEFT_OUT, '');
  return [
    ask('status', '--ignore-submodules=all'),
    ask('log', '--all', '--format=%H %s'),
    ask('ls-files', '--stage', '-v'),
    ask('for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads', 'refs/tags'),
    ask('rev-parse', '-q', '--verify', 'HEAD'),
    ask('diff', 'HEAD', '--ignore-submodules=all'),
  ];
}

function everything(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' }).toSorted();
}

describe('repositories that ags refuses', () => {
  test('a directory without git is no repository, and a bare repository is refused', async () => {
    const plain = mkdtempSync(join(scratch, 'n-'));
    expect(await inspect(plain)).toBe(null);
    const bare = mkdtempSync(join(scratch, 'b-'));
    git(bare, 'init', '-q', '--bare');
    await expect(inspect(bare)).rejects.toMatchObject({ code: 'project.unsuitable' });
    await expect(inspect(join(repository(), '.git'))).rejects.toMatchObject({ code: 'project.unsuitable' });
  });

  test.each(['true', 'yes', '1', 'on', 'TRUE'])('a repository with core.bare = %s is refused', async (value) => {
    const at = repository();
    git(at, 'config', 'core.bare', value);
    await expect(inspect(at)).rejects.toMatchObject({ code: 'project.unsuitable' });
  });

  test('a repository that git cannot read is an error, not a project without git', async () => {
    const newer = repository();
    git(newer, 'config', 'core.repositoryformatversion', '1');
    git(newer, 'config', 'extensions.fromthefuture', 'true');
    await expect(inspect(newer)).rejects.toThrow(AgsError);
    const broken = repository();
    writeFileSync(join(broken, '.git/config'), '[core\n');
    await expect(inspect(broken)).rejects.toThrow(AgsError);
  });

  test.runIf(process.getuid?.() === 0)('a repository of another user is refused until git trusts it', async () => {
    const at = repository();
    execFileSync('chown', ['-R', '42424:42424', at]);
    const refusal: unknown = await inspect(at).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(AgsError);
    expect((refusal as AgsError).message).toBe(
      `git cannot read the repository at ${at}: detected dubious ownership in repository at '${at}'.`,
    );
    expect((refusal as AgsError).hint).toBe(`If you trust it: git config --global --add safe.directory ${at}`);
    const trusting = join(scratch, 'trusting');
    mkdirSync(trusting);
    writeFileSync(join(trusting, '.gitconfig'), `[safe]\n\tdirectory = ${at}\n`);
    expect((await inspectRepository(at, { home: trusting, cacheDir: join(scratch, 'cache') }))?.headRef).toBe(
      'refs/heads/main',
    );
  });
});

describe('a pointer to another repository', () => {
  /** Each with a way for the user to confirm it. */
  const LEADING: readonly (readonly [string, RegExp, (at: string, other: string) => void, Mend | null])[] = [
    [
      'a hand-written .git file',
      /leads to the repository .*other.*, which does not know of this directory/,
      (at, other) => {
        rmSync(join(at, '.git'), { recursive: true });
        writeFileSync(join(at, '.git'), `gitdir: ${other}/.git\n`);
      },
      null,
    ],
    [
      'a link in place of .git',
      /leads to the repository/,
      (at, other) => {
        rmSync(join(at, '.git'), { recursive: true });
        symlinkSync(`${other}/.git`, join(at, '.git'));
      },
      null,
    ],
    [
      'a copied linked worktree',
      /leads to the repository/,
      (at, other) => {
        git(other, 'worktree', 'add', '-q', `${at}-linked`);
        rmSync(join(at, '.git'), { recursive: true });
        writeFileSync(join(at, '.git'), readFileSync(join(`${at}-linked`, '.git')));
      },
      (at) => (rmSync(`${at}-linked`, { recursive: true }), git(at, 'worktree', 'repair')),
    ],
    [
      'a hand-written worktree entry',
      /leads to the repository/,
      (at, other) => {
        renameSync(join(at, '.git'), join(at, 'x'));
        writeFileSync(join(at, '.git'), 'gitdir: x\n');
        writeFileSync(join(at, 'x/gitdir'), `${at}/.git\n`);
        writeFileSync(join(at, 'x/commondir'), `${other}/.git\n`);
      },
      null,
    ],
    [
      'a common directory in an ordinary .git',
      /leads to the repository/,
      (at, other) => writeFileSync(join(at, '.git/commondir'), `${other}/.git\n`),
      null,
    ],
    [
      'the submodule of another repository',
      /whose settings say that its files are elsewhere/,
      (at, other) => {
        git(other, 'submodule', '--quiet', 'add', repository(), 'sub');
        rmSync(join(at, '.git'), { recursive: true });
        writeFileSync(join(at, '.git'), `gitdir: ${other}/.git/modules/sub\n`);
      },
      null,
    ],
    [
      'a separate git directory',
      /leads to the repository/,
      (at) => {
        git(at, 'init', '-q', '--separate-git-dir', `${at}-git`);
      },
      (at) => git(at, 'config', 'core.worktree', at),
    ],
    ['refs linked from it', /refs is a link to .*other/, (at, other) => replaceByLink(at, other, 'refs'), null],
    [
      'branches linked from it',
      /refs\/heads is a link to .*other/,
      (at, other) => replaceByLink(at, other, 'refs/heads'),
      null,
    ],
    [
      'packed refs linked from it',
      /packed-refs is a link to .*other/,
      (at, other) => {
        git(at, 'pack-refs', '--all');
        git(other, 'pack-refs', '--all');
        replaceByLink(at, other, 'packed-refs');
      },
      null,
    ],
    [
      'settings with a parent directory as work tree',
      /say that its files are in .*, which has no .git that leads there/,
      (at) => git(at, 'config', 'core.worktree', '../..'),
      (at) => git(at, 'config', '--file', '.git/config', '--unset', 'core.worktree'),
    ],
    [
      'settings with another directory as work tree',
      /whose settings say that its files are elsewhere/,
      (at, other) => git(at, 'config', 'core.worktree', other),
      (at) => git(at, 'config', '--file', '.git/config', '--unset', 'core.worktree'),
    ],
  ];
  type Mend = (at: string) => unknown;

  function replaceByLink(at: string, other: string, name: string): void {
    rmSync(join(at, '.git', name), { recursive: true });
    symlinkSync(join(other, '.git', name), join(at, '.git', name));
  }

  test.each(LEADING)('%s is refused unless both repositories point to each other', async (_name, words, lead, mend) => {
    const at = repository();
    const other = join(mkdtempSync(join(scratch, 'o-')), 'other');
    makeRepository(other);
    lead(at, other);
    await expect(inspect(at)).rejects.toMatchObject({
      code: 'project.unsuitable',
      message: expect.stringMatching(words) as string,
    });
    if (mend === null) return;
    mend(at);
    expect((await inspect(at))?.root).toBe(at);
  });

  const borrow = (at: string, store: string): void =>
    writeFileSync(join(at, '.git/objects/info/alternates'), `${store}\n`);
  const LENDING: readonly (readonly [string, (at: string, other: string) => void])[] = [
    ['borrowed objects', (at, other) => borrow(at, `${other}/.git/objects`)],
    [
      'borrowed objects of borrowed objects',
      (at, other) => {
        mkdirSync(join(at, 'near/info'), { recursive: true });
        writeFileSync(join(at, 'near/info/alternates'), `${other}/.git/objects\n`);
        borrow(at, '../../near');
      },
    ],
    ['a link in place of the objects', (at, other) => replaceByLink(at, other, 'objects')],
    [
      'a submodule that borrows objects',
      (at, other) => {
        git(at, 'submodule', '--quiet', 'add', repository(), 'sub');
        writeFileSync(join(at, '.git/modules/sub/objects/info/alternates'), `${other}/.git/objects\n`);
      },
    ],
  ];

  test.each(LENDING)('%s: refused unless the user reveals the store', async (_name, lend) => {
    const at = repository();
    const other = join(mkdtempSync(join(scratch, 'o-')), 'other');
    makeRepository(other);
    lend(at, other);
    const found = await inspect(at);
    if (found === null) throw new Error('no repository');
    const make = (...shown: string[]): ReturnType<typeof createPrivateGit> =>
      createPrivateGit({ repository: found, directory: mkdtempSync(join(scratch, 'p-')), checkStat: 'full', shown });
    expect(() => make()).toThrow(/takes objects from .*other\/.git\/objects, which is not part of this project/);
    expect(() => make(`${other}/.git/obj`)).toThrow(AgsError);
    for (const shown of [`${other}/.git/objects`, other])
      expect(make(shown).objects.map(({ from }) => from)).toContain(`${other}/.git/objects`);
  });

  test('objects in the workspace are used from there, so files hidden in the workspace stay hidden', async () => {
    const at = repository();
    git(at, 'clone', '-q', '--bare', '.', 'near.git');
    borrow(at, '../../near.git/objects');
    const found = await inspect(at);
    if (found === null) throw new Error('no repository');
    const directory = mkdtempSync(join(scratch, 'p-'));
    const made = createPrivateGit({ repository: found, directory, checkStat: 'full', shown: [] });
    expect(made.objects).toEqual([{ from: join(at, '.git/objects'), to: '/run/ags/objects/0' }]);
    expect(readFileSync(join(directory, 'objects/info/alternates'), 'utf8')).toBe(
      `/run/ags/objects/0\n${at}/near.git/objects\n`,
    );
  });

  test('neither the git directory nor the work tree counts as an object store', async () => {
    const at = repository();
    borrow(at, '..\n../..\n../../src');
    const found = await inspect(at);
    if (found === null) throw new Error('no repository');
    const directory = mkdtempSync(join(scratch, 'p-'));
    expect(createPrivateGit({ repository: found, directory, checkStat: 'full', shown: [] }).objects).toEqual([
      { from: join(at, '.git/objects'), to: '/run/ags/objects/0' },
    ]);
  });

  test('only regular files are copied: no link, no pipe, nothing behind a linked directory', async () => {
    const at = repository();
    git(at, 'checkout', '-q', '--detach');
    const secret = mkdtempSync(join(scratch, 's-'));
    for (const name of ['exclude', 'HEAD', 'file']) writeFileSync(join(secret, name), 'secret\n');
    for (const name of ['info', 'logs']) {
      rmSync(join(at, '.git', name), { recursive: true });
      symlinkSync(secret, join(at, '.git', name));
    }
    mkdirSync(join(at, '.git/rebase-merge/deep'), { recursive: true });
    writeFileSync(join(at, '.git/rebase-merge/deep/file'), 'kept\n');
    symlinkSync(join(secret, 'file'), join(at, '.git/rebase-merge/link'));
    execFileSync('mkfifo', [join(at, '.git/rebase-merge/pipe'), join(at, '.git/MERGE_MSG')]);
    symlinkSync(secret, join(at, '.git/sequencer'));
    symlinkSync(secret, join(at, '.git/modules'));
    const found = await inspect(at);
    if (found === null) throw new Error('no repository');
    const directory = mkdtempSync(join(scratch, 'p-'));
    createPrivateGit({ repository: found, directory, checkStat: 'full', shown: [] });
    expect(everything(directory)).toEqual([
      'HEAD',
      'config',
      'index',
      'info',
      'logs',
      'objects',
      'objects/info',
      'objects/info/alternates',
      'packed-refs',
      'rebase-merge',
      'rebase-merge/deep',
      'rebase-merge/deep/file',
      'refs',
    ]);
  });
});

test.each(['sha1', 'sha256'])(
  'a submodule (%s) has its own private git directory, in which commits work',
  async (format) => {
    const lib = makeRepository(join(scratch, `lib-${format}`), `--object-format=${format}`);
    const at = makeRepository(join(scratch, `with-lib-${format}`), `--object-format=${format}`);
    git(at, 'submodule', '--quiet', 'add', lib, 'lib');
    git(join(at, 'lib'), 'config', 'remote.origin.url', 'https://user:token@example.test/x');
    git(join(at, 'lib'), 'config', 'core.hooksPath', '/evil');
    const found = await inspect(at);
    if (found === null) throw new Error('no repository');
    const directory = mkdtempSync(join(scratch, 'p-'));
    const made = createPrivateGit({ repository: found, directory, checkStat: 'full', shown: [] });
    seenThrough(found, made);
    const inside = (...args: string[]): string =>
      git(join(at, 'lib'), '--git-dir', join(directory, 'modules/lib'), '--work-tree', join(at, 'lib'), ...args);
    expect(inside('status', '--porcelain')).toBe(git(join(at, 'lib'), 'status', '--porcelain'));
    const before = git(join(at, 'lib'), 'rev-parse', 'HEAD');
    expect(inside('rev-parse', 'HEAD')).toBe(before);
    const config = join(directory, 'modules/lib/config');
    expect(readFileSync(config, 'utf8')).not.toMatch(/token|evil/);
    expect(git(scratch, 'config', '--file', config, 'user.email')).toBe('dev@example.test');
    writeFileSync(join(at, 'lib/a.txt'), 'changed inside\n');
    inside('commit', '-q', '-am', 'inside');
    expect([inside('rev-parse', 'HEAD~1'), git(join(at, 'lib'), 'rev-parse', 'HEAD')]).toEqual([before, before]);
  },
);

describe('settings', () => {
  test('only settings about file storage and the committer are copied, whatever their values', async () => {
    const at = repository();
    const name = 'Döv "quoted" \\back; # no remark\ttab\nsecond line [core] hooksPath = /evil';
    for (const [key, value] of Object.entries({
      'user.name': name,
      'core.autocrlf': 'input',
      'i18n.commitencoding': 'latin1',
      'remote.origin.url': 'https://user:token@example.test/x',
      'credential.helper': '!steal',
      'core.hooksPath': '/evil',
      'core.fsmonitor': '/evil',
      'core.sshCommand': 'evil',
      'core.editor': 'evil',
      'core.pager': 'evil',
      'core.attributesFile': '/evil',
      'core.excludesFile': '/evil',
      'core.askPass': 'evil',
      'core.gitProxy': 'evil',
      'core.alternateRefsCommand': 'evil',
      'filter.x.clean': 'evil',
      'diff.external': 'evil',
      'diff.x.textconv': 'evil',
      'merge.x.driver': 'evil',
      'alias.st': '!evil',
      'url.ext::evil.insteadOf': 'https://',
      'gpg.program': 'evil',
      'commit.gpgsign': 'true',
      'user.signingkey': 'secret',
      'include.path': '/evil',
      'http.extraheader': 'secret',
      'sendemail.smtppass': 'secret',
      'branch.main.remote': 'origin',
      'extensions.partialclone': 'origin',
    }))
      git(at, 'config', key, value);
    mkdirSync(join(at, '.git/hooks'), { recursive: true });
    writeFileSync(join(at, '.git/hooks/post-commit'), '#!/bin/sh\nevil\n', { mode: 0o755 });
    const found = await inspect(at);
    if (found === null) throw new Error('no repository');
    const directory = mkdtempSync(join(scratch, 'p-'));
    createPrivateGit({ repository: found, directory, checkStat: 'minimal', shown: [] });
    const listed = git(scratch, 'config', '--file', join(directory, 'config'), '--list', '-z')
      .split('\0')
      .filter((row) => row !== '')
      .map((row) => [row.slice(0, row.indexOf('\n')), row.slice(row.indexOf('\n') + 1)]);
    expect(Object.fromEntries(listed)).toEqual({
      'core.repositoryformatversion': '0',
      'core.bare': 'false',
      'core.logallrefupdates': 'true',
      'core.checkstat': 'minimal',
      'core.trustctime': 'false',
      'core.filemode': 'true',
      'core.autocrlf': 'input',
      'user.name': name,
      'user.email': 'dev@example.test',
      'i18n.commitencoding': 'latin1',
      'init.defaultbranch': 'main',
      'gc.auto': '0',
    });
    const all = everything(directory).filter((path) => /hook|config/.test(path));
    expect(all).toEqual(['config']);
  });

  test('are read again when any of their files has changed', async () => {
    const at = repository();
    const home = mkdtempSync(join(scratch, 'h-'));
    writeFileSync(
      join(home, 'dotfiles'),
      '[user]\n\tname = One\n[include]\n\tpath = later.inc\n[include]\n\tpath = ~/tilde.inc\n',
    );
    symlinkSync('dotfiles', join(home, '.gitconfig'));
    const name = async (): Promise<string | undefined> =>
      (await inspectRepository(at, { home, cacheDir: join(home, 'cache') }))?.settings.get('user.name');
    expect([await name(), await name()]).toEqual(['One', 'One']);
    // Through a link, as with dotfiles; the same size, so that only the time differs.
    writeFileSync(
      join(home, 'dotfiles'),
      '[user]\n\tname = Two\n[include]\n\tpath = later.inc\n[include]\n\tpath = ~/tilde.inc\n',
    );
    expect(await name()).toBe('Two');
    writeFileSync(join(home, 'later.inc'), '[user]\n\tname = Three\n');
    expect(await name()).toBe('Three');
    writeFileSync(join(home, 'tilde.inc'), '[user]\n\tname = Four\n');
    expect(await name()).toBe('Four');
    git(at, 'config', 'user.name', 'Five');
    expect(await name()).toBe('Five');
    appendFileSync(join(at, '.git/config'), '[core]\n\tbare = true\n');
    await expect(name()).rejects.toThrow(AgsError);
  });
});
