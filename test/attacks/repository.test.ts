// test/attacks/repository.test.ts: a repository that came from elsewhere as files (an archive, a disk, a shared directory), whose
// git directory was made to reach further than the project. What it names is not shown.
// A clone cannot be made like this; what is unpacked can.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine, giveTo, type Machine } from '../harness.ts';
import { identity } from './run-inside.ts';

const SECRET = 'CANARY-outside-of-the-project';

/** A home with a secret, and another repository with one. */
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
}

/** Looks inside wherever the secret could have come in: below the borrowed objects, in the git directory, in every object. */
const SEARCH = `for dir in /run/ags/objects/* /run/ags/objects/*/* /run/ags/objects/*/*/*; do cat "$dir/secret.txt" "$dir/.ssh/id_ed25519" "$dir/id_ed25519" "$dir/code/sibling/private.txt" "$dir$HOME/secret.txt"; done 2>/dev/null
grep -rsF '${SECRET}' .git; git cat-file --batch-all-objects --batch 2>/dev/null | grep -aF '${SECRET}'; ls -A "$HOME/code"; cat ../sibling/private.txt 2>/dev/null; echo searched`;

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
  test.for(PLANTINGS)('A98: a git directory that %s shows nothing of it', async ([, plant]) => {
    using machine = createMachine(caller);
    addSecrets(machine);
    plant(machine);
    giveTo(machine.project, machine.uid);
    const run = await machine.ags(['exec', '--review', 'later', '--', 'sh', '-c', SEARCH]);
    expect(run.stdout).not.toContain(SECRET);
    // It works, or it refuses with a reason.
    const refused = run.code !== 0 && /^ags: /m.test(run.stderr) && !run.stderr.includes('this is a bug');
    expect(refused ? 'project\nsearched\n' : run.stdout).toBe('project\nsearched\n');
  });

  test('A83: what is planted in a linked worktree never reaches the repository it belongs to', async () => {
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

  test('A78: what is planted in a submodule never reaches its repository', async () => {
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

/** Settings, refs and hooks of the repository, by name and content. */
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
