// test/gateway/relay.test.ts: the last bytes of a connection arrive even if its two ends close at different times.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openOrigin } from '../../src/gateway/front/own-buffer.ts';
import { relay } from '../../src/gateway/front/relay.ts';
import { socketPair } from './proxies.ts';

const block = Buffer.alloc(1024, 1);

interface Relayed {
  readonly ends: Socket[];
  /** The bytes sent to the origin, which has not read them yet. */
  readonly sent: number;
  done(): boolean;
}

async function relayed(how: { stuck?: boolean; halfClosedMs?: number }): Promise<Relayed> {
  const [program, client] = await socketPair((port) => connect({ port, host: '127.0.0.1', allowHalfOpen: true }), true);
  const [origin, server] = await socketPair((port) => openOrigin('127.0.0.1', port), true);
  let sent = 0;
  // Writes until the kernel takes no more and the rest waits in the gateway.
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

test('bytes that wait for a slow origin still arrive after the client has ended and got its answer', async () => {
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

test('a client that is gone for good takes its connection to the origin along', async () => {
  const { ends, done } = await relayed({ stuck: true });
  const [program, , origin] = ends as [Socket, Socket, Socket, Socket];
  program.resetAndDestroy();
  await expect.poll(done).toBe(true);
  expect(origin.destroyed).toBe(true);
  for (const end of ends) end.destroy();
});

test('a half-closed side may read as long as something comes, and no longer', async () => {
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
