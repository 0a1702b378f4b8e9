// test/lib/control.test.ts: requests to a running sandbox's control socket, and their answers.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { callControl, serveControl } from '../../src/lib/process/control.ts';
import { AgsError } from '../../src/protocol/errors.ts';
import { CALLERS } from '../harness.ts';

let dir: string;
beforeEach(() => {
  dir = fs.mkdtempSync(join(tmpdir(), 'ags-control-'));
});
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }));

const echo = async (request: unknown): Promise<unknown> => ({ got: request });
const CONTROL = new URL('../../dist/lib/process/control.js', import.meta.url).href;

test('requests get answers, in sequence and concurrently', async () => {
  const server = serveControl(dir, echo);
  expect(await callControl(dir, { do: 'rules' }, 2000)).toEqual({ got: { do: 'rules' } });
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => callControl(dir, i, 5000)));
  expect(answers).toEqual(Array.from({ length: 20 }, (_, got) => ({ got })));
  server.close();
});

test('only the owner can use the socket', async () => {
  const server = serveControl(dir, echo);
  await callControl(dir, 1, 2000);
  const { mode } = fs.statSync(join(dir, 'control'));
  expect([mode & 0o777, fs.statSync(join(dir, 'control')).isSocket()]).toEqual([0o600, true]);
  server.close();
});

test("a path longer than the kernel's limit for sockets works", async () => {
  const long = join(dir, ...Array.from({ length: 12 }, () => 'directory-with-a-long-name'));
  fs.mkdirSync(long, { recursive: true });
  const server = serveControl(long, echo);
  expect(await callControl(long, 'distant', 2000)).toEqual({ got: 'distant' });
  server.close();
  await expect.poll(() => fs.readdirSync(long)).toEqual([]);
});

test('without a runner a request fails at once', async () => {
  expect(await callControl(dir, 1, 60_000)).toBe(null);
  expect(await callControl(join(dir, 'missing'), 1, 60_000)).toBe(null);
  const server = serveControl(dir, echo);
  await callControl(dir, 1, 2000);
  server.close();
  expect(await callControl(dir, 1, 60_000)).toBe(null);
});

test.each(CALLERS)('the next runner replaces the dead socket of a killed one (%s)', async (caller) => {
  const source = `import { serveControl } from ${JSON.stringify(CONTROL)};
    serveControl(process.argv[1], async () => new Promise(() => {})); setInterval(() => {}, 1000); console.log('up');`;
  const identity = caller === 'user' && process.getuid?.() === 0 ? { uid: 42_424, gid: 42_424 } : {};
  if (identity.uid !== undefined) fs.chownSync(dir, identity.uid, identity.gid);
  const runner = spawn(process.execPath, ['--input-type=module', '-e', source, dir], {
    stdio: ['ignore', 'pipe', 'inherit'],
    ...identity,
  });
  await once(runner.stdout, 'data');
  const asked = callControl(dir, 'waiting', 60_000);
  await new Promise((resolve) => setTimeout(resolve, 200));
  runner.kill('SIGKILL');
  expect(await asked).toBe(null);
  expect(fs.existsSync(join(dir, 'control'))).toBe(true);
  expect(await callControl(dir, 'again', 60_000)).toBe(null);
  const server = serveControl(dir, echo);
  expect(await callControl(dir, 'new', 2000)).toEqual({ got: 'new' });
  server.close();
});

test('a runner that misses the deadline is an error', async () => {
  const server = serveControl(dir, () => new Promise(() => undefined));
  await expect(callControl(dir, 1, 100)).rejects.toMatchObject({ code: 'task.busy' });
  server.close();
});

test('a refusal of the runner reaches the caller with its hint', async () => {
  const server = serveControl(dir, async (request) => {
    if (request === 'bug') throw new TypeError('of undefined');
    throw new AgsError('usage.invalid', 'No such thing.', { hint: 'Look: ags net rules' });
  });
  await expect(callControl(dir, 1, 2000)).rejects.toMatchObject({
    code: 'usage.invalid',
    message: 'No such thing.',
    hint: 'Look: ags net rules',
  });
  await expect(callControl(dir, 'bug', 2000)).rejects.toThrow('the runner failed: of undefined');
  server.close();
});

test('a request that is not JSON, too long or endless does not reach the handler or block others', async () => {
  const seen: unknown[] = [];
  const server = serveControl(dir, async (request) => seen.push(request));
  const send = async (...pieces: string[]): Promise<string> => {
    const socket = connect(join(dir, 'control'));
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString())).on('error', () => undefined);
    for (const piece of pieces) socket.write(piece);
    await once(socket, 'close');
    return text;
  };
  const silent = connect(join(dir, 'control'));
  silent.write('{"half":');
  expect(await send('not json\n')).toBe('{"error":{"code":"usage.invalid","message":"The request is not JSON."}}\n');
  expect(await send('x'.repeat(3_000_000))).toBe(
    '{"error":{"code":"usage.invalid","message":"The request is too long."}}\n',
  );
  expect(await send('"a', 'b"', '\n"second"\n')).toBe('1\n');
  expect(await callControl(dir, 'c', 2000)).toBe(2);
  expect(seen).toEqual(['ab', 'c']);
  silent.destroy();
  server.close();
});

test('a listening socket or a silent client does not keep the process alive', () => {
  const source = `import { serveControl } from ${JSON.stringify(CONTROL)}; import { connect } from 'node:net';
    serveControl(process.argv[1], async () => 1);
    const silent = connect(process.argv[1] + '/control'); silent.on('connect', () => silent.unref());`;
  const done = spawnSync(process.execPath, ['--input-type=module', '-e', source, dir], {
    timeout: 4000,
    encoding: 'utf8',
  });
  expect([done.status, done.signal, done.stderr]).toEqual([0, null, '']);
});

test('a closed server leaves no socket and no descriptor', async () => {
  const before = fs.readdirSync('/proc/self/fd').length;
  for (let i = 0; i < 20; i++) {
    const server = serveControl(dir, echo);
    await callControl(dir, i, 2000);
    server.close();
  }
  await expect
    .poll(() => [fs.readdirSync(dir), fs.readdirSync('/proc/self/fd').length <= before + 2])
    .toEqual([[], true]);
});

test('removing a served directory is harmless', async () => {
  const task = join(dir, 'task');
  fs.mkdirSync(task);
  const server = serveControl(task, echo);
  await callControl(task, 1, 2000);
  fs.rmSync(task, { recursive: true });
  server.close();
  expect(await callControl(task, 1, 2000)).toBe(null);
});
