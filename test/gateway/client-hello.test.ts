// The server name in a TLS ClientHello is found however it is cut, and malformed greetings are refused (attack A59).
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { connect, type ConnectionOptions } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { readClientHello } from '../../src/gateway/front/client-hello.ts';

const plain = await greeting({ servername: 'example.com', ALPNProtocols: ['h2', 'http/1.1'] });

describe('a greeting', () => {
  test('of a real client gives its name and protocols', async () => {
    expect(readClientHello(plain)).toEqual({
      kind: 'hello',
      serverName: 'example.com',
      ech: false,
      alpn: ['h2', 'http/1.1'],
    });
    expect(readClientHello(await greeting({}))).toEqual({ kind: 'hello', serverName: null, ech: false, alpn: [] });
    expect(readClientHello(await greeting({ servername: 'a.test', maxVersion: 'TLSv1.2' }))).toMatchObject({
      serverName: 'a.test',
    });
  });

  test('is read whole, however it is cut into segments', () => {
    for (let cut = 0; cut < plain.length; cut += 1) {
      expect(readClientHello(plain.subarray(0, cut))).toEqual({ kind: 'more' });
    }
    expect(readClientHello(Buffer.concat([plain, Buffer.from('more')]))).toEqual(readClientHello(plain));
  });

  test('is read whole, however it is cut into records', () => {
    const message = plain.subarray(5);
    for (const size of [Math.ceil(message.length / 64), 100, 333]) {
      expect(readClientHello(records(message, size))).toEqual(readClientHello(plain));
    }
    expect(readClientHello(records(message, 1))).toMatchObject({ kind: 'bad' });
  });

  test('tells when it may hide another name (ECH)', () => {
    expect(readClientHello(hello([extension(0xfe0d, Buffer.alloc(8))]))).toEqual({
      kind: 'hello',
      serverName: null,
      ech: true,
      alpn: [],
    });
  });

  const refused: readonly (readonly [string, Buffer])[] = [
    ['SSH', Buffer.from('SSH-2.0-x')],
    ['another kind of record', Buffer.from([23, 3, 1, 0, 1, 0])],
    ['another message', Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0])],
    ['a record without content', Buffer.from([22, 3, 1, 0, 0])],
    ['a record that is too long', Buffer.from([22, 3, 1, 0xff, 0xff])],
    ['a message that is too long', Buffer.from([22, 3, 1, 0x10, 0, 1, 0xff, 0, 0])],
    ['something after the message', records(Buffer.concat([plain.subarray(5), Buffer.from([1])]), 16_000)],
    [
      'two names',
      hello([
        serverName([
          [0, 'a.test'],
          [0, 'b.test'],
        ]),
      ]),
    ],
    ['no name in the list', hello([serverName([])])],
    ['a name of another type', hello([serverName([[1, 'a.test']])])],
    ['an empty name', hello([serverName([[0, '']])])],
    ['a NUL in the name', hello([serverName([[0, 'a.test\0.evil']])])],
    ['a name outside ASCII', hello([serverName([[0, 'ä.test']])])],
    ['the extension of the name twice', hello([serverName([[0, 'a.test']]), serverName([[0, 'b.test']])])],
    ['something after the name', hello([extension(0, wide(Buffer.from('\0\0\u0006a.test.evil')))])],
    ['an extension that is cut', hello([serverName([[0, 'a.test']]).subarray(0, -1)])],
    ['a broken list of protocols', hello([extension(16, Buffer.from([0, 3, 5, 1, 1]))])],
  ];
  test.each(refused)('is refused: %s', (_, bytes) => {
    expect(readClientHello(bytes)).toEqual({ kind: 'bad', problem: expect.any(String) as string });
  });
});

async function greeting(options: ConnectionOptions): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const client = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', ...options });
  client.on('error', () => undefined);
  const [socket] = (await accepted) as [import('node:net').Socket];
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  client.destroy();
  socket.destroy();
  server.close();
  return bytes;
}

function records(message: Buffer, size: number): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size);
    parts.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
  }
  return Buffer.concat(parts);
}

function hello(extensions: readonly Buffer[]): Buffer {
  const tail = Buffer.concat(extensions);
  const body = Buffer.concat([Buffer.alloc(34), Buffer.from([0, 0, 2, 0x13, 1, 1, 0]), wide(tail)]);
  return records(Buffer.concat([Buffer.from([1, 0]), wide(body)]), 16_000);
}

function extension(type: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type >> 8, type & 255]), wide(content)]);
}

function serverName(names: readonly (readonly [number, string])[]): Buffer {
  const list = names.map(([type, name]) => Buffer.concat([Buffer.from([type]), wide(Buffer.from(name))]));
  return extension(0, wide(Buffer.concat(list)));
}

function wide(content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([content.length >> 8, content.length & 255]), content]);
}
