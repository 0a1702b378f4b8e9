// test/attacks/gateway-ways.test.ts: other ways into the gateway, and the addresses of names: tokens (attacks.md A67), names as a channel,
// names that lead inside (A73 to A75), and listeners for programs without proxy support.
// needs: low-ports
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import {
  addressInside,
  connectTo,
  createWorld,
  helloFor,
  LIMITS,
  ORIGIN,
  questionFor,
  readText,
  rulesOf,
  socks,
  startTls,
  statusOf,
} from '../gateway/fixture.ts';

describe('A67: a gateway with a token', () => {
  const basic = (text: string): string => `Proxy-Authorization: Basic ${Buffer.from(text).toString('base64')}\r\n`;
  const withPassword = (user: string, password: string, request: Buffer): Buffer =>
    Buffer.concat([
      Buffer.from([5, 1, 2, 1, user.length]),
      Buffer.from(user),
      Buffer.from([password.length]),
      Buffer.from(password),
      request.subarray(3),
    ]);

  test('answers 407 to a missing or wrong token, and looks nothing up', async () => {
    await using context = await createWorld();
    const origin = await context.spy(0);
    const place = `allowed.test:${origin.port}`;
    const gateway = await context.gateway({ allow: [place], isToken: (given) => given === 'right' });
    const answers: string[] = [];
    for (const more of [
      '',
      basic('ags:wrong'),
      basic('ags:'),
      basic('right:'),
      basic('ags:right '),
      basic('a:b:right'),
      'Proxy-Authorization: Basic\r\n',
      'Proxy-Authorization: Digest right\r\n',
      'Proxy-Authorization: Bearer wrong\r\n',
      'Authorization: Bearer right\r\n',
    ])
      answers.push(statusOf(await gateway.talk(connectTo(place, more))));
    answers.push(statusOf(await gateway.talk(`GET http://${place}/ HTTP/1.1\r\nHost: ${place}\r\n\r\n`)));
    expect(new Set(answers)).toEqual(new Set(['407']));
    // SOCKS5 without a password, with a wrong one, and with an empty one.
    expect(await gateway.talk(socks('allowed.test', origin.port))).toBe('\x05\xff');
    for (const password of ['wrong', ''])
      expect(await gateway.talk(withPassword('ags', password, socks('allowed.test', origin.port)))).toBe(
        '\x05\x02\x01\x01',
      );
    expect([origin.connections, context.asked]).toEqual([0, []]);
    expect(new Set(gateway.log.map(({ verdict, host, reason }) => `${verdict} ${host}: ${reason}`))).toEqual(
      new Set(['denied : this gateway needs its token as the password of the proxy']),
    );
  });

  test('accepts the right token as Basic, Bearer or the password of SOCKS5', async () => {
    await using context = await createWorld();
    const port = await context.tcp(0, (socket) => void socket.end('served'));
    const place = `allowed.test:${port}`;
    const gateway = await context.gateway({ allow: [place], isToken: (given) => given === 'right' });
    for (const more of [basic('ags:right'), basic(':right'), 'proxy-authorization: bearer right\r\n'])
      expect(await gateway.talk(connectTo(place, more), { until: /served/ })).toMatch(/^HTTP\/1\.1 200 .*served$/s);
    expect(await gateway.talk(withPassword('ags', 'right', socks('allowed.test', port)), { until: /served/ })).toMatch(
      /^\x05\x02\x01\x00\x05\x00.*served$/s,
    );
    expect(statusOf(await gateway.talk(connectTo('evil.test:443', basic('ags:right'))))).toBe('403');
  });

  test('does not wait for an incomplete password', async () => {
    await using context = await createWorld();
    const gateway = await context.gateway({ isToken: () => false, waits: { firstWordsMs: 100 } });
    expect(await gateway.talk(Buffer.from([5, 1, 2, 1, 200]))).toBe('\x05\x02');
    expect(gateway.log).toMatchObject([{ verdict: 'failed', reason: 'it did not say where to in time' }]);
  });
});

describe('names', () => {
  test('A73: only names under an allowed wildcard are looked up, at a limited rate', async () => {
    await using context = await createWorld();
    const gateway = await context.gateway({ allow: ['*.wild.test', 'one.test'] });
    const names = Array.from({ length: 400 }, (_, i) => `${'data'.repeat(8)}${i}.wild.test`);
    const answers = await Promise.all(names.map((name) => gateway.talk(connectTo(`${name}:443`))));
    expect(new Set(answers.map(statusOf))).toEqual(new Set(['502']));
    // The lookups take several seconds, and each second allows a few more.
    expect(answers.filter((answer) => answer.includes('more than 20 new names in a second')).length).toBeGreaterThan(
      200,
    );
    expect(context.asked.length).toBeLessThan(200);
    // A name that a rule spells out is looked up anyway.
    expect(await gateway.talk(connectTo('one.test:443'))).toContain('one.test does not exist');
    await gateway.talk(connectTo('secret-data.evil.test:443'));
    await gateway.talk(connectTo('secret-data.wild.test.evil.test:443'));
    expect(context.asked.filter((name) => name.includes('evil'))).toEqual([]);
    expect(gateway.log).toHaveLength(names.length + 3);
  });

  test.each([
    ['127.0.0.1', 'loopback'],
    ['127.8.8.8', 'loopback'],
    ['0.0.0.0', 'an address of this machine'],
    ['10.0.0.7', 'a private address'],
    ['172.20.0.1', 'a private address'],
    ['192.168.1.1', 'a private address'],
    ['100.64.0.1', 'an address inside the network of a provider'],
    ['169.254.169.254', 'a cloud metadata address'],
    ['169.254.0.1', 'link-local'],
    ['168.63.129.16', 'a cloud metadata address'],
    ['255.255.255.255', 'broadcast'],
    ['224.0.0.1', 'multicast'],
    ['8.8.4.4', 'an address of this machine'],
    ['::1', 'loopback'],
    ['fd00:0:0:0:0:0:0:1', 'a private address'],
    ['fe80:0:0:0:0:0:0:1', 'link-local'],
    ['64:ff9b::7f00:1', 'an address that stands for an IPv4 one'],
    ['64:ff9b::a9fe:a9fe', 'an address that stands for an IPv4 one'],
    ['0:0:0:0:0:ffff:7f00:1', 'loopback'],
    ['2002:7f00:1:0:0:0:0:1', 'loopback'],
  ])('A74: a name that leads to %s is refused after its lookup, by CONNECT and by SOCKS5', async (address, why) => {
    await using context = await createWorld();
    context.names.set('allowed.test', [address]);
    const gateway = await context.gateway({
      allow: ['allowed.test', 'http://allowed.test'],
      ownAddresses: () => ['8.8.4.4'],
      authority: context.authority,
    });
    const answer = await gateway.talk(connectTo('allowed.test:443'));
    expect(statusOf(answer)).toBe('403');
    expect(answer).toMatch(
      new RegExp(`ags: allowed\\.test:443 is not allowed by the network policy .* which is ${why}`),
    );
    expect((await gateway.talk(socks('allowed.test', 443))).slice(2, 4)).toBe('\x05\x02');
    expect(gateway.log.map(({ by, verdict, address: dialled }) => [by, verdict, dialled])).toEqual([
      ['connect', 'denied', undefined],
      ['socks5', 'denied', undefined],
    ]);
  });

  test('A74: of several addresses only the permitted ones are tried', async () => {
    await using context = await createWorld();
    const origin = await context.spy(0);
    const inner = await context.spy(origin.port, '127.0.0.1');
    context.names.set('allowed.test', ['127.0.0.1', '10.0.0.1', ORIGIN, '169.254.169.254']);
    const gateway = await context.gateway({ allow: [`allowed.test:${origin.port}`] });
    const socket = await gateway.tunnel('allowed.test', origin.port);
    expect(socket).not.toBeTypeOf('string');
    await sleep(400);
    expect([origin.connections, inner.connections]).toEqual([1, 0]);
  });

  test('A75: a name is looked up once for a connection, and the checked address is the one that is dialled', async () => {
    await using context = await createWorld();
    const origin = await context.spy(0);
    const inner = await context.spy(origin.port, '127.0.0.1');
    let times = 0;
    context.names.set('allowed.test', () => (times++ === 0 ? [ORIGIN] : ['127.0.0.1']));
    const gateway = await context.gateway({ allow: [`allowed.test:${origin.port}`] });
    expect(await gateway.tunnel('allowed.test', origin.port)).not.toBeTypeOf('string');
    expect(context.asked).toEqual(['allowed.test']);
    await sleep(1100);
    const second = await gateway.tunnel('allowed.test', origin.port);
    expect(second).toContain('allowed.test leads to 127.0.0.1, which is loopback');
    expect([context.asked.length, origin.connections, inner.connections]).toEqual([2, 1, 0]);
  });

  test('a forbidden name does not exist inside, is logged once, and a flood of names does not fill the log', async () => {
    await using context = await createWorld();
    const clock = { ms: 1_000_000 };
    const gateway = await context.gateway({ allow: ['allowed.test', '*.wild.test'], now: () => clock.ms });
    for (const name of ['evil.test', 'EVIL.test', 'wild.test', 'allowed.test.evil.test'])
      expect(addressInside(gateway.gateway, name)).toBeNull();
    expect(gateway.log.map(({ by, host, port, verdict }) => `${by} ${host}:${port} ${verdict}`)).toEqual([
      'name evil.test:0 denied',
      'name wild.test:0 denied',
      'name allowed.test.evil.test:0 denied',
    ]);
    expect(addressInside(gateway.gateway, 'allowed.test')).toMatch(/^127\.64\./);
    expect(addressInside(gateway.gateway, 'x.wild.test')).toMatch(/^127\.64\./);
    for (let i = 0; i < 20_000; i++) gateway.gateway.answerName(questionFor(`data${i}.evil.test`));
    expect(gateway.log).toHaveLength(500);
    clock.ms += 60_000;
    gateway.gateway.answerName(questionFor('evil.test'));
    expect(gateway.log).toHaveLength(501);
    expect(context.asked).toEqual([]);
  });

  test('a deny of one port does not remove the name of the host', async () => {
    await using context = await createWorld();
    const gateway = await context.gateway({ allow: ['allowed.test'], deny: ['allowed.test:8443'] });
    expect(addressInside(gateway.gateway, 'allowed.test')).toMatch(/^127\.64\./);
    gateway.gateway.setRules(rulesOf(['allowed.test'], ['allowed.test']));
    expect(addressInside(gateway.gateway, 'allowed.test')).toBeNull();
  });
});

describe('listeners for programs without proxy support', () => {
  const ACCESS_DENIED = '\x15\x03\x03\x00\x02\x02\x31';

  test('TLS to the address of an allowed name reaches that host and no other', async () => {
    await using context = await createWorld();
    await context.tls(443, (socket) => void socket.write('hello'));
    context.names.set('other.test', [ORIGIN]);
    const gateway = await context.gateway({ allow: ['allowed.test', 'other.test'] });
    const address = addressInside(gateway.gateway, 'allowed.test') ?? '';
    await gateway.listener({ kind: 'tls' }, address, 443);
    const secure = await startTls(await gateway.connect(443, address), 'allowed.test', context);
    expect(await readText(secure, /hello/)).toBe('hello');
    secure.destroy();
    // The greeting names another host, which is allowed too, but has another address.
    await expect(startTls(await gateway.connect(443, address), 'other.test', context)).rejects.toThrow();
    await expect(startTls(await gateway.connect(443, address), 'evil.test', context)).rejects.toThrow();
    expect(await gateway.talk('GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n', { host: address, port: 443 })).toBe('');
    await expect
      .poll(() => gateway.log.map(({ by, host, verdict }) => `${by} ${host} ${verdict}`).toSorted())
      .toEqual([
        'tls allowed.test allowed',
        'tls allowed.test denied',
        'tls allowed.test denied',
        'tls allowed.test denied',
      ]);
  });

  test('an address without a name leads nowhere, whatever is sent to it', async () => {
    await using context = await createWorld();
    const origin = await context.spy(443);
    const gateway = await context.gateway({ allow: ['allowed.test', 'http://allowed.test'] });
    for (const [kind, port] of [
      ['tls', 443],
      ['web', 80],
    ] as const) {
      await gateway.listener({ kind }, '127.64.99.99', port);
      for (const bytes of [helloFor('allowed.test'), 'GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n'])
        expect(await gateway.talk(bytes, { host: '127.64.99.99', port })).toBe('');
    }
    expect([origin.connections, context.asked]).toEqual([0, []]);
    expect(new Set(gateway.log.map(({ verdict, reason }) => `${verdict}: ${reason}`))).toEqual(
      new Set(['denied: no allowed host has this address']),
    );
    expect(gateway.log).toHaveLength(4);
  });

  test('an address outlives its rule, but then leads nowhere', async () => {
    await using context = await createWorld();
    const origin = await context.spy(443);
    const gateway = await context.gateway();
    const address = addressInside(gateway.gateway, 'allowed.test') ?? '';
    await gateway.listener({ kind: 'tls' }, address, 443);
    gateway.gateway.setRules([]);
    expect(await gateway.talk(helloFor('allowed.test'), { host: address, port: 443 })).toBe(ACCESS_DENIED);
    expect([origin.connections, context.asked]).toEqual([0, []]);
    expect(gateway.log).toMatchObject([{ by: 'tls', host: 'allowed.test', port: 443, verdict: 'denied' }]);
  });

  test('port 80: the Host must be the name behind the address, and plain HTTP must be allowed', async () => {
    await using context = await createWorld();
    const origin = await context.spy(80);
    context.names.set('plain.test', [ORIGIN]);
    const gateway = await context.gateway({ allow: ['allowed.test', 'http://plain.test'] });
    const plain = addressInside(gateway.gateway, 'plain.test') ?? '';
    const allowed = addressInside(gateway.gateway, 'allowed.test') ?? '';
    for (const address of [plain, allowed]) await gateway.listener({ kind: 'web' }, address, 80);
    const ask = async (address: string, host: string, target = '/'): Promise<string> =>
      statusOf(await gateway.talk(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`, { host: address, port: 80 }));
    expect([
      await ask(plain, 'evil.test'),
      await ask(plain, 'allowed.test'),
      await ask(plain, 'plain.test:8080'),
      await ask(plain, 'plain.test@evil.test'),
      await ask(plain, ''),
      await ask(allowed, 'plain.test'),
      await ask(allowed, 'allowed.test'),
      statusOf(await gateway.talk('GET / HTTP/1.0\r\n\r\n', { host: plain, port: 80 })),
      statusOf(await gateway.talk(helloFor('plain.test'), { host: plain, port: 80 })),
      statusOf(
        await gateway.talk('GET / HTTP/1.1\r\nHost: plain.test\r\nHost: evil.test\r\n\r\n', { host: plain, port: 80 }),
      ),
    ]).toEqual(['421', '421', '421', '421', '421', '421', '403', '421', '400', '400']);
    expect([origin.connections, context.asked]).toEqual([0, []]);
    expect(gateway.log).toHaveLength(10);
  });

  test('a tcp grant leads to its one address, independent of the rules', async () => {
    await using context = await createWorld();
    const serve = (socket: Socket): void => {
      socket.write('database ready\n');
      socket.on('data', () => undefined).on('end', () => socket.end());
    };
    const port = await context.tcp(0, serve, '127.0.0.1');
    const grant = { name: 'db', port: 5432, host: '127.0.0.1', hostPort: port, origin: 'ags.yaml:7' };
    const gateway = await context.gateway({ allow: [], grantAddresses: new Map([['db', '127.65.0.1']]) });
    expect(addressInside(gateway.gateway, 'db')).toBe('127.65.0.1');
    const listener = await gateway.listener({ kind: 'tcp', grant });
    expect(await gateway.talk(Buffer.from([22, 3, 1, 0, 5]), { port: listener, until: /\n/ })).toBe('database ready\n');
    await expect
      .poll(() => gateway.log)
      .toMatchObject([
        { by: 'tcp', host: '127.0.0.1', port, verdict: 'allowed', reason: 'tcp grant db (ags.yaml:7)', bytesOut: 5 },
      ]);
    // A grant is no rule: the proxy does not know it.
    expect(statusOf(await gateway.talk(connectTo(`127.0.0.1:${port}`)))).toBe('403');
    expect(statusOf(await gateway.talk(connectTo(`db:${port}`)))).toBe('403');
  });

  test('limits count at every listener', async () => {
    await using context = await createWorld();
    await context.spy(443);
    const limits = { ...LIMITS, connections: 2 };
    const gateway = await context.gateway({ policy: { limits } });
    const address = addressInside(gateway.gateway, 'allowed.test') ?? '';
    await gateway.listener({ kind: 'tls' }, address, 443);
    const held = [await gateway.connect(443, address), await gateway.connect()];
    expect(await gateway.talk(helloFor('allowed.test'), { host: address, port: 443 })).toBe('');
    expect(statusOf(await gateway.talk(connectTo('allowed.test:443')))).toBe('503');
    for (const socket of held) socket.destroy();
    await expect.poll(() => gateway.gateway.stats.open).toBe(0);
    expect(await gateway.tunnel('allowed.test')).not.toBeTypeOf('string');
  });
});
