// test/gateway/own-buffer.test.ts: clients that send much are read into one reused buffer, with the same result as ordinary reads.
// Every test runs both ways, because the gateway falls back to 'data' events where Node does not support it.
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { giveBuffer, openOrigin, tryOut } from '../../src/gateway/front/own-buffer.ts';
import { relay } from '../../src/gateway/front/relay.ts';
import { socketPair } from './proxies.ts';

/** The timeout of polls on a busy machine. */
const PATIENT = { timeout: 20_000 };
const MUCH = 4 * 1024 * 1024;
/** More than both connections hold while the server does not read. */
const MORE_THAN_THE_KERNEL_TAKES = 12 * 1024 * 1024;

beforeAll(async () => {
  expect(await tryOut()).toBe(true);
});

interface Line {
  /** The program in the sandbox, and the gateway's end of its connection. */
  readonly program: Socket;
  readonly client: Socket;
  /** The gateway's end of the other connection, and the server. */
  readonly origin: Socket;
  readonly server: Socket;
  readonly counted: { out: number; in: number };
  /** How many clients were read into a buffer of their own. */
  readonly given: () => number;
  readonly done: () => boolean;
  start(more?: { fromClient?: Buffer; halfClosedMs?: number; budget?: number }): void;
}

type Give = typeof giveBuffer;

async function openLine(give: Give): Promise<Line> {
  const [program, client] = await socketPair(
    (port) => connect({ port, host: '127.0.0.1', allowHalfOpen: true }),
    false,
  );
  const [origin, server] = await socketPair((port) => openOrigin('127.0.0.1', port), true);
  const counted = { out: 0, in: 0 };
  let [given, done] = [0, false];
  onTestFinished(() => {
    for (const end of [program, client, origin, server]) end.destroy();
  });
  return {
    program,
    client,
    origin,
    server,
    counted,
    given: () => given,
    done: () => done,
    start: ({ fromClient = Buffer.alloc(0), halfClosedMs, budget = Infinity } = {}) =>
      relay({
        client,
        origin,
        fromClient,
        fromOrigin: Buffer.alloc(0),
        counter: { out: (bytes) => (counted.out += bytes) <= budget, in: (bytes) => void (counted.in += bytes) },
        firstWords: null,
        done: () => (done = true),
        ...(halfClosedMs === undefined ? {} : { halfClosedMs }),
        giveBuffer(socket, sink) {
          const got = give(socket, sink);
          if (got) given += 1;
          return got;
        },
      }),
  };
}

const hash = (data: Buffer): string => createHash('sha256').update(data).digest('hex');

/** Reads everything that comes, with a pause after each piece. */
function readSlowly(socket: Socket): { all: () => Buffer } {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    socket.pause();
    void nextTurn().then(() => socket.resume());
  });
  socket.resume();
  return { all: () => Buffer.concat(chunks) };
}

function writeFor(socket: Socket, block: Buffer): { sent: () => number } {
  let sent = 0;
  const more = (): void => {
    while (!socket.destroyed && socket.write(block)) sent += block.length;
  };
  socket.on('drain', more);
  more();
  return { sent: () => sent };
}

describe.each<[string, number, Give]>([
  ['into a buffer of its own', 1, giveBuffer],
  ['as data', 0, () => false],
])('a client that is read %s', (_, buffers, give) => {
  test('sends and gets its bytes intact, both ways at once, with slow readers', async () => {
    const line = await openLine(give);
    const [up, down] = [randomBytes(MUCH), randomBytes(MUCH)];
    line.start();
    const [atServer, atProgram] = [readSlowly(line.server), readSlowly(line.program)];
    line.program.end(up);
    line.server.end(down);
    await Promise.all([once(line.server, 'end'), once(line.program, 'end')]);
    expect([hash(atServer.all()), hash(atProgram.all())]).toEqual([hash(up), hash(down)]);
    await expect.poll(line.done, PATIENT).toBe(true);
    expect(line.counted).toEqual({ out: MUCH, in: MUCH });
    expect(line.given()).toBe(buffers);
  });

  test('is not mixed up with others, also when a buffer is reused', async () => {
    for (let round = 0; round < 2; round += 1) {
      const lines = await Promise.all(Array.from({ length: 3 }, () => openLine(give)));
      const sent = lines.map((_line, i) => Buffer.alloc(MORE_THAN_THE_KERNEL_TAKES, `${round} ${i} `));
      for (const [i, line] of lines.entries()) {
        line.start();
        line.program.end(sent[i] ?? '');
        line.server.end();
        line.program.resume();
      }
      // Each has some of its bytes in the gateway, where the next one must not write over them.
      await expect.poll(() => lines.every(({ origin }) => origin.writableLength > 0), PATIENT).toBe(true);
      const read = lines.map((line) => readSlowly(line.server));
      await Promise.all(lines.map(({ server }) => once(server, 'end')));
      expect(read.map(({ all }) => hash(all()))).toEqual(sent.map(hash));
      expect(lines.map((line) => line.given())).toEqual(lines.map(() => buffers));
    }
  });

  test('is read in order: bytes read before, bytes waiting in its socket, later bytes', async () => {
    const line = await openLine(give);
    const [first, waiting, later] = [randomBytes(300_000), randomBytes(10_000), randomBytes(MUCH)];
    line.program.write(waiting);
    await expect.poll(() => line.client.readableLength, PATIENT).toBe(waiting.length);
    line.start({ fromClient: first });
    line.program.end(later);
    const read = readSlowly(line.server);
    await once(line.server, 'end');
    expect(hash(read.all())).toBe(hash(Buffer.concat([first, waiting, later])));
    expect(line.counted.out).toBe(first.length + waiting.length + later.length);
    expect(line.given()).toBe(buffers);
  });

  test('may half-close and still read', async () => {
    const line = await openLine(give);
    line.start();
    line.program.end(Buffer.alloc(MUCH));
    line.server.resume();
    await once(line.server, 'end');
    expect([line.given(), line.done()]).toEqual([buffers, false]);
    const answer = randomBytes(MUCH);
    line.server.end(answer);
    const read = readSlowly(line.program);
    await once(line.program, 'end');
    expect(hash(read.all())).toBe(hash(answer));
    await expect.poll(line.done, PATIENT).toBe(true);
  });

  test('is closed after a silence when it has half-closed', async () => {
    const line = await openLine(give);
    line.start({ halfClosedMs: 200 });
    line.program.end(Buffer.alloc(MUCH));
    line.server.resume();
    await once(line.server, 'end');
    await expect.poll(line.done, PATIENT).toBe(true);
    expect([line.given(), line.client.destroyed, line.origin.destroyed]).toEqual([buffers, true, true]);
  });

  test('waits while the origin does not read, and continues when it does', async () => {
    const line = await openLine(give);
    line.start();
    line.server.once('data', () => undefined).resume();
    const block = Buffer.alloc(1 << 20);
    const { sent } = writeFor(line.program, block);
    await expect.poll(() => line.counted.out, PATIENT).toBeGreaterThan(MUCH);
    expect(line.given()).toBe(buffers);
    line.server.pause();
    // Two equal samples: nothing was sent in between.
    let before = -1;
    await expect
      .poll(() => [before, (before = line.counted.out)], { ...PATIENT, interval: 200 })
      .toSatisfy(([a, b]) => a === b);
    expect(sent() - line.server.bytesRead).toBeLessThan(64 << 20);
    expect(line.origin.writableLength).toBeLessThan(256 << 10);
    line.server.resume();
    await expect.poll(() => line.counted.out, PATIENT).toBeGreaterThan(before + MUCH);
  });

  test('that is gone takes its connection to the origin along', async () => {
    const line = await openLine(give);
    line.start();
    line.program.write(Buffer.alloc(MUCH));
    line.server.resume();
    await expect.poll(() => line.counted.out, PATIENT).toBe(MUCH);
    line.program.resetAndDestroy();
    await expect.poll(line.done, PATIENT).toBe(true);
    expect([line.given(), line.origin.destroyed]).toEqual([buffers, true]);
  });

  test('is closed when the origin is gone', async () => {
    const line = await openLine(give);
    line.start();
    writeFor(line.program, Buffer.alloc(65_536));
    line.server.resume();
    await expect.poll(() => line.counted.out, PATIENT).toBeGreaterThan(MUCH);
    line.server.resetAndDestroy();
    await expect.poll(line.done, PATIENT).toBe(true);
    expect([line.given(), line.client.destroyed]).toEqual([buffers, true]);
  });

  test('sends no byte beyond its budget', async () => {
    const line = await openLine(give);
    line.start({ budget: MUCH });
    writeFor(line.program, Buffer.alloc(65_536));
    const read = readSlowly(line.server);
    await expect.poll(line.done, PATIENT).toBe(true);
    await expect.poll(() => line.server.destroyed || line.server.readableEnded).toBe(true);
    expect(read.all().length).toBeLessThanOrEqual(MUCH);
    expect(line.counted.out).toBeGreaterThan(MUCH);
    expect([line.given(), line.client.destroyed]).toEqual([buffers, true]);
  });
});

test('a socket without a connection gets no buffer of its own', () => {
  const socket = new Socket();
  expect(giveBuffer(socket, () => true)).toBe(false);
  socket.destroy();
});
