// test/gateway/resolve.test.ts: the resolver against local name servers.
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { createHostsFile } from '../../src/gateway/dial/hosts-file.ts';
import { createResolver, type Resolver } from '../../src/gateway/dial/resolve.ts';
import { startNameServer, type Given, type NameServer } from './name-server.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

async function start(
  answer: (name: string, type: 'A' | 'AAAA') => Given,
  options: Partial<Parameters<typeof createResolver>[0]> = {},
): Promise<{ server: NameServer; resolver: Resolver }> {
  const server = await startNameServer(answer);
  const resolver = createResolver({ servers: [server.address], hostsFile: '/nonexistent', ...options });
  cleanups.push(server.close, resolver.close);
  return { server, resolver };
}

test('both address families are queried and IPv4 comes first', async () => {
  const { server, resolver } = await start(() => ({ addresses: ['2606:4700::1', '8.8.8.8', '8.8.4.4'] }));
  expect(await resolver.resolve('both.test')).toEqual({
    kind: 'found',
    addresses: ['8.8.8.8', '8.8.4.4', '2606:4700::1'],
  });
  expect(server.asked.toSorted()).toEqual(['A both.test', 'AAAA both.test']);
});

test('concurrent lookups of one name share one query, and the answer is kept for its time to live', async () => {
  let now = 0;
  const { server, resolver } = await start(() => ({ addresses: ['8.8.8.8'], ttl: 10, delayMs: 20 }), {
    now: () => now,
  });
  const all = await Promise.all(Array.from({ length: 50 }, () => resolver.resolve('one.test')));
  expect(new Set(all.map((one) => JSON.stringify(one))).size).toBe(1);
  now = 9_999;
  await resolver.resolve('one.test');
  expect(server.asked.length).toBe(2);
  now = 10_001;
  await resolver.resolve('one.test');
  expect(server.asked.length).toBe(4);
});

test('an answer is kept for at least a second and at most five minutes', async () => {
  let now = 0;
  const { server, resolver } = await start(
    (name) => ({ addresses: ['8.8.8.8'], ttl: name === 'short.test' ? 0 : 86_400 }),
    { now: () => now },
  );
  const askBoth = async (): Promise<number> => {
    await resolver.resolve('short.test');
    await resolver.resolve('long.test');
    return server.asked.length;
  };
  expect(await askBoth()).toBe(4);
  now = 999;
  expect(await askBoth()).toBe(4);
  now = 1001;
  expect(await askBoth()).toBe(6);
  now = 300_001;
  expect(await askBoth()).toBe(10);
});

test('a slow IPv6 answer does not delay an IPv4 one, and serves the next lookup', async () => {
  const { resolver } = await start((_, type) => ({
    addresses: ['8.8.8.8', '2606:4700::1'],
    delayMs: type === 'AAAA' ? 1000 : 0,
  }));
  const begin = performance.now();
  const first = await resolver.resolve('slow.test');
  const ms = performance.now() - begin;
  expect(first).toEqual({ kind: 'found', addresses: ['8.8.8.8'] });
  await expect
    .poll(() => resolver.resolve('slow.test'))
    .toEqual({ kind: 'found', addresses: ['8.8.8.8', '2606:4700::1'] });
  expect(ms).toBeLessThan(900);
});

test('a name with an IPv6 address only is found', async () => {
  const { resolver } = await start((_, type) => ({ addresses: ['2606:4700::1'], delayMs: type === 'A' ? 100 : 0 }));
  expect(await resolver.resolve('six.test')).toEqual({ kind: 'found', addresses: ['2606:4700::1'] });
});

test('a missing name, a name without an address and a broken server have different errors, each kept for five seconds', async () => {
  let now = 0;
  const codes: Record<string, number> = { 'no.test': 3, 'broken.test': 2, 'empty.test': 0 };
  const { server, resolver } = await start((name) => ({ rcode: codes[name] ?? 0 }), { now: () => now, tries: 1 });
  const reasons = [];
  for (const name of ['no.test', 'empty.test', 'broken.test']) reasons.push(await resolver.resolve(name));
  expect(reasons).toEqual([
    { kind: 'failed', reason: 'no.test does not exist', timedOut: false },
    { kind: 'failed', reason: 'empty.test has no address', timedOut: false },
    { kind: 'failed', reason: 'no name server could tell where broken.test is (ESERVFAIL)', timedOut: false },
  ]);
  const before = server.asked.length;
  now = 1_001;
  await resolver.resolve('broken.test');
  // A server failure is not kept as long: the server may have recovered.
  expect(server.asked.splice(before)).not.toEqual([]);
  now = 4_999;
  await resolver.resolve('no.test');
  expect(server.asked.length).toBe(before);
  now = 5_001;
  await resolver.resolve('no.test');
  expect(server.asked.length).toBe(before + 2);
});

test('eight names without an answer do not delay another name', async () => {
  const { resolver } = await start(
    (name) => (name.startsWith('dead') ? { silent: true } : { addresses: ['8.8.8.8'] }),
    { timeoutMs: 800, tries: 2 },
  );
  const dead = Array.from({ length: 8 }, (_, at) => resolver.resolve(`dead${at}.test`));
  await setTimeout(20);
  const begin = performance.now();
  const live = await resolver.resolve('live.test');
  const ms = performance.now() - begin;
  expect(live).toEqual({ kind: 'found', addresses: ['8.8.8.8'] });
  expect(ms).toBeLessThan(700);
  expect(await Promise.all(dead)).toEqual(
    dead.map((_, at) => ({
      kind: 'failed',
      reason: `no name server told where dead${at}.test is in time`,
      timedOut: true,
    })),
  );
});

test('a dead server is followed by the next one', async () => {
  const dead = await startNameServer(() => ({ silent: true }));
  const live = await startNameServer(() => ({ addresses: ['8.8.8.8'] }));
  const resolver = createResolver({ servers: [dead.address, live.address], timeoutMs: 200, hostsFile: '/nonexistent' });
  cleanups.push(dead.close, live.close, resolver.close);
  expect(await resolver.resolve('one.test')).toEqual({ kind: 'found', addresses: ['8.8.8.8'] });
});

test('new names per second are limited, except names that a rule spells out', async () => {
  let now = 0;
  const { server, resolver } = await start(() => ({ addresses: ['8.8.8.8'] }), { now: () => now, perSecond: 3 });
  const outcomes = [];
  for (let at = 0; at < 5; at++) outcomes.push(await resolver.resolve(`data${at}.wild.test`));
  // A known name costs nothing.
  await resolver.resolve('data0.wild.test');
  expect(outcomes.slice(2)).toEqual([
    { kind: 'found', addresses: ['8.8.8.8'] },
    ...[3, 4].map((at) => ({
      kind: 'failed',
      reason: `data${at}.wild.test was not looked up: more than 3 new names in a second`,
      timedOut: false,
    })),
  ]);
  expect(await resolver.resolve('named.test', { exact: true })).toEqual({ kind: 'found', addresses: ['8.8.8.8'] });
  now = 400;
  expect((await resolver.resolve('data5.wild.test')).kind).toBe('found');
  expect((await resolver.resolve('data6.wild.test')).kind).toBe('failed');
  expect(server.asked.filter((question) => question.startsWith('A ')).map((question) => question.slice(2))).toEqual([
    'data0.wild.test',
    'data1.wild.test',
    'data2.wild.test',
    'named.test',
    'data5.wild.test',
  ]);
});

test('a name without a dot is never queried, and localhost needs no name server', async () => {
  const { server, resolver } = await start(() => ({ addresses: ['8.8.8.8'] }));
  expect(await resolver.resolve('intranet')).toEqual({
    kind: 'failed',
    reason: 'intranet is not in the hosts file, and a name without a dot is not looked up',
    timedOut: false,
  });
  const loopback = { kind: 'found', addresses: ['127.0.0.1', '::1'] };
  expect(await Promise.all([resolver.resolve('localhost'), resolver.resolve('a.localhost')])).toEqual([
    loopback,
    loopback,
  ]);
  expect(server.asked).toEqual([]);
});

test('no more than 10,000 answers are kept', async () => {
  const { server, resolver } = await start(() => ({ addresses: ['8.8.8.8'] }), { perSecond: 1e9 });
  for (let at = 0; at < 10_001; at += 73)
    await Promise.all(Array.from({ length: 73 }, (_, one) => resolver.resolve(`n${at + one}.wild.test`)));
  const before = new Set(server.asked).size;
  server.asked.length = 0;
  await resolver.resolve('n10000.wild.test');
  await resolver.resolve('n0.wild.test');
  expect({ before, after: new Set(server.asked) }).toEqual({
    before: 20_002,
    after: new Set(['A n0.wild.test', 'AAAA n0.wild.test']),
  });
});

test('closing the resolver ends pending lookups', async () => {
  const { resolver } = await start(() => ({ silent: true }));
  const waiting = resolver.resolve('never.test');
  resolver.close();
  expect((await waiting).kind).toBe('failed');
});

test('the hosts file is read again when it has changed', () => {
  const dir = mkdtempSync(join(tmpdir(), 'ags-hosts-'));
  cleanups.push(() => rmSync(dir, { recursive: true }));
  const path = join(dir, 'hosts');
  writeFileSync(
    path,
    '# a comment\n127.0.0.1 localhost\nfd00::5 db.lan\n10.0.0.5\tDB.lan. db # the data\nnot-an-address x\n',
  );
  let now = 0;
  const hosts = createHostsFile({ path, now: () => now });
  expect(['db.lan', 'db', 'x', 'other', 'localhost'].map((name) => hosts.lookup(name))).toEqual([
    ['10.0.0.5', 'fd00::5'],
    ['10.0.0.5'],
    [],
    [],
    ['127.0.0.1', '::1'],
  ]);
  writeFileSync(path, '6.6.6.6 localhost a.localhost\n10.0.0.6 db\n');
  utimesSync(path, 1, 1);
  now = 999;
  expect(hosts.lookup('db')).toEqual(['10.0.0.5']);
  now = 1000;
  expect(['db', 'db.lan', 'localhost', 'a.localhost'].map((name) => hosts.lookup(name))).toEqual([
    ['10.0.0.6'],
    [],
    ['127.0.0.1', '::1'],
    ['127.0.0.1', '::1'],
  ]);
  rmSync(path);
  now = 2000;
  expect(hosts.lookup('db')).toEqual([]);
});
