// test/gateway/upstream.test.ts: connections through sound and broken local proxies.
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { connectThrough, type ProxyAccess, type Through } from '../../src/gateway/dial/upstream.ts';
import { startEcho, startHttpProxy, startScripted, startSocksProxy, type Listening } from './proxies.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

async function started(promise: Promise<Listening>): Promise<Listening> {
  const listening = await promise;
  cleanups.push(listening.close);
  return listening;
}

async function through(
  access: Omit<ProxyAccess, 'host'>,
  target: { host: string; port: number },
  ms = 2000,
): Promise<Through> {
  const open = (): Socket => connect({ host: '127.0.0.1', port: access.port, allowHalfOpen: true, noDelay: true });
  const result = await connectThrough({ host: '127.0.0.1', ...access }, target, open, AbortSignal.timeout(ms));
  if (result.kind === 'open') cleanups.push(() => result.socket.destroy());
  return result;
}

/** Sends "x", half-closes, and returns everything that was received, with the first bytes. */
async function conversation(result: Through): Promise<string> {
  if (result.kind === 'failed') return result.reason;
  const chunks = [result.head];
  result.socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  result.socket.end('x');
  result.socket.resume();
  await new Promise((resolve) => result.socket.on('end', resolve));
  return Buffer.concat(chunks).toString();
}

for (const auth of [null, 'me:pass:word'])
  test(`a connection through an HTTP proxy ${auth === null ? 'without' : 'with'} a password works both ways`, async () => {
    const echo = await started(startEcho());
    const proxy = await started(startHttpProxy({ 'name.test': '127.0.0.1' }, auth));
    const access = { kind: 'http', port: proxy.port, auth } as const;
    const answers = [];
    for (const host of ['127.0.0.1', 'name.test'])
      answers.push(await conversation(await through(access, { host, port: echo.port })));
    expect(answers).toEqual(['hello x', 'hello x']);
    const line = auth === null ? '' : `Proxy-Authorization: Basic ${Buffer.from(auth).toString('base64')}\r\n`;
    expect(proxy.heard).toEqual(
      ['127.0.0.1', 'name.test'].map(
        (host) => `CONNECT ${host}:${echo.port} HTTP/1.1\r\nHost: ${host}:${echo.port}\r\n${line}\r\n`,
      ),
    );
  });

for (const auth of [null, 'me:pass:word'])
  test(`a connection through a SOCKS5 proxy ${auth === null ? 'without' : 'with'} a password works both ways`, async () => {
    const echo = await started(startEcho());
    const six = await started(startEcho('::1', 'six '));
    const proxy = await started(startSocksProxy({ 'name.test': '127.0.0.1' }, auth));
    const access = { kind: 'socks5', port: proxy.port, auth } as const;
    const answers = [];
    for (const target of [
      { host: '127.0.0.1', port: echo.port },
      { host: 'name.test', port: echo.port },
      { host: '::1', port: six.port },
    ])
      answers.push(await conversation(await through(access, target)));
    expect(answers).toEqual(['hello x', 'hello x', 'six x']);
    const port = echo.port.toString(16).padStart(4, '0');
    const begin = auth === null ? ['050100'] : ['05020002', `01026d6509${Buffer.from('pass:word').toString('hex')}`];
    expect(proxy.heard).toEqual([
      ...begin,
      `050100017f000001${port}`,
      ...begin,
      `0501000309${Buffer.from('name.test').toString('hex')}${port}`,
      ...begin,
      `05010004${'0'.repeat(31)}1${six.port.toString(16).padStart(4, '0')}`,
    ]);
  });

test('bytes that arrive together with the answer are handed over, in whatever pieces they come', async () => {
  const http = await started(startScripted(['HTTP/1.1 200 OK\r\n\r\nSSH-2.0-x\r\n']));
  const socks = await started(
    startScripted([Buffer.from('0500', 'hex'), Buffer.from('050000010000000000005353', 'hex')]),
  );
  const results = [
    await through({ kind: 'http', port: http.port, auth: null }, { host: 'name.test', port: 22 }),
    await through({ kind: 'socks5', port: socks.port, auth: null }, { host: 'name.test', port: 22 }),
  ];
  expect(results.map((one) => one.kind === 'open' && [one.head.toString(), one.socket.isPaused()])).toEqual([
    ['SSH-2.0-x\r\n', true],
    ['SS', true],
  ]);
});

test('a proxy that refuses or wants another password has its own error, which contains no password', async () => {
  const proxies = {
    http: await started(startHttpProxy({}, 'me:secret')),
    socks5: await started(startSocksProxy({}, 'me:secret')),
    openHttp: await started(startHttpProxy({}, null)),
    openSocks: await started(startSocksProxy({}, null)),
  };
  const closed = { host: '127.0.0.1', port: 1 };
  const results = [
    await through({ kind: 'http', port: proxies.http.port, auth: null }, closed),
    await through({ kind: 'http', port: proxies.http.port, auth: 'me:other' }, closed),
    await through({ kind: 'socks5', port: proxies.socks5.port, auth: null }, closed),
    await through({ kind: 'socks5', port: proxies.socks5.port, auth: 'me:other' }, closed),
    await through({ kind: 'http', port: proxies.openHttp.port, auth: null }, closed),
    await through({ kind: 'socks5', port: proxies.openSocks.port, auth: null }, closed),
    await through({ kind: 'socks5', port: proxies.openSocks.port, auth: 'no-colon' }, closed),
    await through({ kind: 'socks5', port: proxies.openSocks.port, auth: `me:${'x'.repeat(256)}` }, closed),
    await through({ kind: 'http', port: 1, auth: null }, closed),
  ];
  const failed = (port: number, reason: string, fault = 'proxy'): unknown => ({
    kind: 'failed',
    reason: `the proxy 127.0.0.1:${port} ${reason}`,
    timedOut: false,
    fault,
  });
  const impossible = 'cannot be given the user and password: each has 1 to 255 bytes, with a colon between them';
  expect(results).toEqual([
    failed(proxies.http.port, 'wants a user and a password'),
    failed(proxies.http.port, 'did not accept the user and password'),
    failed(proxies.socks5.port, 'wants a user and a password'),
    failed(proxies.socks5.port, 'did not accept the user and password'),
    failed(proxies.openHttp.port, 'did not open the connection (status 502)', 'target'),
    failed(proxies.openSocks.port, 'did not open the connection (connection refused)', 'target'),
    failed(proxies.openSocks.port, impossible),
    failed(proxies.openSocks.port, impossible),
    failed(1, 'cannot be reached (ECONNREFUSED)'),
  ]);
});

test('a malformed answer opens no connection', async () => {
  const bad: [ProxyAccess['kind'], (string | Buffer)[], string][] = [
    ['http', ['HTTP/1.1 200 OK\n\nHTTP/1.1 200 OK\r\n\r\n'], 'gave an answer that is not HTTP'],
    ['http', ['HTTP/1.1 200 OK\r\nbad header: x\r\n\r\n'], 'gave an answer that is not HTTP'],
    ['http', ['HTTP/1.1 200 OK\r\n folded: x\r\n\r\n'], 'gave an answer that is not HTTP'],
    ['http', ['HTTP/1.1 2000 OK\r\n\r\n'], 'gave an answer that is not HTTP'],
    ['http', ['HTTP/1.1 100 Continue\r\n\r\n'], 'gave an answer that is not HTTP'],
    ['http', ['HTTP/2 200\r\n\r\n'], 'does not speak HTTP'],
    ['http', ['SSH-2.0-OpenSSH\r\n'], 'does not speak HTTP'],
    ['http', [`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}`], 'gave an answer without an end'],
    ['socks5', ['HTTP/1.1 400 Bad Request\r\n\r\n'], 'does not speak SOCKS5'],
    ['socks5', [Buffer.from('0503', 'hex')], 'wants a user and a password'],
    ['socks5', [Buffer.from('0502', 'hex')], 'wants a user and a password'],
    ['socks5', [Buffer.from('0500', 'hex'), Buffer.from('0400', 'hex')], 'gave an answer that is not SOCKS5'],
    ['socks5', [Buffer.from('0500', 'hex'), Buffer.from('05000101', 'hex')], 'gave an answer that is not SOCKS5'],
    ['socks5', [Buffer.from('0500', 'hex'), Buffer.from('0500000200', 'hex')], 'gave an answer that is not SOCKS5'],
    ['socks5', [Buffer.from('0500', 'hex'), Buffer.from('0563', 'hex')], 'did not open the connection (code 99)'],
  ];
  const outcomes = [];
  for (const [kind, answers] of bad) {
    const proxy = await started(startScripted(answers));
    const result = await through({ kind, port: proxy.port, auth: null }, { host: 'name.test', port: 443 });
    outcomes.push(result.kind === 'open' ? 'open' : result.reason.replace(/^the proxy \S+ /, ''));
  }
  expect(outcomes).toEqual(bad.map(([, , reason]) => reason));
});

test('a proxy that sends nothing or half an answer is dropped at the timeout or when it closes', async () => {
  const silent = await started(startScripted([]));
  const half = await started(startScripted(['HTTP/1.1 200 OK\r\n'], { end: true }));
  const target = { host: 'name.test', port: 443 };
  const begin = performance.now();
  expect([
    await through({ kind: 'http', port: silent.port, auth: null }, target, 200),
    await through({ kind: 'socks5', port: silent.port, auth: null }, target, 200),
    await through({ kind: 'http', port: half.port, auth: null }, target, 20_000),
  ]).toEqual([
    {
      kind: 'failed',
      reason: `the proxy 127.0.0.1:${silent.port} did not answer in time`,
      timedOut: true,
      fault: 'proxy',
    },
    {
      kind: 'failed',
      reason: `the proxy 127.0.0.1:${silent.port} did not answer in time`,
      timedOut: true,
      fault: 'proxy',
    },
    {
      kind: 'failed',
      reason: `the proxy 127.0.0.1:${half.port} closed the connection`,
      timedOut: false,
      fault: 'proxy',
    },
  ]);
  expect(performance.now() - begin).toBeLessThan(10_000);
});

test('random bytes from a proxy never cause an exception', async () => {
  let state = 11;
  const next = (): number => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) >>> 8;
  const begins = [Buffer.from('HTTP/1.1 200 OK\r\n'), Buffer.from('0500', 'hex'), Buffer.from('050005000001', 'hex')];
  for (let round = 0; round < 150; round++) {
    const noise = Buffer.from(Array.from({ length: next() % 64 }, () => next() % 256));
    const answers = [Buffer.concat([begins[round % 3] ?? noise, noise])];
    const proxy = await started(startScripted(answers, { end: true }));
    const result = await through(
      { kind: round % 2 === 0 ? 'http' : 'socks5', port: proxy.port, auth: null },
      { host: 'n.test', port: 1 },
    );
    expect(['open', 'failed']).toContain(result.kind);
  }
});
