// test/gateway/tunnel.test.ts: allowed tunnels behave like direct connections.
// needs: low-ports
import { createHash, randomBytes } from 'node:crypto';
import { connect as connectHttp2, createSecureServer } from 'node:http2';
import { expect, test } from 'vitest';
import { createWorld, ORIGIN, readText, socks, startTls } from './fixture.ts';

const echo = (socket: {
  on(event: 'data', listener: (chunk: Buffer) => void): unknown;
  write(chunk: Buffer): unknown;
}) => void socket.on('data', (chunk) => socket.write(chunk));

test('TLS to an allowed host passes untouched: the client sees the certificate of the origin', async () => {
  await using context = await createWorld();
  await context.tls(443, echo);
  const gateway = await context.gateway();
  const socket = await gateway.open('allowed.test');
  const secure = await startTls(socket, 'allowed.test', context);
  expect(secure.getPeerCertificate().subjectaltname).toBe('DNS:allowed.test');
  secure.write('hello');
  expect(await readText(secure, /hello/)).toBe('hello');
  secure.destroy();
  await expect.poll(() => gateway.log.length).toBe(1);
  expect(gateway.log[0]).toMatchObject({
    run: 'run',
    by: 'connect',
    host: 'allowed.test',
    port: 443,
    verdict: 'allowed',
    reason: 'allowed by allowed.test (test)',
    address: ORIGIN,
  });
  expect(gateway.log[0]?.bytesOut).toBeGreaterThan(300);
  expect(gateway.log[0]?.bytesIn).toBeGreaterThan(500);
});

test('other ports carry any protocol, also when the server speaks first', async () => {
  await using context = await createWorld();
  const port = await context.tcp(0, (socket) => {
    socket.write('SSH-2.0-server\r\n');
    socket.on('data', (chunk) => socket.write(`got ${chunk.toString()}`));
  });
  const gateway = await context.gateway({ allow: [`allowed.test:${port}`] });
  const socket = await gateway.open('allowed.test', port);
  expect(await readText(socket, /server\r\n/)).toBe('SSH-2.0-server\r\n');
  socket.write('hi');
  expect(await readText(socket, /got hi/)).toBe('got hi');
});

test('a half-closed connection keeps its other half', async () => {
  await using context = await createWorld();
  const port = await context.tcp(0, (socket) => {
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString()));
    socket.on('end', () => setTimeout(() => socket.end(`you said ${text}`), 50));
  });
  const gateway = await context.gateway({ allow: [`allowed.test:${port}`] });
  const socket = await gateway.open('allowed.test', port);
  socket.end('all of it');
  expect(await readText(socket)).toBe('you said all of it');
});

test('bytes arrive intact, both ways at once, with slow readers', async () => {
  await using context = await createWorld();
  const size = 8 * 1024 * 1024;
  const [down, up] = [randomBytes(size), randomBytes(size)];
  // Not the first byte of TLS, which would be inspected.
  up[0] = 0;
  const hash = (data: Buffer): string => createHash('sha256').update(data).digest('hex');
  let received: Buffer[] = [];
  const port = await context.tcp(0, (socket) => {
    received = [];
    socket.on('data', (chunk) => {
      received.push(chunk);
      socket.pause();
      setTimeout(() => socket.resume(), 1);
    });
    socket.end(down);
  });
  const gateway = await context.gateway({ allow: [`allowed.test:${port}`] });
  const socket = await gateway.open('allowed.test', port);
  const got: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => {
    got.push(chunk);
    socket.pause();
    setTimeout(() => socket.resume(), 1);
  });
  socket.resume();
  socket.end(up);
  await new Promise((resolve) => socket.on('end', resolve));
  await expect.poll(() => Buffer.concat(received).length, { timeout: 20_000 }).toBe(size);
  expect([hash(Buffer.concat(got)), hash(Buffer.concat(received))]).toEqual([hash(down), hash(up)]);
  socket.destroy();
  await expect.poll(() => gateway.log).toMatchObject([{ bytesOut: size, bytesIn: size, verdict: 'allowed' }]);
});

test('a stalled reader makes the writer wait, and memory does not grow', async () => {
  await using context = await createWorld();
  let sent = 0;
  const block = Buffer.alloc(1 << 20);
  const port = await context.tcp(0, (socket) => {
    const more = (): void => {
      while (sent < 1 << 29 && socket.write(block)) sent += block.length;
      socket.once('drain', more);
    };
    more();
  });
  const gateway = await context.gateway({ allow: [`allowed.test:${port}`] });
  await gateway.open('allowed.test', port);
  let seen = 0;
  const isStill = (): boolean => {
    const before = seen;
    seen = sent;
    return seen > 0 && seen === before;
  };
  await expect.poll(isStill, { interval: 200 }).toBe(true);
  expect(sent).toBeLessThan(64 << 20);
});

test('server-sent events arrive as they are sent', async () => {
  await using context = await createWorld();
  const port = await context.tcp(0, (socket) => {
    let n = 0;
    const timer = setInterval(() => socket.write(`data: ${++n}\n\n`), 20);
    socket.on('close', () => clearInterval(timer));
  });
  const gateway = await context.gateway({ allow: [`allowed.test:${port}`] });
  const socket = await gateway.open('allowed.test', port);
  for (let n = 1; n <= 5; n++) expect(await readText(socket, /\n\n/)).toBe(`data: ${n}\n\n`);
});

test('SOCKS5 follows the same rules: allowed, denied, and by address', async () => {
  await using context = await createWorld();
  const port = await context.tcp(0, echo);
  const gateway = await context.gateway({ allow: [`allowed.test:${port}`] });
  expect(await gateway.talk(Buffer.concat([socks('allowed.test', port), Buffer.from('ping')]), { until: /ping/ })).toBe(
    '\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00ping',
  );
  expect((await gateway.talk(socks('evil.test', port))).slice(2, 4)).toBe('\x05\x02');
  const literal = Buffer.from([5, 1, 0, 5, 1, 0, 1, ...ORIGIN.split('.').map(Number), port >> 8, port & 255]);
  expect((await gateway.talk(literal)).slice(2, 4)).toBe('\x05\x02');
  expect(gateway.log.map(({ by, host, verdict }) => `${by} ${host} ${verdict}`)).toContain('socks5 evil.test denied');
});

test('HTTP/2 passes through a tunnel', async () => {
  await using context = await createWorld();
  const server = createSecureServer({ ...context.authority.leafFor('allowed.test') }, (request, response) =>
    response.end(`${request.httpVersion} ${request.url}`),
  );
  await new Promise<void>((resolve) => server.listen(443, ORIGIN, resolve));
  const gateway = await context.gateway();
  const socket = await gateway.open('allowed.test');
  const secure = await startTls(socket, 'allowed.test', context, ['h2']);
  const session = connectHttp2('https://allowed.test', { createConnection: () => secure });
  const answers = await Promise.all(
    ['/one', '/two'].map(async (path) => {
      const request = session.request({ ':path': path });
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks).toString();
    }),
  );
  expect(answers).toEqual(['2.0 /one', '2.0 /two']);
  session.destroy();
  server.close();
});
