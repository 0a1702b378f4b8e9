// test/cli/bad-input.test.ts: unusual projects work or give a clear error, and the original is never touched.
// needs: sandbox
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMachine, type Machine, USUAL } from '../harness.ts';

async function changes(machine: Machine, cwd?: string): Promise<string[]> {
  const shown = await machine.ags(['review', '@', '--json'], cwd === undefined ? {} : { cwd });
  return (JSON.parse(shown.stdout) as { changes: { kind: string; path: string }[] }).changes.map(
    (c) => `${c.kind} ${c.path}`,
  );
}

describe.each(USUAL)('as %s', (caller) => {
  test.each([
    [
      'a missing directory',
      (m: Machine) => ['exec', '--project', join(m.home, 'nowhere'), '--', 'true'],
      2,
      'is not a directory',
    ],
    [
      'the home itself',
      (m: Machine) => ['exec', '--project', m.home, '--', 'true'],
      2,
      'contains your whole home directory',
    ],
    ['the root directory', () => ['exec', '--project', '/', '--', 'true'], 2, 'contains your whole home directory'],
    ['a kernel directory', () => ['exec', '--project', '/proc', '--', 'true'], 2, 'system directory'],
    ['no command', () => ['exec'], 2, 'What should run in the sandbox?'],
    ['an unknown option', () => ['exec', '--frob', '--', 'true'], 2, "Unknown option '--frob'"],
    ['an unknown limit', () => ['exec', '--limit', 'mem=1g', '--', 'true'], 2, 'mem'],
    ['an unknown command', () => ['frobnicate'], 2, 'ags has no command'],
    ['a missing program', () => ['exec', '--', 'no-such-program'], 127, 'no-such-program'],
    ['a missing task', () => ['review', 'nothing'], 3, 'nothing'],
  ] as const)('%s is a clear error', async (_, args, code, text) => {
    using machine = createMachine(caller);
    const run = await machine.ags(args(machine));
    expect({ code: run.code, says: run.stderr.includes(text) ? text : run.stderr }).toEqual({ code, says: text });
    expect(machine.tasks()).toEqual([]);
  });

  test('a bare repository is a clear error', async () => {
    using machine = createMachine(caller);
    machine.git('clone', '-q', '--bare', '.', '../bare.git');
    const run = await machine.ags(['exec', '--', 'true'], { cwd: join(machine.home, 'code/bare.git') });
    expect(run).toMatchObject({ code: 2, stderr: expect.stringContaining('is a bare repository') as string });
  });

  test.each([
    ['no commits yet', (m: Machine) => m.git('update-ref', '-d', 'HEAD'), 'No commits yet'],
    ['a detached HEAD', (m: Machine) => m.git('checkout', '-q', '--detach'), 'HEAD detached at'],
    ['a merge in progress', startMerge, 'You have unmerged paths'],
    ['a sparse checkout', (m: Machine) => m.git('sparse-checkout', 'set', 'src'), 'sparse checkout'],
    ['a split index', (m: Machine) => m.git('update-index', '--split-index'), 'nothing to commit'],
    ['line-end conversion', (m: Machine) => m.git('config', 'core.autocrlf', 'true'), 'nothing to commit'],
  ])('%s works, and git inside sees the same', async (_, prepare, text) => {
    using machine = createMachine(caller);
    prepare(machine);
    const outside = machine.git('status', '--long');
    const before = fingerprint(join(machine.project, '.git'));
    const run = await machine.ags(['exec', '--', 'sh', '-c', 'git status --long && echo new > made.txt']);
    expect(run.stdout).toBe(outside);
    expect(outside).toContain(text);
    expect(await changes(machine)).toEqual(['new made.txt']);
    expect(fingerprint(join(machine.project, '.git'))).toEqual(before);
  });

  test('a linked worktree and a submodule are projects of their own', async () => {
    using machine = createMachine(caller);
    machine.git('worktree', 'add', '-q', '../linked', '-b', 'side');
    machine.git('-c', 'protocol.file.allow=always', 'clone', '-q', '.', '../library');
    machine.git(
      '-c',
      'protocol.file.allow=always',
      'submodule',
      '--quiet',
      'add',
      join(machine.home, 'code/library'),
      'lib',
    );
    machine.git('commit', '-q', '-m', 'with a library');
    for (const cwd of [join(machine.home, 'code/linked'), join(machine.project, 'lib')]) {
      const run = await machine.ags(
        ['exec', '--', 'sh', '-c', 'git status --short && git log --oneline | wc -l && echo x > README.md'],
        { cwd },
      );
      expect(run.stdout.trim()).toBe('1');
      expect(await changes(machine, cwd)).toEqual(['modified README.md']);
    }
    const whole = await machine.ags(['exec', '--', 'git', 'status', '--short']);
    expect(whole).toMatchObject({ code: 0, stdout: '' });
  });

  test('an LFS pointer is unchanged, with or without git-lfs', async () => {
    const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n';
    using machine = createMachine(caller, {
      files: { '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n', 'big.bin': pointer },
    });
    const run = await machine.ags(['exec', '--', 'sh', '-c', 'cat big.bin; printf "raw\\r\\n\\000bytes" > other.bin']);
    expect(run.stdout).toBe(pointer);
    expect((await machine.ags(['review', '@', '--accept', 'other.bin', '--risky', 'other.bin'])).code).toBe(0);
    expect(readFileSync(join(machine.project, 'other.bin'))).toEqual(Buffer.from('raw\r\n\0bytes'));
  });

  test.each(['with space', 'ümläut 雪', '-dash', 'comma,colon:back\\slash', 'new\nline', 'quote\'"$HOME', '[x]*?'])(
    'a project called %j works',
    async (name) => {
      using machine = createMachine(caller, { name: `code/${name}` });
      const run = await machine.ags(['exec', '--', 'sh', '-c', 'pwd; git status --short; echo 1 > made']);
      expect(run).toMatchObject({ code: 0, stdout: `${machine.project}\n` });
      expect((await machine.ags(['review', '@', '--accept-all'])).code).toBe(0);
      expect(machine.read('made')).toBe('1\n');
    },
  );

  test('unusual file names are shown escaped and kept unchanged', async () => {
    using machine = createMachine(caller);
    const run = await machine.ags([
      'exec',
      '--',
      'sh',
      '-c',
      'echo a > "$(printf "new\\nline")"; echo b > -dash; echo c > "$(printf "esc\\033[31m")"; echo d > "sp ace"; printf x > "$(printf "latin\\351")"',
    ]);
    expect(run.code).toBe(0);
    const shown = await machine.ags(['review', '@']);
    expect(shown.stdout.includes('\x1b')).toBe(false);
    expect((await machine.ags(['review', '@', '--accept-all'])).stderr).toContain('4 taken');
    expect(readdirSync(machine.project).toSorted()).toEqual([
      '-dash',
      '.git',
      'README.md',
      'esc\x1b[31m',
      'new\nline',
      'sp ace',
      'src',
    ]);
  });

  test('a directory that is not a repository works', async () => {
    using machine = createMachine(caller, { git: false });
    const run = await machine.ags([
      'exec',
      '--',
      'sh',
      '-c',
      'cat README.md; echo more >> README.md; rm src/a.txt; mkdir .git; echo x > .git/config',
    ]);
    expect(run.stdout).toBe('# project\n');
    expect(await changes(machine)).toEqual(['modified README.md', 'deleted src/a.txt']);
    expect((await machine.ags(['review', '@', '--accept-all'])).code).toBe(0);
    expect([machine.read('README.md'), machine.has('src/a.txt'), machine.has('.git')]).toEqual([
      '# project\nmore\n',
      false,
      false,
    ]);
  });

  test('a copied workspace gives the same changes as an overlay', async () => {
    using machine = createMachine(caller);
    const script = 'echo new > n; echo more >> README.md; rm src/a.txt; ln -s README.md link';
    const found: string[][] = [];
    for (const workspace of ['overlay', 'copy']) {
      await machine.ags(['exec', '--workspace', workspace, '--', 'sh', '-c', script]);
      found.push(await changes(machine));
      await machine.ags(['review', '@', '--discard-all']);
    }
    expect(found[1]).toEqual(found[0]);
    expect(found[0]).toEqual(
      ['symlink link', 'modified README.md', 'deleted src/a.txt', 'new n'].toSorted(
        (a, b) => found[0]!.indexOf(a) - found[0]!.indexOf(b),
      ),
    );
  });

  test('secrets that git does not track are hidden, tracked ones are not, and --reveal shows one', async () => {
    using machine = createMachine(caller, { files: { 'README.md': 'x\n', 'certs/test.pem': 'tracked\n' } });
    machine.write('.env', 'SECRET=1\n');
    machine.write('deploy/prod.key', 'key\n');
    const look = 'ls .env deploy/prod.key certs/test.pem 2>/dev/null';
    expect((await machine.ags(['exec', '--', 'sh', '-c', look])).stdout).toBe('certs/test.pem\n');
    expect((await machine.ags(['exec', '--reveal', '.env', '--', 'sh', '-c', look])).stdout).toBe(
      '.env\ncerts/test.pem\n',
    );
    machine.write('deploy/late.pem', 'made later\n');
    expect((await machine.ags(['exec', '--', 'sh', '-c', 'ls deploy'])).stdout).toBe('');
  });

  test('a file from the sandbox never overwrites a hidden file', async () => {
    using machine = createMachine(caller);
    machine.write('.env', 'MINE=1\n');
    await machine.ags(['exec', '--', 'sh', '-c', 'echo THEIRS=1 > .env']);
    expect((await machine.ags(['review', '@', '--risky', '.env'])).code).toBe(7);
    expect(machine.read('.env')).toBe('MINE=1\n');
  });
});

function startMerge(machine: Machine): void {
  machine.git('checkout', '-q', '-b', 'other');
  machine.write('README.md', '# theirs\n');
  machine.git('commit', '-qam', 'theirs');
  machine.git('checkout', '-q', 'main');
  machine.write('README.md', '# ours\n');
  machine.git('commit', '-qam', 'ours');
  try {
    machine.git('merge', 'other');
  } catch {
    // The conflict is intended.
  }
}

/** Everything in a git directory except access times. */
function fingerprint(gitDir: string): string {
  return execFileSync(
    'sh',
    ['-c', 'find . -type f ! -name "*.lock" -exec sha256sum {} + | sort -k2; find . -type d | sort'],
    { cwd: gitDir, encoding: 'utf8' },
  );
}
