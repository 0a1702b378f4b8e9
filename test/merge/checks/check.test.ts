// test/merge/checks/check.test.ts: `ags check` runs the project's commands in a clean sandbox over exactly the tree of a merge.
// needs: sandbox
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentTask } from '../../agent-run/agent-task.ts';
import { until } from '../../exec/given.ts';
import { USUAL } from '../../harness.ts';
import { begin, fileOf, processes, project, text, tip, unfinished } from './place.ts';

describe.each(USUAL)('as %s', (caller) => {
  test("checks see the merged branch with the user's newer commits, and change nothing of the user", async () => {
    using machine = project(
      caller,
      `checks:\n  - cat a.txt b.txt new/n.txt; ls; ls dir || true\n  - {name: git, run: 'git status --porcelain; git log --format=%s -2; git branch --show-current; git fsck'}\n`,
    );
    const task = await agentTask(
      machine,
      `sed -i 's/line 11/AGENT/' a.txt; rm dir/c.txt; mkdir new; echo n > new/n.txt`,
      { goal: 'The goal' },
    );
    machine.write('a.txt', text({ 2: 'USER' }));
    machine.git('commit', '-qam', 'newer');
    machine.write('b.txt', 'not committed\n');
    const before = [tip(machine), machine.git('status', '--porcelain'), machine.git('for-each-ref')];
    const done = await machine.ags(['check', task.id]);
    expect(done.code, done.stdout + done.stderr).toBe(0);
    expect(done.stdout).toContain(`${text({ 2: 'USER', 11: 'AGENT' })}b\nn\na.txt\nags.yaml\nb.txt\nnew\n`);
    expect(done.stdout).toContain('\nThe goal\nnewer\nmain\n');
    expect(done.stdout).toMatch(/\npassed +cat a\.txt.* +exit 0 +\d+\.\ds\npassed +git +exit 0 +\d/);
    expect([tip(machine), machine.git('status', '--porcelain'), machine.git('for-each-ref')]).toEqual(before);
    const file = fileOf(machine, task.id);
    expect(file).toMatchObject({
      state: 'passed',
      ref: 'refs/heads/main',
      from: tip(machine),
      files: 3,
      setup: 'none',
      layers: [],
    });
    expect(unfinished(machine)).toEqual([]);
    // The merge uses exactly the checked tree.
    machine.write('b.txt', 'b\n');
    expect((await machine.ags(['merge', task.id])).code).toBe(0);
    expect(machine.git('rev-parse', 'HEAD^{tree}').trim()).toBe(file.tree);
  });

  test('a failing check reports its line and code, and all checks run, each in its own workspace', async () => {
    using machine = project(
      caller,
      String.raw`checks: ['echo mark > left; echo fine', 'ls left || printf "all is well\n2 errors: \033]0;x\007in a.txt\nbye\n"; exit 3', 'sh -c "kill -9 \$\$"']` +
        '\n',
    );
    const task = await agentTask(machine, 'echo n > n.txt');
    const done = await machine.ags(['check', task.id]);
    expect(done.code, done.stdout + done.stderr).toBe(6);
    expect(done.stdout).toMatch(
      /\npassed +echo mark.* exit 0 .*\nfailed +ls left.* exit 3 .*\nfailed +sh -c.* exit 137 /,
    );
    expect(done.stdout).not.toContain('\u001b');
    expect(done.stderr).toMatch(/ags: 2 of 3 checks failed\. Output: .*\/checks\/1\.log\n/);
    const file = fileOf(machine, task.id);
    expect(file.state).toBe('failed');
    expect(file.checks[1]).toMatchObject({ state: 'failed', exitCode: 3 });
    expect(file.checks[1]?.line).toMatch(/No such file|2 errors: /);
    const log = readFileSync(join(machine.stateDir, 'tasks', task.id, 'checks/1.log'), 'utf8');
    expect(log).toMatch(/all is well\n2 errors: .*in a\.txt\nbye\n/);
    const list = await machine.ags(['list']);
    expect(list.stdout).toContain('checks failed');
    const show = await machine.ags(['show', task.id]);
    expect(show.stdout).toMatch(/checks +failed: ls left/);
    const json = await machine.ags(['check', task.id, '--json', '--run', 'false']);
    expect(json.code).toBe(6);
    expect(JSON.parse(json.stdout)).toMatchObject({
      task: task.id,
      state: 'failed',
      checks: [{ name: 'false', exitCode: 1 }],
    });
  });

  test('checks run on the selection: a part may pass where the whole fails, and counts for that part only', async () => {
    using machine = project(caller, 'checks: ["! grep -r BROKEN --include=*.txt ."]\n');
    const task = await agentTask(machine, 'echo fine > one.txt; echo BROKEN > two.txt');
    expect((await machine.ags(['check', task.id])).code).toBe(6);
    expect((await machine.ags(['check', task.id, 'one.txt'])).code).toBe(0);
    const { tree } = fileOf(machine, task.id);
    const said = async (...paths: string[]): Promise<string> =>
      (await machine.ags(['merge', task.id, ...paths, '--dry-run'])).stderr;
    expect(await said('one.txt')).toMatch(/\nchecks: passed \d+s ago\n/);
    expect(await said()).toContain('\nchecks: not run for this selection\n');
    const whole = await machine.ags(['merge', task.id, '--check']);
    expect(whole.code, whole.stderr).toBe(6);
    expect(whole.stderr).toContain('Nothing was merged.\n');
    expect([tip(machine), machine.has('one.txt')]).toEqual([task.base, false]);
    const part = await machine.ags(['merge', task.id, 'one.txt', '--check']);
    expect(part.code, part.stderr).toBe(0);
    expect(machine.git('rev-parse', 'HEAD^{tree}').trim()).toBe(tree);
  });

  test('merge.check requires passed checks for exactly the merged tree', async () => {
    using machine = project(caller, 'checks: ["! grep -q BROKEN two.txt"]\nmerge: {check: true}\n');
    const task = await agentTask(machine, 'echo fine > one.txt; echo BROKEN > two.txt');
    expect((await machine.ags(['merge', task.id])).code).toBe(6);
    expect(tip(machine)).toBe(task.base);
    // Other commands passed, but merge.check requires its own.
    expect((await machine.ags(['check', task.id, '--run', 'true'])).code).toBe(0);
    expect((await machine.ags(['merge', task.id])).code).toBe(6);
    expect(tip(machine)).toBe(task.base);
    const passed = await machine.ags(['check', task.id, 'one.txt']);
    expect(passed.code, passed.stdout + passed.stderr).toBe(0);
    const again = await machine.ags(['merge', task.id, 'one.txt']);
    expect([again.code, again.stdout]).toEqual([0, '']);
  });

  test("conflicts exit with 7, and suggestions come from the branch's files, not the agent's", async () => {
    using machine = project(caller, '', {
      'package.json': '{"scripts":{"test":"x","lint":"y","build":"z"}}\n',
      Makefile: 'all:\n\ttrue\ntest: all\n\ttrue\n',
    });
    const task = await agentTask(
      machine,
      `sed -i 's/line 11/AGENT/' a.txt; echo '{"scripts":{"test":"x","typecheck":"evil"}}' > package.json; touch go.mod`,
    );
    const none = await machine.ags(['check', task.id]);
    expect(none.code).toBe(2);
    expect(none.stderr).toBe(
      `ags: There are no checks for this project yet.\n     Suggested, for ags.yaml:\n     checks:\n       - npm test\n       - npm run lint\n       - make test\n     Or once: --run 'npm test'\n`,
    );
    machine.write('a.txt', text({ 11: 'USER' }));
    machine.git('commit', '-qam', 'mine');
    const conflict = await machine.ags(['check', task.id, '--run', 'true']);
    expect(conflict.code).toBe(7);
    expect(conflict.stderr).toMatch(/^ {2}a\.txt$/m);
    expect(existsSync(join(machine.stateDir, 'tasks', task.id, 'checks.json'))).toBe(false);
  });

  test('a failed check says why node_modules is not there, if the project has no setup', async () => {
    using machine = project(caller, 'checks: [test -d node_modules]\n', {
      'package.json': '{"dependencies":{"left-pad":"1.3.0"}}\n',
      'package-lock.json': '{}\n',
    });
    const task = await agentTask(machine, 'echo n > n.txt');
    const failed = await machine.ags(['check', task.id]);
    expect(failed.code).toBe(6);
    expect(failed.stderr).toContain(
      'This project has no "setup", so node_modules was not there. For ags.yaml:\nsetup:\n  - npm ci\n',
    );
    expect((await machine.ags(['check', task.id, '--run', 'true'])).stderr).not.toContain('setup');
    machine.write('ags.yaml', 'checks: [exit 1]\nsetup: [mkdir node_modules]\n');
    const own = await machine.ags(['check', task.id]);
    expect([own.code, own.stderr.includes('no "setup"')]).toEqual([6, false]);
  });

  test('all checks share one time limit, and those after it do not run', async () => {
    using machine = project(
      caller,
      `checks: {run: ['echo begun; sleep 6021.${process.pid}', 'echo second'], timeout: 2s}\n`,
    );
    const task = await agentTask(machine, 'echo n > n.txt');
    const done = await machine.ags(['check', task.id]);
    expect(done.code, done.stdout + done.stderr).toBe(6);
    expect(done.stderr).toContain('2 of 2 checks failed');
    const { checks } = fileOf(machine, task.id);
    expect(checks[0]).toMatchObject({
      state: 'failed',
      why: expect.stringContaining('(checks.timeout)'),
      tail: ['begun'],
    });
    expect(checks[1]).toMatchObject({
      state: 'failed',
      startedAtMs: null,
      why: expect.stringContaining('checks.timeout'),
    });
    expect(processes()).not.toContain(`sleep 6021.${process.pid}`);
  });

  test('Ctrl-C ends checks without leftovers, and a second start meanwhile is refused', async () => {
    using machine = project(caller, `checks: ['echo begun; sleep 6022.${process.pid}']\n`);
    const task = await agentTask(machine, 'echo n > n.txt');
    using going = await begin(machine, task.id);
    const second = await machine.ags(['check', task.id, '--run', 'true']);
    expect([second.code, second.stderr]).toEqual([7, expect.stringContaining('already running')]);
    const row = JSON.parse((await machine.ags(['show', task.id, '--json'])).stdout) as { checks: unknown };
    expect(row.checks).toMatchObject({ state: 'running', name: `echo begun; sleep 6022.${process.pid}` });
    going.child.kill('SIGINT');
    expect(await going.code).toBe(130);
    expect(processes()).not.toContain(`sleep 6022.${process.pid}`);
    expect(unfinished(machine)).toEqual([]);
    expect(fileOf(machine, task.id)).toMatchObject({ state: 'ended', checks: [{ state: 'ended', why: 'Stopped.' }] });
    expect(existsSync(join(machine.stateDir, 'tasks', task.id, 'checks.lock'))).toBe(false);
  });

  test('killed checks leave no process and do not count as running, and the next command or cleanup removes the rest', async () => {
    using machine = project(caller, `checks: ['echo begun > half; echo begun; sleep 6023.${process.pid}']\n`);
    const task = await agentTask(machine, 'echo n > n.txt');
    const kill = async (): Promise<void> => {
      using going = await begin(machine, task.id);
      going.child.kill('SIGKILL');
      await going.code;
      await until(() => !processes().includes(`sleep 6023.${process.pid}`));
    };
    await kill();
    expect(fileOf(machine, task.id).state).toBe('running');
    const row = JSON.parse((await machine.ags(['show', task.id, '--json'])).stdout) as { checks: unknown };
    expect(row.checks).toMatchObject({ state: 'ended' });
    expect(unfinished(machine)).toHaveLength(1);
    expect((await machine.ags(['check', task.id, '--run', 'true'])).code).toBe(0);
    expect(unfinished(machine)).toEqual([]);
    await kill();
    const cleaned = await machine.ags(['cleanup', '--yes']);
    expect(cleaned.code, cleaned.stderr).toBe(0);
    expect(unfinished(machine)).toEqual([]);
    expect(existsSync(join(machine.stateDir, 'tasks', task.id, 'checks.lock'))).toBe(false);
  });

  test('removing a task ends its checks', async () => {
    using machine = project(caller, `checks: ['echo begun; sleep 6024.${process.pid}']\n`);
    const task = await agentTask(machine, 'echo n > n.txt');
    using going = await begin(machine, task.id);
    expect((await machine.ags(['rm', task.id, '--yes'])).code).toBe(0);
    expect(await going.code).toBe(130);
    expect(processes()).not.toContain(`sleep 6024.${process.pid}`);
    expect([unfinished(machine), machine.tasks()]).toEqual([[], []]);
  });
});
