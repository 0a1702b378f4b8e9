// test/attacks/git-pipeline.test.ts: an agent does what it likes with its git directory and its files. Nothing of it runs on the host, moves
// anything but its own branch, or hides from a review: neither while ags brings its work out, shows, merges and undoes it, nor while the
// user goes on with plain git.
// needs: sandbox
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentTask, runAgent, type AgentTask } from '../agent-run/agent-task.ts';
import { CALLERS, createMachine, giveTo, type Machine } from '../harness.ts';
import { evilSettings, HOOKS, plantHooks } from './evil-git.ts';

const ME = 'git config user.name A; git config user.email a@b; ';

function place(machine: Machine, name = 'ran'): string {
  const dir = join(machine.root, name);
  mkdirSync(dir);
  giveTo(dir, machine.uid);
  return dir;
}

/** Does everything that ags can do with a task; returns internal errors of ags. */
async function useEverything(machine: Machine, task: AgentTask): Promise<string[]> {
  const said = [];
  for (const args of [
    ['list'],
    ['diff', task.id],
    ['review', task.id, '--json'],
    ['merge', task.id, '--dry-run'],
    ['merge', task.id],
    ['undo'],
    ['merge', task.id, '--into', 'other'],
    ['undo', task.id],
    ['apply', task.id],
  ])
    said.push(await machine.ags(args));
  return said.filter(({ stderr }) => stderr.includes('this is a bug')).map(({ stderr }) => stderr);
}

function plainGit(machine: Machine, branch: string): void {
  for (const args of [
    ['status'],
    ['diff'],
    ['log', '-p', '--all'],
    ['diff', 'main', branch],
    ['stash', '-q', '-u'],
    ['checkout', '-q', branch],
    ['status'],
    ['checkout', '-q', 'main'],
    ['-c', 'user.name=x', '-c', 'user.email=x@y', 'merge', '-q', branch],
  ])
    machine.git(...args);
}

const refs = (machine: Machine): string =>
  machine
    .git('for-each-ref', '--format=%(refname) %(objectname)')
    .split('\n')
    .filter((line) => !line.startsWith('refs/heads/ags/'))
    .join('\n');

describe.each(CALLERS)('as %s', (caller) => {
  test('A77 A78 A79 A81 A82 A83 A85 A86 A87 A89 A90 A105: no program that an agent plants in any git directory runs', async () => {
    using machine = createMachine(caller);
    const ran = place(machine);
    const sub = join(machine.home, 'code/sub');
    machine.git('init', '-q', sub);
    machine.git('-C', sub, 'commit', '-q', '--allow-empty', '-m', 'x');
    machine.git('-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', sub, 'module');
    machine.git('commit', '-qm', 'with a submodule');
    machine.git('branch', 'other');
    const evil = join(machine.project, 'evil.txt');
    writeFileSync(evil, evilSettings(ran).replace('repositoryformatversion = 1', ''));
    writeFileSync(join(machine.project, 'hook.txt'), `#!/bin/sh\ntouch ${ran}/hook\n`);
    giveTo(machine.project, machine.uid);
    const before = [refs(machine), readFileSync(join(machine.project, '.git/config'), 'utf8')];
    const task = await runAgent(
      machine,
      `${ME}
      plant() { cat evil.txt >> "$1/config"; mkdir -p "$1/hooks"; for h in ${HOOKS.join(' ')}; do cp hook.txt "$1/hooks/$h"; chmod 755 "$1/hooks/$h"; done; }
      echo '* filter=evil diff=evil merge=evil' > .gitattributes
      git init -q lib; echo x > lib/x; (cd lib; ${ME} git add -A; git commit -qm lib); git add lib; git commit -qm gitlink
      cp -r lib/.git bare.git; mkdir -p deep/er; cp -r lib deep/er/lib
      plant lib/.git; plant deep/er/lib/.git; plant bare.git; plant .git/modules/module; plant .git
      echo "gitdir: ../bare.git" > module/.git
      git config extensions.worktreeConfig true; cp evil.txt .git/config.worktree
      git config include.path "$PWD/evil.txt"; git config core.attributesFile "$PWD/.gitattributes"; git config core.hooksPath "$PWD/.git/hooks"
      mkdir -p .git/worktrees/w; echo ../../../lib/.git > .git/worktrees/w/commondir; echo "$PWD/.git" > .git/worktrees/w/gitdir; cp .git/HEAD .git/worktrees/w/HEAD
      echo done >> README.md; true`,
    );
    const brought = await task.bringOut();
    expect(brought.error).toBe(undefined);
    expect(machine.git('diff', '--name-only', task.base, task.branch).split('\n')).toContain('README.md');
    expect(readdirSync(ran)).toEqual([]);
    expect([refs(machine), readFileSync(join(machine.project, '.git/config'), 'utf8')]).toEqual(before);
    rmSync(evil);
    rmSync(join(machine.project, 'hook.txt'));
    expect(await useEverything(machine, task)).toEqual([]);
    expect(readdirSync(ran)).toEqual([]);
    plainGit(machine, task.branch);
    expect(readdirSync(ran)).toEqual([]);
    expect(machine.git('ls-tree', '-r', task.branch)).not.toMatch(/^160000.*\tlib$/m);
  }, 120_000);

  test("A81 A82 A85 A86 A87 A89 A90: no program that the user's own settings name runs either", async () => {
    using machine = createMachine(caller, {
      files: {
        '.gitattributes': '*.evil filter=evil diff=evil merge=evil\n',
        'a.txt': 'a\n',
        'b.evil': 'b\n',
        'c.evil': 'c\n',
      },
    });
    const ran = place(machine);
    machine.git('branch', 'other');
    const task = await runAgent(machine, 'echo more >> a.txt; echo new > new.txt; echo more >> b.evil');
    writeFileSync(join(ran, 'included'), `[core]\n\thooksPath = ${machine.project}/.git/hooks\n`);
    plantHooks(join(machine.project, '.git'), ran);
    appendFileSync(join(machine.project, '.git/config'), evilSettings(ran));
    writeFileSync(join(machine.home, '.gitconfig'), evilSettings(ran).replace('repositoryformatversion = 1', ''));
    giveTo(machine.home, machine.uid);
    const brought = await task.bringOut();
    expect(brought.error).toBe(undefined);
    expect(brought.result?.files).toBe(3);
    expect(await useEverything(machine, task)).toEqual([]);
    // git looks again, through its filters, at files that are as young as the index.
    const tame = ['clean', 'smudge', 'process'].flatMap((one) => ['-c', `filter.evil.${one}=`]);
    const quiet = ['-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null', ...tame];
    machine.git(...quiet, 'update-index', '-q', '--refresh');
    utimesSync(join(machine.project, '.git/index'), 1, 1);
    const merged = await machine.ags(['merge', task.id, 'a.txt', 'new.txt']);
    expect(merged.code, merged.stderr).toBe(0);
    expect((await machine.ags(['review', task.id, '--accept-all'])).stderr).not.toContain('bug');
    expect(readdirSync(ran)).toEqual(['included']);
    expect(existsSync(join(machine.project, '.git/refs/heads/ags', task.id))).toBe(true);
  }, 120_000);

  test('A91 A93 A94 A95: forged history, refs and objects change nothing but the branch of the task', async () => {
    using machine = createMachine(caller);
    const ran = place(machine);
    machine.write('second.txt', '2\n');
    machine.git('add', '-A');
    machine.git('commit', '-qm', 'second');
    machine.git('branch', 'other');
    machine.git('tag', 'v1');
    const logs = (): string =>
      execFileSync('sh', ['-c', "find . -type f ! -path './refs/heads/ags/*' | sort | xargs cat"], {
        cwd: join(machine.project, '.git/logs'),
        encoding: 'utf8',
      });
    const before = [refs(machine), logs()];
    const task = await agentTask(
      machine,
      `${ME} main=$(git rev-parse HEAD); first=$(git rev-parse HEAD~1)
      echo evil > evil.sh; git add -A; git commit -qm evil; evil=$(git rev-parse HEAD)
      clean=$(git commit-tree -p $main -m clean $main^{tree}); git replace -f $evil $clean; git replace -f "$evil^{tree}" "$main^{tree}"
      git update-ref refs/heads/main $first; git branch -q -D other; git tag -d v1 >/dev/null; git tag main $first; git tag HEAD $first
      echo $first > .git/main; echo $main > .git/shallow; mkdir -p .git/info; echo "$evil $first" > .git/info/grafts
      rm -rf .git/logs; mkdir -p .git/logs/refs/heads; echo lies > .git/logs/refs/heads/main
      blob=$(git hash-object -w README.md); git config extensions.partialClone evil; git config core.repositoryformatversion 1; git config remote.evil.promisor true; git config remote.evil.url "ext::touch ${ran}/fetched"; git config protocol.ext.allow always
      tree=$(printf '100644 blob %s\\tmissing.txt\\n' $(printf '%040d' 1234) | git mktree --missing); true`,
    );
    expect([refs(machine), logs()]).toEqual(before);
    expect(machine.git('diff', '--name-only', task.base, task.branch)).toBe('evil.sh\n');
    expect((await machine.ags(['diff', task.id])).stdout).toContain('+evil');
    expect(machine.git('rev-list', task.branch).trim().split('\n')).toContain(task.base);
    // A tag and a file called like the branch, in the user's own repository.
    machine.git('tag', 'main', 'HEAD~1');
    machine.write('.git/main', machine.git('rev-parse', 'HEAD~1'));
    const merged = await machine.ags(['merge', task.id, '--risky', 'evil.sh']);
    expect(merged.code, merged.stderr).toBe(0);
    expect(machine.git('rev-parse', 'refs/heads/main~1').trim()).toBe(task.base);
    expect(machine.git('rev-parse', 'refs/tags/main').trim()).toBe(machine.git('rev-parse', `${task.base}~1`).trim());
    expect(readdirSync(ran)).toEqual([]);
    expect(machine.git('status', '--porcelain')).toBe('');
  }, 120_000);

  test('A91: a commit with missing objects costs the agent its commits, and fetches nothing', async () => {
    using machine = createMachine(caller);
    const ran = place(machine);
    const task = await agentTask(
      machine,
      `${ME} echo old > x; blob=$(git hash-object -w x); git add x; git commit -qm old; echo x > x; git commit -qam new; rm .git/objects/$(echo $blob | cut -c1-2)/$(echo $blob | cut -c3-)
      git config extensions.partialClone evil; git config core.repositoryformatversion 1; git config remote.evil.promisor true; git config remote.evil.url "ext::touch ${ran}/fetched"; git config protocol.ext.allow always; rm -f .git/index`,
    );
    expect(machine.git('log', '--format=%s', `${task.base}..${task.branch}`)).toBe('Do the work\n');
    expect(machine.git('show', `${task.branch}:x`)).toBe('x\n');
    expect(readdirSync(ran)).toEqual([]);
  });

  test('A97: attributes that an agent writes do not blank the diff', async () => {
    using machine = createMachine(caller);
    const task = await agentTask(
      machine,
      `printf '* -diff\\n*.txt binary\\n' > .gitattributes; echo SEEN >> src/a.txt`,
    );
    expect((await machine.ags(['diff', task.id, 'src/a.txt'])).stdout).toContain('+SEEN');
    expect((await machine.ags(['diff', task.id, '--stat'])).stdout).toMatch(/\.gitattributes.*runs on your machine/);
  });

  test("A98: objects of the user's other repositories do not come out through an alternate", async () => {
    using machine = createMachine(caller);
    const other = join(machine.home, 'code/other');
    machine.git('init', '-q', other);
    writeFileSync(join(other, 'secret'), 'CANARY\n');
    giveTo(other, machine.uid);
    machine.git('-C', other, 'add', '-A');
    machine.git('-C', other, 'commit', '-qm', 'secret');
    const secret = machine.git('-C', other, 'rev-parse', 'HEAD:secret').trim();
    const task = await agentTask(
      machine,
      `${ME} echo ${other}/.git/objects >> .git/objects/info/alternates; tree=$(printf '100644 blob ${secret}\\tsecret\\n' | git mktree --missing); c=$(git commit-tree -p HEAD -m steal $tree); git update-ref HEAD $(git commit-tree -p $c -m hide HEAD^{tree}); echo x > x`,
    );
    expect(() => machine.git('cat-file', '-e', secret)).toThrow();
    expect(machine.git('diff', '--name-only', task.base, task.branch)).toBe('x\n');
    expect(machine.git('fsck', '--strict')).not.toMatch(/missing|broken/);
  });

  test('A106 A118: nothing is written through a link, outside the project, or into .git', async () => {
    using machine = createMachine(caller, { files: { 'a.txt': 'a\n', 'real/f.txt': 'f\n' } });
    const outside = place(machine, 'outside');
    symlinkSync('../../../outside', join(machine.project, 'lnk'));
    giveTo(machine.project, machine.uid);
    machine.git('add', '-A');
    machine.git('commit', '-qm', 'a link');
    const task = await agentTask(
      machine,
      `rm lnk; mkdir -p lnk; echo planted > lnk/planted; rm -r real; ln -s ../../../outside real; mkdir -p x; ln -s ../../../../outside x/y; echo z > z`,
    );
    const merged = await machine.ags(['merge', task.id]);
    expect([merged.code, readdirSync(outside)], merged.stderr).toEqual([0, []]);
    // Links that lead outside are left out unless they are named.
    expect(machine.git('show', '--name-status', '--format=')).toBe('D\tlnk\nA\tlnk/planted\nD\treal/f.txt\nA\tz\n');
    expect(readFileSync(join(machine.project, 'lnk/planted'), 'utf8')).toBe('planted\n');
    expect(machine.git('status', '--porcelain')).toBe('');
    // The user puts a link where the agent's next file goes.
    const next = await agentTask(machine, 'mkdir -p way/down; echo planted > way/down/file', { name: 'next' });
    symlinkSync(outside, join(machine.project, 'way'));
    expect((await machine.ags(['merge', next.id])).code).toBe(7);
    expect((await machine.ags(['apply', next.id])).code).toBe(7);
    expect(readdirSync(outside)).toEqual([]);
  });

  test('A107 A109 A110 A111 A113 A114 A115: odd files come out as ordinary files, or not at all', async () => {
    using machine = createMachine(caller, { files: { 'd/keep.txt': 'k\n', 'd/gone.txt': 'g\n', 'a.txt': 'a\n' } });
    const task = await runAgent(
      machine,
      `echo s > suid.txt; chmod 4644 suid.txt; chmod 2755 .; mkfifo pipe; perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un("sock"))'
      echo w > .wh.a.txt; rm -r d; mkdir d; echo n > d/new.txt; echo one > one; ln one two; echo x > '%s%n'`,
    );
    const { error } = await task.bringOut();
    expect(error).toBe(undefined);
    expect(machine.git('ls-tree', '-r', task.branch).replaceAll(/ blob \S+\t/g, ' ')).toBe(
      ['.wh.a.txt', '%s%n', 'a.txt', 'd/new.txt', 'one', 'suid.txt', 'two']
        .toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
        .map((name) => `100644 ${name}\n`)
        .join(''),
    );
    const merged = await machine.ags(['merge', task.id]);
    expect([merged.code, machine.git('status', '--porcelain')], merged.stderr).toEqual([0, '']);
    const { ino: first } = lstatSync(join(machine.project, 'one'));
    expect(lstatSync(join(machine.project, 'two')).ino).not.toBe(first);
    expect(lstatSync(join(machine.project, 'suid.txt')).mode & 0o7777).toBe(0o644);
    // A file over the limit is reported, and nothing is copied.
    const large = join(task.directory, 'run/upper/large');
    writeFileSync(large, '');
    truncateSync(large, 2 ** 40);
    expect((await task.bringOut()).error).toMatchObject({ code: 'capture.refused' });
    rmSync(large);
    expect((await task.bringOut()).result?.files).toBe(8);
  });

  test('A119: files that run later are left out of a merge unless each is named', async () => {
    using machine = createMachine(caller);
    const risky = [
      '.devcontainer/devcontainer.json',
      '.envrc',
      '.github/workflows/ci.yml',
      '.husky/pre-commit',
      '.vscode/tasks.json',
      'AGENTS.md',
      'CLAUDE.md',
      'Makefile',
      'node_modules/.bin/tool',
      'package.json',
      'run',
    ];
    const task = await agentTask(
      machine,
      `for f in ${risky.join(' ')}; do mkdir -p $(dirname $f); echo '{"scripts":{"postinstall":"evil"}}' > $f; done; chmod 755 run; echo plain > plain.txt`,
    );
    const merged = await machine.ags(['merge', task.id, '--json']);
    const said = JSON.parse(merged.stdout) as { files: string[]; risky: string[]; whole: boolean };
    expect([said.files, said.risky.toSorted(), said.whole]).toEqual([['plain.txt'], risky, false]);
    expect(machine.git('show', '--name-only', '--format=')).toBe('plain.txt\n');
    expect((await machine.ags(['merge', task.id, 'Makefile'])).code).toBe(2);
    expect((await machine.ags(['merge', task.id, '--risky', 'Makefile'])).code).toBe(0);
    expect(machine.git('show', '--name-only', '--format=')).toBe('Makefile\n');
  });

  test('A117: the merge base is the commit the task started from, and work in progress stays', async () => {
    using machine = createMachine(caller, { files: { 'a.txt': 'a\n', 'b.txt': 'b\n', 'c.txt': 'c\n' } });
    const task = await agentTask(machine, 'echo agent > a.txt; rm c.txt; echo d > d.txt');
    // The user makes the same change, then reverts it: only the recorded base tells the two apart.
    machine.write('a.txt', 'agent\n');
    machine.git('commit', '-qam', 'the same');
    machine.write('a.txt', 'a\n');
    machine.write('b.txt', 'user\n');
    machine.git('commit', '-qam', 'and back');
    machine.write('untracked.txt', 'u\n');
    machine.write('b.txt', 'in progress\n');
    expect((await machine.ags(['merge', task.id])).code).toBe(0);
    expect(machine.git('show', '--name-status', '--format=')).toBe('M\ta.txt\nD\tc.txt\nA\td.txt\n');
    expect([machine.read('b.txt'), machine.git('status', '--porcelain')]).toEqual([
      'in progress\n',
      ' M b.txt\n?? untracked.txt\n',
    ]);
  });

  test('A157: nothing that one task plants in its git directory reaches another task', async () => {
    using machine = createMachine(caller);
    await agentTask(
      machine,
      `git config core.fsmonitor planted; git config alias.x '!planted'; mkdir -p .git/hooks; echo planted > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit; git update-ref refs/heads/planted HEAD; git stash -q 2>/dev/null; echo planted > .git/info/attributes; echo x > x`,
      { name: 'first' },
    );
    const second = await agentTask(
      machine,
      `grep -rls planted .git > found.txt; git for-each-ref | grep -v refs/heads/ags/ >> found.txt; true`,
      { name: 'second' },
    );
    expect(machine.git('show', `${second.branch}:found.txt`)).toBe(
      `${machine.git('rev-parse', 'main').trim()} commit\trefs/heads/main\n`,
    );
  });

  test('A158: a task with a used name never gets the branch of its predecessor', async () => {
    using machine = createMachine(caller);
    const first = await agentTask(machine, 'echo 1 > one');
    expect((await machine.ags(['rm', first.id, '--yes'])).code).toBe(0);
    const second = await runAgent(machine, 'echo 2 > two');
    // A new task could be given the same name, however unlikely.
    machine.git('branch', '-f', second.branch, first.commit);
    expect((await second.bringOut()).error).toMatchObject({ code: 'project.changed' });
    expect(machine.git('rev-parse', second.branch).trim()).toBe(first.commit);
  });
});
