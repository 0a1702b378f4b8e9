// test/e2e/git-inside.test.ts: git works inside a sandbox as outside, as fast, and never changes the user's repository.
// needs: sandbox
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine, giveTo, type Machine } from '../harness.ts';

describe.each(CALLERS)('as %s', (caller) => {
  test('commits, branches, stash, rebase, gc and the rest work, and leave the user’s .git untouched', async () => {
    using machine = repository(caller);
    const before = fingerprint(join(machine.project, '.git'));
    const script = [
      'set -e',
      'git config user.name Agent; git config user.email agent@example.test',
      'git log --format=%s',
      'git blame -s src/a.txt | cut -c10-',
      'git switch -q -c work; echo more >> src/a.txt; git commit -qam more',
      'echo stashed > s.txt; git add s.txt; git stash -q; test ! -e s.txt; git stash pop -q; cat s.txt; git rm -qf s.txt',
      'git tag v1; git branch topic HEAD~1; git switch -q topic; test ! -s src/b.txt; git mv src/a.txt src/moved.txt; git commit -qm moved',
      'git merge -q work -m merged; cat src/moved.txt; git log --format=%s --graph | sed "s/ *$//"',
      'git switch -q -c linear work; echo 1 > one; git add one; git commit -qm one; git rebase -q topic; git log --format=%s -2',
      'git cherry-pick work~1 > /dev/null 2>&1 || git cherry-pick --abort; git reset -q --hard main; git status --short; cat src/a.txt',
      'git gc -q --prune=now; git fsck --no-dangling; git count-objects -v | grep ^garbage:',
      'git checkout -q side; cat side.txt; git checkout -q main; git clean -qfdx; git status --short --branch',
    ].join('\n');
    const run = await machine.ags(['exec', '--', 'sh', '-c', script]);
    expect(run).toEqual({
      code: 0,
      signal: null,
      stdout: [
        'second',
        'first',
        '1) one',
        '2) two',
        '3) three',
        'stashed',
        'one',
        'two',
        'three',
        'more',
        '*   merged',
        '|\\',
        '| * more',
        '* | moved',
        '|/',
        '* second',
        '* first',
        'one',
        'merged',
        'one',
        'two',
        'three',
        'garbage: 0',
        'on the side',
        '## main',
        '',
      ].join('\n'),
      stderr: '',
    });
    expect(fingerprint(join(machine.project, '.git'))).toEqual(before);
    expect(machine.git('status', '--short', '--branch')).toBe('## main\n');
    expect(machine.tasks()).toEqual([]);
  });

  test('commits made inside are offered as file changes', async () => {
    using machine = repository(caller);
    await machine.ags([
      'exec',
      '--',
      'sh',
      '-c',
      'echo committed > src/b.txt; git add -A; git -c user.name=A -c user.email=a@b commit -qm inside; git mv src/a.txt a.txt',
    ]);
    const { changes } = JSON.parse((await machine.ags(['review', '--json'])).stdout) as {
      changes: { kind: string; path: string; from?: string }[];
    };
    expect(changes.map(({ kind, path, from }) => ({ kind, path, from }))).toEqual([
      { kind: 'renamed', path: 'a.txt', from: 'src/a.txt' },
      { kind: 'modified', path: 'src/b.txt', from: undefined },
    ]);
    expect(machine.git('log', '--format=%s')).toBe('second\nfirst\n');
  });

  test('git mv cannot rename a directory and says why; mv works', async () => {
    using machine = repository(caller);
    const run = await machine.ags([
      'exec',
      '--',
      'sh',
      '-c',
      'git mv src lib; echo $?; mv src lib && git add -A && git status --short',
    ]);
    expect(run.stdout).toBe('128\nR  src/a.txt -> lib/a.txt\nR  src/b.txt -> lib/b.txt\n');
    expect(run.stderr).toContain("fatal: renaming 'src' failed: Invalid cross-device link\n");
    expect((await machine.ags(['review', '--accept-all'])).stderr).toContain('2 taken, 0 thrown away, 0 left.\n');
    expect(readdirSync(machine.project).toSorted()).toEqual(['.git', 'lib']);
  });

  test('a branch checked out inside appears as its differences', async () => {
    using machine = repository(caller);
    await machine.ags(['exec', '--', 'git', 'checkout', '-q', 'side']);
    const { changes } = JSON.parse((await machine.ags(['review', '--json'])).stdout) as {
      changes: { kind: string; path: string }[];
    };
    expect(changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual(['new side.txt', 'modified src/b.txt']);
  });

  test('the first git status reads no file of the project', async () => {
    using machine = createMachine(caller, { files: { 'a.txt': 'a\n' } });
    const [files, bytes] = [300, 30_000];
    mkdirSync(join(machine.project, 'many'));
    for (let i = 0; i < files; i++)
      writeFileSync(join(machine.project, 'many', `${i}.txt`), `${i} `.padEnd(bytes, 'x'));
    // Git rereads any file changed in the second of its last index update, so the files get an old time.
    for (let i = 0; i < files; i++) utimesSync(join(machine.project, 'many', `${i}.txt`), 1_600_000_000, 1_600_000_000);
    giveTo(machine.project, machine.uid);
    await new Promise((resolve) => setTimeout(resolve, 1100));
    machine.git('add', '-A');
    machine.git('commit', '-q', '-m', 'many');
    // rchar of a shell includes the bytes that its children read.
    const read = 'git status --short; sed -n "s/rchar: //p" /proc/$$/io';
    const run = await machine.ags(['exec', '--', 'sh', '-c', `${read}; find many -type f -exec touch {} +; ${read}`]);
    expect(run).toMatchObject({ code: 0 });
    const [first = 0, second = 0] = run.stdout.trim().split('\n').map(Number);
    expect(first).toBeLessThan((files * bytes) / 10);
    expect(second - first).toBeGreaterThan(files * bytes);
  });

  test('hooks, remotes, credentials and filters of the user’s settings do not exist inside', async () => {
    using machine = repository(caller);
    machine.git('remote', 'add', 'origin', 'https://user:token@example.test/x.git');
    machine.git('config', 'credential.helper', 'store');
    machine.git('config', 'filter.lfs.process', 'touch /tmp/ran');
    machine.git('config', 'core.fsmonitor', 'touch /tmp/ran');
    machine.git('config', 'alias.st', '!touch /tmp/ran');
    writeFileSync(join(machine.project, '.git/hooks/post-checkout'), '#!/bin/sh\ntouch /tmp/ran\n', { mode: 0o755 });
    const run = await machine.ags([
      'exec',
      '--',
      'sh',
      '-c',
      'git remote; git config --list | grep -E "token|credential|filter|fsmonitor|alias"; ls .git/hooks; git checkout -q side; ls /tmp/ran',
    ]);
    expect(run).toMatchObject({ stdout: '', stderr: expect.stringContaining("cannot access '/tmp/ran'") as string });
  });
});

describe.each(CALLERS)('repositories within the project, as %s', (caller) => {
  const TOKEN = 'CANARY-in-an-address';

  /** Adds a repository with a submodule, and a branch named "config" in both. */
  function addNested(machine: Machine): void {
    const git = (...args: string[]): string =>
      machine.git('-c', 'protocol.file.allow=always', '-c', 'user.name=D', '-c', 'user.email=d@e', ...args);
    for (const name of ['../library', 'nested']) {
      git('init', '-q', '-b', 'main', name);
      git('-C', name, 'commit', '-q', '--allow-empty', '-m', 'first');
      git('-C', name, 'branch', 'config');
    }
    git('-C', 'nested', 'submodule', '--quiet', 'add', join(machine.home, 'code/library'), 'lib');
    git('-C', 'nested', 'commit', '-q', '-m', 'lib');
    git('-C', 'nested/lib', 'branch', 'config');
    for (const name of ['nested', 'nested/lib'])
      git('-C', name, 'config', 'remote.origin.url', `https://user:${TOKEN}@example.test/x.git`);
  }

  test('their settings are hidden, and git works in them', async () => {
    using machine = repository(caller);
    addNested(machine);
    const run = await machine.ags([
      'exec',
      '--',
      'sh',
      '-c',
      `grep -rl ${TOKEN} .; cd nested; git log --format=%s; git status --short; git remote -v; git rev-parse --verify -q config > /dev/null && echo kept; cd lib; git log --format=%s; git status --short; git rev-parse --verify -q config > /dev/null && echo kept; git -c user.name=A -c user.email=a@b commit -q --allow-empty -m inside && git log --format=%s`,
    ]);
    expect(run).toMatchObject({ code: 0, stdout: 'lib\nfirst\nkept\nfirst\nkept\ninside\nfirst\n' });
    const shown = await machine.ags(['exec', '--reveal', 'nested/.git/config', '--', 'grep', '-rl', TOKEN, '.']);
    expect(shown.stdout).toBe('./nested/.git/config\n');
  });

  test('the settings of a broken .git are hidden too', async () => {
    using machine = repository(caller);
    machine.git('config', 'remote.origin.url', `https://user:${TOKEN}@example.test/x.git`);
    rmSync(join(machine.project, '.git/HEAD'));
    const run = await machine.ags(['exec', '--', 'sh', '-c', `grep -rl ${TOKEN} .; cat src/a.txt`]);
    expect(run).toMatchObject({ code: 0, stdout: 'one\ntwo\nthree\n' });
  });
});

/** A repository with two commits on main, and one of its own on side. */
function repository(caller: Machine['caller']): Machine {
  const machine = createMachine(caller, { files: { 'src/a.txt': 'one\ntwo\nthree\n', 'src/b.txt': 'b\n' } });
  machine.git('switch', '-q', '-c', 'side');
  machine.write('side.txt', 'on the side\n');
  machine.git('add', '-A');
  machine.git('commit', '-q', '-m', 'aside');
  machine.git('switch', '-q', 'main');
  machine.write('src/b.txt', '');
  machine.git('commit', '-q', '-a', '-m', 'second');
  return machine;
}

/** Content, mode, owner and times of every file, without the access time. */
function fingerprint(root: string): Record<string, string> {
  const paths = execFileSync('find', [root, '-print0'], { encoding: 'utf8' })
    .split('\0')
    .filter((path) => path !== '');
  return Object.fromEntries(
    paths.map((path) => {
      const stat = lstatSync(path);
      const content = stat.isFile()
        ? createHash('sha256').update(readFileSync(path)).digest('hex')
        : stat.isSymbolicLink()
          ? readlinkSync(path)
          : '';
      return [path, `${stat.mode} ${stat.uid} ${stat.mtimeMs} ${stat.ctimeMs} ${content}`];
    }),
  );
}
