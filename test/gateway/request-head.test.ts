// A request head of an agent has one meaning only (attacks A61, A62).
import { describe, expect, test } from 'vitest';
import { headerValues, readRequestHead } from '../../src/gateway/intercept/request-head.ts';

function read(text: string): ReturnType<typeof readRequestHead> {
  return readRequestHead(Buffer.from(text, 'latin1'));
}

describe('a request head is read', () => {
  test('with all of its fields', () => {
    const text = 'POST /a?b=c HTTP/1.1\r\nHost: example.com\r\nX-Caf\u00e9: no\r\n\r\n';
    expect(read(text).kind).toBe('bad');
    const good =
      'POST /a?b=c HTTP/1.1\r\nHost:example.com\r\nX-Odd: \t caf\u00e9 \ta \t\r\nContent-Length: 3\r\n\r\nabc';
    expect(read(good)).toEqual({
      kind: 'head',
      head: {
        method: 'POST',
        target: '/a?b=c',
        version: '1.1',
        headers: [
          ['Host', 'example.com'],
          ['X-Odd', 'caf\u00e9 \ta'],
          ['Content-Length', '3'],
        ],
        bytes: good.length - 3,
        body: { kind: 'length', bytes: 3 },
        keepAlive: true,
        upgrade: null,
      },
    });
  });

  test('whole, however it is cut', () => {
    const text = Buffer.from('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\nrest');
    for (let cut = 0; cut < text.length - 4; cut += 1) {
      expect(readRequestHead(text.subarray(0, cut))).toEqual({ kind: 'more' });
      expect(readRequestHead(text, cut)).toEqual(readRequestHead(text));
    }
    expect(readRequestHead(text)).toMatchObject({
      kind: 'head',
      head: { bytes: text.length - 4, body: { kind: 'none' } },
    });
  });

  const kept: readonly (readonly [string, string, boolean])[] = [
    ['1.1', '', true],
    ['1.1', 'Connection: Close\r\n', false],
    ['1.1', 'Connection: foo , close\r\n', false],
    ['1.0', '', false],
    ['1.0', 'Connection: keep-alive\r\n', true],
    ['1.0', 'Connection: keep-alive\r\nConnection: close\r\n', false],
  ];
  test.each(kept)('HTTP/%s with %j is kept: %s', (version, field, keepAlive) => {
    expect(read(`GET / HTTP/${version}\r\nHost: a\r\n${field}\r\n`)).toMatchObject({
      kind: 'head',
      head: { keepAlive },
    });
  });

  test('with its framing and its upgrade', () => {
    expect(read('PUT / HTTP/1.1\r\nHost: a\r\ntransfer-ENCODING: chunked\r\n\r\n')).toMatchObject({
      head: { body: { kind: 'chunked' }, upgrade: null },
    });
    expect(read('GET / HTTP/1.1\r\nHost: a\r\nUpgrade: WebSocket\r\n\r\n')).toMatchObject({ head: { upgrade: null } });
    expect(
      read('GET / HTTP/1.1\r\nHost: a\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\r\n'),
    ).toMatchObject({ head: { upgrade: 'websocket' } });
  });

  test('with header names in any case', () => {
    const result = read('GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nx: 2\r\n\r\n');
    expect(result.kind === 'head' && headerValues(result.head, 'x')).toEqual(['1', '2']);
  });
});

describe('a request head is refused', () => {
  const host = 'Host: a\r\n';
  const cases: readonly (readonly [name: string, text: string, status: number])[] = [
    ['a bare LF ends a line', 'GET / HTTP/1.1\nHost: a\n\n', 400],
    ['a bare LF ends a field', `GET / HTTP/1.1\r\n${host}X: 1\nY: 2\r\n\r\n`, 400],
    ['a bare CR stands in a value', `GET / HTTP/1.1\r\n${host}X: 1\rY: 2\r\n\r\n`, 400],
    ['CR CR LF', `GET / HTTP/1.1\r\n${host}X: 1\r\r\n\r\n`, 400],
    ['a NUL', `GET / HTTP/1.1\r\n${host}X: a\0b\r\n\r\n`, 400],
    ['a control character', `GET / HTTP/1.1\r\n${host}X: a\u0008b\r\n\r\n`, 400],
    ['a DEL', `GET / HTTP/1.1\r\n${host}X: a\u007fb\r\n\r\n`, 400],
    ['a folded line', `GET / HTTP/1.1\r\n${host}X: a\r\n b\r\n\r\n`, 400],
    ['a line folded by a tab', `GET / HTTP/1.1\r\n${host}X: a\r\n\tb: c\r\n\r\n`, 400],
    ['a space before the colon', 'GET / HTTP/1.1\r\nHost : a\r\n\r\n', 400],
    ['an empty name', `GET / HTTP/1.1\r\n${host}: a\r\n\r\n`, 400],
    ['no colon', `GET / HTTP/1.1\r\n${host}abc\r\n\r\n`, 400],
    ['a name that is no token', `GET / HTTP/1.1\r\n${host}X(y): a\r\n\r\n`, 400],
    ['a target outside ASCII', `GET /\u00e4 HTTP/1.1\r\n${host}\r\n`, 400],
    ['a control character in the target', `GET /\u0001 HTTP/1.1\r\n${host}\r\n`, 400],
    [
      'a length and an encoding',
      `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
      400,
    ],
    ['two lengths', `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`, 400],
    ['two equal lengths', `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\ncontent-length: 1\r\n\r\n`, 400],
    ['a list of lengths', `POST / HTTP/1.1\r\n${host}Content-Length: 1, 1\r\n\r\n`, 400],
    ['a signed length', `POST / HTTP/1.1\r\n${host}Content-Length: +1\r\n\r\n`, 400],
    ['a negative length', `POST / HTTP/1.1\r\n${host}Content-Length: -1\r\n\r\n`, 400],
    ['a length in hex', `POST / HTTP/1.1\r\n${host}Content-Length: 0x1\r\n\r\n`, 400],
    ['an empty length', `POST / HTTP/1.1\r\n${host}Content-Length:\r\n\r\n`, 400],
    ['a length beyond 2^53', `POST / HTTP/1.1\r\n${host}Content-Length: 9007199254740993\r\n\r\n`, 400],
    ['chunked, identity', `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked, identity\r\n\r\n`, 400],
    ['gzip, chunked', `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n\r\n`, 400],
    ['xchunked', `POST / HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\n`, 400],
    [
      'two encodings',
      `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`,
      400,
    ],
    ['an encoding with a vertical tab', `POST / HTTP/1.1\r\n${host}Transfer-Encoding: \u000bchunked\r\n\r\n`, 400],
    ['an encoding in HTTP/1.0', `POST / HTTP/1.0\r\n${host}Transfer-Encoding: chunked\r\n\r\n`, 400],
    ['a CONNECT with a body', `CONNECT a:443 HTTP/1.1\r\n${host}Content-Length: 4\r\n\r\n`, 400],
    ['two hosts', `GET / HTTP/1.1\r\n${host}${host}\r\n`, 400],
    ['no host', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['a method that is no token', `G(T / HTTP/1.1\r\n${host}\r\n`, 400],
    ['a lower-case version', `GET / http/1.1\r\n${host}\r\n`, 400],
    ['two spaces', `GET  / HTTP/1.1\r\n${host}\r\n`, 400],
    ['a space at the end of the first line', `GET / HTTP/1.1 \r\n${host}\r\n`, 400],
    ['a tab for a space', `GET\t/ HTTP/1.1\r\n${host}\r\n`, 400],
    ['a target with a space', `GET /a b HTTP/1.1\r\n${host}\r\n`, 400],
    ['no version', `GET /\r\n${host}\r\n`, 400],
    ['HTTP/0.9', `GET / HTTP/0.9\r\n${host}\r\n`, 505],
    ['HTTP/1.2', `GET / HTTP/1.2\r\n${host}\r\n`, 505],
    ['HTTP/01.1', `GET / HTTP/01.1\r\n${host}\r\n`, 400],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505],
    ['an empty line first', `\r\nGET / HTTP/1.1\r\n${host}\r\n`, 400],
    ['TLS', '\u0016\u0003\u0001', 400],
    ['too many fields', `GET / HTTP/1.1\r\n${host}${'a:b\r\n'.repeat(200)}\r\n`, 431],
    ['a head without end', `GET / HTTP/1.1\r\n${host}X: ${'a'.repeat(65_536)}`, 431],
    ['a long head', `GET / HTTP/1.1\r\n${host}X: ${'a'.repeat(65_536)}\r\n\r\n`, 431],
    ['a target without end', `GET /${'a'.repeat(65_536)}`, 414],
    ['a long target', `GET /${'a'.repeat(32_768)} HTTP/1.1\r\n${host}\r\n`, 414],
  ];
  test.each(cases)('%s', (_, text, status) => {
    expect(read(text)).toEqual({ kind: 'bad', status, problem: expect.any(String) as string });
  });
});

test('a head that arrives byte by byte is not searched again and again', () => {
  const text = Buffer.from(`GET / HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(60_000)}\r\n\r\n`);
  let searched = 0;
  for (let length = 1; length < text.length; length += 1) {
    const arrived = text.subarray(0, length);
    arrived.indexOf = (value, from) => {
      searched += length - Number(from ?? 0);
      return Buffer.prototype.indexOf.call(arrived, value, Number(from ?? 0));
    };
    if (readRequestHead(arrived, length - 1).kind !== 'more') throw new Error(`at ${length}`);
  }
  expect(searched).toBeGreaterThan(0);
  expect(searched / text.length).toBeLessThan(3);
});
