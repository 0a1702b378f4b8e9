// test/faults/watched.ts: a client that follows an agent's events through a killed and restarted server receives each event once, in order.
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { firstLine } from '../server/place.ts';
import type { Begun } from './acts.ts';
import { eventsOf } from './checker.ts';
import { readIfThere, type Ground, type Running } from './ground.ts';

export async function watchTask(ground: Ground, task: string, args: readonly string[]): Promise<Begun> {
  const heard: number[] = [];
  const state = { over: false };
  let server: Running = ground.start('serve', '--port', '0');
  let link = await firstLine(server.child);
  const running = ground.start(...args);
  const listening = (async () => {
    while (!state.over) {
      await listen(ground, link, task, heard, () => state.over);
      if (state.over || !server.isOver()) continue;
      server = ground.start('serve', '--port', '0');
      link = await firstLine(server.child);
    }
  })();
  return {
    running,
    task,
    async end() {
      const events = eventsOf(ground.stateDir, task).map(({ seq }) => seq);
      for (let left = 200; left > 0 && heard.length < events.length; left--) await sleep(50);
      state.over = true;
      await listening;
      server.child.kill('SIGTERM');
      const { code, signal, stderr } = await server.ended;
      return [
        ...(heard.join() === events.join() ? [] : [`the listener received ${heard.join()} of ${events.join()}`]),
        ...(code === 0 || signal !== null ? [] : [`the server ended with ${code}: ${stderr}`]),
      ];
    },
  };
}

/** Listens until the connection is lost or `over()` holds. */
async function listen(ground: Ground, link: string, task: string, heard: number[], over: () => boolean): Promise<void> {
  const key = readIfThere(join(ground.stateDir, 'server/key'))?.trim() ?? '';
  const socket = new WebSocket(`ws://127.0.0.1:${new URL(link).port}/api/live`, {
    headers: { Authorization: `Bearer ${key}` },
  });
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()).on('error', () => resolve()));
  const subscribe = (): void =>
    socket.send(JSON.stringify({ do: 'subscribe', topic: `task:${task}`, after: heard.at(-1) ?? 0 }));
  socket.on('open', subscribe);
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(String(data)) as { type: string; seq?: number };
    if (message.type === 'event') heard.push(message.seq ?? 0);
    // The server does not know the task yet.
    if (message.type === 'reset') setTimeout(() => socket.readyState === WebSocket.OPEN && subscribe(), 100);
  });
  const leave = setInterval(() => over() && socket.close(), 50);
  await closed;
  clearInterval(leave);
  await sleep(20);
}
