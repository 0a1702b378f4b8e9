// test/run/wrong-moments.test.ts: sockets, programs and files that end or fail at an unexpected moment must neither crash this process nor
// block it forever.
import { spawn, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { EventEmitter, once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { makeHostContext } from '../../src/cli/make-context.ts';
import { serveControl } from '../../src/lib/process/control.ts';
import { isAlive, type ProcessIdentity } from '../../src/lib/process/liveness.ts';
import { withStreams } from '../../src/lib/process/process.ts';
import { openPairs } from '../../src/lib/stream/socket-pair.ts';
import type { Sandbox } from '../../src/sandbox/backend.ts';
import { insideHostScript } from '../../src/sandbox/io/inside-host.ts';
import { createTerminals } from '../../src/server/terminal.ts';
import { openBoundedLog } from '../../src/store/bounded-log.ts';
import { taskPaths } from '../../src/store/layout.ts';
import type { StoredTask } from '../../src/store/tasks.ts';
import { startInside } from '../../src/run/join-sandbox.ts';
import { serveNames } from '../../src/run/network/serve-names.ts';
import { firstRun, spawnRunner } from '../../src/agent-run/start.ts';

const dir = mkdtempSync(join(tmpdir(), 'ags-moments-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Errors that would have ended an ags process. */
let uncaught: unknown[] = [];
const note = (error: unknown): void => void uncaught.push(error);
// The listeners of the test runner would fail the whole run instead of the test.
const usual = {
  uncaughtException: process.listeners('uncaughtException'),
  unhandledRejection: process.listeners('unhandledRejection'),
};
beforeEach(() => {
  uncaught = [];
  for (const name of ['uncaughtException', 'unhandledRejection'] as const)
    process.removeAllListeners(name).on(name, note);
});
afterEach(() => {
  for (const name of ['uncaughtException', 'unhandledRejection'] as const) {
    process.removeAllListeners(name);
    for (const listener of usual[name]) process.on(name, listener as (...args: unknown[]) => void);
  }
  expect(uncaught).toEqual([]);
});

test('an answer to a name query after its listener closed is dropped', async () => {
  const [listener, client] = [createSocket('udp4'), createSocket('udp4')];
  listener.bind(0, '127.0.0.1');
  await once(listener, 'listening');
  let found = (_answer: Buffer): void => undefined;
  const asked = new Promise<void>((heard) =>
    serveNames(listener, () => {
      heard();
      return new Promise((resolve) => (found = resolve));
    }),
  );
  client.send('a question', listener.address().port, '127.0.0.1');
  await asked;
  listener.close();
  found(Buffer.from('an answer'));
  await sleep(50);
  client.close();
});

test('a browser tab can close before its terminal fails to open', async () => {
  const paths = taskPaths(dir, 'nobody');
  mkdirSync(paths.root, { recursive: true });
  const stored = { task: { id: 'nobody', name: 'nobody' }, paths } as unknown as StoredTask;
  const terminals = createTerminals(20);
  const reasons: string[] = [];
  const socket = Object.assign(new EventEmitter(), {
    OPEN: 1,
    readyState: 3,
    close: (_code: number, reason: string) => void reasons.push(reason),
    terminate: () => undefined,
  });
  const served = terminals.serve(stored, socket as unknown as WebSocket);
  socket.emit('close');
  await served;
  terminals.close();
  await sleep(100);
  expect(reasons).toEqual(['nobody is not running.']);
});

test('the reason for a missing terminal is cut to the length that a WebSocket allows', async () => {
  const name = 'ü'.repeat(200);
  const paths = taskPaths(dir, 'long');
  mkdirSync(paths.root, { recursive: true });
  const reasons: string[] = [];
  const socket = Object.assign(new EventEmitter(), {
    close: (_code: number, reason: string) => void reasons.push(reason),
  });
  const stored = { task: { id: 'long', name }, paths } as unknown as StoredTask;
  await createTerminals().serve(stored, socket as unknown as WebSocket);
  expect(reasons).toEqual(['ü'.repeat(60)]);
});

test('a runner that cannot be started is not recorded as alive', () => {
  const paths = taskPaths(dir, 'unstarted');
  mkdirSync(paths.root, { recursive: true });
  const context = { ...makeHostContext({ HOME: dir, PATH: '/usr/bin:/bin' }), self: [join(dir, 'no-such-node')] };
  expect(() => spawnRunner(context, paths, 'unstarted', firstRun('0'.repeat(40), 0, 1))).toThrow(
    'The runner could not be started',
  );
  const { runner } = JSON.parse(readFileSync(paths.run, 'utf8')) as { runner: ProcessIdentity };
  expect(isAlive(runner)).toBe(false);
});

test('a log whose directory is gone is closed once', () => {
  const place = join(dir, 'log');
  mkdirSync(place);
  const log = openBoundedLog(join(place, 'log'));
  log.append('x'.repeat(2 * 2 ** 20));
  rmSync(place, { recursive: true });
  expect(() => log.append('one more')).toThrow('ENOENT');
  // A new file that gets the same descriptor stays open.
  const other = openBoundedLog(join(dir, 'other'));
  log.append('and more');
  log[Symbol.dispose]();
  other.append('mine');
  other[Symbol.dispose]();
  expect(readFileSync(join(dir, 'other'), 'utf8')).toBe('mine');
});

test('input to a program that has ended is dropped, and its exit code arrives', async () => {
  const port = 20_000 + Math.floor(Math.random() * 10_000);
  const host = spawn('perl', ['-e', insideHostScript(), '--', String(port)], { stdio: 'ignore' });
  const sandbox = {
    async connect() {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      return socket;
    },
  } as unknown as Sandbox;
  try {
    await expect
      .poll(() =>
        sandbox.connect(0).then(
          (socket) => socket.destroy().destroyed,
          () => false,
        ),
      )
      .toBe(true);
    const inside = await startInside(sandbox, ['sh', '-c', 'exit 3'], { window: null, onData: () => undefined });
    // Blocks this process until the program has ended.
    spawnSync('sleep', ['1']);
    inside.write(Buffer.from('too'));
    inside.write(Buffer.from('late'));
    inside.end();
    expect(await inside.done).toBe(3);
  } finally {
    host.kill('SIGKILL');
  }
});

test('a control socket that cannot be opened is closed once', async () => {
  // Sockets cannot be created in this directory.
  const control = serveControl('/sys/kernel', async () => null);
  await sleep(50);
  control.close();
  await sleep(50);
});

test('reading the output of a program that could not start fails at once', async () => {
  const child = withStreams(spawn(join(dir, 'no-such-program'), [], { stdio: ['ignore', 'pipe', 'ignore'] }));
  const read = async (): Promise<string> => {
    let all = '';
    for await (const chunk of child.stdout) all += String(chunk);
    return all;
  };
  await expect(read()).rejects.toThrow();
});

test('a failed socket pair does not mix up the next pair', async () => {
  const place = join(dir, 'pairs');
  mkdirSync(place);
  const pairs = openPairs(place, 's');
  const [one, other] = await pairs.pair();
  renameSync(join(place, 's'), join(place, 'away'));
  await expect(pairs.pair()).rejects.toThrow('ENOENT');
  renameSync(join(place, 'away'), join(place, 's'));
  const [another, itsOther] = await pairs.pair();
  for (const [from, to] of [
    [one, other],
    [another, itsOther],
  ] as const) {
    from.write('hello');
    expect(String((await once(to, 'data'))[0])).toBe('hello');
  }
  for (const socket of [one, other, another, itsOther]) socket.destroy();
  pairs.close();
});
