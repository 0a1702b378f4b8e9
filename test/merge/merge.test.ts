// test/merge/merge.test.ts: merges an agent's branch into the user's, and undoes it.
// needs: sandbox
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentTask, type AgentTask } from '../agent-run/agent-task.ts';
import { createAgentMachine } from '../agent-run/place.ts';
import { createMachine, giveTo, IS_ROOT, type Machine, USUAL } from '../harness.ts';
import { text, tip } from './checks/place.ts';

const files = { 'a.txt': text(), 'b.txt': 'b\n', 'dir/c.txt': 'c\n', 'package.json': '{"scripts":{}}\n' };
const WORK = `sed -i 's/line 11/AGENT/' a.txt; rm dir/c.txt; mkdir new; echo n > new/n.txt; echo '{"scripts":{"postinstall":"evil"}}' > package.json`;

const stateOf = (task: AgentTask): string =>
  (JSON.parse(readFileSync(join(task.directory, 'run.json'), 'utf8')) as { state: string }).state;
const clean = (machine: Machine): void => {
  expect(machine.git('status', '--porcelain')).toBe('');
  expect(machine.git('fsck', '--strict')).not.toMatch(/error|missing|broken/);
};

const TRUST = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' };

const IN_THE_WAY: readonly (readonly [string, (machine: Machine) => unknown])[] = [
  ['an edited file', (m) => m.write('a.txt', text({ 1: 'MINE' }))],
  ['an edited and staged file', (m) => (m.write('a.txt', text({ 1: 'MINE' })), m.git('add', 'a.txt'))],
  [
    'a file staged and then restored',
    (m) => (m.write('a.txt', text({ 1: 'MINE' })), m.git('add', 'a.txt'), m.write('a.txt', text())),
  ],
  ['a new file of the same name', (m) => m.write('new/n.txt', 'mine\n')],
  ['a deleted file', (m) => rmSync(join(m.project, 'a.txt'))],
  ['a file in place of a directory', (m) => m.write('new', 'mine\n')],
  ['a link in place of a directory', (m) => symlinkSync('/tmp', join(m.project, 'new'))],
  [
    'a link in place of a file',
    (m) => (rmSync(join(m.project, 'a.txt')), symlinkSync('b.txt', join(m.project, 'a.txt'))),
  ],
  ['a lock on the index', (m) => m.write('.git/index.lock', '')],
  ['a lock on the branch', (m) => m.write('.git/refs/heads/main.lock', '')],
  ['an unfinished merge', (m) => m.write('.git/MERGE_HEAD', '')],
  [
    'a file with a git filter',
    (m) => (m.git('config', 'filter.x.clean', 'cat'), m.write('.gitattributes', '*.txt filter=x\n')),
  ],
];

describe.each(USUAL)('as %s', (caller) => {
  test('after merge and undo the checked-out files follow, and risky files wait to be named', async () => {
    using machine = createMachine(caller, { files });
    machine.git('config', 'user.name', 'Dev');
    machine.git('config', 'user.email', 'dev@example.test');
    const task = await agentTask(machine, WORK, { goal: 'Make it better\n\nIn every way.' });
    const dry = await machine.ags(['merge', task.id, '--dry-run']);
    expect([dry.code, tip(machine), stateOf(task)]).toEqual([0, task.base, 'ready']);
    const merged = await machine.ags(['merge', task.id]);
    expect(merged.code, merged.stderr).toBe(0);
    expect(merged.stderr).toMatch(/Merged 3 files .* into main[\s\S]*package\.json/);
    expect(machine.git('log', '-1', '--format=%an|%cn|%P|%B').trim()).toBe(
      `Dev|Dev|${task.base}|Make it better\n\nIn every way.\n\nAgs-Task: ${task.id}\nAgs-Run: ${task.id}/1\nAgs-Agent: Test Agent\nCo-authored-by: Test Agent <agent@example.test>`,
    );
    expect(machine.git('show', '--name-status', '--format=')).toBe('M\ta.txt\nD\tdir/c.txt\nA\tnew/n.txt\n');
    expect([machine.read('a.txt'), machine.has('dir'), machine.read('new/n.txt')]).toEqual([
      text({ 11: 'AGENT' }),
      false,
      'n\n',
    ]);
    clean(machine);
    expect(stateOf(task)).toBe('ready');
    const none = await machine.ags(['merge', task.id]);
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('Nothing was merged.')]);
    const named = await machine.ags(['merge', task.id, '--risky', 'package.json', '-m', 'The rest']);
    expect(named.code, named.stderr).toBe(0);
    expect(machine.git('show', '--name-only', '--format=%s')).toBe('The rest\n\npackage.json\n');
    clean(machine);
    expect(stateOf(task)).toBe('merged');
    const back = await machine.ags(['undo']);
    expect(back.code, back.stderr).toBe(0);
    expect([stateOf(task), machine.read('package.json')]).toEqual(['ready', '{"scripts":{}}\n']);
    clean(machine);
    expect((await machine.ags(['undo', task.id])).code).toBe(0);
    expect([tip(machine), machine.read('dir/c.txt'), machine.has('new')]).toEqual([task.base, 'c\n', false]);
    clean(machine);
    expect((await machine.ags(['undo'])).code).toBe(3);
    expect(machine.git('rev-parse', task.branch).trim()).toBe(task.commit);
  });

  test('an undo after a cleanup brings the work back to a branch, and says so', async () => {
    using machine = createMachine(caller, { files });
    const task = await agentTask(machine, WORK);
    expect((await machine.ags(['merge', task.id, '--risky', 'package.json', '--yes'])).code).toBe(0);
    const merged = tip(machine);
    // A cleanup of another place removes nothing here.
    expect((await machine.ags(['cleanup', '--project', '/nowhere'])).stderr).toContain('no task belongs to it');
    const cleaned = await machine.ags(['cleanup', '--project', '.']);
    expect(cleaned.stdout).toMatch(/task +\S+ +merged[\s\S]*1 item in \S+/);
    expect(machine.tasks()).toEqual([]);
    expect(machine.git('branch', '--list', 'ags/*')).toBe('');
    const undone = await machine.ags(['undo', task.id]);
    expect(undone, undone.stderr).toMatchObject({ code: 0 });
    expect(undone.stderr).toContain(`Its work is on ags/${task.id} again.`);
    expect([tip(machine), machine.git('rev-parse', `ags/${task.id}`).trim()]).toEqual([task.base, merged]);
    clean(machine);
  });

  test('a merge onto a moved branch keeps both sides, and undoing it keeps later commits', async () => {
    using machine = createMachine(caller, { files });
    const task = await agentTask(machine, WORK);
    machine.write('a.txt', text({ 2: 'USER' }));
    machine.git('commit', '-qam', 'mine');
    expect((await machine.ags(['merge', task.id, 'a.txt', 'new'])).code).toBe(0);
    expect(machine.read('a.txt')).toBe(text({ 2: 'USER', 11: 'AGENT' }));
    expect([machine.has('dir/c.txt'), machine.has('new/n.txt')]).toEqual([true, true]);
    clean(machine);
    machine.write('a.txt', text({ 2: 'USER', 5: 'LATER', 11: 'AGENT' }));
    machine.git('commit', '-qam', 'later');
    const undone = await machine.ags(['undo']);
    expect(undone.code, undone.stderr).toBe(0);
    expect(machine.read('a.txt')).toBe(text({ 2: 'USER', 5: 'LATER' }));
    expect(machine.git('log', '-1', '--format=%s').trim()).toBe(`Undo the merge of ${task.id}`);
    clean(machine);
  });

  test('conflicts are named, and nothing changes', async () => {
    using machine = createMachine(caller, { files });
    const task = await agentTask(machine, WORK);
    machine.write('a.txt', text({ 11: 'USER' }));
    machine.git('commit', '-qam', 'mine');
    const before = tip(machine);
    const merge = await machine.ags(['merge', task.id]);
    expect([merge.code, tip(machine)]).toEqual([7, before]);
    expect(merge.stderr).toMatch(/^ {2}a\.txt$/m);
    expect((await machine.ags(['merge', task.id, 'new/n.txt'])).code).toBe(0);
    machine.write('new/n.txt', 'else\n');
    machine.git('commit', '-qam', 'changed again');
    expect((await machine.ags(['undo'])).code).toBe(7);
    clean(machine);
  });

  test('an obstacle stops the merge, and nothing moves or is lost', async () => {
    using machine = createMachine(caller, { files });
    const task = await agentTask(machine, WORK);
    machine.git('branch', 'other', task.base);
    const look = (): string =>
      execFileSync(
        'sh',
        [
          '-c',
          `find . -path ./.git/objects -prune -o -path ./.git/index -prune -o -printf '%p %y %l %m\\n' | sort; cat a.txt b.txt dir/c.txt new new/n.txt 2>&1; cat .git/refs/heads/main; git ls-files -s`,
        ],
        { cwd: machine.project, encoding: 'utf8', env: { ...machine.env, GIT_OPTIONAL_LOCKS: '0', ...TRUST } },
      );
    for (const [what, change] of IN_THE_WAY) {
      change(machine);
      giveTo(machine.project, machine.uid);
      const before = look();
      const merge = await machine.ags(['merge', task.id]);
      expect([what, merge.code, merge.stderr.includes('bug')], merge.stderr).toEqual([what, 7, false]);
      expect([what, look()]).toEqual([what, before]);
      for (const name of ['index.lock', 'refs/heads/main.lock', 'MERGE_HEAD'])
        rmSync(join(machine.project, '.git', name), { force: true });
      for (const name of ['new', '.gitattributes'])
        rmSync(join(machine.project, name), { force: true, recursive: true });
      machine.git('reset', '-q', '--hard');
    }
    machine.write('a.txt', 'mine\n');
    // Another target has no obstacle.
    expect((await machine.ags(['merge', task.id, '--into', 'other'])).code).toBe(0);
    expect(machine.git('diff', '--name-only', 'main', 'other')).toBe('a.txt\ndir/c.txt\nnew/n.txt\n');
    expect([tip(machine), machine.read('a.txt')]).toEqual([task.base, 'mine\n']);
  }, 180_000);

  test('unrelated uncommitted work stays unchanged', async () => {
    using machine = createMachine(caller, { files });
    const task = await agentTask(machine, WORK);
    machine.write('b.txt', 'staged\n');
    machine.git('add', 'b.txt');
    machine.write('b.txt', 'edited\n');
    machine.write('untracked.txt', 'u\n');
    expect((await machine.ags(['merge', task.id])).code).toBe(0);
    expect(machine.git('status', '--porcelain')).toBe('MM b.txt\n?? untracked.txt\n');
    expect(machine.git('show', ':b.txt')).toBe('staged\n');
    expect((await machine.ags(['undo'])).code).toBe(0);
    expect(machine.git('status', '--porcelain')).toBe('MM b.txt\n?? untracked.txt\n');
  });

  test('--keep-commits fast-forwards, or merges if the branch has moved', async () => {
    using machine = createMachine(caller, { files });
    const script = `git config user.name A; git config user.email a@b; echo 1 > one; git add one; git commit -qm one; echo 2 > two`;
    const task = await agentTask(machine, script);
    machine.git('branch', 'second');
    expect((await machine.ags(['merge', task.id, '--keep-commits'])).code).toBe(0);
    expect([tip(machine), machine.git('log', '--format=%s', '-3')]).toEqual([task.commit, 'Do the work\none\nfirst\n']);
    clean(machine);
    machine.git('switch', '-q', 'second');
    machine.write('b.txt', 'x\n');
    machine.git('commit', '-qam', 'meanwhile');
    expect((await machine.ags(['merge', task.id, '--keep-commits', '--into', 'second'])).code).toBe(0);
    expect(machine.git('log', '-1', '--format=%P').trim().split(' ')).toEqual([
      machine.git('rev-parse', 'second~1').trim(),
      task.commit,
    ]);
    clean(machine);
    expect((await machine.ags(['undo'])).code).toBe(0);
    clean(machine);
  });

  test('a branch checked out in a linked worktree is updated there', async () => {
    using machine = createMachine(caller, { files });
    const tree = join(machine.home, 'code/tree');
    machine.git('worktree', 'add', '-q', '-b', 'topic', tree);
    giveTo(tree, machine.uid);
    const task = await agentTask(machine, WORK);
    expect((await machine.ags(['merge', task.id, '--into', 'topic'])).code).toBe(0);
    expect(readFileSync(join(tree, 'new/n.txt'), 'utf8')).toBe('n\n');
    expect(machine.git('-C', tree, 'status', '--porcelain')).toBe('');
    clean(machine);
    writeFileSync(join(tree, 'a.txt'), 'mine');
    expect((await machine.ags(['undo'])).code).toBe(7);
    expect(readFileSync(join(tree, 'a.txt'), 'utf8')).toBe('mine');
  });

  test('apply writes the files into the work tree, uncommitted, all or none', async () => {
    using machine = createMachine(caller, { files });
    const task = await agentTask(machine, WORK);
    machine.write('a.txt', text({ 11: 'USER' }));
    const conflict = await machine.ags(['apply', task.id]);
    expect([conflict.code, machine.has('new'), machine.read('a.txt')]).toEqual([7, false, text({ 11: 'USER' })]);
    machine.write('a.txt', text({ 2: 'USER' }));
    const applied = await machine.ags(['apply', task.id]);
    expect(applied.code, applied.stderr).toBe(0);
    expect(machine.git('status', '--porcelain')).toBe(' M a.txt\n D dir/c.txt\n?? new/\n');
    expect(machine.read('a.txt')).toBe(text({ 2: 'USER', 11: 'AGENT' }));
    expect([tip(machine), stateOf(task)]).toEqual([task.base, 'ready']);
    expect((await machine.ags(['apply', task.id, 'package.json'])).code).toBe(2);
    expect((await machine.ags(['apply', task.id, '--risky', 'package.json'])).code).toBe(0);
    expect(stateOf(task)).toBe('merged');
    expect((await machine.ags(['diff', task.id, '--name-only'])).stdout.trim().split('\n').toSorted()).toEqual([
      'a.txt',
      'dir/c.txt',
      'new/n.txt',
      'package.json',
    ]);
    machine.git('checkout', '-q', 'a.txt');
    // A file that already has the new content is no obstacle.
    machine.write('a.txt', text({ 11: 'AGENT' }));
    expect((await machine.ags(['merge', task.id])).code).toBe(0);
    expect(machine.git('status', '--porcelain')).toBe(' M package.json\n');
  });

  test("a review of an agent's task skips changes that the user made too, and keeps the task", async () => {
    using machine = createMachine(caller, { files });
    const task = await agentTask(machine, WORK);
    machine.write('new/n.txt', 'n\n');
    machine.write('b.txt', 'mine\n');
    const review = await machine.ags(['review', task.id, '--json']);
    expect(
      (JSON.parse(review.stdout) as { changes: { path: string; conflict: string }[] }).changes.map(
        ({ path, conflict }) => [path, conflict],
      ),
    ).toEqual([
      ['package.json', 'none'],
      ['a.txt', 'none'],
      ['dir/c.txt', 'none'],
    ]);
    expect((await machine.ags(['review', task.id, '--accept-all', '--risky', 'package.json'])).code).toBe(0);
    expect([machine.tasks(), stateOf(task)]).toEqual([[task.id], 'merged']);
  });

  test('concurrent merges run in sequence, and both are on the branch', async () => {
    using machine = createMachine(caller, { files });
    const one = await agentTask(machine, 'echo 1 > one', { name: 'one' });
    const two = await agentTask(machine, 'echo 2 > two', { name: 'two' });
    const both = await Promise.all([machine.ags(['merge', one.id]), machine.ags(['merge', two.id])]);
    expect(both.map(({ code, stderr }) => [code, stderr.includes('bug')])).toEqual([
      [0, false],
      [0, false],
    ]);
    expect([machine.read('one'), machine.read('two')]).toEqual(['1\n', '2\n']);
    clean(machine);
  });
});

test.runIf(IS_ROOT)("a merge by root in another user's repository leaves no file of root", async () => {
  using machine = createMachine('root', { files });
  giveTo(join(machine.home, 'code'), 42_424);
  writeFileSync(join(machine.home, '.gitconfig'), '[safe]\n\tdirectory = *\n');
  const task = await agentTask(machine, WORK);
  expect((await machine.ags(['merge', task.id])).code).toBe(0);
  expect(execFileSync('find', [machine.project, '!', '-user', '42424'], { encoding: 'utf8' })).toBe('');
  expect(readdirSync(machine.project).toSorted()).toEqual(['.git', 'a.txt', 'b.txt', 'new', 'package.json']);
});

test('a merge of a task without changes says so, and is no success', async () => {
  using machine = createAgentMachine(USUAL[0] ?? 'user');
  await machine.runDemo('nothing', 'say: hi');
  const merged = await machine.ags(['merge', 'nothing', '-y']);
  expect([merged.code, merged.stderr]).toEqual([1, 'nothing has no changes; nothing was merged.\n']);
});
