// test/results/bring-out.test.ts: an agent's work, committed or not, is on its branch of the user's repository when a turn ends.
// needs: sandbox
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentTask, runAgent } from '../agent-run/agent-task.ts';
import { createMachine, giveTo, IS_ROOT, type Machine, ONE, USUAL } from '../harness.ts';

/** Everything in the repository that a sandbox must not change. */
function untouched(machine: Machine): string {
  return execFileSync(
    'sh',
    [
      '-c',
      `cat .git/HEAD .git/config; sha256sum .git/index; find . -path ./.git/objects -prune -o -path './.git/*/ags*' -prune -o -type f -print0 | sort -z | xargs -0 sha256sum; git for-each-ref --format='%(refname) %(objectname)' | grep -v refs/heads/ags/`,
    ],
    {
      cwd: machine.project,
      encoding: 'utf8',
      env: { ...machine.env, GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' },
    },
  );
}

const files = (machine: Machine, branch: string): string[] =>
  machine.git('ls-tree', '-r', '--name-only', branch).trim().split('\n');

describe.each(USUAL)('as %s', (caller) => {
  test('uncommitted work becomes one commit with its author, goal and run', async () => {
    using machine = createMachine(caller);
    machine.git('config', 'user.name', 'Dev Eloper');
    machine.git('config', 'user.email', 'dev@example.test');
    const before = untouched(machine);
    const task = await agentTask(machine, 'echo new > new.txt; echo more >> README.md; rm src/a.txt', {
      goal: 'Fix the\tthing\n\nand more',
    });
    expect(machine.git('log', '-1', '--format=%an <%ae>%n%cn <%ce>%n%P%n%B', task.branch).trim()).toBe(
      [
        'Test Agent <agent@example.test>',
        'Dev Eloper <dev@example.test>',
        task.base,
        'Fix the thing',
        '',
        'Ags-Goal: Fix the thing and more',
        `Ags-Task: ${task.id}`,
        `Ags-Run: ${task.id}/1`,
        'Ags-Agent: Test Agent',
      ].join('\n'),
    );
    expect(machine.git('diff', '--name-status', task.base, task.branch)).toBe(
      'M\tREADME.md\nA\tnew.txt\nD\tsrc/a.txt\n',
    );
    expect(untouched(machine)).toBe(before);
    expect(machine.git('fsck', '--strict')).toBe('');
  });

  test("the agent's commits are kept, and the last one names the goal and the task", async () => {
    using machine = createMachine(caller);
    const task = await agentTask(
      machine,
      `git config user.name A; git config user.email a@b; echo 1 > one; git add one; git commit -qm 'first of mine'; echo 2 > two; git add two; git commit -qm 'second of mine

Signed-off-by: A <a@b>
Ags-Run: forged/7'`,
    );
    expect(machine.git('log', '--format=%s', `${task.base}..${task.branch}`)).toBe('second of mine\nfirst of mine\n');
    expect(machine.git('log', '-1', '--format=%an %b', task.branch)).toBe(
      `A Signed-off-by: A <a@b>\nAgs-Goal: Do the work with care\nAgs-Task: ${task.id}\nAgs-Run: ${task.id}/1\nAgs-Agent: Test Agent\n\n`,
    );
  });

  test('commits and later uncommitted work are both included', async () => {
    using machine = createMachine(caller);
    const task = await agentTask(
      machine,
      `git config user.name A; git config user.email a@b; echo 1 > one; echo x > gone; git add -A; git commit -qm 'mine'; echo 2 >> one; rm gone; echo 3 > three`,
    );
    expect(machine.git('log', '--format=%s', `${task.base}..${task.branch}`)).toBe('Do the work\nmine\n');
    expect(files(machine, task.branch)).toEqual(['README.md', 'one', 'src/a.txt', 'three']);
    expect(machine.git('show', `${task.branch}:one`)).toBe('1\n2\n');
  });

  test.each([
    ['an orphan branch', 'git checkout -q --orphan fresh; git add -A; git commit -qm alone'],
    ['a rewritten history', 'echo 2 >> README.md; git add -A; git commit -q --amend -m rewritten'],
    ['a branch without a commit', 'git checkout -q --orphan fresh'],
    ['no git directory at all', 'rm -rf .git/* 2>/dev/null'],
    ['a broken HEAD', 'echo garbage > .git/HEAD'],
    ['a pipe in place of HEAD', 'rm .git/HEAD; mkfifo .git/HEAD'],
    ['invalid settings', 'echo "[core" > .git/config'],
    ['a soft reset', 'git commit -qam x --allow-empty; git reset -q --soft HEAD~1'],
    [
      'an index with false flags',
      'git update-index --assume-unchanged README.md; git update-index --skip-worktree src/a.txt',
    ],
    ['a directory that became a file', 'rm -rf src; echo file > src'],
    ['a recreated directory', 'rm -rf src; mkdir src; echo b > src/b.txt'],
    ['a directory that became a link', 'rm -rf src; ln -s . src'],
    ['a file that became an empty directory', 'rm README.md; mkdir README.md'],
  ])('after %s the branch has exactly the files', async (_, script) => {
    using machine = createMachine(caller);
    const setup = 'git config user.name A; git config user.email a@b; echo changed > new.txt; ';
    const task = await runAgent(
      machine,
      `${setup}${script}; find . -name .git -prune -o ! -type d ! -name .ags-kept -print | sort > /tmp/list; cp /tmp/list files.txt`,
    );
    const brought = await task.bringOut();
    expect(brought.error).toBe(undefined);
    expect(machine.git('rev-parse', `${task.branch}^`).trim()).toBe(task.base);
    const expected = machine
      .git('show', `${task.branch}:files.txt`)
      .trim()
      .split('\n')
      .map((name) => name.slice(2));
    expect(files(machine, task.branch).toSorted()).toEqual([...expected, 'files.txt'].toSorted());
    expect(machine.git('fsck', '--strict')).not.toMatch(/error|missing/);
  });

  test('scratch files, ignored files and special files are left out and reported', async () => {
    using machine = createMachine(caller, {
      files: { '.gitignore': 'build/\n*.log\n', 'kept.log': 'x\n', 'CLAUDE.md': 'base\n', 'a.txt': 'a\n' },
    });
    machine.git('add', '-f', 'kept.log', 'CLAUDE.md');
    machine.git('commit', '-qm', 'more');
    const task = await agentTask(
      machine,
      `git config user.name A; git config user.email a@b
       mkdir build .agent nested; echo x > build/out; echo x > some.log; echo y >> kept.log; echo mine >> CLAUDE.md; echo s > .agent/notes; echo t > AGENT.md
       mkfifo pipe; git init -q nested; echo inner > nested/file; printf '%s' x > "$(printf 'bad\\377name')"; echo real > real.txt
       git add -f AGENT.md; git commit -qm 'with scratch'`,
      { scratch: ['.agent/', 'AGENT.md', 'CLAUDE.md'] },
    );
    expect(files(machine, task.branch)).toEqual([
      '.gitignore',
      'CLAUDE.md',
      'a.txt',
      'kept.log',
      'nested/file',
      'real.txt',
    ]);
    expect(machine.git('show', `${task.branch}:kept.log`)).toBe('x\ny\n');
    expect(machine.git('show', `${task.branch}:CLAUDE.md`)).toBe('base\nmine\n');
    expect(machine.git('log', '--format=%s', `${task.base}..${task.branch}`)).toBe('Do the work\n');
    const { refused } = JSON.parse(readFileSync(join(task.directory, 'capture.json'), 'utf8')) as {
      refused: { path: string }[];
    };
    expect(refused.map(({ path }) => path).toSorted()).toEqual(
      ['.agent/notes', '.ags-kept', 'AGENT.md', 'bad\\xffname', 'nested/.git', 'pipe'].toSorted(),
    );
  });

  test('no change makes no branch, the same work no new commit, and more work moves the branch', async () => {
    using machine = createMachine(caller);
    const nothing = await runAgent(machine, 'true', { name: 'idle' });
    expect(await nothing.bringOut()).toEqual({ result: null });
    expect(machine.git('branch', '--list', 'ags/*')).toBe('');
    const task = await runAgent(machine, 'echo 1 > one; printf "a\\nb\\n" > two; sed -i 1d src/a.txt');
    const first = await task.bringOut();
    expect(first.result).toMatchObject({ files: 3, added: 3, removed: 1 });
    expect(await task.bringOut()).toEqual(first);
    const upper = join(task.directory, 'run/upper');
    writeFileSync(join(upper, 'three'), '3\n');
    const second = await task.bringOut();
    expect(second.result).toMatchObject({ files: 4 });
    expect(machine.git('rev-parse', task.branch).trim()).toBe(second.result?.commit);
  });

  test('a branch that the user changed or checked out is left alone', async () => {
    using machine = createMachine(caller);
    const task = await runAgent(machine, 'echo 1 > one');
    machine.git('branch', task.branch);
    expect((await task.bringOut()).error).toMatchObject({ code: 'project.changed' });
    expect(machine.git('rev-parse', task.branch).trim()).toBe(task.base);
    machine.git('branch', '-m', task.branch, 'mine');
    const brought = await task.bringOut();
    machine.git('switch', '-q', task.branch);
    const before = untouched(machine);
    rmSync(join(task.directory, 'run/upper/one'));
    expect((await task.bringOut()).error).toMatchObject({
      code: 'project.changed',
      message: expect.stringContaining('checked out') as string,
    });
    expect(machine.git('rev-parse', task.branch).trim()).toBe(brought.result?.commit);
    expect(untouched(machine)).toBe(before);
    machine.git('switch', '-q', 'main');
    expect(await task.bringOut()).toEqual({ result: null });
    expect(machine.git('diff', '--stat', 'main', task.branch)).toBe('');
  });

  test('an unwritable repository is reported, and the work comes out once it is writable', async () => {
    using machine = createMachine(caller);
    const task = await runAgent(machine, 'echo 1 > one');
    mkdirSync(join(machine.project, '.git/refs/heads/ags'));
    writeFileSync(join(machine.project, `.git/refs/heads/ags/${task.id}.lock`), '');
    giveTo(join(machine.project, '.git'), machine.uid);
    expect((await task.bringOut()).error).toMatchObject({ code: 'task.busy' });
    rmSync(join(machine.project, '.git/refs/heads/ags'), { recursive: true });
    machine.git('branch', 'ags');
    expect((await task.bringOut()).error).toMatchObject({
      code: 'project.unsuitable',
      message: `The branch ags is in the way of ${task.branch}.`,
    });
    machine.git('branch', '-D', 'ags');
    if (caller === 'user') {
      execFileSync('chmod', ['-R', 'a-w', join(machine.project, '.git')]);
      expect((await task.bringOut()).error).toMatchObject({ code: 'project.unsuitable' });
      execFileSync('chmod', ['-R', 'u+w', join(machine.project, '.git')]);
    }
    expect(existsSync(join(task.directory, 'capture.json'))).toBe(true);
    expect((await task.bringOut()).result).toMatchObject({ files: 1 });
  });

  test('submodules stay unchanged', async () => {
    using machine = createMachine(caller);
    const sub = join(machine.home, 'code/sub');
    machine.git('init', '-q', sub);
    machine.git('-C', sub, 'commit', '-q', '--allow-empty', '-m', 'x');
    machine.git('-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', sub, 'lib');
    machine.git('commit', '-qm', 'with a submodule');
    const task = await agentTask(
      machine,
      `git config user.name A; git config user.email a@b; cd lib; git config user.name A; git config user.email a@b; echo x > inside; git add -A; git commit -qm inside; cd ..; echo y > y; git add -A; git commit -qm 'moves the submodule'`,
    );
    expect(machine.git('diff', '--name-only', task.base, task.branch)).toBe('y\n');
    expect(readFileSync(join(task.directory, 'capture.json'), 'utf8')).toContain('"path":"lib"');
  });

  test('work comes out of a linked worktree, a shallow clone and a sha256 repository', async () => {
    using machine = createMachine(caller);
    machine.git('worktree', 'add', '-q', '-b', 'topic', join(machine.home, 'code/tree'));
    giveTo(join(machine.home, 'code'), machine.uid);
    const linked = await agentTask(machine, 'echo 1 > one', { cwd: join(machine.home, 'code/tree') });
    expect(machine.git('diff', '--name-only', linked.base, linked.branch)).toBe('one\n');
    for (const n of ['2', '3']) {
      machine.write('n', n);
      machine.git('add', '-A');
      machine.git('commit', '-qm', n);
    }
    const shallow = join(machine.home, 'code/shallow');
    machine.git('clone', '-q', '--depth', '1', `file://${machine.project}`, shallow);
    const cut = await agentTask(
      machine,
      'git config user.name A; git config user.email a@b; echo 1 > one; git add -A; git commit -qm mine; echo 2 > two',
      { cwd: shallow },
    );
    expect(machine.git('-C', shallow, 'log', '--format=%s', cut.branch)).toBe('Do the work\nmine\n3\n');
    using modern = createMachine(caller, { git: false });
    modern.git('init', '-q', '--object-format=sha256', '-b', 'main');
    modern.git('add', '-A');
    modern.git('commit', '-qm', 'first');
    const long = await agentTask(modern, 'echo 1 > one; rm README.md');
    expect(long.commit).toHaveLength(64);
    expect(modern.git('diff', '--name-status', long.base, long.branch)).toBe('D\tREADME.md\nA\tone\n');
    expect(modern.git('fsck', '--strict')).toBe('');
  });

  test('work comes out of a copied project', async () => {
    using machine = createMachine(caller);
    mkdirSync(join(machine.home, '.config/ags'), { recursive: true });
    writeFileSync(join(machine.home, '.config/ags/config.yaml'), 'workspace: copy\n');
    giveTo(join(machine.home, '.config'), machine.uid);
    const task = await agentTask(machine, 'echo 1 > one; rm README.md; echo x >> src/a.txt');
    expect(machine.git('diff', '--name-status', task.base, task.branch)).toBe('D\tREADME.md\nA\tone\nM\tsrc/a.txt\n');
  });

  test('in a copy, pipes in place of ignore rules block nothing, and an endless file is refused', async () => {
    using machine = createMachine(caller);
    mkdirSync(join(machine.home, '.config/ags'), { recursive: true });
    writeFileSync(join(machine.home, '.config/ags/config.yaml'), 'workspace: copy\n');
    giveTo(join(machine.home, '.config'), machine.uid);
    const task = await runAgent(
      machine,
      'mkdir -p piped; echo 1 > piped/one; mkfifo .gitattributes piped/.gitignore; mkdir closed; chmod 000 closed',
    );
    const large = join(task.directory, 'run/copy/large');
    writeFileSync(large, '');
    truncateSync(large, 2 ** 40);
    expect((await task.bringOut()).error).toMatchObject({
      code: 'capture.refused',
      message: expect.stringMatching(/^large is /) as string,
    });
    rmSync(large);
    const { error } = await task.bringOut();
    expect([error, machine.git('diff', '--name-status', task.base, task.branch)]).toEqual([
      undefined,
      'A\tpiped/one\n',
    ]);
  });

  test('hidden secrets and unreadable files do not count as deleted', async () => {
    using machine = createMachine(caller);
    const task = await agentTask(machine, 'chmod 000 src; echo 1 > one');
    expect(files(machine, task.branch)).toEqual(['README.md', 'one', 'src/a.txt']);
  });
});

test.runIf(IS_ROOT)("in another user's repository root leaves no file of its own", async () => {
  using machine = createMachine('root');
  giveTo(join(machine.home, 'code'), 42_424);
  appendFileSync(join(machine.home, '.gitconfig'), '[safe]\n\tdirectory = *\n');
  chmodSync(machine.home, 0o755);
  const task = await agentTask(machine, 'echo 1 > one; for i in $(seq 1 150); do echo $i > f$i; done');
  const foreign = execFileSync('find', [machine.project, '!', '-user', '42424'], { encoding: 'utf8' });
  expect(foreign).toBe('');
  expect(task.commit).toHaveLength(40);
});

test("reading an agent's commits is repeated when the program is killed, and the commits are kept", async () => {
  // Reading takes milliseconds, so a busy machine may miss it; then the test watches the next task.
  for (let tries = 0; tries < 20; tries += 1) {
    using machine = createMachine(ONE);
    const task = await runAgent(
      machine,
      'git config user.name A; git config user.email a@b; echo 1 > one.txt; git add -A; git commit -qm One; echo 2 > two.txt; git add -A; git commit -qm Two',
    );
    let killed = 0;
    const killer = setInterval(() => {
      const reader = killed === 0 ? readers()[0] : undefined;
      if (reader === undefined) return;
      process.kill(reader, 'SIGKILL');
      killed += 1;
    }, 1);
    const brought = await task.bringOut().finally(() => clearInterval(killer));
    expect(brought.error?.message).toBe(undefined);
    expect(machine.git('log', '--format=%s', `${task.base}..${task.branch}`)).toBe('Two\nOne\n');
    if (killed > 0) return;
  }
  expect.fail('no reading process was seen');
});

/** Processes of this test that read an agent's last commit, found by the start of their arguments. */
function readers(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const [, how, script = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        return how === '-c' && script.startsWith('\numask 077\nbase=$1') && isOurs(pid);
      } catch {
        return false;
      }
    });
}

function isOurs(pid: number): boolean {
  const parent = Number(/^PPid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  return parent === process.pid || (parent > 1 && isOurs(parent));
}
