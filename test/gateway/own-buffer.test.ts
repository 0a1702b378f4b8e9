// test/gateway/own-buffer.test.ts: a client that sends much is read into one buffer again and again; nobody can tell. Everything
// is tried both ways, because a Node in which that does not work reads as 'data'.
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, Socket, type AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { giveBuffer, openOrigin, tryOut } from '../../src/gateway/front/own-buffer.ts';
import { relay } from '../../src/gateway/front/relay.ts';

/** Of whoever waits on a machine that is busy elsewhere. */
const PATIENT = { timeout: 20_000 };
const MUCH = 4 * 1024 * 1024;
/** On both connections, with nobody reading. */
const MORE_THAN_THE_KERNEL_TAKES = 12 * 1024 * 1024;

beforeAll(async () => {
  expect(await tryOut()).toBe(true);
});

async function pair(open: (port: number) => Socket, pauseOnConnect: boolean): Promise<[near: Socket, far: Socket]> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const near = open((server.address() as AddressInfo).port);
  const [[far]] = (await Promise.all([once(server, 'connection'), once(near, 'connect')])) as [[Socket], unknown];
  server.close();
  for (const end of [near, far]) end.on('error', () => undefined);
  return [near, far];
}

interface Line {
  /** In the sandbox, and the gateway's end of it. */
  readonly program: Socket;
  readonly client: Socket;
  /** The gateway's end of the other connection, and the server there. */
  readonly origin: Socket;
  readonly server: Socket;
  readonly counted: { out: number; in: number };
  /** How many clients have got a buffer of their own. */
  readonly given: () => number;
  readonly done: () => boolean;
  start(more?: { fromClient?: Buffer; halfClosedMs?: number; budget?: number }): void;
}

type Give = typeof giveBuffer;

async function openLine(give: Give): Promise<Line> {
  const [program, client] = await pair((port) => connect({ port, host: '127.0.0.1', allowHalfOpen: true }), false);
  const [origin, server] = await pair((port) => openOrigin('127.0.0.1', port), true);
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

/** All that comes, read a piece now and a piece later. */
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
  test('sends and gets its bytes intact, both at once, with readers that are slow', async () => {
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

  test('is told apart from the others, also when they use the buffer of one that has gone', async () => {
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

  test('is heard in order: what was read before, what waits in its socket, what comes later', async () => {
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

  test('may say everything and still listen', async () => {
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

  test('is let go after a silence when it has said everything', async () => {
    const line = await openLine(give);
    line.start({ halfClosedMs: 200 });
    line.program.end(Buffer.alloc(MUCH));
    line.server.resume();
    await once(line.server, 'end');
    await expect.poll(line.done, PATIENT).toBe(true);
    expect([line.given(), line.client.destroyed, line.origin.destroyed]).toEqual([buffers, true, true]);
  });

  test('waits while the origin does not read, and goes on when it does', async () => {
    const line = await openLine(give);
    line.start();
    line.server.once('data', () => undefined).resume();
    const block = Buffer.alloc(1 << 20);
    const { sent } = writeFor(line.program, block);
    await expect.poll(() => line.counted.out, PATIENT).toBeGreaterThan(MUCH);
    expect(line.given()).toBe(buffers);
    line.server.pause();
    // Standing still: nothing was sent from one look to the next.
    let before = -1;
    await expect
      .poll(() => [before, (before = line.counted.out)], { ...PATIENT, interval: 200 })
      .toSatisfy(([a, b]) => a === b);
    expect(sent() - line.server.bytesRead).toBeLessThan(64 << 20);
    expect(line.origin.writableLength).toBeLessThan(256 << 10);
    line.server.resume();
    await expect.poll(() => line.counted.out, PATIENT).toBeGreaterThan(before + MUCH);
  });

  test('that is gone takes its connection with the origin along', async () => {
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

  test('gets no byte past its budget out', async () => {
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

test('a socket that is not one of the kind that has such a buffer is left as it is', () => {
  const socket = new Socket();
  expect(giveBuffer(socket, () => true)).toBe(false);
  socket.destroy();
});
