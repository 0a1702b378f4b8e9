// test/gateway/dial.test.ts: the addresses that are dialled for a name, against local name servers, proxies and hosts.
// Granted loopback addresses stand for public ones.
import { connect, Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { createGuard } from '../../src/gateway/dial/address.ts';
import {
  createDialer,
  type Dialed,
  type Dialer,
  type DialTarget,
  type DialUpstream,
} from '../../src/gateway/dial/dial.ts';
import { createResolver } from '../../src/gateway/dial/resolve.ts';
import { startNameServer, type Given, type NameServer } from './name-server.ts';
import { startEcho, startHttpProxy, startScripted, startSocksProxy, type Listening } from './proxies.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

interface HostContext {
  readonly names: NameServer;
  readonly dialer: Dialer;
  /** Every address that a socket was opened to. */
  readonly dialled: string[];
  readonly open: (address: string, port: number) => Socket;
}

async function start(
  names: Readonly<Record<string, readonly string[]>> | ((name: string) => Given),
  options: { granted?: string[]; upstreams?: DialUpstream[]; connectTimeoutMs?: number; now?: () => number } = {},
): Promise<HostContext> {
  const server = await startNameServer(
    typeof names === 'function' ? names : (name) => ({ addresses: names[name] ?? [] }),
  );
  const resolver = createResolver({
    servers: [server.address],
    hostsFile: '/nonexistent',
    timeoutMs: 300,
    ...(options.now === undefined ? {} : { now: options.now }),
  });
  const ownAddresses = (): string[] =>
    Object.values(networkInterfaces()).flatMap((all) => all?.map((one) => one.address) ?? []);
  const guard = createGuard({ granted: options.granted ?? ['127.0.0.2', '127.0.0.3'], ownAddresses });
  const { upstreams = [], connectTimeoutMs = 3000 } = options;
  const dialled: string[] = [];
  cleanups.push(server.close, resolver.close);
  return {
    names: server,
    dialer: createDialer({ resolver, guard, upstreams, connectTimeoutMs }),
    dialled,
    open: (address, port) => {
      dialled.push(address);
      return connect({ host: address, port, allowHalfOpen: true, noDelay: true });
    },
  };
}

async function started(promise: Promise<Listening>): Promise<Listening> {
  const listening = await promise;
  cleanups.push(listening.close);
  return listening;
}

const named = (host: string, port: number): DialTarget => ({ host, port, kind: 'name', granted: false });
const literal = (host: string, port: number, granted: boolean): DialTarget => ({ host, port, kind: 'ip', granted });

/** The address and everything the other side answers to "x"; or the refusal. */
async function outcome(dialed: Dialed): Promise<unknown> {
  if (dialed.kind === 'refused') return dialed;
  const chunks = [dialed.head];
  dialed.socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  dialed.socket.end('x');
  dialed.socket.resume();
  await new Promise((resolve) => dialed.socket.on('end', resolve));
  dialed.socket.destroy();
  return `${dialed.address}: ${Buffer.concat(chunks).toString()}`;
}

const refused = (reason: string, more: { policy?: boolean; timedOut?: boolean } = {}): unknown => ({
  kind: 'refused',
  reason,
  policy: more.policy ?? false,
  timedOut: more.timedOut ?? false,
});

test('a name is dialled at the address it leads to', async () => {
  const echo = await started(startEcho('127.0.0.2'));
  const { dialer, open, dialled } = await start({ 'allowed.test': ['127.0.0.2'] });
  expect(await outcome(await dialer.dial(named('allowed.test', echo.port), open))).toBe('127.0.0.2: hello x');
  expect(dialled).toEqual(['127.0.0.2']);
});

test('a name that leads to a special address is refused after its lookup, and nothing is dialled', async () => {
  const own = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find((one) => !one.internal && one.family === 'IPv4')?.address;
  const cases: Record<string, [string, string]> = {
    'loopback.test': ['127.0.0.1', 'loopback'],
    'six.test': ['::1', 'loopback'],
    'lan.test': ['192.168.1.20', 'a private address'],
    'metadata.test': ['169.254.169.254', 'a cloud metadata address'],
    'ula.test': ['fd12::1', 'a private address'],
    'nat64.test': ['64:ff9b::7f00:1', 'an address that stands for an IPv4 one'],
    'mapped.test': ['::ffff:10.0.0.1', 'a private address'],
    'zero.test': ['0.0.0.0', 'an address of this machine'],
  };
  const names = Object.fromEntries(Object.entries(cases).map(([name, [address]]) => [name, [address]]));
  const { dialer, open, dialled } = await start({ ...names, ...(own === undefined ? {} : { 'own.test': [own] }) });
  const outcomes = [];
  for (const name of Object.keys(cases)) {
    const dialed = await dialer.dial(named(name, 443), open);
    outcomes.push(dialed.kind === 'refused' && dialed.policy && !dialed.timedOut && dialed.reason);
  }
  // c-ares writes a mapped address in its own spelling.
  expect(outcomes.map((one) => String(one).replace(/leads to \S+,/, 'leads there,'))).toEqual(
    Object.entries(cases).map(([name, [, why]]) => `${name} leads there, which is ${why}`),
  );
  expect(outcomes[0]).toBe('loopback.test leads to 127.0.0.1, which is loopback');
  if (own !== undefined)
    expect(await dialer.dial(named('own.test', 443), open)).toMatchObject({ kind: 'refused', policy: true });
  expect(dialled).toEqual([]);
});

test('of several addresses only the permitted ones are tried', async () => {
  const echo = await started(startEcho('127.0.0.2'));
  const { dialer, open, dialled } = await start({ 'mixed.test': ['127.0.0.1', '10.0.0.1', '127.0.0.2', '::1'] });
  expect(await outcome(await dialer.dial(named('mixed.test', echo.port), open))).toBe('127.0.0.2: hello x');
  expect(dialled).toEqual(['127.0.0.2']);
});

test('rebinding: the checked address is the one that is dialled, and a later answer is checked again', async () => {
  const good = await started(startEcho('127.0.0.2', 'good '));
  let now = 0;
  const seen = { count: 0 };
  const { dialer, open, dialled, names } = await start(
    () => ({ addresses: [seen.count++ < 2 ? '127.0.0.2' : '127.0.0.1'], ttl: 0 }),
    { now: () => now },
  );
  expect(await outcome(await dialer.dial(named('rebind.test', good.port), open))).toBe('127.0.0.2: good x');
  expect({ asked: names.asked.toSorted(), dialled }).toEqual({
    asked: ['A rebind.test', 'AAAA rebind.test'],
    dialled: ['127.0.0.2'],
  });
  now = 5000;
  expect(await dialer.dial(named('rebind.test', good.port), open)).toEqual(
    refused('rebind.test leads to 127.0.0.1, which is loopback', { policy: true }),
  );
  expect(dialled).toEqual(['127.0.0.2']);
});

test('an address that a rule names is dialled, any other is checked; a granted name may lead anywhere', async () => {
  const echo = await started(startEcho());
  const { dialer, open, dialled } = await start({ 'db.test': ['127.0.0.1'] });
  expect([
    await outcome(await dialer.dial(literal('127.0.0.1', echo.port, true), open)),
    await outcome(await dialer.dial({ ...named('db.test', echo.port), granted: true }, open)),
    await outcome(await dialer.dial({ ...named('localhost', echo.port), granted: true }, open)),
    await outcome(await dialer.dial(literal('127.0.0.1', echo.port, false), open)),
  ]).toEqual([
    '127.0.0.1: hello x',
    '127.0.0.1: hello x',
    '127.0.0.1: hello x',
    refused('127.0.0.1 is loopback', { policy: true }),
  ]);
  expect(dialled).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.1']);
});

test('an address that refuses is followed by the next one at once', async () => {
  const echo = await started(startEcho('127.0.0.9'));
  const addresses = [2, 3, 4, 5, 6, 7, 8, 9].map((last) => `127.0.0.${last}`);
  const { dialer, open, dialled } = await start({ 'many.test': addresses }, { granted: ['127.0.0.0/8'] });
  const begin = performance.now();
  expect(await outcome(await dialer.dial(named('many.test', echo.port), open))).toBe('127.0.0.9: hello x');
  // Waiting for each address would take 1.75 s.
  expect(performance.now() - begin).toBeLessThan(1500);
  expect(dialled).toEqual(addresses);
});

test('a silent address does not delay the next one, and is dropped when that one answers', async () => {
  const echo = await started(startEcho('127.0.0.3'));
  const { dialer, open } = await start({ 'slow.test': ['127.0.0.2', '127.0.0.3'] }, { connectTimeoutMs: 20_000 });
  const silent = new Socket();
  const begin = performance.now();
  const dialed = await dialer.dial(named('slow.test', echo.port), (address, port) =>
    address === '127.0.0.2' ? silent : open(address, port),
  );
  const ms = performance.now() - begin;
  expect(await outcome(dialed)).toBe('127.0.0.3: hello x');
  expect({ notAtOnce: ms > 200, soon: ms < 10_000, silent: silent.destroyed }).toEqual({
    notAtOnce: true,
    soon: true,
    silent: true,
  });
});

test('a slow first address still wins if it connects before the next one', async () => {
  const echo = await started(startEcho('127.0.0.2'));
  const { dialer } = await start({ 'slow.test': ['127.0.0.2', '127.0.0.3'] });
  const sockets: Socket[] = [];
  const dialed = await dialer.dial(named('slow.test', echo.port), (address, port) => {
    const socket = new Socket({ allowHalfOpen: true });
    sockets.push(socket);
    if (address === '127.0.0.2') void setTimeout(400).then(() => socket.connect(port, address));
    return socket;
  });
  expect(await outcome(dialed)).toBe('127.0.0.2: hello x');
  expect(sockets.map((socket) => socket.destroyed)).toEqual([true, true]);
});

test('an unreachable host is reported with its reason, not as denied by policy', async () => {
  const { dialer, open } = await start(
    (name) =>
      name === 'silent.test' ? { silent: true } : name === 'no.test' ? { rcode: 3 } : { addresses: ['127.0.0.2'] },
    { connectTimeoutMs: 300 },
  );
  expect([
    await dialer.dial(named('closed.test', 1), open),
    await dialer.dial(named('no.test', 1), open),
    await dialer.dial(named('silent.test', 1), open),
    await dialer.dial(named('hangs.test', 1), () => new Socket()),
  ]).toEqual([
    refused('closed.test:1 refused the connection'),
    refused('no.test does not exist'),
    refused('no name server told where silent.test is in time', { timedOut: true }),
    refused('hangs.test:1 did not answer in time', { timedOut: true }),
  ]);
});

test('a proxy gets the checked address, or the name if it looks names up itself', async () => {
  const echo = await started(startEcho('127.0.0.2'));
  const http = await started(startHttpProxy({ 'a.there.test': '127.0.0.2' }, 'me:secret'));
  const socks = await started(startSocksProxy({}, null));
  const { dialer, open, dialled, names } = await start(
    (name) => ({
      addresses: [name === 'bad.here.test' ? '10.0.0.1' : name === 'proxy.corp.test' ? '127.0.0.1' : '127.0.0.2'],
    }),
    {
      upstreams: [
        {
          kind: 'http',
          host: '127.0.0.1',
          port: http.port,
          auth: 'me:secret',
          hosts: ['*.there.test'],
          resolve: 'there',
        },
        // The proxy's own address is private; the user configured it.
        {
          kind: 'socks5',
          host: 'proxy.corp.test',
          port: socks.port,
          auth: null,
          hosts: ['*.here.test', 'exact.test'],
          resolve: 'here',
        },
      ],
    },
  );
  const outcomes = [];
  for (const host of ['a.there.test', 'a.here.test', 'exact.test', 'bad.here.test', 'here.test', 'not-exact.test'])
    outcomes.push(await outcome(await dialer.dial(named(host, echo.port), open)));
  expect(outcomes).toEqual([
    'a.there.test: hello x',
    '127.0.0.2: hello x',
    '127.0.0.2: hello x',
    refused('bad.here.test leads to 10.0.0.1, which is a private address', { policy: true }),
    '127.0.0.2: hello x',
    '127.0.0.2: hello x',
  ]);
  const port = echo.port.toString(16).padStart(4, '0');
  expect({
    direct: dialled,
    http: http.heard.map((head) => head.split('\r\n')[0]),
    socks: socks.heard,
    askedForTheirs: names.asked.filter((question) => question.endsWith('there.test')),
  }).toEqual({
    direct: ['127.0.0.2', '127.0.0.2'],
    http: [`CONNECT a.there.test:${echo.port} HTTP/1.1`],
    socks: ['050100', `050100017f000002${port}`, '050100', `050100017f000002${port}`],
    askedForTheirs: [],
  });
});

test('a proxy for every host is skipped for loopback, and a dead one is named in the error', async () => {
  const echo = await started(startEcho());
  const upstream = { kind: 'http', host: '127.0.0.1', port: 1, auth: null, hosts: null, resolve: 'here' } as const;
  const { dialer, open } = await start({ 'allowed.test': ['127.0.0.2'] }, { upstreams: [upstream] });
  expect([
    await outcome(await dialer.dial(literal('127.0.0.1', echo.port, true), open)),
    await outcome(await dialer.dial({ ...named('localhost', echo.port), granted: true }, open)),
    await dialer.dial(named('allowed.test', echo.port), open),
  ]).toEqual(['127.0.0.1: hello x', '127.0.0.1: hello x', refused('the proxy 127.0.0.1:1 refused the connection')]);
});

test('a proxy is asked for the next address if one fails, but never again with a rejected password', async () => {
  const echo = await started(startEcho('127.0.0.3'));
  const open502 = await started(startHttpProxy({}, null));
  const locked = await started(startSocksProxy({}, 'me:right'));
  const base = { host: '127.0.0.1', resolve: 'here' } as const;
  const { dialer, open } = await start(() => ({ addresses: ['127.0.0.2', '127.0.0.3'] }), {
    upstreams: [
      { ...base, kind: 'http', port: open502.port, auth: null, hosts: ['two.test'] },
      { ...base, kind: 'socks5', port: locked.port, auth: 'me:wrong', hosts: ['locked.test'] },
    ],
  });
  expect(await outcome(await dialer.dial(named('two.test', echo.port), open))).toBe('127.0.0.3: hello x');
  expect(await dialer.dial(named('locked.test', echo.port), open)).toEqual(
    refused(`the proxy 127.0.0.1:${locked.port} did not accept the user and password`),
  );
  expect(locked.heard.filter((said) => said.startsWith('01'))).toHaveLength(1);
});

test('a silent proxy is dropped at the timeout', async () => {
  const silent = await started(startScripted([]));
  const upstream = {
    kind: 'http',
    host: '127.0.0.1',
    port: silent.port,
    auth: null,
    hosts: null,
    resolve: 'there',
  } as const;
  const { dialer, open } = await start({}, { upstreams: [upstream], connectTimeoutMs: 300 });
  expect(await dialer.dial(named('allowed.test', 443), open)).toEqual(
    refused(`the proxy 127.0.0.1:${silent.port} did not answer in time`, { timedOut: true }),
  );
});
