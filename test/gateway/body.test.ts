// The ends of bodies, and secret values in them (attacks A61, A139).
import { describe, expect, test } from 'vitest';
import { createBody } from '../../src/gateway/intercept/body.ts';
import type { Framing } from '../../src/gateway/intercept/head.ts';
import { createRedactor } from '../../src/gateway/intercept/redact.ts';
import { readResponseHead } from '../../src/gateway/intercept/response-head.ts';

/** Passes the text through a body parser in pieces of `size` bytes. */
function pass(framing: Framing, text: string, size: number): { used: string; data: string; rest: string } | string {
  const body = createBody(framing);
  const bytes = Buffer.from(text, 'latin1');
  let used = '';
  let data = '';
  for (let at = 0; at < bytes.length; at += size) {
    const taken = body.take(bytes.subarray(at, at + size));
    if ('bad' in taken) return taken.bad;
    used += taken.used.toString('latin1');
    data += Buffer.concat(taken.data).toString('latin1');
    if (taken.done)
      return {
        used,
        data,
        rest: bytes.toString('latin1', at + size - taken.rest.length + Math.min(0, bytes.length - at - size)),
      };
  }
  return 'more';
}

describe('a body', () => {
  test.each([1, 2, 3, 7, 1000])('ends where its length or its last chunk says, in pieces of %d', (size) => {
    expect(pass({ kind: 'length', bytes: 5 }, 'helloGET /', size)).toEqual({
      used: 'hello',
      data: 'hello',
      rest: 'GET /',
    });
    const chunks = '5\r\nhello\r\n00A\r\n, my world\r\n0\r\n';
    expect(pass({ kind: 'chunked' }, `${chunks}\r\nGET /`, size)).toEqual({
      used: `${chunks}\r\n`,
      data: 'hello, my world',
      rest: 'GET /',
    });
    const trailer = `${chunks}X-Sum: 1\r\nY: 2\r\n\r\n`;
    expect(pass({ kind: 'chunked' }, `${trailer}GET`, size)).toEqual({
      used: trailer,
      data: 'hello, my world',
      rest: 'GET',
    });
    expect(pass({ kind: 'until-close' }, 'abc', size)).toBe('more');
    expect(pass({ kind: 'none' }, 'abc', size)).toEqual({ used: '', data: '', rest: 'abc' });
  });

  const bad: readonly (readonly [string, string])[] = [
    ['an extension', '5;a=b\r\nhello\r\n'],
    ['a space after the size', '5 \r\nhello\r\n'],
    ['a space before the size', ' 5\r\nhello\r\n'],
    ['a sign', '+5\r\nhello\r\n'],
    ['0x', '0x5\r\nhello\r\n'],
    ['no size', '\r\nhello\r\n'],
    ['a bare LF after the size', '5\nhello\r\n'],
    ['a bare LF after the data', '5\r\nhello\n0\r\n\r\n'],
    ['CR and something else', '5\rXhello'],
    ['CR and something else after the data', '5\r\nhello\rX0\r\n\r\n'],
    ['more data than its size', '5\r\nhello!\r\n'],
    ['a size beyond all bounds', 'fffffffffffffffff\r\n'],
    ['a bare LF at the end', '0\r\n\n'],
    ['a bare LF in the trailer', '0\r\nX: 1\n\r\n'],
    ['a length in the trailer', '0\r\ncontent-length: 5\r\n\r\n'],
    ['an encoding in the trailer', '0\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['a host in the trailer', '0\r\nHost: evil.test\r\n\r\n'],
    ['a folded trailer', '0\r\nA: b\r\n c\r\n\r\n'],
    ['a trailer without end', `0\r\nA: ${'b'.repeat(9000)}`],
  ];
  test.each(bad)('is refused with %s', (_, text) => {
    for (const size of [1, 3, 20_000]) expect(pass({ kind: 'chunked' }, text, size)).toMatch(/chunk|trailer/);
  });
});

describe('a response head', () => {
  const framing = (text: string, method = 'GET'): unknown => {
    const result = readResponseHead(Buffer.from(text), method);
    return result.kind === 'head' ? [result.head.body, result.head.keepAlive] : result.kind;
  };
  test('tells how its body ends', () => {
    expect(framing('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n')).toEqual([{ kind: 'length', bytes: 3 }, true]);
    expect(framing('HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n')).toEqual([
      { kind: 'chunked' },
      false,
    ]);
    expect(framing('HTTP/1.1 200 OK\r\n\r\n')).toEqual([{ kind: 'until-close' }, false]);
    expect(framing('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n', 'HEAD')).toEqual([{ kind: 'none' }, true]);
    expect(framing('HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n')).toEqual([{ kind: 'none' }, true]);
    expect(framing('HTTP/1.1 204 No Content\r\n\r\n')).toEqual([{ kind: 'none' }, true]);
    expect(framing('HTTP/1.1 100 Continue\r\n\r\n')).toEqual([{ kind: 'none' }, true]);
    expect(framing('HTTP/1.1 200 OK\r\nContent-Le')).toBe('more');
  });
  test('is refused if its framing is not clear', () => {
    for (const text of [
      'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n',
      'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n',
      'HTTP/1.1 200 OK\nContent-Length: 3\n\n',
      'HTTP/2 200 OK\r\n\r\n',
      'HTTP/1.1 600 OK\r\n\r\n',
      'SSH-2.0-x\r\n\r\n',
    ]) {
      expect(framing(text)).toBe('bad');
    }
  });
});

describe('secret values in a stream', () => {
  const values = ['sk-secret-1', 'abcab', 'cabxx', 'sk-se'].map((value) => Buffer.from(value));
  const text = 'a sk-secret-1 b sk-secre abcabcab|abcabxx sk-sesk-secret-1sk-secret-';
  const clean = 'a *********** b *****cre ********|******* *********************cret-';

  test('become stars, however the stream is cut', () => {
    for (let size = 1; size <= text.length; size += 1) {
      const redactor = createRedactor(values);
      let out = '';
      for (let at = 0; at < text.length; at += size)
        out += redactor.pass(Buffer.from(text.slice(at, at + size))).toString();
      expect(out + redactor.end().toString()).toBe(clean);
    }
  });

  test('delay only bytes that may begin a secret', () => {
    const redactor = createRedactor([Buffer.from('sk-secret-1')]);
    expect(redactor.pass(Buffer.from('data: x\n\n')).toString()).toBe('data: x\n\n');
    expect(redactor.pass(Buffer.from('data: sk-')).toString()).toBe('data: ');
    expect(redactor.pass(Buffer.from('other')).toString()).toBe('sk-other');
    expect(redactor.pass(Buffer.from('sk')).toString()).toBe('');
    expect(redactor.end().toString()).toBe('sk');
  });
});
