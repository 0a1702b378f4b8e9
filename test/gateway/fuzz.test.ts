// Node's strict parser reads every accepted request head the same way. 100,000 inputs; 300,000 in CI, a million with AGS_FUZZ=1.
import { createServer, type IncomingMessage, METHODS } from 'node:http';
import { connect } from 'node:net';
import { Duplex } from 'node:stream';
import { expect, test } from 'vitest';
import { createBody } from '../../src/gateway/intercept/body.ts';
import { readClientHello } from '../../src/gateway/front/client-hello.ts';
import { readRequestHead, type RequestHead } from '../../src/gateway/intercept/request-head.ts';
import { stage } from './intercept-fixture.ts';

const ROUNDS = process.env['AGS_FUZZ'] === '1' ? 1_000_000 : process.env['CI'] === undefined ? 100_000 : 300_000;
const SEEDS = [
  'GET / HTTP/1.1\r\nHost: example.com\r\n\r\n',
  'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\nProxy-Connection: keep-alive\r\n\r\n',
  'POST /v1/messages?x=1 HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 12\r\nAccept: */*\r\n\r\n',
  'PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n',
  'GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Odd: \t caf\u00e9\t \r\n\r\n',
  'GET http://example.com/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n',
];
const PARTS = [
  '\r\n',
  '\n',
  '\r',
  ' ',
  '\t',
  ':',
  ',',
  '\0',
  '\r\n ',
  '\r\n\r\n',
  'chunked',
  'Content-Length: 5\r\n',
  '0x',
  '+',
  'HTTP/1.1',
];
const FIELDS = [
  'Transfer-Encoding: chunked\r\n',
  'Host: b\r\n',
  'Content-Length: 1\r\n',
  'X-A:\u00a0b\r\n',
  'a:\r\n',
  'Connection: close\r\n',
];

test(
  `${ROUNDS} mangled heads: none throws, and Node reads every accepted one the same way`,
  { timeout: 240_000 },
  async () => {
    const random = generator(20_261);
    let accepted = 0;
    let batch: RequestHead[] = [];
    for (let i = 0; i < ROUNDS; i += 1) {
      const input = mangle(random);
      const result = readRequestHead(input);
      if (result.kind !== 'head') continue;
      accepted += 1;
      const problem = strictProblem(input, result.head);
      if (problem !== null) throw new Error(`${problem}: ${JSON.stringify(input.toString('latin1'))}`);
      if (accepted % 4 === 0 && METHODS.includes(result.head.method)) batch.push(result.head);
      if (batch.length === 500) {
        await compareWithNode(batch);
        batch = [];
      }
    }
    await compareWithNode(batch);
    expect(accepted).toBeGreaterThan(ROUNDS / 50);
  },
);

test('random bytes and cut bodies or greetings never make the other parsers throw', () => {
  const random = generator(7);
  const hello = Buffer.from(
    '160301003d0100003903030000000000000000000000000000000000000000000000000000000000000000000002130101000010000000' +
      '0c000a0000076578616d706c65',
    'hex',
  );
  const chunked = Buffer.from('5\r\nhello\r\n0\r\nX: y\r\n\r\n');
  for (let i = 0; i < ROUNDS / 2; i += 1) {
    readClientHello(scramble(hello, random));
    createBody({ kind: 'chunked' }).take(scramble(chunked, random));
  }
});

test(
  'mangled requests through the interception reach the origin only as far as the rules allow',
  { timeout: 240_000 },
  async () => {
    const random = generator(99);
    const allowed = new Set<string>();
    const seen: string[] = [];
    const server = createServer({ insecureHTTPParser: false }, (request, response) => {
      seen.push(`${request.method} ${request.url?.split('?')[0]}`);
      request.on('error', () => undefined).resume();
      response.end('ok');
    });
    server.on('clientError', (_error, socket) => socket.destroy());
    await using scene = await stage((socket) => server.emit('connection', socket), {
      host: 'a',
      scheme: 'http',
      decide: (method, path) => {
        if (!path.startsWith('/ok')) return 'no';
        allowed.add(`${method} ${path}`);
        return null;
      },
    });
    for (let i = 0; i < ROUNDS / 200; i += 1) {
      const client = connect({ port: scene.port, host: '127.0.0.1', allowHalfOpen: true });
      client.on('error', () => undefined).resume();
      client.end(mangle(random, PAIRS));
      await new Promise((resolve) => client.once('close', resolve));
    }
    await Promise.all(scene.over);
    expect(seen.length).toBeGreaterThan(ROUNDS / 800);
    expect(seen.filter((request) => !allowed.has(request))).toEqual([]);
  },
);

const HIDDEN = 'GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n';
const PAIRS = [
  `POST /ok/1 HTTP/1.1\r\nHost: a\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}GET /ok/2 HTTP/1.1\r\nHost: a\r\n\r\n`,
  `POST /ok/3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\nGET /ok/4 HTTP/1.1\r\nHost: a\r\n\r\n`,
  `GET /ok/5 HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n${HIDDEN}`,
  `GET /ok/6?a=b HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n${HIDDEN}`,
];

// Deliberately independent of the parser: one regular expression over the whole head.
function strictProblem(input: Buffer, head: RequestHead): string | null {
  const text = input.toString('latin1').slice(0, head.bytes);
  // eslint-disable-next-line no-control-regex
  if (
    !/^[A-Za-z0-9!#$%&'*+.^_`|~-]+ [!-~]+ HTTP\/1\.[01]\r\n(?:[A-Za-z0-9!#$%&'*+.^_`|~-]+:[\t -~\x80-\xff]*\r\n)*\r\n$/.test(
      text,
    )
  ) {
    return 'the head is not of the form';
  }
  if (text.indexOf('\r\n\r\n') !== head.bytes - 4) return 'the head does not end there';
  const lengths = text.match(/\r\ncontent-length:[^\r]*/gi) ?? [];
  const codings = text.match(/\r\ntransfer-encoding:[^\r]*/gi) ?? [];
  if (lengths.length + codings.length > 1) return 'the framing is not clear';
  const framing = codings.length > 0 ? 'chunked' : lengths.length > 0 ? 'length' : 'none';
  if (head.body.kind !== framing) return 'the framing is another';
  if (
    head.body.kind === 'length' &&
    lengths[0]
      ?.slice(17)
      .trim()
      .replace(/^0+(?=\d)/, '') !== String(head.body.bytes)
  ) {
    return 'the length is another';
  }
  return null;
}

async function compareWithNode(heads: readonly RequestHead[]): Promise<void> {
  for (const head of heads) {
    const seen = await nodeReads(head);
    // Node is stricter about targets and lengths; a head that Node refuses cannot be read differently.
    if (seen === null) continue;
    const { method, target, headers, version } = head;
    expect(seen).toEqual({
      method,
      target,
      headers,
      version,
      framing: head.body.kind === 'length' ? head.body.bytes : head.body.kind,
    });
  }
}

interface Reading {
  method: string | undefined;
  target: string | undefined;
  version: string;
  headers: (readonly [string, string])[];
  framing: string | number;
}

/** The head, serialized again and read by node:http. */
function nodeReads(head: RequestHead): Promise<Reading | null> {
  const text = `${head.method} ${head.target} HTTP/${head.version}\r\n${head.headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
  return new Promise((resolve) => {
    const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
    const done = (message: IncomingMessage): void => {
      const headers: (readonly [string, string])[] = [];
      for (let i = 0; i < message.rawHeaders.length; i += 2)
        headers.push([message.rawHeaders[i] ?? '', message.rawHeaders[i + 1] ?? '']);
      const { 'content-length': length, 'transfer-encoding': coding } = message.headers;
      resolve({
        method: message.method,
        target: message.url,
        version: message.httpVersion,
        headers,
        framing: coding ?? (length === undefined ? 'none' : Number(length)),
      });
      socket.destroy();
    };
    const server = createServer({ insecureHTTPParser: false, maxHeaderSize: 131_072 }, done);
    server.on('connect', done).on('upgrade', done).on('checkExpectation', done).on('checkContinue', done);
    server.on('clientError', () => {
      resolve(null);
      socket.destroy();
    });
    server.emit('connection', socket);
    socket.push(Buffer.from(text, 'latin1'));
  });
}

function mangle(random: (below: number) => number, seeds = SEEDS): Buffer {
  if (random(50) === 0) return Buffer.from(Array.from({ length: random(80) }, () => random(256)));
  let text = seeds[random(seeds.length)] ?? '';
  for (let changes = random(4); changes > 0; changes -= 1) {
    const at = random(text.length);
    const kind = random(6);
    if (kind === 0) text = text.slice(0, at) + String.fromCharCode(random(256)) + text.slice(at + 1);
    else if (kind === 1) text = text.slice(0, at) + text.slice(at + 1 + random(4));
    else if (kind === 2) text = text.slice(0, at) + (PARTS[random(PARTS.length)] ?? '') + text.slice(at);
    else if (kind === 3) text = text.slice(0, at) + text.slice(random(text.length));
    else if (kind === 4) text = text.replace('\r\n\r\n', `\r\n${FIELDS[random(FIELDS.length)] ?? ''}\r\n`);
    else text = text.slice(0, at) + String.fromCharCode(33 + random(94)) + text.slice(at);
  }
  return Buffer.from(text, 'latin1');
}

function scramble(seed: Buffer, random: (below: number) => number): Buffer {
  const bytes = Buffer.from(seed.subarray(0, random(seed.length + 1)));
  for (let changes = random(4); changes > 0 && bytes.length > 0; changes -= 1)
    bytes[random(bytes.length)] = random(256);
  return bytes;
}

function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 4_294_967_296) * below);
  };
}
