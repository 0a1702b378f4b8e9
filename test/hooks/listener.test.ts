// test/hooks/listener.test.ts: hostile requests from a sandbox to the hook listener, and the client that asks it.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { clientCommand, hookClient } from '../../src/hooks/client.ts';
import { serveHookListener, type ListenerLimits } from '../../src/hooks/listener.ts';
import type { GateVerdict } from '../../src/protocol/hook.ts';
import { COMMAND, createHookPlace } from './fixture.ts';

const LIMITS: ListenerLimits = { bodyBytes: 1000, totalBytes: 2000, connections: 4, requestMs: 5000 };
const NO: GateVerdict = { allow: false, reason: 'not today' };

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A port on which `meet` receives every connection. */
async function listen(meet: (socket: Socket) => void): Promise<number> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.on('error', () => undefined);
    meet(socket);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  closers.push(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

async function listener(
  answer: (event: string, json: unknown) => Promise<GateVerdict>,
  limits: Partial<ListenerLimits> = {},
): Promise<number> {
  const served = serveHookListener(answer, { ...LIMITS, ...limits });
  closers.push(() => served.close());
  return listen((socket) => served.enter(socket));
}

/** Returns everything the peer sends until it closes; "" if it closes without an answer. */
function talk(port: number, text: string | Buffer, hold: { open: boolean } = { open: true }): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => (hold.open ? socket.write(text) : socket.end(text)));
    let said = '';
    socket.on('data', (chunk: Buffer) => (said += chunk.toString()));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(said));
  });
}

const post = (path: string, body: string, more = ''): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\n${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const verdictIn = (said: string): unknown => {
  const [head = '', body = ''] = said.split('\r\n\r\n');
  return said === '' ? 'hung up' : [Number(head.split(' ')[1]), JSON.parse(body)];
};

describe('the hook listener', () => {
  test('returns the verdict of the hooks and passes on the event and its JSON', async () => {
    const heard: unknown[] = [];
    const port = await listener((event, json) => {
      heard.push([event, json]);
      return Promise.resolve(heard.length === 1 ? { allow: true } : NO);
    });
    expect(verdictIn(await talk(port, post('/hook/PreToolUse', '{"a":"ü"}')))).toEqual([200, { allow: true }]);
    expect(verdictIn(await talk(port, post('/hook/Stop', '{}')))).toEqual([200, NO]);
    expect(heard).toEqual([
      ['PreToolUse', { a: 'ü' }],
      ['Stop', {}],
    ]);
  });

  test.each([
    ['GET /hook/x HTTP/1.1\r\nHost: x\r\n\r\n', 405],
    [post('/', '{}'), 404],
    [post('/hook/', '{}'), 404],
    [post('/hook/a/b', '{}'), 404],
    [post('/hook/..%2f', '{}'), 404],
    [post(`/hook/${'x'.repeat(65)}`, '{}'), 404],
    [post('http://evil.test/hook/x', '{}'), 404],
    ['POST /hook/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n', 411],
    ['POST /hook/x HTTP/1.1\r\nHost: x\r\n\r\n', 411],
    [post('/hook/x', 'x'.repeat(1001)), 413],
    ['POST /hook/x HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n', 413],
    [post('/hook/x', '{"a":'), 400],
    [post('/hook/x', ''), 400],
    [post('/hook/x', '\u0000'), 400],
  ])('refuses %j', async (request, status) => {
    let asked = 0;
    const port = await listener(() => Promise.resolve((asked++, { allow: true })));
    expect(verdictIn(await talk(port, request))).toEqual([status, { allow: false, reason: expect.any(String) }]);
    expect(asked).toBe(0);
  });

  test.each([
    'rubbish\r\n\r\n',
    `POST /hook/x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}`,
    `POST /hook/x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x`,
    `POST /hook/x HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}`,
    `POST /hook/x HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n{}`,
    'CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  ])('hangs up on %j', async (request) => {
    let asked = 0;
    const port = await listener(() => Promise.resolve((asked++, { allow: true })));
    expect(await talk(port, request)).toBe('');
    expect(asked).toBe(0);
  });

  test('an incomplete request is not judged', async () => {
    let asked = 0;
    const port = await listener(() => Promise.resolve((asked++, { allow: true })));
    expect(
      await talk(port, 'POST /hook/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{}', { open: false }),
    ).not.toContain('"allow":true');
    expect(asked).toBe(0);
  });

  test('a slow request is closed, in the head and in the body', async () => {
    const port = await listener(() => Promise.resolve({ allow: true }), { requestMs: 200 });
    const slow = (text: string): Promise<string> =>
      new Promise((resolve) => {
        const socket = connect(port, '127.0.0.1');
        let at = 0;
        let said = '';
        const timer = setInterval(() => socket.write(text[at++ % text.length] ?? ''), 20);
        socket.on('data', (chunk: Buffer) => (said += chunk.toString()));
        socket.on('error', () => undefined);
        socket.on('close', () => {
          clearInterval(timer);
          resolve(said);
        });
      });
    expect(await slow(`POST /hook/x HTTP/1.1\r\nX: ${'y'.repeat(1000)}`)).toBe('');
    expect(await talk(port, 'POST /hook/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{')).toBe('');
  });

  test('a second request on the same connection is never judged', async () => {
    const heard: string[] = [];
    const port = await listener((event) => {
      heard.push(event);
      return new Promise((resolve) => setImmediate(() => resolve({ allow: true })));
    });
    await talk(port, post('/hook/first', '{}') + post('/hook/second', '{}'));
    await talk(port, post('/hook/third', '{}', 'Connection: keep-alive\r\n'));
    expect(heard).toEqual(['first', 'third']);
  });

  test('requests over the limit are closed, and accepted ones are answered', async () => {
    const waiting: (() => void)[] = [];
    const port = await listener(() => new Promise((resolve) => waiting.push(() => resolve({ allow: true }))));
    const first = Array.from({ length: 4 }, () => talk(port, post('/hook/x', '{}')));
    await expect.poll(() => waiting.length).toBe(4);
    expect(await talk(port, post('/hook/x', '{}'))).toBe('');
    for (const release of waiting) release();
    expect((await Promise.all(first)).map(verdictIn)).toEqual(first.map(() => [200, { allow: true }]));
  });

  test('a closed connection keeps its judgement slot until the hooks finish', async () => {
    const waiting: (() => void)[] = [];
    let most = 0;
    let now = 0;
    const port = await listener(async () => {
      most = Math.max(most, ++now);
      await new Promise<void>((resolve) => waiting.push(resolve));
      now--;
      return { allow: true };
    });
    const gone: Socket[] = [];
    for (let i = 0; i < 4; i++) gone.push(connect(port, '127.0.0.1').on('error', () => undefined));
    for (const socket of gone) socket.write(post('/hook/x', '{}'));
    await expect.poll(() => waiting.length).toBe(4);
    for (const socket of gone) socket.destroy();
    await expect
      .poll(async () => verdictIn(await talk(port, post('/hook/x', '{}'))))
      .toEqual([503, { allow: false, reason: expect.any(String) }]);
    for (const release of waiting) release();
    expect(most).toBe(4);
  });

  test('the total size of all bodies is bounded', async () => {
    const waiting: (() => void)[] = [];
    const port = await listener(() => new Promise((resolve) => waiting.push(() => resolve({ allow: true }))), {
      totalBytes: 1500,
    });
    const first = talk(port, post('/hook/x', `"${'x'.repeat(900)}"`));
    await expect.poll(() => waiting.length).toBe(1);
    expect(verdictIn(await talk(port, post('/hook/x', `"${'x'.repeat(900)}"`)))).toMatchObject([503, { allow: false }]);
    waiting[0]?.();
    expect(verdictIn(await first)).toEqual([200, { allow: true }]);
  });

  test('an error of ags is a refusal', async () => {
    const port = await listener(() => Promise.reject(new Error('broken')));
    expect(verdictIn(await talk(port, post('/hook/x', '{}')))).toEqual([
      400,
      { allow: false, reason: 'The hooks could not be asked, so this is refused: broken' },
    ]);
    const thrown = await listener(() => {
      throw new Error('broken');
    });
    expect(verdictIn(await talk(thrown, post('/hook/x', '{}')))).toMatchObject([400, { allow: false }]);
  });

  test('a deeply nested body gets a verdict, and the listener keeps working', async () => {
    await using at = createHookPlace();
    at.own('pre-any', '#!/bin/sh\nexit 0\n');
    const hooks = await at.open();
    const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    hooks.onListener('hooks', server);
    closers.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    const deep = JSON.stringify({ ...COMMAND, input: 'HERE' }).replace(
      '"HERE"',
      `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`,
    );
    expect(verdictIn(await talk(port, post('/hook/x', deep)))).toMatchObject([200, { allow: false }]);
    expect(verdictIn(await talk(port, post('/hook/x', 'null')))).toMatchObject([200, { allow: true }]);
    expect(verdictIn(await talk(port, post('/hook/x', '7')))).toMatchObject([200, { allow: false }]);
    expect(verdictIn(await talk(port, post('/hook/ignored', '{}')))).toMatchObject([200, { allow: true }]);
    expect(verdictIn(await talk(port, post('/hook/x', JSON.stringify(COMMAND))))).toEqual([200, { allow: true }]);
  });
});

describe('the client', () => {
  function withResolvers(): { promise: Promise<void>; resolve(): void } {
    let resolve = (): void => undefined;
    const promise = new Promise<void>((done) => (resolve = done));
    return { promise, resolve: () => resolve() };
  }

  interface Ended {
    readonly code: number | null;
    readonly stderr: string;
  }

  function ask(
    port: number,
    more: {
      input?: string;
      args?: string[];
      seconds?: number;
      env?: Record<string, string>;
      killed?: Promise<void>;
    } = {},
  ): Promise<Ended> {
    const directory = mkdtempSync('/tmp/ags-client-');
    const file = join(directory, 'hook');
    writeFileSync(file, hookClient(port, more.seconds ?? 20));
    const [perl = '', ...options] = clientCommand(['/usr/bin/perl']).slice(0, -1);
    const child = spawn(perl, [...options, file, ...(more.args ?? ['PreToolUse'])], { env: more.env ?? {} });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.stdin.on('error', () => undefined);
    void more.killed?.then(() => child.kill('SIGTERM'));
    child.stdin.end(more.input ?? '{}');
    return new Promise((resolve) =>
      child.on('close', (code) => {
        rmSync(directory, { recursive: true, force: true });
        resolve({ code, stderr });
      }),
    );
  }

  const says = (text: string): Promise<number> =>
    listen((socket) => {
      socket.resume();
      socket.end(text);
    });

  test('has fewer than 60 lines', () => {
    expect(hookClient(3130, 20).split('\n').length).toBeLessThan(60);
  });

  test('exits with 0 for approval, and with 2 and the reason for refusal', async () => {
    const heard: unknown[] = [];
    const yes = await listener(
      (event, json) => {
        heard.push([event, (json as { text: string }).text.length]);
        return Promise.resolve({ allow: true });
      },
      { bodyBytes: 2 ** 23, totalBytes: 2 ** 24 },
    );
    expect(await ask(yes, { input: JSON.stringify({ text: 'ü'.repeat(3_000_000) }) })).toEqual({ code: 0, stderr: '' });
    expect(heard).toEqual([['PreToolUse', 3_000_000]]);
    const no = await listener(() => Promise.resolve({ allow: false, reason: 'not today,\nand not ümorrow' }));
    expect(await ask(no)).toEqual({ code: 2, stderr: 'not today,\nand not ümorrow\n' });
  });

  test('a reason that says "allowed" is still a refusal', async () => {
    const port = await listener(() => Promise.resolve({ allow: false, reason: 'allowed' }));
    expect(await ask(port)).toEqual({ code: 2, stderr: 'allowed\n' });
  });

  test.each([
    ['', 'there was no answer'],
    ['rubbish', 'there was no answer'],
    ['HTTP/1.1 200 OK\r\n', 'there was no answer'],
    ['HTTP/1.1 200 OK\r\n\r\n', 'the answer is not valid'],
    ['HTTP/1.1 200 OK\r\n\r\nallowed', 'the answer is not valid'],
    ['HTTP/1.1 200 OK\r\n\r\n{"allow":true}', 'the answer is not valid'],
    ['HTTP/1.1 2000 OK\r\n\r\nallowed\n', 'there was no answer'],
    ['HTTP/1.1 403 No\r\n\r\nallowed\n', 'allowed'],
    ['HTTP/1.1 500 No\r\n\r\n', 'This is refused'],
    [`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(2_000_000)}`, 'more than'],
  ])('the answer %j is a refusal', async (answer, why) => {
    const { code, stderr } = await ask(await says(answer));
    expect({ code, why: stderr.includes(why) || stderr }).toEqual({ code: 2, why: true });
  });

  test('a missing listener, a missing answer, a missing event, an oversized request and an interrupt are refusals', async () => {
    const port = await listen(() => undefined);
    expect(await ask(port, { seconds: 1 })).toEqual({
      code: 2,
      stderr: 'The hooks gave no answer within 1 s, so this is refused.\n',
    });
    expect(await ask(port, { input: 'x'.repeat(2 ** 23 + 1) })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('more than'),
    });
    expect(await ask(port, { args: [] })).toMatchObject({ code: 2, stderr: expect.stringContaining('no name') });
    expect(await ask(port, { args: ['a b'] })).toMatchObject({ code: 2 });
    const met = withResolvers();
    const meeting = await listen(() => met.resolve());
    expect(await ask(meeting, { killed: met.promise })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('The hooks were interrupted'),
    });
    for (const close of closers.splice(0)) close();
    expect(await ask(port)).toMatchObject({ code: 2, stderr: expect.stringContaining('Connection refused') });
  });

  test('no environment variable turns a refusal into approval', async () => {
    const directory = mkdtempSync('/tmp/ags-perl-');
    writeFileSync(join(directory, 'Evil.pm'), 'package Evil; exit 0; 1;\n');
    writeFileSync(join(directory, 'Socket.pm'), 'package Socket; exit 0; 1;\n');
    const port = await says('');
    const env = { PERL5LIB: directory, PERLLIB: directory, PERL5OPT: '-MEvil', PERL5DB: 'BEGIN { exit 0 }' };
    expect(await ask(port, { env })).toMatchObject({ code: 2 });
    rmSync(directory, { recursive: true, force: true });
  });
});
