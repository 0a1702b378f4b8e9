// test/e2e/odd-projects.full.test.ts: unusual projects work like any other, or are refused with the reason.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMachine, giveTo, type Machine, USUAL } from '../harness.ts';

/** Git shows the same inside as outside, and a new file comes out and is accepted. */
async function worksAt(machine: Machine, directory: string): Promise<void> {
  const story =
    'git log --oneline -3; git status --short 2> /dev/null; git ls-files; git for-each-ref --format="%(refname)" refs/heads refs/tags; git submodule --quiet foreach --recursive "pwd; git status --short; git log --oneline -1"';
  const outside = execFileSync('sh', ['-c', story], {
    cwd: directory,
    env: machine.env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(process.getuid?.() === 0 ? { uid: machine.uid, gid: machine.uid } : {}),
  });
  const run = await machine.ags(
    [
      'exec',
      '--name',
      'odd',
      '--',
      'sh',
      '-c',
      `(${story}) 2> /dev/null; echo made > made.txt; git add made.txt && git -c user.name=A -c user.email=a@b commit -qm made -- made.txt && git log --format=%s -1`,
    ],
    { cwd: directory },
  );
  expect(run).toMatchObject({ code: 0, stdout: `${outside}made\n` });
  const seen = JSON.parse((await machine.ags(['review', '--json'], { cwd: directory })).stdout) as {
    refused: unknown[];
  };
  expect(seen.refused).toEqual([]);
  expect(await machine.ags(['review', '--accept', 'made.txt', '--discard-all'], { cwd: directory })).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('1 taken') as string,
  });
  expect(readFileSync(join(directory, 'made.txt'), 'utf8')).toBe('made\n');
  expect(machine.tasks()).toEqual([]);
}

const commit = (machine: Machine, message: string): void => {
  machine.git('add', '-A');
  machine.git('commit', '-q', '-m', message);
};

/** Another repository beside the project, with one commit. */
function addLibrary(machine: Machine): string {
  const library = join(machine.home, 'code/library');
  mkdirSync(library);
  writeFileSync(join(library, 'lib.txt'), 'lib\n');
  giveTo(join(machine.home, 'code'), machine.uid);
  for (const args of [
    ['init', '-q', '-b', 'main'],
    ['add', '-A'],
    ['commit', '-q', '-m', 'library'],
  ])
    machine.git('-C', library, ...args);
  return library;
}

const STATES: readonly (readonly [string, (machine: Machine) => string | undefined])[] = [
  [
    'a rebase in progress',
    (machine) => {
      machine.git('switch', '-q', '-c', 'other');
      machine.write('src/a.txt', 'theirs\n');
      commit(machine, 'theirs');
      machine.git('switch', '-q', 'main');
      machine.write('src/a.txt', 'ours\n');
      commit(machine, 'ours');
      try {
        machine.git('rebase', '-q', 'other');
      } catch {
        // The test needs the conflict.
      }
      machine.git('checkout', '-q', '--ours', '.');
      machine.git('add', '-A');
      return undefined;
    },
  ],
  [
    'a bisect in progress',
    (machine) => {
      machine.write('x.txt', 'x\n');
      commit(machine, 'x');
      machine.git('bisect', 'start', 'HEAD', 'HEAD~1');
      return undefined;
    },
  ],
  [
    'submodules, one of them not initialised',
    (machine) => {
      const library = addLibrary(machine);
      machine.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', library, 'libs/one');
      machine.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', library, 'libs/two');
      commit(machine, 'submodules');
      machine.git('submodule', '--quiet', 'deinit', '-f', 'libs/two');
      return undefined;
    },
  ],
  [
    'a submodule as the starting point',
    (machine) => {
      machine.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', addLibrary(machine), 'libs/one');
      commit(machine, 'submodule');
      return join(machine.project, 'libs/one');
    },
  ],
  [
    'a linked worktree',
    (machine) => {
      machine.git('worktree', 'add', '-q', '../linked', '-b', 'side');
      return join(machine.home, 'code/linked');
    },
  ],
  [
    'filters of an LFS that is not installed',
    (machine) => {
      machine.write('.gitattributes', '*.bin filter=lfs diff=lfs merge=lfs -text\n');
      machine.write(
        'model.bin',
        'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n',
      );
      commit(machine, 'pointer');
      for (const [key, value] of [
        ['clean', 'git-lfs clean -- %f'],
        ['smudge', 'git-lfs smudge -- %f'],
        ['process', 'git-lfs filter-process'],
        ['required', 'true'],
      ])
        machine.git('config', `filter.lfs.${key}`, value ?? '');
      return undefined;
    },
  ],
  [
    'borrowed objects',
    (machine) => {
      machine.git('clone', '-q', '--shared', machine.project, '../borrower');
      // ags cannot tell it from a malicious archive that names another repository, so the user has to allow it.
      mkdirSync(join(machine.home, '.config/ags'), { recursive: true });
      writeFileSync(
        join(machine.home, '.config/ags/config.yaml'),
        `mounts:\n  - path: ${machine.project}/.git/objects\n`,
      );
      giveTo(join(machine.home, '.config'), machine.uid);
      return join(machine.home, 'code/borrower');
    },
  ],
  [
    'a linked worktree with submodules, one of them in another',
    (machine) => {
      const library = addLibrary(machine);
      const add = ['-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add'];
      const outer = join(machine.home, 'code/outer');
      machine.git('clone', '-q', library, outer);
      machine.git('-C', outer, ...add, library, 'inner');
      machine.git('-C', outer, 'commit', '-q', '-m', 'inner');
      machine.git(...add, outer, 'libs/outer');
      commit(machine, 'submodules');
      machine.git('worktree', 'add', '-q', '../linked', '-b', 'side');
      const linked = join(machine.home, 'code/linked');
      machine.git(
        '-C',
        linked,
        '-c',
        'protocol.file.allow=always',
        'submodule',
        '--quiet',
        'update',
        '--init',
        '--recursive',
      );
      writeFileSync(join(linked, 'libs/outer/inner/lib.txt'), 'changed\n');
      return linked;
    },
  ],
  [
    'a separate git directory that knows its work tree, by a link',
    (machine) => {
      renameSync(join(machine.project, '.git'), join(machine.home, 'elsewhere'));
      symlinkSync(join(machine.home, 'elsewhere'), join(machine.project, '.git'));
      giveTo(machine.project, machine.uid);
      machine.git('config', 'core.worktree', machine.project);
      return undefined;
    },
  ],
  [
    'a shallow clone',
    (machine) => {
      machine.write('src/a.txt', 'again\n');
      commit(machine, 'again');
      machine.git('clone', '-q', '--depth', '1', `file://${machine.project}`, '../shallow');
      return join(machine.home, 'code/shallow');
    },
  ],
  [
    'SHA-256 objects',
    (machine) => {
      machine.git('init', '-q', '-b', 'main', '--object-format=sha256', '../modern');
      const modern = join(machine.home, 'code/modern');
      writeFileSync(join(modern, 'file.txt'), 'x\n');
      giveTo(modern, machine.uid);
      machine.git('-C', modern, 'add', '-A');
      machine.git('-C', modern, 'commit', '-q', '-m', 'modern');
      return modern;
    },
  ],
  [
    'packed refs, tags and a stash',
    (machine) => {
      machine.git('tag', '-a', 'v1', '-m', 'one');
      machine.git('branch', 'feature/deep/name');
      machine.git('pack-refs', '--all');
      machine.write('src/a.txt', 'stashed\n');
      machine.git('-c', 'user.name=D', '-c', 'user.email=d@e', 'stash', '-q');
      return undefined;
    },
  ],
  [
    'a split index and a sparse checkout',
    (machine) => {
      machine.git('sparse-checkout', 'set', 'src');
      machine.git('update-index', '--split-index');
      return undefined;
    },
  ],
];

describe.each(USUAL)('as %s', (caller) => {
  // As root only the ownership of files differs, so a quarter of the states is enough.
  test.each(STATES.filter((_, i) => caller !== 'root' || i % 4 === 0))('%s', async (_name, prepare) => {
    using machine = createMachine(caller);
    await worksAt(machine, prepare(machine) ?? machine.project);
  });

  test('unreadable files and directories stay unreadable and do not disturb the rest', async () => {
    using machine = createMachine(caller);
    machine.write('closed.txt', 'closed\n');
    machine.write('closed/inner.txt', 'inner\n');
    chmodSync(join(machine.project, 'closed.txt'), 0);
    chmodSync(join(machine.project, 'closed'), 0);
    const run = await machine.ags([
      'exec',
      '--',
      'sh',
      '-c',
      'cat closed.txt; ls closed; echo new > new.txt; rm -f closed.txt; echo mine > closed.txt; cat src/a.txt | head -1',
    ]);
    expect(run.stdout).toBe('one\n');
    expect(run.stderr).toContain('closed.txt: Permission denied');
    // Root can read the file, and so compare it.
    const review = await machine.ags(['review', '--accept-all']);
    expect(review.stderr).toContain(
      caller === 'root' ? '2 taken, 0 thrown away, 0 left.\n' : '1 taken, 0 thrown away, 1 left.',
    );
    expect(machine.read('new.txt')).toBe('new\n');
    if (caller === 'root') return;
    const shown = await machine.ags(['review']);
    expect(shown.stdout).toContain(
      'MODIFIED  closed.txt  CONFLICT\n          Your own file cannot be read (EACCES).\n',
    );
    chmodSync(join(machine.project, 'closed.txt'), 0o644);
    expect(machine.read('closed.txt')).toBe('closed\n');
  });

  test('directories nested hundreds deep come out, and deeper ones are refused', async () => {
    using machine = createMachine(caller);
    const deep = Array.from({ length: 150 }, (_, i) => `d${i}`).join('/');
    const run = await machine.ags([
      'exec',
      '--',
      'sh',
      '-c',
      `mkdir -p ${deep} && echo deep > ${deep}/file && git add -A && git status --short`,
    ]);
    expect(run.stdout).toBe(`A  ${deep}/file\n`);
    expect(await machine.ags(['review', '--accept-all'])).toMatchObject({ code: 0 });
    expect(machine.read(`${deep}/file`)).toBe('deep\n');
    // Deeper than any real project: nothing is accepted, nothing is lost, and the task can be removed.
    const run2 = await machine.ags([
      'exec',
      '--name',
      'abyss',
      '--',
      'perl',
      '-e',
      'for (1 .. 3000) { mkdir "d"; chdir "d" or die } open F, ">", "f"',
    ]);
    expect(run2.stderr).toContain('directories are nested more than 200 deep');
    const [task = ''] = machine.tasks();
    expect(await machine.ags(['review', task, '--accept-all'])).toMatchObject({ code: 1 });
    expect(await machine.ags(['rm', task, '--yes'])).toMatchObject({ code: 0 });
    expect(machine.tasks()).toEqual([]);
  });

  test('directories that cannot be a project are refused with the reason', async () => {
    using machine = createMachine(caller);
    machine.write('file.txt', 'x\n');
    for (const [directory, words] of [
      [machine.home, 'contains your whole home directory'],
      ['/', 'contains your whole home directory'],
      ['/usr', 'is a system directory'],
      ['/proc/self', 'is a system directory'],
      [join(machine.project, 'file.txt'), 'is not a directory'],
      [join(machine.project, '.git'), 'is inside a git directory'],
      [join(machine.project, '.git/objects'), 'is inside a git directory'],
      [machine.stateDir, 'overlaps the state directory of ags'],
    ] as const) {
      mkdirSync(machine.stateDir, { recursive: true });
      const run = await machine.ags(['exec', '--project', directory, '--', 'true']);
      expect({ code: run.code, stdout: run.stdout, words: run.stderr.includes(words) ? words : run.stderr }).toEqual({
        code: 2,
        stdout: '',
        words,
      });
    }
    expect(readdirSync(machine.stateDir)).not.toContain('tasks');
  });
});
