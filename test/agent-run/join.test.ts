// test/agent-run/join.test.ts: users join a running task: in a shell beside the agent, or at the terminal of an interactive agent.
// needs: sandbox
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { USUAL } from '../harness.ts';
import { enter, leaveAndComeBack } from './guest.ts';
import { onTerminal } from '../cli/on-terminal.ts';
import { createAgentMachine } from './place.ts';

/** Attributes, version, cursor, keyboard, a mode, the background. */
const QUESTIONS = '\u001b[c\u001b[>0c\u001b[>q\u001b[6n\u001b[?u\u001b[?2026$p\u001b]11;?\u001b\\';
const ASKS = `
for i in 1 2; do
  read -r line
  printf '%sBEGIN%s' '' "$i"; cat questions; printf '%s%s\\n' END "$i"
done
read -r line
`;

describe.each(USUAL)('as %s', (caller) => {
  test('a shell beside an agent is in the same sandbox, under the same rules, and returns its own exit code', async () => {
    using machine = createAgentMachine(caller);
    await machine.ags(['start', 'work', 'write: theirs.txt x // say: here // wait: 600', '-a', 'demo', '-d']);
    await machine.event('work', 'agent.said');
    const guest = await enter(machine, 'work', { do: 'shell', argv: ['sh'] });
    guest.type(
      'stty -echo; cat theirs.txt; echo "seccomp $(grep -c "^Seccomp:.2" /proc/self/status) nnp $(grep "^NoNewPrivs" /proc/self/status | cut -f2) caps $(grep ^CapEff /proc/self/status | cut -f2)"; touch mine.txt; stty size\n',
    );
    expect(await guest.sees('24 80')).toContain('seccomp 1 nnp 1 caps 0000000000000000');
    guest.resize(100, 30);
    guest.type('stty size; exit 3\n');
    await guest.sees('30 100');
    expect(await guest.exitCode).toBe(3);
    await machine.ags(['stop', 'work']);
    expect(machine.branch('work')).toEqual(expect.arrayContaining(['theirs.txt', 'mine.txt']));
  });

  test('leaving a shell ends its programs, and the agent continues', async () => {
    using machine = createAgentMachine(caller);
    await machine.ags([
      'start',
      'work',
      'say: here // run: for i in $(seq 500); do test -e gone && break; sleep 0.1; done; ls',
      '-a',
      'demo',
      '-d',
    ]);
    await machine.event('work', 'agent.said');
    const guest = await enter(machine, 'work', {
      do: 'shell',
      argv: ['sh', '-c', 'trap "touch gone; exit" HUP; echo up; while :; do sleep 0.1; done'],
    });
    await guest.sees('up');
    guest.leave();
    const ended = await machine.event('work', 'tool.finished');
    expect(ended['output']).toContain('gone');
  });

  test('ags exec --in runs a command beside an agent: input, output, errors and exit code are its own', async () => {
    using machine = createAgentMachine(caller);
    await machine.ags(['start', 'work', 'write: theirs.txt x // say: here // wait: 600', '-a', 'demo', '-d']);
    await machine.event('work', 'agent.said');
    const beside = (argv: readonly string[], input = ''): ReturnType<typeof machine.ags> =>
      machine.ags(['exec', '--in', 'work', '--', ...argv], { input });
    // More than all buffers on the way hold.
    const much = 'x'.repeat(2 ** 22);
    const [plain, piped, missing, killed] = await Promise.all([
      beside(['sh', '-c', 'cat theirs.txt; echo "$1" >&2; tty >&2; exit 7', 'sh', '*  "']),
      beside(['cat'], much),
      beside(['no-such-program']),
      beside(['sh', '-c', 'kill -9 $$']),
    ]);
    expect(plain).toEqual({ code: 7, signal: null, stdout: 'x\n', stderr: '*  "\nnot a tty\n' });
    expect(piped).toEqual({ code: 0, signal: null, stdout: much, stderr: '' });
    expect(missing).toMatchObject({
      code: 127,
      stderr:
        'ags: no-such-program: No such file or directory\nags: no-such-program was not found in the sandbox of work: it is not installed on this machine, or not in your PATH.\n',
    });
    expect(killed.code).toBe(137);
    expect(await machine.ags(['exec', '--in', 'work', '--limit', 'time=1m', '--', 'true'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--in takes no --limit') as string,
    });
    await machine.ags(['stop', 'work']);
    expect(await beside(['true'])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('work is not running') as string,
    });
  });

  test('a command beside an agent draws on the terminal, but neither asks nor changes it', async () => {
    using machine = createAgentMachine(caller);
    await machine.ags(['start', 'work', 'say: here // wait: 600', '-a', 'demo', '-d']);
    await machine.event('work', 'agent.said');
    const lasting = ['[?1049h', ']0;owned\\007', ']52;c;QQ==\\007', '[6n', '[c', '[?25l', '[5;9r', '(0', '=', '[>1u'];
    const text = `one${lasting.map((code) => `\\033${code}`).join('')} \\033[31mred\\033[0m`;
    const { screen } = onTerminal(machine, ['exec', '--in', 'work', '--', 'printf', `'${text}'`], {});
    expect(screen.trim()).toBe('one \u001b[31mred\u001b[0m');
    await machine.ags(['stop', 'work']);
  });

  test('a command beside an agent is hung up with ags, also while it leaves its input unread', async () => {
    using machine = createAgentMachine(caller);
    await machine.ags([
      'start',
      'work',
      'say: here // run: for i in $(seq 500); do test -e gone && break; sleep 0.1; done; ls',
      '-a',
      'demo',
      '-d',
    ]);
    await machine.event('work', 'agent.said');
    const command = machine.start([
      'exec',
      '--in',
      'work',
      '--',
      'sh',
      '-c',
      'trap "touch gone; exit" HUP; echo up; exec >/dev/null 2>&1; while :; do sleep 0.1; done',
    ]);
    // It stays full: nobody reads it.
    command.stdin?.on('error', () => undefined).write(Buffer.alloc(2 ** 23));
    await once(command.stdout as NodeJS.ReadableStream, 'data');
    command.kill('SIGKILL');
    const ended = await machine.event('work', 'tool.finished');
    expect(ended['output']).toContain('gone');
  });

  test('a user can detach from an interactive agent and reattach; its work is on the branch at the end', async () => {
    using machine = createAgentMachine(caller);
    const started = await machine.ags(['start', 'term', 'write: a.txt x // wait: 2', '-a', 'demo', '-i']);
    expect(started.stderr).toBe('ags: started. Connect to its terminal: ags attach term\n');
    await machine.event('term', 'run.started');
    expect(await machine.until('term', ['needs-you'])).toMatchObject({
      needs: 'prompt',
      reason: 'Waiting at its prompt: ags attach term',
    });
    const list = await machine.ags(['list']);
    expect(list.stdout).toContain('Waiting at its prompt: ags attach term');
    await leaveAndComeBack(machine, 'term');
    expect(machine.events('term').flatMap((event) => (event.type === 'run.moved' ? [event['state']] : []))).toEqual([
      'preparing',
      'running',
      'needs-you',
      'running',
    ]);
    expect((await machine.until('term', ['ready', 'failed'])).state).toBe('ready');
    expect(machine.branch('term')).toEqual(expect.arrayContaining(['a.txt', 'by-hand']));
  });

  test('a question to the terminal reaches the client that typed last, and no client that attaches later', async () => {
    using machine = createAgentMachine(caller, { 'asks.sh': ASKS, questions: QUESTIONS });
    await machine.ags(['start', 'asks', 'x', '-a', 'sh asks.sh', '-i']);
    await machine.event('asks', 'run.started');
    const one = await enter(machine, 'asks', { do: 'attach' });
    one.type('go\n');
    expect(await one.sees('END1')).toContain(`BEGIN1${QUESTIONS}END1`);
    const two = await enter(machine, 'asks', { do: 'attach' });
    expect(await two.sees('END1')).toContain('BEGIN1END1');
    one.type('on\n');
    expect(await one.sees('END2')).toContain(`BEGIN2${QUESTIONS}END2`);
    expect(await two.sees('END2')).toContain('BEGIN2END2');
    two.type('end\n');
    expect([await one.exitCode, await two.exitCode]).toEqual([0, 0]);
  });

  test('an agent that is not interactive has no terminal to attach to', async () => {
    using machine = createAgentMachine(caller);
    await machine.ags(['start', 'work', 'say: here // wait: 600', '-a', 'demo', '-d']);
    await machine.event('work', 'agent.said');
    await expect(enter(machine, 'work', { do: 'attach' })).rejects.toThrow('This agent has no terminal');
    await machine.ags(['rm', '--force', '--yes', 'work']);
  });
});
