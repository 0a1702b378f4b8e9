// test/e2e/streams.test.ts: streams, exit codes, signals and options of `ags exec` without a terminal.
// needs: sandbox
import { spawn, type ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AGS, CALLERS, createMachine, giveTo, type Machine } from '../harness.ts';
import { leftovers } from './leftovers.ts';

describe.each(CALLERS)('as %s', (caller) => {
  let machine: Machine;
  beforeAll(async () => {
    machine = createMachine(caller, { files: { 'src/a.txt': 'one\n', '.env': 'SECRET=1\n', '.gitignore': '.env\n' } });
    await machine.ags(['exec', '--', 'true']);
  });
  afterAll(() => machine[Symbol.dispose]());

  /** Runs a line in the user's shell, where `ags` is the command. */
  const shell = (line: string): Promise<{ code: number | null; stdout: string; stderr: string }> => {
    const child = spawn('bash', ['-c', `ags() { '${process.execPath}' '${AGS}' "$@"; }; ${line}`], {
      cwd: machine.project,
      env: machine.env,
      ...identity(machine),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return finished(child).then(({ code, stdout, stderr }) => ({
      code,
      stdout: stdout.toString(),
      stderr: stderr.toString(),
    }));
  };

  test('twenty megabytes go in and come out unchanged, on both streams at once', async () => {
    const bytes = randomBytes(20 * 1024 * 1024);
    const child = machine.start(['exec', '--', 'bash', '-c', 'tee >(cat >&2); wait $!']);
    child.stdin?.end(bytes);
    const { code, stdout, stderr } = await finished(child);
    expect({ code, stdout: digest(stdout), stderr: digest(stderr) }).toEqual({
      code: 0,
      stdout: digest(bytes),
      stderr: digest(bytes),
    });
  });

  test('stdout and stderr are separate, and redirections to files work', async () => {
    expect(await shell("ags exec -- sh -c 'echo out; echo err >&2' > $HOME/out.txt; cat $HOME/out.txt")).toEqual({
      code: 0,
      stdout: 'out\n',
      stderr: 'err\n',
    });
    expect(await shell("ags exec -- sh -c 'echo out; echo err >&2' 2>&1 >/dev/null")).toEqual({
      code: 0,
      stdout: 'err\n',
      stderr: '',
    });
    expect(
      await shell('echo appended > $HOME/in.txt; ags exec -- cat < $HOME/in.txt >> $HOME/in2.txt; cat $HOME/in2.txt'),
    ).toEqual({ code: 0, stdout: 'appended\n', stderr: '' });
  });

  test('a command whose reader stops ends by SIGPIPE', async () => {
    expect(await shell('ags exec -- yes | head -1; echo ${PIPESTATUS[0]}')).toEqual({
      code: 0,
      stdout: 'y\n141\n',
      stderr: '',
    });
  });

  test('scripts can open streams as /dev/stdin, /dev/stdout and /dev/stderr', async () => {
    expect(
      await shell(
        "echo in | ags exec -- sh -c 'cat /dev/stdin; echo out > /dev/stdout; echo err > /dev/stderr' 2> >(cat >&2) | cat; wait $!",
      ),
    ).toEqual({ code: 0, stdout: 'in\nout\n', stderr: 'err\n' });
  });

  test('a command with empty input sees its end, and one with closed streams still runs', async () => {
    expect(await shell("ags exec -- sh -c 'cat; echo end' < /dev/null")).toMatchObject({ code: 0, stdout: 'end\n' });
    expect(await shell("ags exec -- sh -c 'exit 4' <&- >&- 2>&-")).toMatchObject({ code: 4 });
  });

  test.each([0, 1, 2, 126, 127, 130, 255])('exit code %i comes back', async (code) => {
    expect(await machine.ags(['exec', '--', 'sh', '-c', `exit ${code}`])).toEqual({
      code,
      signal: null,
      stdout: '',
      stderr: '',
    });
  });

  test.each([
    ['HUP', 129],
    ['INT', 130],
    ['KILL', 137],
    ['SEGV', 139],
    ['TERM', 143],
  ])('a command killed by SIG%s exits with %i', async (signal, code) => {
    expect(await machine.ags(['exec', '--', 'sh', '-c', `kill -${signal} $$`])).toEqual({
      code,
      signal: null,
      stdout: '',
      stderr: '',
    });
  });

  test('a command that does not exist exits with 127, one that is not executable with 126', async () => {
    const missing = await machine.ags(['exec', '--', 'no-such-command']);
    expect(missing).toMatchObject({ code: 127, stdout: '' });
    expect(missing.stderr).toMatch(/no-such-command.*No such file or directory/);
    const denied = await machine.ags(['exec', '--', './src/a.txt']);
    expect(denied).toMatchObject({ code: 126, stdout: '' });
    expect(denied.stderr).toMatch(/src\/a\.txt.*Permission denied/);
    expect(await machine.ags(['exec', '--', 'src'])).toMatchObject({ code: 127 });
    expect(await machine.ags(['exec', '--', './src'])).toMatchObject({ code: 126 });
    expect(machine.tasks()).toEqual([]);
  });

  test('a missing command is a usage error', async () => {
    for (const args of [['exec'], ['exec', '--'], ['exec', '--name', 'x']]) {
      expect(await machine.ags(args)).toEqual({
        code: 2,
        signal: null,
        stdout: '',
        stderr: 'ags: What should run in the sandbox?\n     For example: ags exec -- npm test\n',
      });
    }
    expect(await machine.ags(['exec', '--no-such-option', '--', 'true'])).toMatchObject({ code: 2, stdout: '' });
  });

  test.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
    ['SIGQUIT', 131],
    ['SIGUSR1', 138],
    ['SIGUSR2', 140],
  ] as const)(
    '%s to ags reaches the command: a trap decides the exit code; without one the signal ends it',
    async (signal, status) => {
      const trapped = machine.start([
        'exec',
        '--',
        'sh',
        '-c',
        `trap 'echo trapped; exit 42' ${signal.slice(3)}; echo ready; while :; do sleep 0.02; done`,
      ]);
      await said(trapped, 'ready');
      trapped.kill(signal);
      expect(await finished(trapped)).toMatchObject({ code: 42, stdout: Buffer.from('ready\ntrapped\n') });
      const dying = machine.start(['exec', '--', 'sh', '-c', 'echo ready; exec sleep 77777']);
      await said(dying, 'ready');
      dying.kill(signal);
      expect((await finished(dying)).code).toBe(status);
      expect(await leftovers(machine)).toEqual([]);
      expect(machine.tasks()).toEqual([]);
    },
  );

  test('SIGINT reaches every process of the job, as Ctrl-C would', async () => {
    const child = machine.start([
      'exec',
      '--',
      'bash',
      '-c',
      "trap 'wait; echo outer; exit 3' INT; (trap 'echo inner; exit' INT; echo ready; while :; do sleep 0.02; done) & wait; wait",
    ]);
    await said(child, 'ready');
    child.kill('SIGINT');
    const { code, stdout } = await finished(child);
    expect({ code, lines: stdout.toString().trim().split('\n').toSorted() }).toEqual({
      code: 3,
      lines: ['inner', 'outer', 'ready'],
    });
  });

  test('SIGTERM at any moment of the start ends everything, with its exit code', async () => {
    for (let afterMs = 0; afterMs < 600; afterMs += 60) {
      const child = machine.start(['exec', '--', 'sleep', '77777']);
      await sleep(afterMs);
      child.kill('SIGTERM');
      const { code, signal } = await finished(child);
      // Before Node installs its handler, the signal kills the process.
      expect([signal, code]).toEqual(signal === null ? [null, 143] : ['SIGTERM', null]);
    }
    expect(await leftovers(machine)).toEqual([]);
    expect(machine.tasks()).toEqual([]);
  });

  test('background processes end with the command', async () => {
    const run = await machine.ags([
      'exec',
      '--',
      'bash',
      '-c',
      'sleep 77777 & (setsid sleep 77777 &) ; nohup sleep 77777 > /dev/null 2>&1 & trap "" TERM HUP; echo started',
    ]);
    expect(run).toEqual({ code: 0, signal: null, stdout: 'started\n', stderr: '' });
    expect(await leftovers(machine)).toEqual([]);
  });

  test('after ags has ended no process of the sandbox can still write', async () => {
    for (let i = 0; i < 3; i++) {
      await machine.ags([
        'exec',
        '--name',
        'busy',
        '--',
        'bash',
        '-c',
        'for i in 1 2 3 4 5 6 7 8; do (while :; do echo x > src/busy$i; done) & done; sleep 0.1',
      ]);
      expect(await leftovers(machine, 0)).toEqual([]);
    }
    for (const task of machine.tasks()) await machine.ags(['review', task, '--discard-all']);
    expect(machine.tasks()).toEqual([]);
  }, 60_000);

  test('the working directory is the caller’s, or that of --project', async () => {
    const cwd = join(machine.project, 'src');
    expect(await machine.ags(['exec', '--', 'pwd'], { cwd })).toMatchObject({ code: 0, stdout: `${cwd}\n` });
    expect(await machine.ags(['exec', '--project', cwd, '--', 'pwd'], { cwd: machine.home })).toMatchObject({
      code: 0,
      stdout: `${cwd}\n`,
    });
    expect(await machine.ags(['exec', '--project', 'code/project', '--', 'pwd'], { cwd: machine.home })).toMatchObject({
      code: 0,
      stdout: `${machine.project}\n`,
    });
    symlinkSync(machine.project, join(machine.home, 'link'));
    expect(await machine.ags(['exec', '--project', 'link/src', '--', 'pwd'], { cwd: machine.home })).toMatchObject({
      code: 0,
      stdout: `${cwd}\n`,
    });
    expect(await machine.ags(['exec', '--project', 'nowhere', '--', 'pwd'], { cwd: machine.home })).toMatchObject({
      code: 2,
      stdout: '',
    });
  });

  test('variables are passed only by name or with a value', async () => {
    const print = ['--', 'sh', '-c', 'printf "%s|" "${A-unset}" "${B-unset}" "${C-unset}" "${D-unset}"'];
    const env = { A: 'from outside', B: 'from outside', C: 'secret' };
    expect(await machine.ags(['exec', '-e', 'A', '--env', 'B=x=y z\n', '-e', 'D=', ...print], { env })).toMatchObject({
      code: 0,
      stdout: 'from outside|x=y z\n|unset||',
    });
    expect(await machine.ags(['exec', '-e', 'NOT_THERE', '--', 'sh', '-c', 'echo ${NOT_THERE-unset}'])).toMatchObject({
      code: 0,
      stdout: 'unset\n',
    });
    expect(await machine.ags(['exec', '-e', '1BAD=x', '--', 'true'])).toMatchObject({ code: 2 });
  });

  test('a time limit ends the command and says so', async () => {
    const run = await machine.ags(['exec', '--limit', 'time=1s', '--', 'sleep', '77777']);
    expect(run).toMatchObject({ code: 137, stdout: '' });
    expect(run.stderr).toContain('time limit of 1s reached (limits.time)');
    expect(await machine.ags(['exec', '--limit', 'openFiles=70', '--', 'sh', '-c', 'ulimit -n'])).toMatchObject({
      code: 0,
      stdout: '70\n',
    });
    expect(
      await machine.ags([
        'exec',
        '--limit',
        'fileSize=1m',
        '--',
        'sh',
        '-c',
        'head -c 2000000 /dev/zero > /tmp/x; echo $?; stat -c %s /tmp/x',
      ]),
    ).toMatchObject({ code: 0, stdout: '153\n1048576\n' });
    expect(await machine.ags(['exec', '--limit', 'time', '--', 'true'])).toMatchObject({ code: 2 });
    expect(await machine.ags(['exec', '--limit', 'nothing=1', '--', 'true'])).toMatchObject({ code: 2 });
    expect(await machine.ags(['exec', '--limit', 'memory=lots', '--', 'true'])).toMatchObject({ code: 2 });
  });

  test('hidden files exist only with --reveal', async () => {
    expect(await machine.ags(['exec', '--', 'sh', '-c', 'cat .env'])).toMatchObject({ code: 1, stdout: '' });
    expect(await machine.ags(['exec', '--reveal', '.env', '--', 'sh', '-c', 'cat .env'])).toMatchObject({
      code: 0,
      stdout: 'SECRET=1\n',
    });
  });

  test('a directory of the host exists only with --mount, read-only', async () => {
    const dir = join(machine.home, 'models');
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, 'weights'), 'heavy\n');
    giveTo(dir, machine.uid);
    expect(await machine.ags(['exec', '--', 'cat', `${dir}/weights`])).toMatchObject({ code: 1 });
    const run = await machine.ags([
      'exec',
      '--mount',
      dir,
      '--',
      'sh',
      '-c',
      `cat ${dir}/weights; echo x > ${dir}/weights`,
    ]);
    expect(run).toMatchObject({ stdout: 'heavy\n' });
    expect(run.stderr).toContain('Read-only file system');
    expect(await machine.ags(['exec', '--mount', `${dir}/nothing`, '--', 'true'])).toMatchObject({ code: 2 });
  });

  test('words after the command, or after --, are passed to the command unchanged', async () => {
    const words = ['--env', 'X=1', '--', '--help', '-h', '', 'a b', '--json', '$HOME', '\n'];
    const print = ['sh', '-c', 'printf "<%s>" "$@"', 'sh', ...words];
    const expected = { code: 0, signal: null, stdout: words.map((word) => `<${word}>`).join(''), stderr: '' };
    expect(await machine.ags(['exec', '--', ...print])).toEqual(expected);
    expect(await machine.ags(['exec', ...print])).toEqual(expected);
    expect(await machine.ags(['exec', '--name', 'x', ...print])).toEqual(expected);
  });
});

function identity(machine: Machine): { uid?: number; gid?: number } {
  return process.getuid?.() === 0 ? { uid: machine.uid, gid: machine.uid } : {};
}

function finished(
  child: ChildProcess,
): Promise<{ code: number | null; signal: NodeJS.Signals | null; stdout: Buffer; stderr: Buffer }> {
  const [out, err]: [Buffer[], Buffer[]] = [[], []];
  const earlier = (child as { said?: Buffer[] }).said ?? [];
  child.stdout?.on('data', (chunk: Buffer) => out.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => err.push(chunk));
  child.stdin?.on('error', () => undefined);
  return new Promise((resolve) =>
    child.on('close', (code, signal) =>
      resolve({ code, signal, stdout: Buffer.concat([...earlier, ...out]), stderr: Buffer.concat(err) }),
    ),
  );
}

/** Waits until stdout contains the text; keeps the output for finished(). */
function said(child: ChildProcess, text: string): Promise<void> {
  const chunks: Buffer[] = [];
  Object.assign(child, { said: chunks });
  return new Promise((resolve, reject) => {
    const listen = (chunk: Buffer): void => {
      chunks.push(chunk);
      if (!Buffer.concat(chunks).toString().includes(text)) return;
      child.stdout?.off('data', listen);
      resolve();
    };
    child.stdout?.on('data', listen);
    child.on('close', () => reject(new Error(`ended without saying "${text}"`)));
  });
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
