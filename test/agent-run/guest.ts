// test/agent-run/guest.ts: a user at the terminal of a running task.
import { join } from 'node:path';
import { openStream } from '../../src/lib/process/control.ts';
import { createFrameReader, frame, windowFrame } from '../../src/lib/stream/frames.ts';
import type { Machine } from '../harness.ts';

export interface Guest {
  type(text: string): void;
  resize(columns: number, rows: number): void;
  /** Waits until the screen shows the text. */
  sees(text: string): Promise<string>;
  leave(): void;
  readonly exitCode: Promise<number | null>;
}

export async function enter(machine: Machine, name: string, request: object): Promise<Guest> {
  const socket = await openStream(join(machine.stateDir, 'tasks', name), { ...request, columns: 80, rows: 24 }, 20_000);
  if (socket === null) throw new Error('the terminal does not answer');
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

/** Reattaches to the demo agent's terminal, which must show the same screen, then types the end. */
export async function leaveAndComeBack(machine: Machine, name: string): Promise<void> {
  const first = await enter(machine, name, { do: 'attach' });
  await first.sees('agent.finished');
  first.type('echo "was $((40 + 2))"\n');
  await first.sees('was 42');
  first.leave();
  const second = await enter(machine, name, { do: 'attach' });
  await second.sees('was 42');
  second.type('touch by-hand; exit\n');
  await second.exitCode;
}
