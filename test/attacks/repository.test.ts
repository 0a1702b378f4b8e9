// test/attacks/repository.test.ts: a repository that arrived as files (an archive, a disk, a shared directory), and whose git directory
// reaches further than the project. The directories that it names are not shown. A clone cannot be made like this.
// uses: sandbox
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine, giveTo, HAS_SANDBOX, type Machine } from '../harness.ts';
import { evilSettings } from './evil-git.ts';
import { identity } from './run-inside.ts';

const SECRET = 'CANARY-outside-of-the-project';

/** Adds secrets to the home, and another repository with a secret. */
function addSecrets(machine: Machine): void {
  for (const path of ['secret.txt', '.ssh/id_ed25519', 'code/sibling/private.txt']) {
    mkdirSync(dirname(join(machine.home, path)), { recursive: true });
    writeFileSync(join(machine.home, path), `${SECRET}\n`);
  }
  giveTo(machine.home, machine.uid);
  const git = (...args: string[]): string =>
    execFileSync('git', args, {
      cwd: join(machine.home, 'code/sibling'),
      env: {
        ...machine.env,
        GIT_AUTHOR_NAME: 'x',
        GIT_AUTHOR_EMAIL: 'x@y',
        GIT_COMMITTER_NAME: 'x',
        GIT_COMMITTER_EMAIL: 'x@y',
      },
      ...identity(machine),
      encoding: 'utf8',
    });
  git('init', '-q');
  git('add', '-A');
  git('commit', '-q', '-m', 'private');
  git('branch', SECRET);
}

/** Looks for the secret below the borrowed objects, in the git directory and in every object. */
const SEARCH = `for dir in /run/ags/objects/* /run/ags/objects/*/* /run/ags/objects/*/*/*; do cat "$dir/secret.txt" "$dir/.ssh/id_ed25519" "$dir/id_ed25519" "$dir/code/sibling/private.txt" "$dir$HOME/secret.txt"; done 2>/dev/null
grep -rsF '${SECRET}' .git; for dir in .git .git/modules/*; do git --git-dir "$dir" cat-file --batch-all-objects --batch 2>/dev/null | grep -aF '${SECRET}'; done; ls -A "$HOME/code"; cat ../sibling/private.txt 2>/dev/null; echo searched`;

const git = (machine: Machine, path: string): string => join(machine.project, '.git', path);
const PLANTINGS: readonly (readonly [string, (machine: Machine) => void])[] = [
  ['borrows objects from the home', (m) => writeFileSync(git(m, 'objects/info/alternates'), '../../../../\n')],
  ['borrows objects from /', (m) => writeFileSync(git(m, 'objects/info/alternates'), '/\n')],
  [
    'has the home in place of its objects',
    (m) => (renameSync(git(m, 'objects'), git(m, 'objects.away')), symlinkSync('../../../', git(m, 'objects'))),
  ],
  [
    'has links to secrets in place of the files of a merge',
    (m) =>
      ['MERGE_MSG', 'MERGE_HEAD', 'ORIG_HEAD', 'SQUASH_MSG', 'info/exclude', 'shallow', 'sharedindex.0'].forEach(
        (name) => (rmSync(git(m, name), { force: true }), symlinkSync(join(m.home, '.ssh/id_ed25519'), git(m, name))),
      ),
  ],
  [
    'has a link to a secret directory in place of a rebase',
    (m) => symlinkSync(join(m.home, '.ssh'), git(m, 'rebase-merge')),
  ],
  [
    'has a rebase full of links to secrets',
    (m) => (
      mkdirSync(git(m, 'rebase-apply')),
      symlinkSync(join(m.home, '.ssh/id_ed25519'), git(m, 'rebase-apply/patch'))
    ),
  ],
  [
    'has a submodule whose objects are the home',
    (m) => (
      mkdirSync(git(m, 'modules/sub/refs'), { recursive: true }),
      writeFileSync(git(m, 'modules/sub/HEAD'), 'ref: refs/heads/main\n'),
      writeFileSync(git(m, 'modules/sub/config'), ''),
      symlinkSync(m.home, git(m, 'modules/sub/objects'))
    ),
  ],
  [
    'has a submodule whose files are links',
    (m) => (
      mkdirSync(git(m, 'modules/sub/objects'), { recursive: true }),
      symlinkSync(join(m.home, '.ssh'), git(m, 'modules/sub/refs')),
      writeFileSync(git(m, 'modules/sub/HEAD'), 'ref: refs/heads/main\n'),
      symlinkSync(join(m.home, '.ssh/id_ed25519'), git(m, 'modules/sub/packed-refs')),
      symlinkSync(join(m.home, '.ssh/id_ed25519'), git(m, 'modules/sub/config'))
    ),
  ],
  [
    'borrows objects from another repository',
    (m) => writeFileSync(git(m, 'objects/info/alternates'), '../../../sibling/.git/objects\n'),
  ],
  [
    'borrows objects from a store of its own that borrows them from another repository',
    (m) => (
      mkdirSync(git(m, 'objects/ab/info'), { recursive: true }),
      writeFileSync(git(m, 'objects/info/alternates'), 'ab\n'),
      writeFileSync(git(m, 'objects/ab/info/alternates'), '../../../../sibling/.git/objects\n')
    ),
  ],
  [
    'has the objects of another repository in place of its own',
    (m) => (
      renameSync(git(m, 'objects'), git(m, 'objects.away')),
      symlinkSync('../../sibling/.git/objects', git(m, 'objects'))
    ),
  ],
  [
    'has a submodule that borrows objects from another repository',
    (m) => (
      mkdirSync(git(m, 'modules/sub/objects/info'), { recursive: true }),
      mkdirSync(git(m, 'modules/sub/refs')),
      writeFileSync(git(m, 'modules/sub/HEAD'), 'ref: refs/heads/main\n'),
      writeFileSync(git(m, 'modules/sub/config'), ''),
      writeFileSync(git(m, 'modules/sub/objects/info/alternates'), join(m.home, 'code/sibling/.git/objects\n'))
    ),
  ],
  [
    'has another repository for its submodules',
    (m) => (mkdirSync(git(m, 'modules')), symlinkSync('../../../sibling/.git', git(m, 'modules/sub'))),
  ],
  [
    'has the submodules of another repository',
    (m) => (
      cpSync(join(m.home, 'code/sibling/.git'), join(m.home, 'modules/x'), { recursive: true }),
      symlinkSync('../../../modules', git(m, 'modules'))
    ),
  ],
  [
    'has the branches of another repository',
    (m) => (rmSync(git(m, 'refs'), { recursive: true }), symlinkSync('../../sibling/.git/refs', git(m, 'refs'))),
  ],
  [
    'has the packed branches of another repository',
    (m) => (
      writeFileSync(join(m.home, 'code/sibling/.git/packed-refs'), `${'1'.repeat(40)} refs/heads/${SECRET}\n`),
      symlinkSync('../../sibling/.git/packed-refs', git(m, 'packed-refs'))
    ),
  ],
  [
    'has the log of another repository',
    (m) => (
      m.git('checkout', '-q', '--detach'),
      writeFileSync(join(m.home, 'code/sibling/.git/logs/HEAD'), `${SECRET}\n`),
      rmSync(git(m, 'logs'), { recursive: true }),
      symlinkSync('../../sibling/.git/logs', git(m, 'logs'))
    ),
  ],
  [
    'is a file that points to a worktree of another repository',
    (m) => (
      m.git('-C', '../sibling', 'worktree', 'add', '-q', '--detach', join(m.home, 'elsewhere')),
      renameSync(join(m.project, '.git'), join(m.home, 'away.git')),
      writeFileSync(join(m.project, '.git'), 'gitdir: ../sibling/.git/worktrees/elsewhere\n')
    ),
  ],
  [
    'is a file that points to a worktree of its own making',
    (m) => (
      renameSync(join(m.project, '.git'), join(m.project, 'x')),
      writeFileSync(join(m.project, '.git'), 'gitdir: x\n'),
      writeFileSync(join(m.project, 'x/gitdir'), join(m.project, '.git\n')),
      writeFileSync(join(m.project, 'x/commondir'), '../../sibling/.git\n')
    ),
  ],
  [
    'has pipes in places that are read',
    (m) => {
      rmSync(git(m, 'info/exclude'), { force: true });
      const pipes = ['MERGE_MSG', 'info/exclude', 'index.lock'].map((name) => git(m, name));
      execFileSync('mkfifo', pipes);
    },
  ],
  [
    'says that its work tree is another repository',
    (m) => m.git('config', 'core.worktree', join(m.home, 'code/sibling')),
  ],
  ['says that its work tree is its parent', (m) => m.git('config', 'core.worktree', '../..')],
  [
    'is a file that points to another repository',
    (m) => (
      renameSync(join(m.project, '.git'), join(m.home, 'away.git')),
      writeFileSync(join(m.project, '.git'), 'gitdir: ../sibling/.git\n')
    ),
  ],
  [
    'is a link to another repository',
    (m) => (
      renameSync(join(m.project, '.git'), join(m.home, 'away.git')),
      symlinkSync('../sibling/.git', join(m.project, '.git'))
    ),
  ],
  [
    'shares its objects with another repository',
    (m) => (writeFileSync(git(m, 'commondir'), '../../sibling/.git\n'), rmSync(git(m, 'objects'), { recursive: true })),
  ],
  ['includes a secret in its settings', (m) => m.git('config', 'include.path', join(m.home, '.ssh/id_ed25519'))],
];

describe.concurrent.each(CALLERS)('as %s', (caller) => {
  test.for(PLANTINGS)('A98: a git directory that %s shows no secret', async ([, plant]) => {
    using machine = createMachine(caller);
    addSecrets(machine);
    plant(machine);
    giveTo(machine.project, machine.uid);
    const run = await machine.ags(['exec', '--review', 'later', '--', 'sh', '-c', SEARCH]);
    expect(run.stdout).not.toContain(SECRET);
    // ags runs the command, or refuses with a reason.
    const refused = run.code !== 0 && /^ags: /m.test(run.stderr) && !run.stderr.includes('this is a bug');
    expect(refused ? 'project\nsearched\n' : run.stdout).toBe('project\nsearched\n');
  });

  test.runIf(HAS_SANDBOX)('A89: no program that a git directory names is started on the host', async () => {
    using machine = createMachine(caller);
    const ran = join(machine.root, 'ran');
    mkdirSync(ran);
    giveTo(ran, machine.uid);
    machine.write('.gitattributes', '* filter=evil diff=evil merge=evil\n');
    machine.write('old.txt', 'old\n');
    machine.git('add', '-A');
    machine.git('commit', '-q', '-m', 'attributes');
    const hooks = 'post-checkout post-index-change pre-commit fsmonitor-watchman reference-transaction'.split(' ');
    for (const name of hooks)
      writeFileSync(git(machine, `hooks/${name}`), `#!/bin/sh\ntouch ${ran}/hook\n`, { mode: 0o755 });
    appendFileSync(git(machine, 'config'), evilSettings(ran));
    // A command that asks for the missing object would make git fetch it.
    const missing = machine.git('rev-parse', 'HEAD:old.txt').trim();
    rmSync(git(machine, `objects/${missing.slice(0, 2)}/${missing.slice(2)}`));
    giveTo(machine.project, machine.uid);
    const said = [
      await machine.ags([
        'exec',
        '--review',
        'later',
        '--',
        'sh',
        '-c',
        'echo new > old.txt; rm README.md; echo x > x',
      ]),
    ];
    machine.write('old.txt', 'changed outside\n');
    for (const args of [['plan', '--', 'true'], ['list'], ['diff'], ['review', '--json'], ['review', '--accept-all']])
      said.push(await machine.ags(args));
    expect(readdirSync(ran)).toEqual([]);
    expect(said.filter((run) => run.stderr.includes('this is a bug'))).toEqual([]);
    expect(machine.has('x')).toBe(true);
  });

  test.runIf(HAS_SANDBOX)('A83: nothing planted in a linked worktree reaches its repository', async () => {
    using machine = createMachine(caller);
    machine.git('worktree', 'add', '-q', '-b', 'topic', join(machine.home, 'code/tree'));
    giveTo(join(machine.home, 'code'), machine.uid);
    const before = readTree(machine);
    const plant = `git config core.fsmonitor "touch ${machine.root}/pwned"; mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch ${machine.root}/pwned\\n' > .git/hooks/post-checkout; chmod 755 .git/hooks/post-checkout; git update-ref refs/heads/main $(git commit-tree -m x HEAD^{tree}) ; git branch -D topic; echo ../../../x > .git/commondir; echo done`;
    const run = await machine.ags(['exec', '--review', 'later', '--', 'sh', '-c', plant], {
      cwd: join(machine.home, 'code/tree'),
    });
    expect(run.stdout).toContain('done');
    expect(readTree(machine)).toEqual(before);
  });

  test('A78: nothing planted in a submodule reaches its repository', async () => {
    using machine = createMachine(caller);
    addSecrets(machine);
    machine.git(
      '-c',
      'protocol.file.allow=always',
      'submodule',
      'add',
      '-q',
      join(machine.home, 'code/sibling'),
      'lib',
    );
    machine.git('commit', '-q', '-m', 'with a submodule');
    const before = [readTree(machine), readFileSync(git(machine, 'modules/lib/config'), 'utf8')];
    await machine.ags([
      'exec',
      '--review',
      'later',
      '--',
      'sh',
      '-c',
      `git -C lib config core.fsmonitor "touch ${machine.root}/pwned"; git config -f .git/modules/lib/config core.hooksPath /tmp; echo x > lib/.git; rm -rf .git/modules`,
    ]);
    expect([readTree(machine), readFileSync(git(machine, 'modules/lib/config'), 'utf8')]).toEqual(before);
  });
});

/** The names and contents of all files in the git directory but objects and the index. */
function readTree(machine: Machine): string {
  return execFileSync(
    'sh',
    [
      '-c',
      'find . -path ./objects -prune -o -type f ! -name index -print0 | sort -z | xargs -0 sha256sum; cat HEAD config',
    ],
    { cwd: join(machine.project, '.git'), encoding: 'utf8' },
  );
}
