// test/results/capture.test.ts: files leave a sandbox byte for byte, only as verified git objects, and only by the host's rules. As root, all
// tests run a second time as an ordinary user.
// needs: sandbox
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { release, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { AgsError } from '../../src/protocol/errors.ts';
import { diffBlobs, listTree, readBlobs } from '../../src/git/staging/staging.ts';
import { inspectName } from '../../src/review/names.ts';
import { readTask, type StoredTask } from '../../src/store/tasks.ts';
import { captureChanges, type Capture } from '../../src/results/capture.ts';
import { compareWithHost } from '../../src/results/changes.ts';
import { runCommand } from '../../src/exec/run-command.ts';
import type { HostContext } from '../../src/run/host-context.ts';
import { AGAIN, ALSO_AS_USER, runAgain } from '../conformance/again.ts';
import { blob, objectId } from '../git/hostile-pack.ts';

const uid = process.getuid?.() ?? 0;
const scratch = realpathSync(mkdtempSync('/tmp/ags-capture-'));
chmodSync(scratch, 0o755);
afterAll(() => {
  execFileSync('chmod', ['-R', 'u+rwX', scratch]);
  execFileSync('rm', ['-rf', scratch]);
});

interface Trial {
  readonly project: string;
  readonly context: HostContext;
  git(...args: string[]): string;
  /** Runs a program over the project in a real sandbox and returns the task with its changes. */
  run(script: string, program?: 'sh' | 'perl', workspace?: 'overlay' | 'copy'): Promise<StoredTask>;
  capture(task: StoredTask, withIgnored?: boolean): Promise<Capture>;
}

function createTrial(
  files: Readonly<Record<string, string | Buffer>> = {},
  options: { git?: boolean; init?: readonly string[] } = {},
): Trial {
  const root = mkdtempSync(join(scratch, 't-'));
  const project = join(root, 'home/project');
  const home = join(root, 'home');
  mkdirSync(project, { recursive: true });
  for (const [path, content] of Object.entries({ 'README.md': '# project\n', ...files })) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), content);
  }
  const context: HostContext = {
    cwd: project,
    home,
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: home },
    uid,
    gid: process.getgid?.() ?? 0,
    userName: 'dev',
    shell: '/bin/sh',
    stateDir: join(root, 'state'),
    cacheDir: join(scratch, 'cache'),
    self: [],
    dataDir: join(scratch, 'data'),
    configFile: join(home, 'none.yaml'),
    memoryBytes: totalmem(),
    kernel: release(),
    platform: process.platform,
    nodeArch: process.arch,
    pid: process.pid,
    now: () => new Date(),
  };
  const trial: Trial = {
    project,
    context,
    git: (...args) =>
      execFileSync(
        'git',
        ['-c', 'user.name=Dev', '-c', 'user.email=dev@example.test', '-c', 'protocol.file.allow=always', ...args],
        {
          cwd: project,
          encoding: 'utf8',
          env: { PATH: '/usr/bin:/bin', HOME: home, GIT_CONFIG_NOSYSTEM: '1' },
          stdio: ['ignore', 'pipe', 'pipe'],
        },
      ),
    async run(script, program = 'sh', workspace = 'overlay') {
      const out = { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', terminal: null } as const;
      const result = await runCommand(context, {
        kind: 'exec',
        command: [program, program === 'sh' ? '-ec' : '-e', script],
        flags: { workspace },
        name: 'trial',
        openStdio: () => Promise.resolve({ stdio: { ...out, stdout: 1, stderr: 2 }, close: () => Promise.resolve() }),
        notice: () => undefined,
      });
      expect(result.exitCode).toBe(0);
      const task = await readTask(context.stateDir, result.taskId);
      if (task === null) throw new Error('the sandbox left no task');
      return task;
    },
    capture: (task, withIgnored = false) => captureChanges(context, task, { withIgnored }),
  };
  if (options.git !== false) {
    trial.git('init', '-q', '-b', 'main', ...(options.init ?? []));
    trial.git('add', '-A');
    trial.git('commit', '-q', '-m', 'first');
  }
  return trial;
}

/** Mode and content of every captured file. */
async function captured(task: StoredTask, capture: Capture): Promise<Record<string, readonly [string, string]>> {
  const entries = await listTree(task.paths.staging, capture.tree);
  const blobs = await readBlobs(
    task.paths.staging,
    entries.map((entry) => entry.oid),
    2 ** 20,
  );
  return Object.fromEntries(
    entries.map(({ path, mode, oid }) => [path, [mode, blobs.get(oid)?.toString('latin1') ?? 'too large']]),
  );
}

function pathsOf(capture: Capture, task: StoredTask): Promise<string[]> {
  return listTree(task.paths.staging, capture.tree).then((entries) => entries.map((entry) => entry.path));
}

/** A perl program that writes these files, with any names and content. */
function writing(files: Readonly<Record<string, Buffer | string>>): string {
  const hex = (text: Buffer | string): string => Buffer.from(text).toString('hex');
  return `sub put { my ($n, $c) = map { pack 'H*', $_ } @_; open my $f, '>:raw', $n or die "$n: $!"; print $f $c; close $f or die }\n${Object.entries(
    files,
  )
    .map(([name, content]) => `put('${hex(name)}', '${hex(content)}');`)
    .join('\n')}\n`;
}

const CONTENTS: Readonly<Record<string, Buffer>> = {
  lf: Buffer.from('one\ntwo\n'),
  crlf: Buffer.from('one\r\ntwo\r\n'),
  mixed: Buffer.from('one\r\ntwo\nthree\rfour'),
  'no-end': Buffer.from('no line end'),
  empty: Buffer.alloc(0),
  nul: Buffer.from([0, 1, 2, 0, 255, 10, 0]),
  latin1: Buffer.from([0x67, 0x72, 0xf6, 0xdf, 0x65, 10]),
  'utf16.txt': Buffer.from('\ufeffgröße\r\n', 'utf16le'),
  'ident.c': Buffer.from('$Id$ $Id: 1234 $\n'),
  every: Buffer.from(Array.from({ length: 256 }, (_, i) => i)),
  long: Buffer.alloc(20_000, 'x'),
};

describe.each(['overlay', 'copy'] as const)('with the workspace as %s', (workspace) => {
  test('files arrive byte for byte, whatever attributes, filters and settings say inside', async () => {
    const attributes =
      '* text=auto eol=crlf working-tree-encoding=UTF-16LE ident filter=evil diff=evil merge=evil\n*.c -text ident\nlf -diff\ncrlf binary\n';
    const trial = createTrial({ '.gitattributes': '* text eol=crlf\n' });
    const task = await trial.run(
      `${writing({ ...CONTENTS, '.gitattributes': attributes })} mkdir 'sub'; chdir 'sub'; ${writing({ '.gitattributes': `[attr]wild filter=evil text\n* wild\n`, inner: 'a\r\nb\n' }).replace(/^sub put.*\n/, '')}
      open my $c, '>>', '../.git/config' or die; print $c qq([core]\n\tautocrlf = true\n\teol = crlf\n\tattributesFile = /tmp/a\n[filter "evil"]\n\tclean = tr a-z A-Z\n\tprocess = false\n\trequired = true\n); mkdir '../.git/info'; open my $a, '>', '../.git/info/attributes' or die; print $a "* filter=evil text eol=crlf\n"`,
      'perl',
      workspace,
    );
    const expected = {
      ...CONTENTS,
      '.gitattributes': Buffer.from(attributes),
      'sub/.gitattributes': Buffer.from('[attr]wild filter=evil text\n* wild\n'),
      'sub/inner': Buffer.from('a\r\nb\n'),
    };
    expect(await captured(task, await trial.capture(task))).toEqual(
      Object.fromEntries(Object.entries(expected).map(([name, bytes]) => [name, ['100644', bytes.toString('latin1')]])),
    );
  });

  test('a name that is not UTF-8 is refused and shown, and the rest is taken', async () => {
    const odd = (name: string): Buffer => Buffer.from(name, 'latin1');
    const trial = createTrial();
    writeFileSync(Buffer.concat([Buffer.from(`${trial.project}/`), odd('old\xff')]), 'old');
    const task = await trial.run(`touch "$(printf 'new\\377')"; echo a > fine`, 'sh', workspace);
    const capture = await trial.capture(task);
    expect(await captured(task, capture)).toEqual({ fine: ['100644', 'a\n'] });
    expect(capture.refused).toEqual([{ path: 'new\\xff', reason: 'a name that is not UTF-8: never taken' }]);
  });

  test('links, modes and hard links are captured as they are; special files are refused', async () => {
    const trial = createTrial({ 'run.sh': 'echo\n', 'old-link': 'file\n' });
    const task = await trial.run(
      `ln -s /etc/passwd absolute; ln -s ../../outside escaping; ln -s "$(printf 'new\\nline')" odd; rm old-link; ln -s README.md old-link; ln -s nowhere dangling
      echo s > suid; chmod 4755 suid; echo x > exec; chmod 711 exec; echo p > private; chmod 600 private; echo u > unreadable; chmod 200 unreadable; mkdir -m 2775 shared; echo g > shared/f; mkdir shut; echo h > shut/f; chmod 000 shut
      echo hard > one; ln one two; chmod +x run.sh; mkfifo pipe; perl -MSocket -e 'socket S, PF_UNIX, SOCK_STREAM, 0; bind S, pack "S a*", AF_UNIX, "socket" or die'; echo ordinary > .wh.README.md`,
      'sh',
      workspace,
    );
    const capture = await trial.capture(task);
    expect(await captured(task, capture)).toEqual({
      absolute: ['120000', '/etc/passwd'],
      escaping: ['120000', '../../outside'],
      odd: ['120000', 'new\nline'],
      'old-link': ['120000', 'README.md'],
      dangling: ['120000', 'nowhere'],
      suid: ['100755', 's\n'],
      exec: ['100755', 'x\n'],
      private: ['100644', 'p\n'],
      'shared/f': ['100644', 'g\n'],
      one: ['100644', 'hard\n'],
      two: ['100644', 'hard\n'],
      'run.sh': ['100755', 'echo\n'],
      '.wh.README.md': ['100644', 'ordinary\n'],
    });
    expect(capture.deleted).toEqual([]);
    expect(
      capture.refused
        .map(({ path }) => path)
        .filter((path) => path !== 'suid')
        .toSorted(),
    ).toEqual(['pipe', 'shut', 'socket', 'unreadable']);
  });

  test('deleted and replaced paths are reported', async () => {
    const trial = createTrial({
      'a/b/c': 'c\n',
      'a/b/d': 'd\n',
      'again/x': 'x\n',
      'again/y': 'y\n',
      'dir/f': 'f\n',
      file: 'file\n',
      gone: 'gone\n',
      link: 'l\n',
    });
    const task = await trial.run(
      'rm -r a gone; rm -r again; mkdir again; echo new > again/z; rm -r dir; echo now a file > dir; rm file; mkdir file; echo inner > file/inner; rm link',
      'sh',
      workspace,
    );
    const capture = await trial.capture(task);
    expect(Object.keys(await captured(task, capture)).toSorted()).toEqual(['again/z', 'dir', 'file/inner']);
    expect(capture.deleted.toSorted()).toEqual([
      'a/b/c',
      'a/b/d',
      'again/x',
      'again/y',
      'dir/f',
      'file',
      'gone',
      'link',
    ]);
  });
});

describe('names', () => {
  const BASES = [
    '-dash',
    '--option=x',
    ':x',
    ':(exclude)x',
    ':!x',
    ' lead',
    'trail ',
    'dot.',
    '*',
    '?',
    '[a]',
    '!x',
    '#x',
    '\\',
    'a\\b',
    '"q"',
    "'",
    '`id`',
    '$HOME',
    '%s%n',
    '~',
    '&|;<>',
    'a=b,c',
    '@{u}',
    'HEAD',
    'a..b',
    '...',
    '..x',
    '.x',
    '.gitignor\u00e9',
    '.gitfoo',
    'CON',
    'aux.txt',
    'größe',
    'gro\u0308\u00dfe',
    '日本',
    '\u{1F600}',
    '\u202egpj.exe',
    'zero\u200bwidth',
    '\uFEFFbom',
    '\uFFFD',
    'ſ',
    'x'.repeat(255),
    'ä'.repeat(127),
  ];
  const CONTROLS = Array.from({ length: 0xa0 }, (_, i) => `c${String.fromCharCode(i + 1)}c`).filter(
    (name) => !name.includes('/'),
  );
  const odd = [...new Set([...BASES, ...CONTROLS])].filter((name) => inspectName(name).refuse === null);

  test('stay unchanged for every unusual allowed kind, also beside ignore rules', async () => {
    expect(odd.length).toBeGreaterThan(180);
    const trial = createTrial({ '.gitignore': 'ignored*\n' });
    const task = await trial.run(
      `${writing(Object.fromEntries(odd.map((name) => [name, `${name}\n`])))} mkdir 'odd'; chdir 'odd'; ${writing(Object.fromEntries(odd.map((name) => [name, 'below'])))}`.replace(
        /(sub put[^\n]*\n[^]*)sub put[^\n]*\n/,
        '$1',
      ),
      'perl',
    );
    const capture = await trial.capture(task);
    const expected = odd.flatMap((name): [string, readonly [string, string]][] => [
      [name, ['100644', Buffer.from(`${name}\n`).toString('latin1')]],
      [`odd/${name}`, ['100644', 'below']],
    ]);
    expect(await captured(task, capture)).toEqual(Object.fromEntries(expected));
    expect([capture.refused, capture.ignored.written]).toEqual([[], []]);
    const compared = await compareWithHost(trial.context, task, capture);
    expect(compared.changeSet.changes.map((change) => change.path).toSorted()).toEqual(
      expected.map(([name]) => name).toSorted(),
    );
    // A second change sends the host's version through git under the same names.
    for (const name of odd) writeFileSync(join(trial.project, name), 'the host has it\n');
    const again = await compareWithHost(trial.context, task, capture);
    expect(
      again.changeSet.changes
        .filter((change) => change.before !== null)
        .map((change) => change.path)
        .toSorted(),
    ).toEqual(odd.toSorted());
  });

  test('that a file system may read as .git are refused, with everything below them', async () => {
    const bad = [
      '.GIT',
      '.Git',
      'git~1',
      'GIT~1',
      '.git ',
      '.git.',
      '.git...',
      '.g\u200cit',
      '.g\u00ect'.normalize('NFC').replace('ì', 'i\u200d'),
      '.git::$INDEX_ALLOCATION',
      'a\\.git',
      '..\\x',
    ];
    const trial = createTrial();
    const task = await trial.run(
      `${writing(Object.fromEntries(bad.map((name) => [name, 'x'])))} mkdir 'd' or die; mkdir 'd/.gIt' or die; chdir 'd/.gIt'; put('61', '62'); chdir '../..'; put('ff', '62'); put('676f6f64', '62')`,
      'perl',
    );
    const capture = await trial.capture(task);
    expect(await pathsOf(capture, task)).toEqual(['good']);
    expect(capture.refused.map(({ path }) => path).toSorted()).toEqual([...bad, 'd/.gIt', '\\xff'].toSorted());
  });

  test('that git skips are reported, not lost', async () => {
    const trial = createTrial();
    const task = await trial.run('ln -s /etc/passwd .gitmodules; ln -s x .GITMODULES; echo good > good');
    const capture = await trial.capture(task);
    expect(await pathsOf(capture, task)).toEqual(['good']);
    expect(capture.refused.map(({ path }) => path).toSorted()).toEqual(['.GITMODULES', '.gitmodules']);
  });
});

describe('ignored files', () => {
  test('are left out unless requested, by the rules inside; tracked files are always included', async () => {
    const trial = createTrial({ '.gitignore': '*.log\n/build/\n', 'kept.log': 'tracked\n' });
    trial.git('add', '-f', 'kept.log');
    trial.git('commit', '-q', '-m', 'tracked all the same');
    writeFileSync(join(trial.project, '.git/info/exclude'), 'excluded\n');
    mkdirSync(join(trial.context.home, '.config/git'), { recursive: true });
    writeFileSync(join(trial.context.home, '.config/git/ignore'), 'global\n');
    mkdirSync(join(trial.project, 'build'));
    writeFileSync(join(trial.project, 'build/old'), 'old\n');
    writeFileSync(join(trial.project, 'plain'), 'untracked\n');
    const task = await trial.run(
      'echo 2 > kept.log; echo 1 > a.log; echo 22 > build/new; rm build/old plain; echo 3 > excluded; echo 4 > global; mkdir sub; printf "!a.log\\nfresh\\n" > sub/.gitignore; echo 5 > sub/a.log; echo 6 > sub/fresh',
    );
    const capture = await trial.capture(task);
    expect((await pathsOf(capture, task)).toSorted()).toEqual(['kept.log', 'sub/.gitignore', 'sub/a.log']);
    expect(capture.deleted).toEqual(['plain']);
    expect({ ...capture.ignored, written: capture.ignored.written.toSorted() }).toEqual({
      written: ['a.log', 'build/new', 'excluded', 'global', 'sub/fresh'],
      deleted: ['build/old'],
      bytes: 11,
    });
    const all = await trial.capture(task, true);
    expect((await pathsOf(all, task)).toSorted()).toEqual([
      'a.log',
      'build/new',
      'excluded',
      'global',
      'kept.log',
      'sub/.gitignore',
      'sub/a.log',
      'sub/fresh',
    ]);
    expect(all.deleted.toSorted()).toEqual(['build/old', 'plain']);
    // The first capture already has the answer.
    expect(await trial.capture(task)).toEqual(all);
  });

  test('a directory replaced by a link, with ignored files in it, does not stop the capture', async () => {
    const trial = createTrial({ '.gitignore': 'node_modules/\n*.tmp\n', 'dir/a': 'a\n' });
    mkdirSync(join(trial.project, 'node_modules/x'), { recursive: true });
    writeFileSync(join(trial.project, 'node_modules/x/index.js'), '1\n');
    writeFileSync(join(trial.project, 'dir/b.tmp'), '1\n');
    const task = await trial.run('rm -r dir node_modules; ln -s /tmp dir; ln -s /opt node_modules');
    const capture = await trial.capture(task);
    expect([
      (await pathsOf(capture, task)).toSorted(),
      capture.deleted.toSorted(),
      capture.ignored.deleted.toSorted(),
    ]).toEqual([['dir', 'node_modules'], ['dir/a'], ['dir/b.tmp', 'node_modules/x/index.js']]);
  });

  test('changes in a submodule are captured by its own rules', async () => {
    const other = createTrial({ 'lib.c': 'int x;\n', '.gitignore': '*.o\n', 'kept.log': 'tracked there\n' });
    const trial = createTrial({ '.gitignore': '*.log\n' });
    trial.git('submodule', '--quiet', 'add', other.project, 'sub');
    trial.git('commit', '-q', '-m', 'with sub');
    const task = await trial.run(
      'cd sub; echo "int y;" > lib.c; echo 1 > lib.o; echo 2 > kept.log; git status --short > /dev/null; git -c user.name=a -c user.email=a@b commit -qam inside',
    );
    const capture = await trial.capture(task);
    expect([(await pathsOf(capture, task)).toSorted(), capture.ignored.written]).toEqual([
      ['sub/kept.log', 'sub/lib.c'],
      ['sub/lib.o'],
    ]);
  });

  test('a named pipe in place of ignore rules blocks nothing', async () => {
    for (const workspace of ['overlay', 'copy'] as const) {
      const trial = createTrial({ 'a/x': 'x\n' });
      const task = await trial.run(
        'mkfifo .gitignore a/.gitattributes; mkdir b; mkdir b/.gitignore b/.gitattributes; echo y > a/x; echo z > b/z',
        'sh',
        workspace,
      );
      const capture = await trial.capture(task);
      expect([(await pathsOf(capture, task)).toSorted(), capture.refused.map(({ path }) => path).toSorted()]).toEqual([
        ['a/x', 'b/z'],
        ['.gitignore', 'a/.gitattributes'],
      ]);
    }
  });
});

describe('a forged git directory in the sandbox', () => {
  test('replaced objects, grafts, borrowed stores and moved refs have no effect', async () => {
    const trial = createTrial({ 'a.txt': 'one\ntwo\nthree\n' });
    const refs = trial.git('for-each-ref');
    const task =
      await trial.run(`git config user.name a; git config user.email a@b; printf 'one\\nevil\\nthree\\n' > a.txt; git commit -qam evil; clean=$(git rev-parse HEAD~1); evil=$(git rev-parse HEAD)
      git replace $evil $clean; git replace $(git rev-parse $evil:a.txt) $(git rev-parse $clean:a.txt); echo "$evil" > .git/shallow; mkdir -p .git/info; echo "$evil $clean" > .git/info/grafts; echo /etc > .git/objects/info/alternates
      mkdir -p .git/refs/heads; echo $evil > .git/refs/heads/main; echo $evil > .git/main; echo '* -diff binary' > .gitattributes; echo '* -diff' > .git/info/attributes; rm -f .git/index; git config core.worktree /tmp; git config core.bare true`);
    const capture = await trial.capture(task);
    expect(await captured(task, capture)).toEqual({
      'a.txt': ['100644', 'one\nevil\nthree\n'],
      '.gitattributes': ['100644', '* -diff binary\n'],
    });
    const { changeSet } = await compareWithHost(trial.context, task, capture);
    const change = changeSet.changes.find(({ path }) => path === 'a.txt');
    expect(await diffBlobs(task.paths.staging, change?.before?.oid ?? null, change?.after?.oid ?? null)).toBe(
      '@@ -1,3 +1,3 @@\n one\n-two\n+evil\n three\n',
    );
    expect(trial.git('for-each-ref')).toBe(refs);
    expect(trial.git('status', '--short')).toBe('');
  });

  test('a nested repository runs nothing and is not opened as one; its files are captured', async () => {
    const trial = createTrial();
    const task = await trial.run(
      `exec 2> /dev/null; git init -q lib; cd lib; echo plain > f; git config filter.y.clean 'touch /tmp/ran; tr a-z A-Z'; git config core.fsmonitor 'touch /tmp/ran2'; git config core.hooksPath /tmp; echo '* filter=y' > .gitattributes; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; cd ..; git add lib 2>/dev/null || true; mkdir bare.git; git init -q --bare bare.git`,
    );
    const capture = await trial.capture(task);
    const found = await captured(task, capture);
    expect([found['lib/f'], found['lib/.gitattributes']]).toEqual([
      ['100644', 'plain\n'],
      ['100644', '* filter=y\n'],
    ]);
    expect(Object.keys(found).filter((path) => path.startsWith('lib/.git/'))).toEqual([]);
    expect(capture.refused.map(({ path }) => path)).toContain('lib/.git');
    expect(Object.values(found).filter(([mode]) => !['100644', '100755', '120000'].includes(mode))).toEqual([]);
  });
});

describe('sizes', () => {
  // The second run, as another user, uses fewer files.
  const hundreds = process.env[AGAIN] === undefined ? 100 : 10;

  test('thousands of files are captured', async () => {
    const trial = createTrial();
    const task = await trial.run(
      `for my $d (1 .. ${hundreds}) { mkdir "d$d"; for (0 .. 99) { open my $f, ">", "d$d/$_" or die; print $f "$d $_\\n" } }`,
      'perl',
    );
    const capture = await trial.capture(task);
    const compared = await compareWithHost(trial.context, task, capture);
    expect([
      compared.changeSet.changes.length,
      new Set(compared.changeSet.changes.map((change) => change.kind)),
    ]).toEqual([hundreds * 100, new Set(['new'])]);
    expect(compared.changeSet.changes.find(({ path }) => path === 'd10/17')?.after).toEqual({
      mode: '100644',
      bytes: 6,
      oid: objectId(blob('10 17\n')),
    });
  }, 180_000);

  test('files that are too large or nested too deep are refused before reading, and no work is lost', async () => {
    const trial = createTrial();
    const task = await trial.run('echo x > f; echo y > g; echo small > small');
    const upper = (name: string): string => join(task.paths.upper, name);
    const refused = async (): Promise<string> => {
      const started = Date.now();
      const error: unknown = await trial.capture(task).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(AgsError);
      expect([
        (error as AgsError).code,
        Date.now() - started < 20_000,
        existsSync(task.paths.staging),
        existsSync(join(task.paths.runDir, 'out')),
      ]).toEqual(['capture.refused', true, false, false]);
      return (error as AgsError).message;
    };
    truncateSync(upper('f'), 2 ** 40);
    expect(await refused()).toContain('f is 1 TB');
    truncateSync(upper('f'), 2 ** 31);
    for (const name of ['g', 'h', 'i', 'j']) {
      writeFileSync(upper(name), '');
      truncateSync(upper(name), 2 ** 31);
      own(upper(name), task);
    }
    expect(await refused()).toMatch(/in total/);
    for (const name of ['f', 'g', 'h', 'i', 'j']) rmSync(upper(name));
    // The path is too long for one call.
    execFileSync('sh', ['-c', 'i=0; while [ $i -lt 250 ]; do mkdir d && cd -P d || exit 1; i=$((i+1)); done'], {
      cwd: task.paths.upper,
    });
    execFileSync('chown', ['-R', `${task.run.user.uid}`, upper('d')]);
    expect(await refused()).toMatch(/deep/);
    execFileSync('rm', ['-rf', upper('d')]);
    expect(await pathsOf(await trial.capture(task), task)).toEqual(['small']);
  });
});

test('a hostile upper with devices and hand-made marks is captured safely', async () => {
  const trial = createTrial({ 'a.txt': 'a\n', 'dir/b': 'b\n' });
  const task = await trial.run('echo x > f');
  const upper = (name: string): string => join(task.paths.upper, name);
  execFileSync('mknod', [upper('a.txt'), 'c', '0', '0']);
  mkdirSync(upper('dir'));
  own(upper('dir'), task);
  if (uid === 0) {
    execFileSync('mknod', [upper('disk'), 'b', '8', '0']);
    execFileSync('mknod', [upper('zero'), 'c', '1', '5']);
  }
  const capture = await trial.capture(task);
  expect([await pathsOf(capture, task), capture.deleted, capture.refused.map(({ path }) => path)]).toEqual([
    ['f'],
    ['a.txt'],
    uid === 0 ? ['disk', 'zero'] : [],
  ]);
});

test('a SHA-256 project is captured and compared with SHA-256', async () => {
  const trial = createTrial({ 'a.txt': 'one\n' }, { init: ['--object-format=sha256'] });
  const task = await trial.run('echo two > a.txt; echo new > b.txt; rm README.md; git status --short > status.txt');
  const capture = await trial.capture(task);
  expect(capture.tree).toMatch(/^[0-9a-f]{64}$/);
  expect(await captured(task, capture)).toEqual({
    'a.txt': ['100644', 'two\n'],
    'b.txt': ['100644', 'new\n'],
    'status.txt': ['100644', ' D README.md\n M a.txt\n?? b.txt\n?? status.txt\n'],
  });
  const { changeSet } = await compareWithHost(trial.context, task, capture);
  expect(changeSet.changes.map(({ path, kind }) => `${kind} ${path}`).toSorted()).toEqual([
    'deleted README.md',
    'modified a.txt',
    'new b.txt',
    'new status.txt',
  ]);
});

test('a project without git is captured in the same way', async () => {
  const trial = createTrial({ 'a.txt': 'one\n', '.gitignore': '*.log\n' }, { git: false });
  const task = await trial.run('echo two > a.txt; echo l > x.log; git init -q inner; mkdir .git; echo x > .git/config');
  const capture = await trial.capture(task);
  expect([(await pathsOf(capture, task)).toSorted(), capture.refused.map(({ path }) => path).toSorted()]).toEqual([
    ['a.txt', 'x.log'],
    ['.git', 'inner/.git'],
  ]);
});

function own(path: string, task: StoredTask): void {
  if (uid === 0) lchownSync(path, task.run.user.uid, task.run.user.gid);
}

if (ALSO_AS_USER) {
  test('all of these tests pass for an ordinary user', async () => {
    const { passed, failed, other } = await runAgain({ file: String(expect.getState().testPath), uid: 42_424 });
    expect({ failed, other, enough: passed.length >= 18 }).toEqual({ failed: [], other: [], enough: true });
  }, 310_000);
}
