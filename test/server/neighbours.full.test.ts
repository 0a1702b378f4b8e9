// test/server/neighbours.full.test.ts: other users and programs of the machine connect to the port, read command lines, take ports first
// and hold connections open.
// needs: curl
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ONE } from '../harness.ts';
import { createServerMachine, listen, type RunningServer, type ServerMachine } from './place.ts';

let machine: ServerMachine;
beforeAll(async () => {
  machine = await createServerMachine(ONE);
});
afterAll(() => machine[Symbol.dispose]());

const SOMEBODY_ELSE = 42_425;

describe('A130: another user of the machine', () => {
  test.runIf(process.getuid?.() === 0)('cannot use a link from a command line', async () => {
    const { link, port } = machine.server;
    const { pathname, search, host } = new URL(link);
    const open = (uid: number): string =>
      execFileSync(
        'curl',
        [
          '-s',
          '-o',
          '/dev/null',
          '-w',
          '%{http_code}',
          '-H',
          `Host: ${host}`,
          `http://127.0.0.1:${port}${pathname}${search}`,
        ],
        { uid, gid: uid, encoding: 'utf8' },
      );
    expect(open(SOMEBODY_ELSE)).toBe('403');
    // The attempt did not use up the link; its owner can still open it.
    expect(open(machine.uid)).toBe('303');
    expect(open(machine.uid)).toBe('403');
  });

  test("finds no secret in the server's command line or environment", async () => {
    const { child, key, link } = await machine.serve();
    const token = new URL(link).searchParams.get('token') ?? '';
    const shown = ['cmdline', 'environ'].map((file) => readFileSync(`/proc/${child.pid}/${file}`, 'latin1')).join('\0');
    expect([shown.includes(key), shown.includes(token), key.length, token.length]).toEqual([false, false, 43, 32]);
  });

  test('gets no key by relaying the challenge to a real server', async () => {
    const seen: string[] = [];
    // Listens where `ags web` looks, and relays the challenge to the real server.
    const relay = createServer((asked, answer) => {
      seen.push(JSON.stringify([asked.method, asked.headers.authorization]));
      const { port } = machine.server;
      const options = { host: '127.0.0.1', port, method: asked.method, path: asked.url, agent: false };
      asked.pipe(
        request({ ...options, headers: { ...asked.headers, host: `127.0.0.1:${port}` } }, (given) => {
          answer.writeHead(given.statusCode ?? 500, given.headers);
          given.pipe(answer);
        }),
      );
    });
    await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
    const { port } = relay.address() as AddressInfo;
    const { code, stderr } = await machine.ags(['web', '--print', '--port', String(port)]);
    relay.close();
    expect(seen).toEqual(['["GET",null]']);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`Port ${port} is in use`)]);
  });
});

test('an agent cannot publish the port at which browsers expect the server', async () => {
  const { stderr } = await machine.ags(['exec', '--publish', '7780', '--', 'true']);
  expect(stderr).toMatch(/Port 7780 of the sandbox is 127\.0\.0\.1:(?!7780\b)\d+ here \(7780 is for ags serve\)/);
});

/** Sends this, reads nothing and keeps the connection; resolves when the server closes it. */
function holdOn(port: number, says: string): { closed: Promise<void>; socket: Socket } {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  socket.on('error', () => undefined);
  socket.pause();
  socket.write(says);
  // A socket that does not read misses the end; a failing write shows it.
  const closed = new Promise<void>((resolve) => {
    const poke = setInterval(() => socket.write('x'), 500);
    socket.once('close', () => {
      clearInterval(poke);
      resolve();
    });
  });
  return { closed, socket };
}

const head = (server: RunningServer, path: string, more = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n${more}`;
const UPGRADE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';

describe('A134: a client that holds a connection', () => {
  // Uses the server's real timeouts of 15 s and more.
  test('is disconnected', { timeout: 150_000 }, async () => {
    const { server } = machine;
    const asset = /\/assets\/index-[\w-]+\.js/.exec((await server.call('GET', '/')).text)?.[0] ?? '';
    const held = {
      refused: holdOn(server.port, `${head(server, '/api/live', UPGRADE)}\r\n`),
      'half a head': holdOn(server.port, head(server, '/')),
      'reads nothing': holdOn(server.port, `${head(server, asset)}\r\n`.repeat(40)),
    };
    await Promise.all(Object.values(held).map(({ closed }) => closed));
    expect((await server.call('GET', '/api/tasks')).status).toBe(200);
  });

  test('does not keep the server from ending', async () => {
    const server = await machine.serve();
    const ended = new Promise((resolve) => server.child.once('close', resolve));
    const refused = connect({ host: '127.0.0.1', port: server.port, allowHalfOpen: true });
    refused.on('error', () => undefined);
    refused.write(`${head(server, '/api/live', UPGRADE)}\r\n`);
    await new Promise((resolve) => refused.once('data', resolve));
    await listen(server).then(({ socket }) => socket.pause());
    server.child.kill('SIGTERM');
    await ended;
  });
});

describe('A134: a signed-in client that sends too much', () => {
  test('is disconnected after a message of more than a megabyte', async () => {
    const listener = await listen(machine.server);
    listener.socket.send('x'.repeat(2 ** 20 + 1));
    // The server closes without a reason.
    expect(await listener.closed).toBe('');
  });

  test('heads, URLs, topics and bodies are bounded, and deep nesting does not crash the server', async () => {
    const { server } = machine;
    const key = { authorization: `Bearer ${server.key}` };
    const status = async (path: string, more: Record<string, string> = {}): Promise<number> =>
      (await server.raw('GET', path, { ...key, ...more })).status;
    expect(await status('/api/tasks', { 'x-long': 'x'.repeat(17_000) })).toBe(431);
    expect(await status(`/api/tasks?q=${'x'.repeat(8200)}`)).toBe(400);
    const topics = Array.from({ length: 101 }, (_, i) => `task:t${i}`).join(',');
    expect(await status(`/api/events?topics=${topics}`)).toBe(400);
    for (const deep of ['['.repeat(2_000_000), `{"text":${'['.repeat(500_000)}${']'.repeat(500_000)}}`]) {
      const json = { ...key, 'content-type': 'application/json' };
      expect((await server.raw('POST', '/api/tasks/missing/send', json, deep)).status).toBe(400);
    }
    expect(await status('/api/tasks')).toBe(200);
  });
});
