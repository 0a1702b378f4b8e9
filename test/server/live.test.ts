// test/server/live.test.ts: listeners receive every event through reconnects and restarts, and a slow listener's buffer is bounded.
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import type { LiveMessage } from '../../src/protocol/api/api.ts';
import { createSubscribers, type Source, createRecent } from '../../src/server/live/subscribers.ts';
import { ONE } from '../harness.ts';
import { createServerMachine, listen, type Listener, type ServerMachine } from './place.ts';
import { paperTask } from './state.ts';

let machine: ServerMachine;

beforeAll(async () => {
  machine = await createServerMachine(ONE);
});
afterAll(() => machine[Symbol.dispose]());

const seqs = (listener: Listener, topic: string): number[] =>
  listener.messages.flatMap((one) => (one.topic === topic && one.type === 'event' ? [one.seq] : []));
const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);

test('events arrive once and in order: live, after a lost connection, and across a server restart', async () => {
  const { events } = paperTask(machine, 'steady');
  const say = (from: number, to: number): void => {
    for (let i = from; i <= to; i++) events.append({ type: 'agent.said', text: `word ${i}` });
  };
  say(1, 50);
  await machine.server.call('GET', '/api/tasks');
  const first = await listen(machine.server);
  first.subscribe('task:steady', 0);
  await first.until(({ seq, type }) => type === 'event' && seq === 50);
  say(51, 1500);
  await first.until(({ seq, type }) => type === 'event' && seq === 1500);
  expect(seqs(first, 'task:steady')).toEqual(upTo(1500));
  first.socket.terminate();
  say(1501, 1600);
  const second = await listen(machine.server);
  second.subscribe('task:steady', 1500);
  await second.until(({ seq, type }) => type === 'event' && seq === 1600);
  expect(seqs(second, 'task:steady')).toEqual(upTo(1600).slice(1500));
  const other = await machine.serve();
  await other.stop('SIGKILL');
  say(1601, 1700);
  const next = await machine.serve();
  await next.call('GET', '/api/tasks');
  const third = await listen(next);
  third.subscribe('task:steady', 1600);
  await third.until(({ seq, type }) => type === 'event' && seq === 1700);
  expect(seqs(third, 'task:steady')).toEqual(upTo(1700).slice(1600));
  await next.stop();
});

test('server-sent events resume after the last id', async () => {
  const { events } = paperTask(machine, 'stream');
  for (let i = 0; i < 5; i++) events.append({ type: 'agent.said', text: `${i}` });
  await machine.server.call('GET', '/api/tasks');
  const ags = createClient({ url: `http://127.0.0.1:${machine.server.port}`, key: machine.server.key });
  const stop = new AbortController();
  const got: LiveMessage[] = [];
  for await (const message of ags.live(['tasks', 'task:stream'], { after: [null, 3], signal: stop.signal })) {
    if (message.topic === 'task:stream') got.push(message);
    if (got.length === 2) events.append({ type: 'agent.said', text: 'more' });
    if (got.length === 3) break;
  }
  stop.abort();
  expect(got.map(({ seq }) => seq)).toEqual([4, 5, 6]);
  expect(got[0]?.data).toMatchObject({ seq: 4, type: 'agent.said', text: '3' });
});

test('a task row shows what an agent does, at most twice a second, ends in the final state, and reports removal', async () => {
  const { json } = await machine.server.call<{ seq: number }>('GET', '/api/tasks');
  const listener = await listen(machine.server);
  listener.subscribe('tasks', json.seq);
  const task = paperTask(machine, 'busy');
  const busy = (message: LiveMessage): boolean => message.type === 'task' && message.data.id === 'busy';
  await listener.until(busy);
  for (let i = 1; i <= 300; i++)
    task.events.append({
      type: 'tool.started',
      id: `${i}`,
      tool: 'Shell',
      action: { kind: 'command', command: `step ${i}` },
    });
  const last = await listener.until((one) => one.type === 'task' && one.data.doing === 'Running step 300');
  expect(last.data).toMatchObject({ seq: 300, state: 'running', group: 'running' });
  expect(listener.messages.filter(busy).length).toBeLessThan(20);
  paperTask(machine, 'over', { live: false });
  await listener.until((one) => one.type === 'task' && one.data.id === 'over');
  const removed = await machine.server.call('DELETE', '/api/tasks/over');
  expect([removed.status, removed.json]).toEqual([200, { freedBytes: expect.any(Number), branches: [] }]);
  await listener.until((one) => one.type === 'task-gone' && one.data.id === 'over');
  const numbers = listener.messages.filter(({ topic }) => topic === 'tasks').map(({ seq }) => seq);
  expect(numbers).toEqual(numbers.map((_, i) => (numbers[0] ?? 0) + i));
  listener.socket.terminate();
});

test('a restarted task begins its events anew and says so', async () => {
  const first = paperTask(machine, 'again');
  for (let i = 0; i < 3; i++) first.events.append({ type: 'agent.said', text: 'old' });
  const listener = await listen(machine.server);
  listener.subscribe('task:again', 0);
  await listener.until(({ type, seq }) => type === 'event' && seq === 3);
  // `ags restart` moves the log in the same way.
  renameSync(join(first.directory, 'events.jsonl'), join(first.directory, 'earlier.jsonl'));
  const second = paperTask(machine, 'again');
  for (let i = 0; i < 5; i++) second.events.append({ type: 'agent.said', text: 'new' });
  await listener.until(({ type, seq }) => type === 'event' && seq === 5);
  expect(listener.messages.map(({ type, seq }) => [type, seq])).toEqual([
    ...[1, 2, 3].map((n) => ['event', n]),
    ['reset', 0],
    ...[1, 2, 3, 4, 5].map((n) => ['event', n]),
  ]);
  listener.socket.terminate();
});

test('a slow listener misses no event that can be sent again', async () => {
  const { events } = paperTask(machine, 'flood');
  await machine.server.call('GET', '/api/tasks');
  const listener = await listen(machine.server);
  listener.subscribe('task:flood', 0);
  events.append({ type: 'agent.said', text: 'first' });
  await listener.until(({ topic }) => topic === 'task:flood');
  listener.socket.pause();
  const text = 'x'.repeat(4000);
  for (let i = 0; i < 6000; i++) events.append({ type: 'agent.said', text });
  // The server keeps serving other listeners.
  const other = await listen(machine.server);
  other.subscribe('task:flood', 5999);
  await other.until(({ seq, type }) => type === 'event' && seq === 6001);
  listener.socket.resume();
  await listener.until(({ seq, type }) => type === 'event' && seq === 6001);
  expect(seqs(listener, 'task:flood')).toEqual(upTo(6001));
  for (const one of [listener, other]) one.socket.terminate();
});

test('A134: a slow listener has a bounded queue, and receives missed events later or a reset', () => {
  const MESSAGE = 'y'.repeat(1000);
  let waiting = 0;
  let most = 0;
  const got: LiveMessage[] = [];
  const peer = {
    send(message: LiveMessage, text: string): void {
      waiting += text.length;
      most = Math.max(most, waiting);
      got.push(message);
    },
    waiting: () => waiting,
  };
  const log: LiveMessage[] = [];
  const source: Source = {
    seq: () => log.length,
    since: (after) => ({ messages: log.slice(after, after + 500), more: after + 500 < log.length }),
  };
  const recent = createRecent(1000, 100);
  const peers = createSubscribers();
  peers.subscribe(peer, 'task:a', source, 0);
  peers.subscribe(peer, 'tasks', recent, null);
  for (let i = 1; i <= 20_000; i++) {
    const message: LiveMessage = {
      topic: 'task:a',
      type: 'event',
      seq: i,
      data: { seq: i, at: '', task: 'x', type: 'agent.said', text: MESSAGE },
    };
    log.push(message);
    peers.publish(message);
    peers.publish(recent.add({ topic: 'tasks', type: 'task-gone', data: { id: `t${i}` } }));
  }
  expect(got.length).toBeLessThan(20_000);
  expect(most).toBeLessThan(5 * 2 ** 20);
  for (let round = 0; round < 100; round++) {
    waiting = 0;
    peers.catchUp();
  }
  expect(most).toBeLessThan(6 * 2 ** 20);
  const of = (topic: string): LiveMessage[] => got.filter((one) => one.topic === topic);
  expect(of('task:a').map(({ seq }) => seq)).toEqual(upTo(20_000));
  // Rows have a shorter history: the listener must read the list again.
  expect(of('tasks').at(-1)).toEqual({ topic: 'tasks', type: 'reset', seq: 21_000, data: null });
  peers.leave(peer);
  expect([peers.size, peers.has('tasks')]).toEqual([0, false]);
});
