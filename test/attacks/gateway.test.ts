// test/attacks/gateway.test.ts: a hostile program and the gateway: attacks.md A43 to A75, byte by byte, against a real gateway, real
// origins and a real name server. A refused request reaches neither an origin nor the name server.
// needs: low-ports
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  connectTo,
  createWorld,
  helloFor,
  ORIGIN,
  socks,
  statusOf,
  type Spy,
  type TestGateway,
  type HostContext,
} from '../gateway/fixture.ts';

const ALLOW = ['allowed.test', '*.wild.test', 'http://plain.test', 'raw.test:7000'];

let context: HostContext;
let gateway: TestGateway;
let spies: readonly Spy[];

beforeAll(async () => {
  context = await createWorld();
  for (const name of ['evil.test', 'plain.test', 'raw.test', 'a.wild.test', 'evilallowed.test'])
    context.names.set(name, [ORIGIN]);
  spies = await Promise.all([443, 80, 22, 5432, 7000].map((port) => context.spy(port)));
  gateway = await context.gateway({ allow: ALLOW, deny: ['denied.wild.test'] });
});

afterAll(() => context[Symbol.asyncDispose]());

/** Everything that the origins and the name server have noticed so far. */
const outside = (): unknown => ({
  connections: spies.map(({ connections }) => connections),
  heard: spies.map(({ heard }) => heard),
  asked: [...context.asked],
});

/** Sends, checks that nothing left the gateway, and returns the answer and the one new line of the log. */
async function refused(bytes: string | Buffer): Promise<{ answer: string; line: string; by: string }> {
  const before = outside();
  const lines = gateway.log.length;
  const answer = await gateway.talk(bytes);
  await expect.poll(() => gateway.log.length).toBe(lines + 1);
  expect(outside()).toEqual(before);
  const { verdict, host, port, by } = gateway.log[lines] ?? {};
  return { answer, line: `${verdict} ${host}:${port}`, by: by ?? '' };
}

const get = (url: string, host: string): string => `GET ${url} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

/** A 403 names the host and the policy, in its first line and again in its body. */
function expectPolicy(answer: string, place: string): void {
  const [first = '', ...rest] = answer.split('\r\n');
  expect(first).toMatch(/^HTTP\/1\.1 403 /);
  const sentence = first.slice('HTTP/1.1 403 '.length);
  expect(sentence).toContain(`ags: ${place} is not allowed by the network policy of this sandbox (`);
  expect(sentence).toContain('This is policy, not a fault');
  expect(rest.at(-1)).toBe(`${sentence}\n`);
}

describe('hosts that no rule covers', () => {
  // A44 and A48 are spellings of the same idea.
  test.each([
    ['A43', 'evil.test', 443],
    ['A45', 'evilallowed.test', 443],
    ['A45', 'allowed.test.evil.test', 443],
    ['A45', 'x.allowed.test', 443],
    ['A45', 'wild.test', 443],
    ['A45', 'awild.test', 443],
    ['A46', 'allowedxtest', 443],
    ['A53', '10.1.2.3', 443],
    ['A53', '127.0.0.1', 443],
    ['A53', '169.254.169.254', 443],
    ['A53', ORIGIN, 443],
    ['A54', 'allowed.test', 22],
    ['A54', 'allowed.test', 5432],
    ['A54', 'allowed.test', 80],
    ['A54', 'allowed.test', 8443],
    ['A54', 'raw.test', 443],
    ['A66', 'localhost', 443],
    ['A66', 'localhost', 3128],
    ['A66', '127.0.0.1', 3128],
    ['A66', 'metadata.google.internal', 443],
    ['A66', 'gateway.docker.internal', 443],
    ['A66', 'ags', 443],
    ['A73', 'denied.wild.test', 443],
  ])('%s: %s:%i is refused by CONNECT, as a URL and by SOCKS5', async (_, host, port) => {
    const tunnel = await refused(connectTo(`${host}:${port}`));
    expectPolicy(tunnel.answer, `${host}:${port}`);
    expect([tunnel.line, tunnel.by]).toEqual([`denied ${host}:${port}`, 'connect']);
    const plain = await refused(
      get(`http://${host}:${port === 443 ? 81 : port}/`, `${host}:${port === 443 ? 81 : port}`),
    );
    expectPolicy(plain.answer, `${host}:${port === 443 ? 81 : port}`);
    expect(plain.by).toBe('http');
    const viaSocks = await refused(socks(host, port));
    expect(viaSocks).toEqual({
      answer: '\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00',
      line: `denied ${host}:${port}`,
      by: 'socks5',
    });
  });

  test.each(['[::1]', '[fd00::1]', '[::ffff:127.0.0.1]', '[64:ff9b::7f00:1]', '[2606:4700::1]'])(
    'A53: the address %s is refused',
    async (host) => {
      const { answer, line } = await refused(connectTo(`${host}:443`));
      expect(statusOf(answer)).toBe('403');
      expect(line).toMatch(/^denied [0-9a-f:]+:443$/);
    },
  );

  test('A53: addresses in the binary forms of SOCKS5 are refused', async () => {
    const v4 = Buffer.from([5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 1, 187]);
    const v6 = Buffer.concat([Buffer.from([5, 1, 0, 5, 1, 0, 4]), Buffer.alloc(15), Buffer.from([1, 1, 187])]);
    const mapped = Buffer.concat([
      Buffer.from([5, 1, 0, 5, 1, 0, 4]),
      Buffer.alloc(10),
      Buffer.from([255, 255, 127, 0, 0, 1, 1, 187]),
    ]);
    expect([(await refused(v4)).line, (await refused(v6)).line, (await refused(mapped)).line]).toEqual([
      'denied 127.0.0.1:443',
      'denied ::1:443',
      'denied ::ffff:7f00:1:443',
    ]);
  });

  test.each([
    ['A49', 'http://evil.test/?x=allowed.test', 'evil.test'],
    ['A49', 'http://evil.test/allowed.test:443', 'evil.test'],
    ['A49', 'http://evil.test?allowed.test', 'evil.test'],
    ['A50', 'http://10.1.2.3/allowed.test', '10.1.2.3'],
    ['A50', 'http://[fd00::1]/allowed.test', '[fd00::1]'],
    ['A55', 'http://allowed.test:5432/', 'allowed.test:5432'],
    ['A55', 'http://allowed.test/', 'allowed.test'],
  ])('%s: GET %s is refused', async (_, url, host) => {
    const { answer, by } = await refused(get(url, host));
    expectPolicy(answer, /:\d+$/.test(host) ? host : `${host}:80`);
    expect(by).toBe('http');
  });

  test('plain HTTP does not reach port 443, whatever the rules allow there', async () => {
    const { answer, line } = await refused(get('http://allowed.test:443/', 'allowed.test:443'));
    expect([statusOf(answer), line]).toEqual(['400', 'denied :0']);
  });
});

describe('ambiguous requests', () => {
  const odd = (host: string): [string, string] => [JSON.stringify(host), host];

  test.each([
    ...['2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1', '127.1', '127.0.0.1.', '1.2.3.4.5'].map(odd),
    ...['allowed.test:443@evil.test', 'allowed.test@evil.test', 'user:pw@allowed.test', 'allowed.test#evil.test'].map(
      odd,
    ),
    ...['allowed.test\0', 'evil.test\0.allowed.test', 'allowed.test\t', 'allowed%2etest', 'allowed.test%00'].map(odd),
    ...['allowed.test\\', 'evil.test\\.allowed.test', 'allowed\u00ad.test', '\u0430llowed.test', 'allowed。test'].map(
      odd,
    ),
    ...[
      'allowed..test',
      '.allowed.test',
      'allowed.test..',
      '',
      '*.wild.test',
      '-a.test',
      '[::1',
      '::1',
      'a b.test',
    ].map(odd),
    ...[
      '[fe80::1%25eth0]',
      '[::1]x',
      'allowed.test/',
      'allowed.test?x',
      `${'a'.repeat(64)}.test`,
      'a.'.repeat(130),
    ].map(odd),
  ])('A47, A53, A62: %s is no host by CONNECT, as a URL or by SOCKS5', async (_, host) => {
    const raw = (text: string): Buffer => Buffer.from(text, 'utf8');
    const tunnel = await refused(raw(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\n\r\n`));
    // An unusual spelling of an address is a matter of policy (403); other texts are no hosts (400).
    const status = /^[0-9.x]+[0-9a-f.]*$/i.test(host) ? '403' : '400';
    expect([statusOf(tunnel.answer), tunnel.line]).toEqual([status, 'denied :0']);
    if (status === '403') expect(tunnel.answer).toContain('network policy');
    if (!/[/?#]/.test(host)) {
      const plain = await refused(raw(`GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`));
      expect([statusOf(plain.answer), plain.line]).toEqual([status, 'denied :0']);
    }
    const name = raw(host).subarray(0, 255);
    if (name.length === 0) return;
    const viaSocks = await refused(socks(name, 443));
    expect([viaSocks.answer.slice(0, 4), viaSocks.line]).toEqual(['\x05\x00\x05\x08', 'denied :0']);
  });

  test('A62: CR and LF in a host end the line, and the rest is no request', async () => {
    for (const host of ['allowed.test\r\nX: y', 'allowed.test\n', 'allowed.test\r'])
      expect(statusOf((await refused(`CONNECT ${host}:443 HTTP/1.1\r\nHost: allowed.test\r\n\r\n`)).answer)).toBe(
        '400',
      );
    for (const host of ['allowed.test\r\n', 'allowed.test\n', 'allowed.test\r'])
      expect((await refused(socks(host, 443))).answer.slice(2, 4)).toBe('\x05\x08');
  });

  test.each([
    ['A51: a path', get('/allowed.test', 'evil.test'), '400'],
    ['A51: a path with an allowed Host', get('/', 'plain.test'), '400'],
    ['A51: an asterisk', 'OPTIONS * HTTP/1.1\r\nHost: plain.test\r\n\r\n', '400'],
    ['another scheme', get('https://allowed.test/', 'allowed.test'), '400'],
    ['another scheme', get('ftp://allowed.test/', 'allowed.test'), '400'],
    ['CONNECT without a port', 'CONNECT allowed.test HTTP/1.1\r\nHost: allowed.test\r\n\r\n', '400'],
    ['port 0', connectTo('allowed.test:0'), '400'],
    ['port 65536', connectTo('allowed.test:65536'), '400'],
    ['port 443 in another way', connectTo('allowed.test:0x1bb'), '400'],
    ['a negative port', connectTo('allowed.test:-443'), '400'],
    ['an empty port', connectTo('allowed.test:'), '400'],
    ['two ports', connectTo('allowed.test:443:443'), '400'],
    ['Host of another', 'CONNECT allowed.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n', '400'],
    ['Host of another port', 'CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:22\r\n\r\n', '400'],
    ['two Hosts', 'CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test\r\nHost: allowed.test\r\n\r\n', '400'],
    ['two Hosts', 'GET http://plain.test/ HTTP/1.1\r\nHost: plain.test\r\nhOST: evil.test\r\n\r\n', '400'],
    ['no Host', 'GET http://plain.test/ HTTP/1.1\r\n\r\n', '400'],
    ['Host of another', get('http://plain.test/', 'evil.test'), '400'],
    ['Host with a user', get('http://plain.test/', 'plain.test@evil.test'), '400'],
    ['a CONNECT with a body', connectTo('allowed.test:443', 'Content-Length: 5\r\n'), '400'],
    ['a CONNECT with a body', connectTo('allowed.test:443', 'Transfer-Encoding: chunked\r\n'), '400'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '505'],
    ['HTTP/0.9', 'GET http://plain.test/\r\n\r\n', '400'],
    ['an empty line first', `\r\n${connectTo('allowed.test:443')}`, '400'],
    ['TLS to the proxy itself', helloFor('allowed.test'), '400'],
    ['SOCKS4', Buffer.from([4, 1, 1, 187, 0, 0, 0, 1, 0]), '400'],
  ])('%s is refused', async (_, bytes, status) => {
    const { answer, line } = await refused(bytes);
    expect([statusOf(answer), line]).toEqual([status, 'denied :0']);
  });

  const post = (fields: string): string => `POST http://plain.test/ HTTP/1.1\r\nHost: plain.test\r\n${fields}\r\n`;
  const smuggled = 'GET http://plain.test/hidden HTTP/1.1\r\nHost: plain.test\r\n\r\n';
  test.each([
    ['both lengths', `${post('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n')}0\r\n\r\n${smuggled}`],
    ['two lengths', `${post('Content-Length: 0\r\nContent-Length: 60\r\n')}${smuggled}`],
    ['two equal lengths', post('Content-Length: 0\r\nContent-Length: 0\r\n')],
    ['a list of lengths', post('Content-Length: 0, 0\r\n')],
    ['a length with a sign', post('Content-Length: +5\r\n')],
    ['a length in hex', post('Content-Length: 0x5\r\n')],
    ['two codings', `${post('Transfer-Encoding: chunked, identity\r\n')}0\r\n\r\n`],
    ['a coding twice', post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n')],
    ['another coding', post('Transfer-Encoding: xchunked\r\n')],
    ['a coding with a blank before the colon', post('Transfer-Encoding : chunked\r\n')],
    ['a coding after a tab', post('Transfer-Encoding:\x0bchunked\r\n')],
    ['a folded line', post('X-A: b\r\n Transfer-Encoding: chunked\r\n')],
    ['a bare LF', 'POST http://plain.test/ HTTP/1.1\nHost: plain.test\n\n'],
    ['a bare LF in a field', post('X-A: b\nTransfer-Encoding: chunked\r\n')],
    ['a bare CR in a field', post('X-A: b\rTransfer-Encoding: chunked\r\n')],
    ['NUL in a field', post('X-A: b\0c\r\n')],
    ['a field without a name', post(': x\r\n')],
    [
      'chunks in HTTP/1.0',
      'POST http://plain.test/ HTTP/1.0\r\nHost: plain.test\r\nTransfer-Encoding: chunked\r\n\r\n',
    ],
  ])('A61: %s: refused and never forwarded', async (_, bytes) => {
    const { answer, line } = await refused(bytes);
    expect([statusOf(answer), line]).toEqual(['400', 'denied :0']);
    // One answer only: the bytes after a refused request are not read.
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  });

  test('SOCKS5 serves CONNECT only, and no password', async () => {
    const replies = await Promise.all(
      [
        [5, 1, 0, 5, 2, 0, 1, 127, 0, 0, 1, 0, 80],
        [5, 1, 0, 5, 3, 0, 1, 127, 0, 0, 1, 0, 80],
        [5, 1, 0, 5, 1, 9, 1, 127, 0, 0, 1, 0, 80],
        [5, 1, 0, 5, 1, 0, 2, 127, 0, 0, 1, 0, 80],
        [5, 1, 0, 5, 1, 0, 3, 0, 0, 80, 0],
        [5, 1, 1, 5, 1, 0],
      ].map((bytes) => gateway.talk(Buffer.from(bytes))),
    );
    expect(replies.map((reply) => reply.slice(0, 4))).toEqual([
      '\x05\x00\x05\x07',
      '\x05\x00\x05\x07',
      '\x05\x00\x05\x07',
      '\x05\x00\x05\x08',
      '\x05\x00\x05\x08',
      '\x05\xff',
    ]);
  });
});

describe('A63: one host, many spellings', () => {
  test.each(['allowed.test', 'ALLOWED.TEST', 'AlLoWeD.tEsT', 'allowed.test.', 'ALLOWED.test.'])(
    '%s is served, and called by one name everywhere',
    async (host) => {
      const lines = gateway.log.length;
      const asked = context.asked.length;
      for (const request of [Buffer.from(connectTo(`${host}:443`)), socks(host, 443)])
        await gateway.talk(Buffer.concat([request, helloFor('allowed.test')]), { end: true });
      await expect
        .poll(() => gateway.log.slice(lines).map((line) => `${line.verdict} ${line.host}`))
        .toEqual(['allowed allowed.test', 'allowed allowed.test']);
      expect(context.asked.slice(asked).filter((name) => name !== 'allowed.test')).toEqual([]);
    },
  );

  test.each(['EVIL.TEST', 'evil.test.', 'Evil.Test.'])('%s is refused as evil.test', async (host) => {
    const { answer, line } = await refused(connectTo(`${host}:443`));
    expectPolicy(answer, 'evil.test:443');
    expect(line).toBe('denied evil.test:443');
    expect((await refused(socks(host, 443))).line).toBe('denied evil.test:443');
  });

  test.each(['DENIED.wild.test', 'denied.wild.test.', 'Denied.Wild.Test.'])(
    '%s does not slip past a deny',
    async (host) => {
      expectPolicy((await refused(connectTo(`${host}:443`))).answer, 'denied.wild.test:443');
      expect((await refused(socks(host, 443))).line).toBe('denied denied.wild.test:443');
    },
  );
});
