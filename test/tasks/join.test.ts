// test/tasks/join.test.ts: people come to a run that goes on: a shell beside the agent, the terminal of an interactive one.
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openStream } from '../../src/lib/control.ts';
import { createFrameReader, frame, windowFrame } from '../../src/lib/frames.ts';
import { CALLERS } from '../harness.ts';
import { createAgentMachine, type AgentMachine } from './place.ts';

interface Guest {
  type(text: string): void;
  resize(columns: number, rows: number): void;
  /** Waits until this is on the screen. */
  sees(text: string): Promise<string>;
  leave(): void;
  readonly exitCode: Promise<number | null>;
}

async function enter(machine: AgentMachine, name: string, request: object): Promise<Guest> {
  const socket = await openStream(join(machine.stateDir, 'tasks', name), { ...request, columns: 80, rows: 24 }, 20_000);
  if (socket === null) throw new Error('nobody answers');
  let screen = '';
  let code: number | null = null;
  const waiting: { text: string; found: (screen: string) => void }[] = [];
  const read = createFrameReader((kind, payload) => {
    if (kind === 'x') code = payload[0] ?? null;
    if (kind !== 'd') return;
    screen += payload.toString('utf8');
    const shown = waiting.filter(({ text }) => screen.includes(text));
    for (const one of shown) {
      waiting.splice(waiting.indexOf(one), 1);
      one.found(screen);
    }
  });
  const exitCode = new Promise<number | null>((resolve) => socket.once('close', () => resolve(code)));
  socket.on('data', (chunk: Buffer) => void read(chunk)).on('error', () => undefined);
  socket.resume();
  return {
    type: (text) => void socket.write(frame('d', Buffer.from(text))),
    resize: (columns, rows) => void socket.write(windowFrame(columns, rows)),
    sees: (text) =>
      new Promise((found) => {
        if (screen.includes(text)) found(screen);
        else waiting.push({ text, found });
      }),
    leave: () => socket.destroy(),
    exitCode,
  };
}

describe.each(CALLERS)('as %s', (caller) => {
  test('a shell beside an agent is in the same sandbox, under the same rules, and ends with its own exit code', async () => {
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

  test('who leaves a shell ends what runs in it; the agent goes on', async () => {
    using machine = createAgentMachine(caller);
    await machine.ags([
      'start',
      'work',
      'say: here // run: for i in $(seq 100); do test -e gone && break; sleep 0.1; done; ls',
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

  test('the terminal of an interactive agent can be left and come back to; its work is on the branch at the end', async () => {
    using machine = createAgentMachine(caller);
    const started = await machine.ags(['start', 'term', 'write: a.txt x', '-a', 'demo', '-i']);
    expect(started.stderr).toBe('ags: started. Sit down at its terminal with: ags attach term\n');
    await machine.event('term', 'run.started');
    const first = await enter(machine, 'term', { do: 'attach' });
    await first.sees('agent.finished');
    first.type('echo "was $((40 + 2))"\n');
    await first.sees('was 42');
    first.leave();
    const second = await enter(machine, 'term', { do: 'attach' });
    await second.sees('was 42');
    second.type('touch by-hand; exit\n');
    await second.exitCode;
    expect((await machine.until('term', ['ready', 'failed'])).state).toBe('ready');
    expect(machine.branch('term')).toEqual(expect.arrayContaining(['a.txt', 'by-hand']));
  });

  test('an agent that works by itself has no terminal to sit down at', async () => {
    using machine = createAgentMachine(caller);
    await machine.ags(['start', 'work', 'say: here // wait: 600', '-a', 'demo', '-d']);
    await machine.event('work', 'agent.said');
    await expect(enter(machine, 'work', { do: 'attach' })).rejects.toThrow('This agent has no terminal');
    await machine.ags(['rm', '--force', '--yes', 'work']);
  });
});
