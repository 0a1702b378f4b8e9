// test/gateway/relay.test.ts: the last bytes of a connection are not lost when its ends do not end together.
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openOrigin } from '../../src/gateway/front/own-buffer.ts';
import { relay } from '../../src/gateway/front/relay.ts';

/** Both ends of a connection; the first was made by `open`. */
async function pair(open: (port: number) => Socket): Promise<[near: Socket, far: Socket]> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const near = open((server.address() as AddressInfo).port);
  const [[far]] = (await Promise.all([once(server, 'connection'), once(near, 'connect')])) as [[Socket], unknown];
  server.close();
  for (const end of [near, far]) end.on('error', () => undefined);
  return [near, far];
}

const block = Buffer.alloc(1024, 1);

interface Relayed {
  readonly ends: Socket[];
  /** To the origin, which has not read it yet. */
  readonly sent: number;
  done(): boolean;
}

async function relayed(how: { stuck?: boolean; halfClosedMs?: number }): Promise<Relayed> {
  const [program, client] = await pair((port) => connect({ port, host: '127.0.0.1', allowHalfOpen: true }));
  const [origin, server] = await pair((port) => openOrigin('127.0.0.1', port));
  let sent = 0;
  // Until the kernel takes no more and the rest waits in the gateway.
  for (; how.stuck === true && origin.writableLength === 0; sent += block.length) origin.write(block);
  let done = false;
  relay({
    client,
    origin,
    fromClient: Buffer.alloc(0),
    fromOrigin: Buffer.alloc(0),
    counter: { out: () => true, in: () => undefined },
    firstWords: null,
    done: () => (done = true),
    ...(how.halfClosedMs === undefined ? {} : { halfClosedMs: how.halfClosedMs }),
  });
  return { ends: [program, client, origin, server], sent, done: () => done };
}

test('what waits for a slow origin still arrives when the client has ended and has been answered', async () => {
  const { ends, sent, done } = await relayed({ stuck: true });
  const [program, client, , server] = ends as [Socket, Socket, Socket, Socket];
  server.end();
  program.resume();
  program.end();
  await once(client, 'close');
  let received = 0;
  server.on('data', (chunk) => (received += chunk.length));
  server.resume();
  await once(server, 'end');
  expect(received).toBe(sent);
  await expect.poll(done).toBe(true);
});

test('a client that is gone for good takes its connection with the origin along', async () => {
  const { ends, done } = await relayed({ stuck: true });
  const [program, , origin] = ends as [Socket, Socket, Socket, Socket];
  program.resetAndDestroy();
  await expect.poll(done).toBe(true);
  expect(origin.destroyed).toBe(true);
  for (const end of ends) end.destroy();
});

test('one side that has said everything may listen for as long as something comes, and no longer', async () => {
  const { ends, done } = await relayed({ halfClosedMs: 2000 });
  const [program, client, origin, server] = ends as [Socket, Socket, Socket, Socket];
  let heard = 0;
  program.on('data', (chunk) => (heard += chunk.length));
  program.end('the question');
  server.resume();
  for (let i = 0; i < 6; i++) {
    await sleep(500);
    server.write(block);
  }
  await expect.poll(() => heard).toBe(6 * block.length);
  expect(done()).toBe(false);
  await expect.poll(done).toBe(true);
  expect([client.destroyed, origin.destroyed]).toEqual([true, true]);
  for (const end of ends) end.destroy();
});
