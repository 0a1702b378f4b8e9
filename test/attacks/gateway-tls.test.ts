// test/attacks/gateway-tls.test.ts: hostile bytes in an open tunnel (attacks.md A57 to A59): the origin hears nothing before a TLS greeting
// for exactly the permitted host.
// needs: low-ports
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  connectTo,
  createWorld,
  helloFor,
  helloMessage,
  inRecords,
  ORIGIN,
  readText,
  socks,
  type Spy,
  type TestGateway,
  type HostContext,
} from '../gateway/fixture.ts';

let context: HostContext;
let gateway: TestGateway;
let origin: Spy;
let raw: Spy;

beforeAll(async () => {
  context = await createWorld();
  context.names.set('raw.test', [ORIGIN]);
  origin = await context.spy(443);
  raw = await context.spy(7000);
  gateway = await context.gateway({ allow: ['allowed.test', 'raw.test:7000'] });
});

afterAll(() => context[Symbol.asyncDispose]());

describe('the first bytes in a tunnel to port 443', () => {
  /** Sends the chunks through a tunnel; returns what the origin heard and the line in the log. */
  async function say(
    chunks: readonly (string | Buffer)[],
    host = 'allowed.test',
  ): Promise<{ heard: string; line: string }> {
    const [before, connections, lines] = [origin.heard.length, origin.connections, gateway.log.length];
    const socket = await gateway.open(host);
    for (const chunk of chunks) {
      socket.write(chunk);
      await sleep(30);
    }
    if (!socket.destroyed && gateway.log.length === lines) socket.end();
    await readText(socket);
    socket.destroy();
    await expect.poll(() => gateway.log.length).toBe(lines + 1);
    expect(origin.connections).toBe(connections + 1);
    await expect
      .poll(() => origin.sockets.at(-1)?.readableEnded === true || origin.sockets.at(-1)?.destroyed)
      .toBe(true);
    const { verdict, reason } = gateway.log[lines] ?? {};
    return { heard: origin.heard.slice(before), line: `${verdict}: ${reason}` };
  }
  const message = helloMessage({ names: ['allowed.test'] });
  const good = inRecords(message);
  const allowed = 'allowed: allowed by allowed.test (test)';

  test.each<[string, readonly Buffer[]]>([
    ['in one piece', [good]],
    ['in two segments', [good.subarray(0, 60), good.subarray(60)]],
    ['byte by byte at first', [...[0, 1, 2, 3, 4, 5].map((at) => good.subarray(at, at + 1)), good.subarray(6)]],
    ['in two records', [inRecords(message, 50)]],
    ['in two records, cut within the name', [inRecords(message, message.length - 6)]],
    ['in many records and segments', [inRecords(message, 1, 2, 3, 4, 40, 41), Buffer.from('more')]],
    ['with its name in capitals', [helloFor('ALLOWED.test')]],
    ['with a dot at the end of its name', [helloFor('allowed.test.')]],
  ])('A59, A63: a greeting for the host itself passes untouched %s', async (_, chunks) => {
    expect(await say(chunks)).toEqual({ heard: Buffer.concat(chunks).toString('latin1'), line: allowed });
  });

  const sni = 'denied: its TLS names another host (SNI)';
  const notTls = 'denied: what was sent is not TLS: ';
  const ech = Buffer.from([0, 0, 1, 0, 1, 7, 0, 2, 1, 1, 0, 2, 1, 1]);
  const padding: [number, Buffer] = [21, Buffer.alloc(65_450)];
  test.each<[string, readonly (string | Buffer)[], string]>([
    ['A58: SSH', ['SSH-2.0-OpenSSH_9.2\r\n'], `${notTls}it does not begin as TLS does`],
    ['A58: plain HTTP', ['GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n'], `${notTls}it does not begin as TLS does`],
    ['A58: one byte of something', ['x'], `${notTls}it does not begin as TLS does`],
    ['A58: HTTP/2 in clear', ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'], `${notTls}it does not begin as TLS does`],
    [
      'A58: a greeting of SSL 2',
      [Buffer.from([0x80, 46, 1, 3, 1, 0, 21, 0, 0, 0, 16])],
      `${notTls}it does not begin as TLS does`,
    ],
    [
      'A58: data of TLS without a greeting',
      [Buffer.from([23, 3, 3, 0, 4, 1, 2, 3, 4])],
      `${notTls}it does not begin as TLS does`,
    ],
    ['A58: an alert first', [Buffer.from([21, 3, 3, 0, 2, 1, 0]), good], `${notTls}it does not begin as TLS does`],
    [
      'A58: the answer of a server',
      [Buffer.from([22, 3, 3, 0, 4, 2, 0, 0, 0])],
      `${notTls}it does not begin as TLS does`,
    ],
    ['A57: another name', [helloFor('evil.test')], sni],
    ['A57: a name below', [helloFor('x.allowed.test')], sni],
    ['A57: a name above', [helloFor('test')], sni],
    ['A57: a name that ends in it', [helloFor('evilallowed.test')], sni],
    ['A57: an address as the name', [helloFor(ORIGIN)], sni],
    [
      'A57: another name in two segments',
      [helloFor('evil.test').subarray(0, 90), helloFor('evil.test').subarray(90)],
      sni,
    ],
    ['A57: another name in two records', [inRecords(helloMessage({ names: ['evil.test'] }), 70)], sni],
    ['A59: no name', [helloFor()], 'denied: its TLS does not name the host (no SNI)'],
    ['A59: the name twice', [helloFor('allowed.test', 'evil.test')], `${notTls}an extension of TLS stands there twice`],
    [
      'A59: the same name twice',
      [helloFor('allowed.test', 'allowed.test')],
      `${notTls}an extension of TLS stands there twice`,
    ],
    [
      'A59: two names in one list',
      [
        inRecords(
          helloMessage({
            more: [
              [
                0,
                Buffer.concat([
                  Buffer.from([0, 27, 0, 0, 12]),
                  Buffer.from('allowed.test'),
                  Buffer.from([0, 0, 9]),
                  Buffer.from('evil.test'),
                ]),
              ],
            ],
          }),
        ),
      ],
      `${notTls}the server name in TLS is not one name`,
    ],
    [
      'A59: a name of another kind',
      [
        inRecords(
          helloMessage({ more: [[0, Buffer.concat([Buffer.from([0, 15, 1, 0, 12]), Buffer.from('allowed.test')])]] }),
        ),
      ],
      `${notTls}the server name in TLS is not one name`,
    ],
    ['A59: NUL in the name', [helloFor('allowed.test\0.evil.test')], `${notTls}the server name in TLS is not one name`],
    [
      'A59: a hidden name (ECH)',
      [inRecords(helloMessage({ names: ['allowed.test'], more: [[0xfe0d, ech]] }))],
      'denied: its TLS hides the name of the host (ECH)',
    ],
    [
      'A59: an empty ECH',
      [inRecords(helloMessage({ names: ['allowed.test'], more: [[0xfe0d, Buffer.alloc(0)]] }))],
      'denied: its TLS hides the name of the host (ECH)',
    ],
    [
      'A59: a hidden name (ESNI)',
      [inRecords(helloMessage({ names: ['allowed.test'], more: [[0xffce, ech]] }))],
      'denied: its TLS hides the name of the host (ECH)',
    ],
    [
      'A59: oversized',
      [inRecords(helloMessage({ names: ['allowed.test'], more: [padding] }), 16_000, 32_000, 48_000, 64_000)],
      `${notTls}the greeting of TLS is too long`,
    ],
    [
      'A59: a record without content',
      [Buffer.concat([Buffer.from([22, 3, 1, 0, 0]), good])],
      `${notTls}a record of TLS has no proper length`,
    ],
    [
      'A59: another record between',
      [
        Buffer.concat([
          inRecords(message.subarray(0, 60)),
          Buffer.from([23, 3, 1, 0, 1, 0]),
          inRecords(message.subarray(60)),
        ]),
      ],
      `${notTls}it does not begin as TLS does`,
    ],
    [
      'A59: another message behind',
      [inRecords(Buffer.concat([message, helloMessage({ names: ['evil.test'] })]))],
      `${notTls}the greeting of TLS has something after it`,
    ],
    ['A59: only half of it', [good.subarray(0, 100)], 'failed: it went away before its TLS began'],
    ['A59: nothing', [], 'failed: it went away before its TLS began'],
  ])('%s reaches no origin', async (_, chunks, line) => {
    expect(await say(chunks)).toEqual({ heard: '', line });
  });

  test('bytes that follow the CONNECT at once are judged like later ones', async () => {
    const before = origin.heard.length;
    const lines = gateway.log.length;
    await gateway.talk(Buffer.concat([Buffer.from(connectTo('allowed.test:443')), helloFor('evil.test')]));
    await gateway.talk(`${connectTo('allowed.test:443')}GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n`);
    await gateway.talk(Buffer.concat([socks('allowed.test', 443), helloFor('evil.test')]));
    expect(origin.heard.length).toBe(before);
    await gateway.talk(Buffer.concat([Buffer.from(connectTo('allowed.test:443')), good]), { end: true });
    await gateway.talk(Buffer.concat([socks('allowed.test', 443), good]), { end: true });
    expect(origin.heard.slice(before)).toBe(good.toString('latin1').repeat(2));
    await expect.poll(() => gateway.log.length).toBe(lines + 5);
    expect(gateway.log.slice(lines).map(({ by, verdict }) => `${by} ${verdict}`)).toEqual([
      'connect denied',
      'connect denied',
      'socks5 denied',
      'connect allowed',
      'socks5 allowed',
    ]);
  });

  test('on other ports TLS for another host is refused, and other protocols pass', async () => {
    const talk = (bytes: Buffer): Promise<string> =>
      gateway.talk(Buffer.concat([Buffer.from(connectTo('raw.test:7000')), bytes]), { end: true });
    await talk(helloFor('evil.test'));
    await talk(inRecords(helloMessage({ names: ['raw.test'], more: [[0xfe0d, ech]] })));
    await talk(helloFor());
    expect(raw.heard).toBe('');
    await talk(helloFor('raw.test'));
    await talk(Buffer.from('QUIT\r\n'));
    expect(raw.heard).toBe(`${helloFor('raw.test').toString('latin1')}QUIT\r\n`);
  });
});
