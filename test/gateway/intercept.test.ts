// Requests to an inspected host: each is judged, rebuilt and sent on, and answered as the origin answers (A57, A61, A62).
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { createAuthority } from '../../src/gateway/intercept/certificate.ts';
import { echo, inside, ok, replies, stage } from './intercept-fixture.ts';

const GET = 'GET / HTTP/1.1\r\nHost: origin.test\r\n\r\n';

describe('a request', () => {
  test('is rebuilt, without the fields that are meant for one hop', async () => {
    await using scene = await stage(echo);
    const client = await scene.client();
    const fields =
      'Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Authorization: a\r\nTE: trailers\r\nX-Stays: caf\u00e9\r\nAccept-Encoding: gzip\r\n';
    const { status, head, body } = await client.ask(
      `POST /a%2Db?q=%2e HTTP/1.1\r\nhost: ORIGIN.test:443\r\n${fields}Upgrade: h2c\r\nContent-Length: 2\r\n\r\nhi`,
    );
    expect({ status, head, body }).toEqual({
      status: 200,
      head: `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: keep-alive`,
      body: 'POST /a-b?q=%2e HTTP/1.1\r\nHost: origin.test\r\nX-Stays: caf\u00e9\r\nAccept-Encoding: gzip\r\nContent-Length: 2\r\nConnection: keep-alive',
    });
    client.socket.end();
    await Promise.all(scene.over);
    expect(scene.infos).toEqual([
      {
        method: 'POST',
        path: '/a-b',
        status: 200,
        refused: null,
        bytesOut: body.length + 6,
        bytesIn: body.length + 40,
        ms: expect.any(Number) as number,
      },
    ]);
  });

  test('follows another on the same two connections, also when both arrive at once', async () => {
    await using scene = await stage(replies((head) => ok(head.split(' ')[1] ?? '')));
    const client = await scene.client();
    for (let i = 0; i < 20; i += 1) expect((await client.ask(GET.replace('/', `/${i}`))).body).toBe(`/${i}`);
    client.send(GET.replace('/', '/one') + GET.replace('/', '/two'));
    expect(await client.until(/\/two$/)).toMatch(/\/one.*\/two$/s);
    expect(scene.origins).toHaveLength(1);
  });

  test("for another host than the connection's is refused, and the connection ends", async () => {
    await using scene = await stage(echo);
    for (const [target, host] of [
      ['/', 'evil.test'],
      ['/', 'origin.test:8443'],
      ['/', 'origin.test@evil.test'],
      ['/', ''],
      ['https://evil.test/', 'origin.test'],
      ['http://origin.test/', 'origin.test'],
      ['https://origin.test@evil.test/', 'origin.test'],
      ['https://origin.test:444/', 'origin.test'],
      ['https://origin.test/', 'evil.test'],
    ]) {
      const client = await scene.client();
      client.send(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      expect(await client.rest()).toMatch(/^HTTP\/1.1 421 ags refuses this request: it names another host/);
    }
    expect(scene.received()).toBe('');
    const client = await scene.client();
    expect((await client.ask('GET https://Origin.test.:443?x HTTP/1.1\r\nHost: origin.test.\r\n\r\n')).body).toMatch(
      /^GET \/\?x HTTP/,
    );
  });

  test.each(['TRACE', 'trace', 'TRACK', 'CONNECT'])('with the method %s is refused', async (method) => {
    await using scene = await stage(echo);
    const client = await scene.client();
    expect((await client.ask(GET.replace('GET', method))).status).toBe(405);
    expect(scene.received()).toBe('');
  });

  const paths = [
    '*',
    'a',
    '//',
    '//a',
    '/a//b',
    '/.',
    '/./a',
    '/a/..',
    '/a/../b',
    '/a/..;x/b',
    '/%2e%2e/a',
    '/a%2Etxt',
    '/a\\b',
    '/a%5cb',
    '/a%00',
    '/a%0d%0aX',
    '/a%',
    '/a%zz',
    '/a%2f..%2fb',
    '/a%2f',
    '/a%2f%2fb',
    '/a%252e',
    '/a#b',
  ];
  test.each(paths.filter((path) => path !== '/a%2f'))('to the path %s is refused', async (path) => {
    await using scene = await stage(echo);
    const client = await scene.client();
    client.send(GET.replace('/', path));
    expect(await client.rest()).toMatch(/^HTTP\/1.1 400 ags refuses/);
    expect(scene.received()).toBe('');
  });

  test('is judged by its method and path, in every reading of the path', async () => {
    const asked: string[] = [];
    const decide = (method: string, path: string): string | null => {
      asked.push(`${method} ${path}`);
      return path.startsWith('/no/') ? 'ags: origin.test is allowed for /yes only.' : null;
    };
    await using scene = await stage(echo, { decide });
    const client = await scene.client();
    expect((await client.ask(GET.replace('/', '/yes/%61%2fb?/no/'))).body).toMatch(/^GET \/yes\/a%2Fb\?\/no\/ /);
    const refused = await client.ask(GET.replace('/', '/%6eo%2fx'));
    expect([refused.head.split('\r\n')[0], refused.body]).toEqual([
      'HTTP/1.1 403 ags: origin.test is allowed for /yes only.',
      'ags: origin.test is allowed for /yes only.\n',
    ]);
    expect((await client.ask(GET.replace('GET', 'DELETE'))).status).toBe(200);
    expect((await client.ask(GET.replace('/', '/no;x/y'))).status).toBe(403);
    expect(asked.splice(-2)).toEqual(['GET /no;x/y', 'GET /no/y']);
    expect(asked).toEqual(['GET /yes/a%2Fb', 'GET /yes/a/b', 'GET /no%2Fx', 'GET /no/x', 'DELETE /']);
    expect(scene.received()).not.toMatch(/no%2Fx/);
  });

  test('with a method in lower case is refused', async () => {
    await using scene = await stage(echo);
    const client = await scene.client();
    expect((await client.ask(GET.replace('GET', 'delete'))).status).toBe(400);
    expect(scene.received()).toBe('');
  });

  test.each(['X-HTTP-Method-Override: DELETE', 'x-original-url: /admin'])(
    'that overrides its method or path in %s is refused',
    async (field) => {
      await using scene = await stage(echo);
      const client = await scene.client();
      expect((await client.ask(GET.replace('Host', `${field}\r\nHost`))).status).toBe(400);
      expect(scene.received()).toBe('');
    },
  );

  const smuggled: readonly (readonly [string, string])[] = [
    [
      'a length and an encoding',
      'POST / HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n12345'],
    [
      'chunked, identity',
      'POST / HTTP/1.1\r\nHost: origin.test\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
    ],
    ['a folded line', 'GET / HTTP/1.1\r\nHost: origin.test\r\nX: a\r\n b\r\n\r\n'],
    ['bare line feeds', 'GET / HTTP/1.1\nHost: origin.test\n\n'],
    ['a NUL', 'GET / HTTP/1.1\r\nHost: origin.test\0\r\n\r\n'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ];
  test.each(smuggled)('with %s is refused and never sent on', async (_, text) => {
    await using scene = await stage(echo);
    const client = await scene.client();
    client.send(text);
    expect(await client.rest()).toMatch(/^HTTP\/1.1 (400|505) ags refuses this request: [^\r]+\r\n/);
    expect([scene.received(), scene.infos.length]).toEqual(['', 1]);
  });

  test('with a malformed chunk ends the connection, and the origin never sees its end', async () => {
    await using scene = await stage((socket) => socket.on('data', () => undefined));
    const client = await scene.client();
    client.send('POST / HTTP/1.1\r\nHost: origin.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
    while (!scene.received().includes('abc')) await sleep(5);
    client.send('0;x\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: origin.test\r\n\r\n');
    expect(await client.rest()).toMatch(/^HTTP\/1.1 400 /);
    expect(scene.received()).toMatch(/3\r\nabc\r\n$/);
  });

  test('that names its framing in Connection keeps it', async () => {
    await using scene = await stage(echo);
    const client = await scene.client();
    client.send(
      'POST / HTTP/1.1\r\nHost: origin.test\r\nConnection: Content-Length, Host\r\nContent-Length: 4\r\n\r\nGET ',
    );
    expect(await client.until(/keep-alive$/)).toMatch(/Host: origin.test\r\nContent-Length: 4\r\n/);
  });
});

describe('the origin', () => {
  test.each([
    [
      'has a certificate of an untrusted issuer',
      { issuer: createAuthority({ commonName: 'x', days: 1, now: new Date() }) },
      'TLS says',
    ],
    ['has a certificate of another host', { certificateFor: 'other.test' }, 'its certificate is for another host'],
    [
      'has an expired certificate',
      { issuer: createAuthority({ commonName: 'test roots', days: 1, now: new Date(1e12) }) },
      'TLS says',
    ],
  ])('gets no request if it %s', async (_, options, problem) => {
    await using scene = await stage(echo, options);
    const client = await scene.client();
    const { status, body } = await client.ask(GET);
    expect([status, body.startsWith(`There is no secure connection to origin.test:443: ${problem}`)]).toEqual([
      502,
      true,
    ]);
    expect(scene.received()).toBe('');
  });

  test('may be an IP address', async () => {
    for (const [certificateFor, status] of [
      ['127.0.0.1', 200],
      ['127.0.0.2', 502],
    ] as const) {
      await using scene = await stage(echo, { host: '127.0.0.1', certificateFor });
      const client = await scene.client({ servername: '' });
      expect((await client.ask(GET.replace('origin.test', '127.0.0.1'))).status).toBe(status);
    }
  });

  test('that cannot be reached is reported with the reason', async () => {
    await using scene = await stage(echo, {
      dial: async () => Promise.resolve({ kind: 'refused', status: 504, reason: 'No way there.' }),
    });
    const client = await scene.client();
    expect(await client.ask(GET)).toMatchObject({ status: 504, body: 'No way there.\n' });
  });

  test('may close a kept connection: a GET is sent again, a request with a body never', async () => {
    // The origin closes without an answer when a second request has come in.
    let count = 0;
    await using scene = await stage((socket) => {
      let own = 0;
      socket.on('data', () => {
        count += 1;
        own += 1;
        if (own === 1) socket.write(ok('first'));
        else socket.destroy();
      });
    });
    const client = await scene.client();
    expect((await client.ask(GET)).body).toBe('first');
    expect((await client.ask(GET)).body).toBe('first');
    expect(count).toBe(3);
    client.send('POST / HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 1\r\n\r\n1');
    expect(await client.rest()).toMatch(
      /^HTTP\/1.1 502 ags got no answer from origin.test:443: it closed the connection/,
    );
    expect(count).toBe(4);
  });

  test('that closed between two requests is asked on a new connection', async () => {
    await using scene = await stage(replies((_head, socket) => (setTimeout(() => socket.end(), 5), ok('x'))));
    const client = await scene.client();
    await client.ask(GET);
    await once(scene.origins[0] ?? client.socket, 'close');
    expect((await client.ask('POST / HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 1\r\n\r\n1')).body).toBe('x');
    expect(scene.origins).toHaveLength(2);
  });

  test('cannot send the client to another host with Alt-Svc, and its redirects are not followed', async () => {
    await using scene = await stage(
      replies(
        () => 'HTTP/1.1 302 Found\r\nAlt-Svc: h3=":443"\r\nLocation: https://evil.test/\r\nContent-Length: 0\r\n\r\n',
      ),
    );
    const client = await scene.client();
    expect((await client.ask(GET)).head).toBe(
      'HTTP/1.1 302 Found\r\nLocation: https://evil.test/\r\nContent-Length: 0\r\nConnection: keep-alive',
    );
  });

  test.each([
    ['no HTTP', 'SSH-2.0\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    ['another protocol', 'HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n'],
    ['an unrequested WebSocket', 'HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n'],
  ])('that answers with %s is not passed on', async (_, text) => {
    await using scene = await stage(replies(() => text));
    const client = await scene.client();
    expect((await client.ask(GET)).status).toBe(502);
  });

  test('that breaks off leaves the client with an incomplete answer', async () => {
    for (const start of ['Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n', 'Content-Length: 10\r\n\r\nhello']) {
      await using scene = await stage(
        replies((_head, socket) => (setTimeout(() => socket.end(), 20), `HTTP/1.1 200 OK\r\n${start}`)),
      );
      const client = await scene.client();
      client.send(GET);
      expect(await client.rest()).toMatch(/hello(\r\n)?$/);
      await Promise.all(scene.over);
    }
  });

  test('may end a response by closing', async () => {
    await using scene = await stage(
      replies((_head, socket) => (setTimeout(() => socket.end('end'), 20), 'HTTP/1.1 200 OK\r\n\r\nbegin ')),
    );
    const client = await scene.client();
    client.send(GET);
    expect(await client.rest()).toBe('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbegin end');
  });

  test('loses its connection when the client is gone', async () => {
    await using scene = await stage(
      replies(
        (_head, socket) => (
          setInterval(() => socket.write('1\r\nx\r\n'), 20).unref(),
          'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
        ),
      ),
    );
    const client = await scene.client();
    client.send(GET);
    await client.until(/x/);
    client.socket.destroy();
    await once(scene.origins[0] ?? client.socket, 'close');
    await Promise.all(scene.over);
  });
});

describe('streams', () => {
  test('events arrive when they are sent', async () => {
    await using scene = await stage(
      replies(() => 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'),
    );
    const client = await scene.client();
    client.send(GET);
    expect(await client.until(/\r\n\r\n$/)).toMatch(/event-stream/);
    for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
      scene.origins[0]?.write(`${event.length.toString(16)}\r\n${event}\r\n`);
      expect(await client.until(/\n\n\r\n$/)).toBe(`9\r\n${event}\r\n`);
    }
  });

  test('a body waits for "100 Continue" and follows it', async () => {
    await using scene = await stage((socket) => {
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString();
        if (text.endsWith('\r\n\r\n')) socket.write('HTTP/1.1 100 Continue\r\n\r\n');
        if (text.endsWith('hello')) socket.write(ok('thanks'));
      });
    });
    const client = await scene.client();
    client.send('POST / HTTP/1.1\r\nHost: origin.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n');
    expect(await client.until(/\r\n\r\n$/)).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    client.send('hello');
    expect(await client.until(/thanks$/)).toMatch(/^HTTP\/1.1 200 OK/);
    expect((await client.ask('POST / HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 5\r\n\r\nhello')).body).toBe(
      'thanks',
    );
  });

  test('a refusal in place of "100 Continue" ends the connection, since its next bytes are ambiguous', async () => {
    await using scene = await stage(replies((head) => (head.startsWith('GET') ? ok('') : null)));
    const client = await scene.client();
    client.send('POST / HTTP/1.1\r\nHost: origin.test\r\nExpect: 100-continue\r\nContent-Length: 55\r\n\r\n');
    while (scene.origins.length === 0 || !scene.received().includes('100-continue')) await sleep(5);
    scene.origins[0]?.write('HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n');
    await client.until(/413/);
    client.send(GET.replace('/', '/next'));
    await client.rest();
    client.socket.end();
    await Promise.all(scene.over);
    expect(scene.received()).not.toContain('/next');
  });

  test('a client that half-closes still gets its answer', async () => {
    await using scene = await stage(replies((_head, socket) => (setTimeout(() => socket.write(ok('late')), 50), null)));
    const client = await scene.client();
    client.socket.end(GET);
    expect(await client.rest()).toMatch(/late$/);
  });

  const MB = 1024 * 1024;
  const block = randomBytes(MB);

  function hashOf(blocks: number): string {
    const hash = createHash('sha256');
    for (let i = 0; i < blocks; i += 1) hash.update(block);
    return hash.digest('hex');
  }

  /** Writes as fast as the reader lets it. */
  async function pump(socket: Socket, blocks: number, state: { written: number }): Promise<void> {
    for (let i = 0; i < blocks; i += 1) {
      if (!socket.write(block)) await once(socket, 'drain');
      state.written += MB;
    }
  }

  /** Resolves when two samples are equal: the writer is waiting. */
  async function stopped(state: { written: number }): Promise<void> {
    let seen = 0;
    const isStill = (): boolean => {
      const before = seen;
      seen = state.written;
      return seen > 0 && seen === before;
    };
    await expect.poll(isStill, { interval: 200 }).toBe(true);
  }

  test('a large response arrives whole, and its sender waits for a slow reader', async () => {
    const state = { written: 0 };
    await using scene = await stage(
      replies((_head, socket) => {
        setTimeout(() => void pump(socket, 64, state), 0);
        return `HTTP/1.1 200 OK\r\nContent-Length: ${64 * MB}\r\n\r\n`;
      }),
    );
    const client = await scene.client();
    client.socket.removeAllListeners('data').pause();
    client.send(GET);
    await stopped(state);
    expect(state.written).toBeLessThan(32 * MB);
    expect(await readBody(client.socket, 64 * MB)).toBe(hashOf(64));
  });

  test('a large request arrives whole, and its sender waits for a slow origin', async () => {
    const arrived = { hash: '' };
    let go = (): void => undefined;
    const told = new Promise<void>((resolve) => (go = resolve));
    await using scene = await stage((socket) => {
      socket.removeAllListeners('data').pause();
      void told
        .then(() => readBody(socket, 64 * MB))
        .then((hash) => {
          arrived.hash = hash;
          socket.write(ok(''));
        });
    });
    const client = await scene.client();
    const state = { written: 0 };
    client.send(`POST / HTTP/1.1\r\nHost: origin.test\r\nContent-Length: ${64 * MB}\r\n\r\n`);
    const pumping = pump(client.socket, 64, state);
    await stopped(state);
    expect(state.written).toBeLessThan(32 * MB);
    go();
    await pumping;
    await client.until(/200 OK/);
    expect(arrived.hash).toBe(hashOf(64));
  });

  /** The hash of the bytes after the head. */
  function readBody(socket: Socket, length: number): Promise<string> {
    return new Promise((resolve) => {
      const hash = createHash('sha256');
      let left = -1;
      socket.on('data', (chunk: Buffer) => {
        const data = left === -1 ? chunk.subarray(chunk.indexOf('\r\n\r\n') + 4) : chunk;
        if (left === -1) left = length;
        left -= data.length;
        hash.update(data);
        if (left === 0) resolve(hash.digest('hex'));
      });
      socket.resume();
    });
  }
});

describe('a WebSocket', () => {
  const ask = `GET /chat HTTP/1.1\r\nHost: origin.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n`;

  test('passes bytes both ways once the origin has agreed, not before', async () => {
    await using scene = await stage((socket) => {
      socket.once('data', (head: Buffer) => {
        expect(head.toString()).toMatch(/\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n$/);
        setTimeout(() => {
          expect(scene.received()).not.toContain('early');
          socket.write(
            'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: y\r\n\r\nhi',
          );
          socket.on('data', (chunk: Buffer) => socket.write(`<${chunk.toString()}>`));
        }, 30);
      });
    });
    const client = await scene.client();
    client.send(`${ask}early`);
    expect(await client.until(/<early>$/)).toBe(
      'HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: y\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhi<early>',
    );
    client.send('more');
    expect(await client.until(/>$/)).toBe('<more>');
    client.socket.end();
    await Promise.all(scene.over);
    expect(scene.infos).toMatchObject([{ path: '/chat', status: 101 }]);
  });

  test('is the only upgrade that is passed on: any other would hide requests', async () => {
    await using scene = await stage(echo);
    const client = await scene.client();
    const { body } = await client.ask(ask.replace('websocket', 'h2c'));
    expect(body).not.toMatch(/upgrade/i);
  });

  test('that the origin declines is no way around the rules', async () => {
    const decide = (_method: string, path: string): string | null => (path === '/secret' ? 'no' : null);
    await using scene = await stage(
      replies(() => ok('plain')),
      { decide },
    );
    const client = await scene.client();
    client.send(`${ask}GET /secret HTTP/1.1\r\nHost: origin.test\r\n\r\n`);
    expect(await client.until(/no\n$/)).toMatch(/plain.*HTTP\/1.1 403 no/s);
    expect(scene.received()).not.toContain('/secret');
  });
});

describe('limits', () => {
  test('a head that does not arrive in time ends the connection', async () => {
    await using scene = await stage(echo, { headMs: 1000 });
    const client = await scene.client();
    client.send('GET / HTTP/1.1\r\nHost: ori');
    await client.rest();
    await Promise.all(scene.over);
  });

  test('an idle connection is ended, but not one that waits for its answer or is in the middle of a head', async () => {
    const idleMs = 300;
    const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
    const late = replies((_head, socket, index) => {
      if (index !== 1) return answer;
      setTimeout(() => socket.write(answer), 3 * idleMs);
      return null;
    });
    await using scene = await stage(late, { idleMs });
    const client = await scene.client();
    for (let n = 0; n < 3; n += 1) expect((await client.ask(GET)).status).toBe(200);
    client.send(GET.slice(0, 10));
    await sleep(2 * idleMs);
    expect((await client.ask(GET.slice(10))).status).toBe(200);
    expect(await client.rest()).toBe('');
    await Promise.all(scene.over);
    expect(scene.infos.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });

  test('a spent budget ends the connection', async () => {
    let left = 200;
    await using scene = await stage(echo, { count: (direction, bytes) => direction === 'in' || (left -= bytes) > 0 });
    const client = await scene.client();
    expect((await client.ask(GET)).status).toBe(200);
    client.send(`POST / HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 500\r\n\r\n${'x'.repeat(500)}`);
    expect(await client.rest()).toMatch(/^HTTP\/1.1 403 .*the budget of bytes is spent/);
    expect(scene.received()).not.toContain('xxx');
  });

  test('a spent budget cuts a response off', async () => {
    let left = 1000;
    await using scene = await stage(
      replies(
        (_head, socket) => (
          setTimeout(() => socket.write('x'.repeat(5000)), 20),
          `HTTP/1.1 200 OK\r\nContent-Length: 5003\r\n\r\nabc`
        ),
      ),
      { count: (direction, bytes) => direction === 'out' || (left -= bytes) > 0 },
    );
    const client = await scene.client();
    client.send(GET);
    expect(await client.rest()).toMatch(/abc$/);
  });

  test('a client that wants another protocol, or breaks TLS, is disconnected at once', async () => {
    await using scene = await stage(echo);
    await expect(scene.client({ ALPNProtocols: ['h2'] })).rejects.toThrow(/alert/);
    expect((await scene.client({ ALPNProtocols: ['h2', 'http/1.1'] })).socket).toMatchObject({
      alpnProtocol: 'http/1.1',
    });
    const tcp = connectTcp(scene.port, '127.0.0.1');
    const tls = connectTls({ socket: tcp, servername: 'origin.test', ca: inside.certificatePem });
    tls.on('error', () => undefined);
    await once(tls, 'secureConnect');
    tls.write('GET / HTTP/1.1\r\n');
    const started = Date.now();
    tcp.write('this is no record of TLS');
    await Promise.all(scene.over.slice(-1));
    expect(Date.now() - started).toBeLessThan(15_000);
    tcp.destroy();
  });
});

describe('a loopback endpoint', () => {
  test('speaks plain HTTP inside and TLS outside, below its own path', async () => {
    await using scene = await stage(echo, { scheme: 'http', basePath: '/key' });
    const client = await scene.client();
    const { body } = await client.ask('GET /key/v1/x?y HTTP/1.1\r\nHost: 127.0.0.1:3129\r\n\r\n');
    expect(body).toBe('GET /v1/x?y HTTP/1.1\r\nHost: origin.test\r\nConnection: keep-alive');
    for (const [target, status] of [
      ['/keys', 404],
      ['/key/../x', 400],
      ['https://evil.test/key/', 421],
    ] as const) {
      const other = await scene.client();
      expect((await other.ask(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1:3129\r\n\r\n`)).status).toBe(status);
    }
  });
});
