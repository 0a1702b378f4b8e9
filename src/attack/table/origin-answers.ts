// attack/table/origin-answers.ts: the answers of an allowed but hostile host. The path of the request selects one.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Duplex } from 'node:stream';
import { gzipSync } from 'node:zlib';

/** `secret`: its value, by which the host recognises a signed-in request. */
export async function answer(socket: Duplex, heard: string, secret: string): Promise<void> {
  const [, kind = ''] = /^[A-Z]+ \S*\/say\/([a-z-]+)/.exec(heard) ?? [];
  const shown = /^authorization: (.*)\r$/im.exec(heard)?.[1] ?? 'nobody';
  const signed = `X-Signed: ${shown.includes(secret) || isBasic(shown, secret) ? 'in' : 'no'}\r\n`;
  if (kind === 'pieces') return inPieces(socket, signed, shown);
  const says = (SECRET_BACK[kind] ?? ODD[kind] ?? echo)(shown, signed, heard);
  if (/^(?:switch|kept|poison)/.test(kind)) return void socket.write(says, 'latin1');
  socket.end(says, 'latin1');
}

type Says = (shown: string, signed: string, heard: string) => string | Buffer;

const ok = (head: string, body: string): string =>
  `HTTP/1.1 200 OK\r\n${head}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
const chunked = (head: string, body: string): string =>
  `HTTP/1.1 200 OK\r\n${head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n${body}`;

const echo: Says = (_, signed, heard) => ok(signed, heard);

/** Answers that contain the secret, so that the program behind the gateway could read it. */
const SECRET_BACK: Readonly<Record<string, Says>> = {
  body: (shown, signed) => ok(signed, shown),
  head: (shown, signed) => ok(`${signed}X-Shown: ${shown}\r\n`, ''),
  reason: (shown, signed) => ok(signed, '').replace('OK', shown),
  json: (shown, signed) => ok(signed, JSON.stringify({ shown })),
  url: (shown, signed) => ok(signed, encodeURIComponent(shown)),
  chunks: (shown, signed) => chunked(signed, `${[...shown].map((sign) => chunk(sign)).join('')}0\r\n\r\n`),
  trailer: (shown, signed) => chunked(signed, `${chunk('x')}0\r\nX-Shown: ${shown}\r\n\r\n`),
  until: (shown, signed) => `HTTP/1.1 200 OK\r\n${signed}Connection: close\r\n\r\n${shown}`,
  early: (shown, signed) => `HTTP/1.1 103 Early Hints\r\nX-Shown: ${shown}\r\n\r\n${ok(signed, '')}`,
  gzip(shown, signed) {
    const body = gzipSync(shown);
    const head = `HTTP/1.1 200 OK\r\n${signed}Content-Encoding: gzip\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`;
    return Buffer.concat([Buffer.from(head, 'latin1'), body]);
  },
  'switch-socket': (shown, signed) =>
    `HTTP/1.1 101 Switching Protocols\r\n${signed}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n${shown}`,
};

/** Ambiguous answers, or answers that redirect elsewhere. */
const ODD: Readonly<Record<string, Says>> = {
  both: () => `HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  lengths: () => `HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 40\r\n\r\n${HIDDEN}`,
  sign: () => `HTTP/1.1 200 OK\r\nContent-Length: +0\r\n\r\n${HIDDEN}`,
  coding: () => `HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  newline: () => `HTTP/1.1 200 OK\nContent-Length: 0\n\n${HIDDEN}`,
  fold: () => `HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n${HIDDEN}`,
  space: () => `HTTP/1.1 200 OK\r\nContent-Length : 40\r\nContent-Length: 0\r\n\r\n${HIDDEN}`,
  control: () => `HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n${HIDDEN}`,
  status: () => `HTTP/1.1 999 OK\r\nContent-Length: 0\r\n\r\n${HIDDEN}`,
  'long-head': () => `HTTP/1.1 200 OK\r\n${`X: ${'y'.repeat(1000)}\r\n`.repeat(100)}Content-Length: 0\r\n\r\n`,
  'many-fields': () => `HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(300)}Content-Length: 0\r\n\r\n`,
  'switch-unasked': () =>
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n${HIDDEN}`,
  'switch-other': () => `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n${HIDDEN}`,
  'chunk-size': () => chunked('', `3;x=y\r\nabc\r\n0\r\n\r\n${HIDDEN}`),
  'chunk-end': () => chunked('', `3\r\nabcdef\r\n0\r\n\r\n${HIDDEN}`),
  'old-chunks': () => chunked('', `${chunk('abc')}0\r\n\r\n`).replace('HTTP/1.1', 'HTTP/1.0'),
  kept: () => KEPT,
  poison: () => `${KEPT}${HIDDEN}`,
  'named-length': () => ok('', 'x').replace('Connection: close', 'Connection: close, Content-Length'),
  elsewhere: () =>
    ok(
      'Alt-Svc: h3="canary.invalid:443"\r\nProxy-Authenticate: Basic realm="x"\r\nX-Hop: 1\r\nConnection: X-Hop\r\n',
      '',
    ),
};

const KEPT = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const HIDDEN = 'HTTP/1.1 200 Hidden\r\nContent-Length: 0\r\n\r\n';

/** Cut in the middle, with a pause, as a network does. */
async function inPieces(socket: Duplex, signed: string, shown: string): Promise<void> {
  const whole = ok(signed, shown);
  for (const [from, to] of [
    [0, whole.length - 12],
    [whole.length - 12, whole.length - 6],
    [whole.length - 6, whole.length],
  ]) {
    socket.write(whole.slice(from, to), 'latin1');
    await sleep(50);
  }
  socket.end();
}

function isBasic(shown: string, secret: string): boolean {
  const [, pair = ''] = /^basic +(\S+)$/i.exec(shown) ?? [];
  return Buffer.from(pair, 'base64').toString('latin1').includes(secret);
}
