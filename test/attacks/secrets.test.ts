// test/attacks/secrets.test.ts: a secret that the user hands over is seen by the command alone: not in a process list, not in a file that
// ags keeps, not in its output.
// needs: sandbox
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine } from '../harness.ts';
import { readProc, startReady } from './host-view.ts';

const newWord = (): string => `CANARY-${randomBytes(8).toString('hex')}`;

describe.each(CALLERS)('as %s', (caller) => {
  test("A142: the value of a passed variable is in no command line, and in no environment but the command's", async () => {
    using machine = createMachine(caller);
    const word = newWord();
    const child = await startReady(
      { ...machine, start: (args, more) => machine.start(args, { ...more, env: { TOKEN: word } }) },
      ['sh', '-c', 'test -n "$TOKEN" && echo ready; echo x > changed.txt; sleep 300'],
      ['-e', 'TOKEN'],
    );
    const pids = readdirSync('/proc').filter(
      (name) => /^\d+$/.test(name) && Number(name) !== process.pid && Number(name) !== child.pid,
    );
    const inCommand = pids.filter((pid) => readProc(pid, 'cmdline').includes(word));
    // AGS_RUN marks a launcher; processes inside do not have it.
    const inLauncher = pids.filter(
      (pid) => readProc(pid, 'environ').includes(word) && readProc(pid, 'environ').includes('AGS_RUN='),
    );
    child.kill('SIGTERM');
    await new Promise((resolve) => child.on('close', resolve));
    const kept = spawnSync('grep', ['-rl', word, machine.home], { encoding: 'utf8' }).stdout;
    expect({ inCommand, inLauncher, kept }).toEqual({ inCommand: [], inLauncher: [], kept: '' });
  });

  test('A142: neither the plan nor an error shows the value', async () => {
    using machine = createMachine(caller);
    const word = newWord();
    const runs = [
      ['plan', '-e', 'TOKEN', '--', 'true'],
      ['plan', '--verbose', '-e', 'TOKEN', '--', 'true'],
      ['exec', '-e', 'TOKEN', '--', '/nonexistent'],
      ['exec', '-e', 'TOKEN', '--limit', 'wrong', '--', 'true'],
      ['list', '--json'],
      ['config', '--json'],
    ];
    const said = await Promise.all(runs.map((args) => machine.ags(args, { env: { TOKEN: word, SECRET_TOKEN: word } })));
    expect(said.filter((run) => `${run.stdout}${run.stderr}`.includes(word))).toEqual([]);
  });

  test('A153: no other user can look into the state directory', async () => {
    using machine = createMachine(caller);
    await machine.ags(['exec', '--review', 'later', '--', 'sh', '-c', 'echo x > changed.txt; chmod 4755 changed.txt']);
    const open = [machine.stateDir, `${machine.stateDir}/tasks`].filter((path) => (statSync(path).mode & 0o077) !== 0);
    // The outer directory must be closed: the directories below belong to the sandbox's user.
    expect(open).not.toContain(machine.stateDir);
  });
});
