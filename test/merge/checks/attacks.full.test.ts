// test/merge/checks/attacks.full.test.ts: checks run over an agent's files without spreading them to other tasks, reading the user's secrets or
// escaping.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentTask } from '../../agent-run/agent-task.ts';
import { giveTo, type Machine, USUAL } from '../../harness.ts';
import { runTask } from '../../workspace/task.ts';
import { fileOf, layers, processes, project, unfinished } from './place.ts';

const SETUP = "setup: {run: ['sh tool.sh'], inputs: [lock.txt]}\n";
const FILES = { 'tool.sh': 'mkdir -p deps && cp lock.txt deps/made\n', 'lock.txt': '1\n', '.gitignore': 'deps/\n' };
const POISON = 'mkdir -p deps && cp lock.txt deps/made && echo poison > deps/poison\n';

function userConfig(machine: Machine, text: string): void {
  mkdirSync(join(machine.home, '.config/ags'), { recursive: true });
  writeFileSync(join(machine.home, '.config/ags/config.yaml'), text);
  giveTo(join(machine.home, '.config'), machine.uid);
}

const setupLayers = (machine: Machine): string[] => layers(machine).filter((name) => name.startsWith('setup-'));

describe.each(USUAL)('as %s', (caller) => {
  test("setup over an agent's files is for the checks only: no later task sees its results", async () => {
    using machine = project(caller, `${SETUP}checks: ['cat deps/made deps/poison']\n`, FILES);
    const task = await agentTask(machine, `echo 2 > lock.txt; printf '%s' '${POISON}' > tool.sh`);
    const done = await machine.ags(['check', task.id, '--risky', 'tool.sh']);
    expect(done.code, done.stdout + done.stderr).toBe(0);
    expect(done.stdout).toContain('2\npoison\n');
    const file = fileOf(machine, task.id);
    expect(file.checks.map(({ name, state }) => [name, state])).toEqual([
      ['setup', 'passed'],
      ['cat deps/made deps/poison', 'passed'],
    ]);
    expect([file.setup, setupLayers(machine), unfinished(machine)]).toEqual(['private', [], []]);
    const later = await runTask(machine, { task: 'later', commands: ['cat deps/made; ls deps'] });
    expect(later).toMatchObject({ error: null, ran: [{ code: 0, stdout: '1\nmade\n' }] });
    // The user commits the same lockfile: setup runs again, over the user's files.
    machine.write('lock.txt', '2\n');
    machine.git('commit', '-qam', 'lock');
    const same = await runTask(machine, { task: 'same', commands: ['cat deps/made; ls deps'] });
    expect(same).toMatchObject({ error: null, ran: [{ code: 0, stdout: '2\nmade\n' }] });
  });

  test("shared layers are made from the branch's files, even if checks need them first", async () => {
    using machine = project(caller, `${SETUP}checks: ['ls deps; cat tool.sh; git status --short']\n`, FILES);
    const task = await agentTask(machine, `printf '%s' '${POISON}' > tool.sh`);
    const done = await machine.ags(['check', task.id, '--risky', 'tool.sh']);
    expect(done.code, done.stdout + done.stderr).toBe(0);
    expect(done.stdout).toContain(`made\n${POISON}`);
    expect(fileOf(machine, task.id).setup).toBe('shared');
    expect(setupLayers(machine)).toHaveLength(1);
    const later = await runTask(machine, { task: 'later', commands: ['ls deps'] });
    expect(later).toMatchObject({ steps: [], error: null, ran: [{ code: 0, stdout: 'made\n' }] });
  });

  test('files of the merged tree override those of setup, and a failing setup fails the check', async () => {
    using machine = project(caller, `${SETUP}checks: ['cat deps/made']\n`, {
      ...FILES,
      '.gitignore': '',
    });
    const task = await agentTask(machine, `mkdir deps; echo TRACKED > deps/made; echo "exit 3" > tool.sh`);
    const covered = await machine.ags(['check', task.id, 'deps/made']);
    expect(covered.code, covered.stdout + covered.stderr).toBe(0);
    expect(covered.stdout).toContain('TRACKED\n');
    const failed = await machine.ags(['check', task.id, '--risky', 'tool.sh']);
    expect(failed.code, failed.stdout + failed.stderr).toBe(6);
    expect(fileOf(machine, task.id).checks).toMatchObject([
      { name: 'setup', state: 'failed', exitCode: 3 },
      { state: 'ended', startedAtMs: null },
    ]);
  });

  test("checks get the agent's files, but no secret, no port, and no host without a rule", async () => {
    using machine = project(
      caller,
      `checks: ['env; ls -A ~; ls -A /tmp; git config -l; curl -sS -m 20 https://nowhere.test/ || true']\n`,
    );
    userConfig(
      machine,
      'secrets:\n  - name: hub\n    host: api.github.com\n    env: HUB_TOKEN\n    from: { env: HUB_TOKEN }\nnetwork: {publish: [18931]}\n',
    );
    const task = await agentTask(
      machine,
      'echo trace > ~/.trace-of-agent; echo trace > /tmp/trace-of-agent; git config alias.trace-of-agent x; printf "#!/bin/sh\\n" > .git/hooks/trace-of-agent || true; echo n > n.txt',
    );
    const done = await machine.ags(['check', task.id], { env: { HUB_TOKEN: 'the-secret' } });
    expect(done.code, done.stdout + done.stderr).toBe(0);
    expect(done.stdout).toContain('https_proxy=');
    expect(done.stdout).not.toMatch(/trace-of-agent|HUB_TOKEN|the-secret|Port 18931/);
    expect(fileOf(machine, task.id).denied).toEqual(['nowhere.test:443']);
  });

  test('hidden files stay hidden, whoever wrote them', async () => {
    using machine = project(caller, `hide: ['*.vault']\nchecks: ['find . -name "*.vault"; ls sub']\n`, {
      'own.vault': 'k\n',
    });
    const task = await agentTask(machine, 'mkdir sub; echo x > sub/new.vault; echo n > sub/n.txt');
    const done = await machine.ags(['check', task.id]);
    expect(done.code, done.stdout + done.stderr).toBe(0);
    expect(done.stdout).toMatch(/^n\.txt\n\n/);
  });

  test('attributes of an agent choose no encoding and no program on this machine', async () => {
    using machine = project(caller, `checks: ['cat a.txt; cat .gitattributes']\n`);
    machine.git('config', 'filter.x.smudge', `touch ${machine.root}/was-run; cat`);
    const task = await agentTask(
      machine,
      `printf '*.txt working-tree-encoding=UTF-16 filter=x\\n' > .gitattributes; echo plain > a.txt`,
    );
    const done = await machine.ags(['check', task.id, '--risky', '.gitattributes']);
    expect(done.code, done.stdout + done.stderr).toBe(0);
    expect(done.stdout).toMatch(/^plain\n\*\.txt working-tree-encoding=UTF-16 filter=x\n/);
    expect(readdirSync(machine.root)).not.toContain('was-run');
  });

  test('a link in place of a directory leads nowhere, neither while the tree is written nor inside', async () => {
    using machine = project(caller, `checks: ['ls dir/ || true; readlink dir']\n`);
    const outside = join(machine.home, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'mine'), 'mine\n');
    giveTo(outside, machine.uid);
    const task = await agentTask(machine, `rm -r dir; ln -s ${outside} dir`);
    const done = await machine.ags(['check', task.id, '--risky', 'dir']);
    expect(done.code, done.stdout + done.stderr).toBe(0);
    expect(done.stdout).toContain(`${outside}\n`);
    expect(done.stdout).not.toContain('mine');
    expect(readdirSync(outside)).toEqual(['mine']);
  });

  test('background processes of a check end before the next check and do not affect it', async () => {
    using machine = project(
      caller,
      `checks: ['(setsid sh -c "sleep 6031; echo forged") & echo one', 'ps -e -o args= | grep -c "sleep 603[1]" || true']\n`,
    );
    const task = await agentTask(machine, 'echo n > n.txt');
    const done = await machine.ags(['check', task.id]);
    expect(done.code, done.stdout + done.stderr).toBe(0);
    expect(done.stdout).toMatch(/^one\n0\n/);
    expect(processes()).not.toContain('sleep 6031');
  });
});
