// test/gateway/behaviour.test.ts: a gateway over time: rules that change, people who are asked, budgets, and sides that are
// slow, dead or gone.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createWorld } from './fixture.ts';

test('an upload that ends while the origin is slow to read arrives whole, also when the origin has said everything', async () => {
  await using world = await createWorld();
  const sizes = Array.from({ length: 20 }, (_, i) => 6_000_000 + i * 1501);
  const received: number[] = [];
  const port = await world.tcp(0, (socket) => {
    let bytes = 0;
    socket.end('bye');
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      socket.pause();
      setTimeout(() => socket.resume(), 3);
    });
    socket.on('close', () => received.push(bytes));
  });
  const gateway = await world.gateway({ allow: [`allowed.test:${port}`] });
  for (const size of sizes) {
    const socket = await gateway.tunnel('allowed.test', port);
    if (typeof socket === 'string') throw new Error(socket);
    socket.resume();
    await sleep(10);
    socket.end(Buffer.alloc(size));
  }
  await expect.poll(() => received.length, { timeout: 30_000 }).toBe(sizes.length);
  expect(received.toSorted((a, b) => a - b)).toEqual(sizes);
  expect(gateway.log.map(({ verdict, bytesIn }) => `${verdict} ${bytesIn}`)).toEqual(sizes.map(() => 'allowed 3'));
  expect(gateway.gateway.stats.open).toBe(0);
});
