// test/attacks/lies.test.ts: a sandbox prepares its files so that the host would show other changes than it takes, or would run a program
// while it looks.
// Invariant of all tests here: after everything was shown and accepted, no planted program has run.
// needs: sandbox
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine, giveTo, type Machine } from '../harness.ts';
import { identity } from './run-inside.ts';

interface Listed {
  readonly changes: readonly {
    readonly path: string;
    readonly kind: string;
    readonly lane: string;
    readonly after: { readonly mode: string } | null;
  }[];
  readonly refused: readonly { readonly path: string; readonly reason: string }[];
}

const FILES = {
  'README.md': '# project\n',
  'src/a.txt': 'one\n',
  'src/b.txt': 'two\n',
  'docs/c.txt': 'three\n',
  'docs/deep/d.txt': 'four\n',
  'data.bin': 'x\n',
};

async function inside(machine: Machine, script: string): Promise<string> {
  const run = await machine.ags(['exec', '--review', 'later', '--', 'sh', '-c', script]);
  return run.stdout;
}

async function listed(machine: Machine): Promise<Listed> {
  const run = await machine.ags(['review', '--json']);
  expect(run.stderr).not.toContain('this is a bug');
  return JSON.parse(run.stdout === '' ? '{"changes":[],"refused":[]}' : run.stdout) as Listed;
}

const summary = (list: Listed): string[] => list.changes.map((change) => `${change.kind} ${change.path}`).toSorted();

/** Looks at the task and the project in every way that a user does, then accepts everything. */
async function lookAndTake(machine: Machine): Promise<string> {
  for (const args of [['list'], ['diff'], ['review']]) await machine.ags(args);
  const { changes } = await listed(machine);
  const taken = await machine.ags(['review', '--accept-all', ...risky(changes), '--ignored', 'review']);
  for (const args of [['status', '--ignored'], ['diff'], ['log', '-p', '-1'], ['add', '-A', '-n'], ['branch', '-a']]) {
    try {
      machine.git(...args);
    } catch {
      // A failure does no harm; the test checks below whether a program ran.
    }
  }
  return taken.stderr;
}

const risky = (changes: Listed['changes']): string[] =>
  changes.filter((change) => change.lane !== 'inert').flatMap((change) => [`--risky=${change.path}`]);

describe.concurrent.each(CALLERS)('as %s', (caller) => {
  test('A111: overlay marks that the sandbox sets itself do not change what is shown', async () => {
    using machine = createMachine(caller, { files: FILES });
    const script = `
for name in opaque redirect metacopy origin whiteout impure; do setfattr -n user.overlay.$name -v y docs src README.md 2>/dev/null; setfattr -n user.overlay.overlay.$name -v y docs 2>/dev/null; done
setfattr -n user.overlay.redirect -v /../../../../../../etc src; setfattr -n user.overlay.redirect -v deep docs
setfattr -n user.overlay.opaque -v x docs/deep; setfattr -n user.overlay.whiteout -v y docs/c.txt
mkdir new; setfattr -n user.overlay.opaque -v y new; setfattr -n user.overlay.redirect -v /src new; echo n > new/n.txt
echo changed >> src/a.txt; find . -path ./.git -prune -o -type f -print | sort`;
    const seen = await inside(machine, script);
    expect(seen).toBe(
      './README.md\n./data.bin\n./docs/c.txt\n./docs/deep/d.txt\n./new/n.txt\n./src/a.txt\n./src/b.txt\n',
    );
    expect(summary(await listed(machine))).toEqual(['modified src/a.txt', 'new new/n.txt']);
  });

  test('A110: the changes that are shown and accepted are those the sandbox saw, deletions included', async () => {
    using machine = createMachine(caller, { files: FILES });
    const script = `
rm -rf docs; mkdir docs; echo fresh > docs/fresh.txt; rm src/b.txt; : > .wh.src; : > .wh.README.md; echo opq > src/.wh..wh..opq
rm data.bin; mkdir data.bin; echo y > data.bin/inner; ln src/a.txt hard1; ln hard1 hard2; echo more >> hard2; mv README.md RENAMED.md
chmod 4755 src/a.txt; chmod 2777 docs; find . -path ./.git -prune -o -type f -print | sort; cat src/a.txt`;
    const seen = await inside(machine, script);
    const list = await listed(machine);
    const taken = await machine.ags(['review', '--accept-all', ...risky(list.changes)]);
    expect(taken).toMatchObject({ code: 0 });
    const now = execFileSync('sh', ['-c', 'find . -path ./.git -prune -o -type f -print | sort; cat src/a.txt'], {
      cwd: machine.project,
      encoding: 'utf8',
    });
    expect(now).toBe(seen);
    expect(lstatSync(join(machine.project, 'src/a.txt')).mode & 0o7000).toBe(0);
    expect(lstatSync(join(machine.project, 'hard1')).nlink).toBe(1);
  });

  test('A110: a file that became a directory is accepted as one', async () => {
    using machine = createMachine(caller, { files: FILES });
    await inside(machine, 'mv data.bin src/moved.bin; mkdir data.bin; echo y > data.bin/inner');
    await machine.ags(['review', '--accept-all']);
    expect([machine.read('data.bin/inner'), machine.read('src/moved.bin')]).toEqual(['y\n', 'x\n']);
  });

  test('A110: accepting a part of such a change is refused with what else it needs, and nothing is lost', async () => {
    using machine = createMachine(caller, { files: FILES });
    await inside(
      machine,
      'mv data.bin src/moved.bin; mkdir data.bin; echo y > data.bin/inner; mv docs/c.txt c; rm -r docs; mv c docs; rm README.md; mkdir README.md; echo z > README.md/z',
    );
    const alone = async (path: string): Promise<unknown> =>
      (JSON.parse((await machine.ags(['review', '--accept', path, '--json'])).stdout) as { failed: unknown }).failed;
    const needs = (path: string, reason: string): unknown => [{ path, reason }];
    expect(await alone('data.bin/inner')).toEqual(
      needs(
        'data.bin/inner',
        '"data.bin" is a file on your side, where this change needs a directory. It can only be taken together with the change of data.bin.',
      ),
    );
    expect(await alone('docs')).toEqual(
      needs(
        'docs',
        'It is a directory on your side, with files that are not part of this change. It can only be taken together with the change of docs/deep/d.txt.',
      ),
    );
    expect(await alone('README.md/z')).toEqual([
      { path: 'README.md/z', reason: expect.stringContaining('together with the change of README.md.') as string },
    ]);
    expect(machine.git('status', '--porcelain')).toBe('');
    expect(await machine.ags(['review', '--accept-all'])).toMatchObject({ code: 0 });
    expect(['data.bin/inner', 'src/moved.bin', 'docs', 'README.md/z'].map((path) => machine.read(path))).toEqual([
      'y\n',
      'x\n',
      'three\n',
      'z\n',
    ]);
    expect(machine.tasks()).toEqual([]);
  });

  test('A109: pipes, sockets and links out of the project are refused or never followed', async () => {
    using machine = createMachine(caller, { files: FILES });
    const target = join(machine.home, 'target');
    mkdirSync(target);
    giveTo(target, machine.uid);
    await inside(
      machine,
      `mkfifo pipe; perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un("sock"))'; ln -s ${target} out; rm -rf docs; ln -s ${target} docs; ln -s / root; ln -s ../../../.. up; echo x > ok.txt`,
    );
    const list = await listed(machine);
    expect(list.refused.map((one) => one.path).toSorted()).toEqual(expect.arrayContaining(['pipe', 'sock']));
    await lookAndTake(machine);
    expect(readdirSync(target)).toEqual([]);
    expect(existsSync(join(machine.project, 'pipe'))).toBe(false);
    expect(machine.read('ok.txt')).toBe('x\n');
  });

  test("A106: a project's link that became a directory does not lead a file out", async () => {
    using machine = createMachine(caller, { files: FILES });
    const outside = join(machine.home, 'outside');
    mkdirSync(outside);
    symlinkSync('../../outside', join(machine.project, 'lnk'));
    giveTo(machine.home, machine.uid);
    await inside(machine, 'rm lnk; mkdir lnk; echo breach > lnk/f; mkdir -p src/x; echo y > src/x/y');
    await lookAndTake(machine);
    expect(readdirSync(outside)).toEqual([]);
  });

  test('A105: nothing planted in a git directory, attribute or setting runs on the host', async () => {
    using machine = createMachine(caller, { files: FILES });
    const pwned = join(machine.root, 'pwned');
    const program = `touch ${pwned}`;
    const settings = (file: string): string =>
      [
        ['core.fsmonitor', program],
        ['core.hooksPath', '/tmp/hooks'],
        ['core.pager', program],
        ['core.editor', program],
        ['core.sshCommand', program],
        ['core.gitProxy', program],
        ['core.alternateRefsCommand', program],
        ['diff.external', program],
        ['diff.x.command', program],
        ['diff.x.textconv', program],
        ['filter.x.clean', program],
        ['filter.x.smudge', program],
        ['filter.x.process', program],
        ['filter.x.required', 'true'],
        ['merge.x.driver', program],
        ['alias.status', `!${program}`],
        ['alias.diff', `!${program}`],
        ['pager.log', program],
        ['gpg.program', program],
        ['credential.helper', `!${program}`],
        ['include.path', '/tmp/more'],
        ['extensions.worktreeConfig', 'true'],
        ['uploadpack.packObjectsHook', program],
        ['remote.origin.uploadpack', program],

        ['log.showSignature', 'true'],
      ]
        .map(([key, value]) => `git config -f ${file} '${key}' '${value}'`)
        .join('\n');
    const script = `
mkdir -p .git/hooks .git/info lib/sub
${settings('.git/config')}
${settings('.git/config.worktree')}
for hook in post-index-change reference-transaction post-checkout post-merge pre-commit pre-push fsmonitor-watchman post-rewrite; do printf '#!/bin/sh\\n${program}\\n' > .git/hooks/$hook; chmod 755 .git/hooks/$hook; done
echo '* filter=x diff=x merge=x' | tee .git/info/attributes .gitattributes src/.gitattributes lib/.gitattributes > /dev/null
cd lib; GIT_CONFIG_GLOBAL=/dev/null git init -q . 2>/dev/null; cd ..; echo code > lib/code.txt; echo deep > lib/sub/deep.txt
${settings('lib/.git/config')}
mkdir -p bare.git/objects bare.git/refs bare.git/hooks; echo 'ref: refs/heads/main' > bare.git/HEAD; ${settings('bare.git/config')}
echo '${machine.home}/code' > .git/objects/info/alternates; echo 0000000000000000000000000000000000000000 > .git/shallow; mkdir -p .git/refs/replace; echo x > .git/refs/replace/$(printf 0%.0s $(seq 40))
printf '#!/bin/sh\\n${program}\\n' > src/run.sh; chmod 755 src/run.sh; echo changed >> src/a.txt; echo core.excludesFile > .gitignore; rm -f .git/index; echo junk > .git/HEAD`;
    await inside(machine, script);
    // The planted settings work: git runs the program when called directly.
    execFileSync('cp', [
      '-a',
      join(machine.stateDir, 'tasks', machine.tasks()[0] ?? '', 'run/upper/lib'),
      join(machine.root, 'control'),
    ]);
    giveTo(join(machine.root, 'control'), machine.uid);
    execFileSync('git', ['status'], {
      cwd: join(machine.root, 'control'),
      env: machine.env,
      ...identity(machine),
      stdio: 'ignore',
    });
    expect(existsSync(pwned)).toBe(true);
    rmSync(pwned);
    const said = await lookAndTake(machine);
    expect(existsSync(pwned)).toBe(false);
    expect(said).toContain(' 0 left');
    expect(machine.read('src/a.txt')).toBe('one\nchanged\n');
    expect([
      existsSync(join(machine.project, 'lib/.git')),
      machine.git('config', '--local', '--list').includes('pwned'),
    ]).toEqual([false, false]);
  });

  test('A89: a submodule whose address is a program is refused, and nothing runs', async () => {
    using machine = createMachine(caller, { files: FILES });
    const pwned = join(machine.root, 'pwned');
    await inside(
      machine,
      `printf '[submodule "lib"]\\n\\tpath = lib\\n\\turl = ext::sh -c "touch ${pwned}"\\n\\tupdate = !touch ${pwned}\\n' > .gitmodules; mkdir lib; echo x > lib/x`,
    );
    await lookAndTake(machine);
    expect([existsSync(pwned), existsSync(join(machine.project, '.gitmodules'))]).toEqual([false, false]);
  });

  test('A97: attributes and replaced objects do not blank a change', async () => {
    using machine = createMachine(caller, { files: FILES });
    await inside(
      machine,
      `echo '* binary -diff -text' > .gitattributes; echo 'evil line' >> src/a.txt; git add -A; git -c user.name=x -c user.email=x@y commit -q -m x; git replace HEAD HEAD~1; git replace $(git rev-parse HEAD:src/a.txt) $(git rev-parse HEAD~1:src/a.txt)`,
    );
    const diff = await machine.ags(['diff']);
    expect(diff.stdout).toContain('evil line');
    expect(summary(await listed(machine))).toEqual(['modified src/a.txt', 'new .gitattributes']);
  });

  test('A114: trees that are too large, too deep or unreadable are refused with a reason', async () => {
    using machine = createMachine(caller, { files: FILES });
    await inside(
      machine,
      'perl -e \'for (1 .. 250) { mkdir "d"; chdir "d" }\'; truncate -s 5G sparse.bin; mkdir closed; echo x > closed/f; chmod 0 closed',
    );
    const runs = [await machine.ags(['review', '--json']), await machine.ags(['diff'])];
    expect(
      runs.map((run) => ({
        failed: run.code !== 0,
        bug: run.stderr.includes('this is a bug'),
        said: run.stderr.length > 20,
      })),
    ).toEqual([
      { failed: true, bug: false, said: true },
      { failed: true, bug: false, said: true },
    ]);
    expect(readFileSync(join(machine.project, 'src/a.txt'), 'utf8')).toBe('one\n');
  });
});
