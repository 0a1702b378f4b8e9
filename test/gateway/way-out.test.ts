// test/gateway/way-out.test.ts: ags's own requests to registries: redirects do not inherit the user's permissions.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createWayOut, type WayOut } from '../../src/gateway/dial/way-out.ts';
import { createWorld, ORIGIN, type HostContext } from './fixture.ts';

let context: HostContext;
let port: number;
const ways: WayOut[] = [];
beforeEach(async () => {
  context = await createWorld();
  for (const name of ['mirror.test', 'registry.test']) context.names.set(name, [ORIGIN]);
  port = await context.tcp(0, (socket) => socket.end());
});
afterEach(async () => {
  for (const way of ways.splice(0)) way.close();
  await context[Symbol.asyncDispose]();
});

function wayOut(granted: readonly string[], addresses: readonly string[] = []): WayOut {
  const way = createWayOut({
    policy: { dns: [context.dns], addresses },
    upstreams: [],
    roots: () => [],
    ownAddresses: () => [],
    granted,
  });
  ways.push(way);
  return way;
}

/** The outcome of a request to `to` after a redirect from `of`. */
async function led(way: WayOut, to: string, of = to): Promise<'there' | 'refused'> {
  try {
    (await way.open(new URL(`http://${to}:${port}/`), new URL(`http://${of}:${port}/`))).destroy();
    return 'there';
  } catch {
    return 'refused';
  }
}

test('a private address that the user named is not reachable through a redirect', async () => {
  const way = wayOut([`mirror.test:${port}`]);
  expect(await led(way, 'mirror.test')).toBe('there');
  expect(await led(way, 'registry.test')).toBe('refused');
  expect(await led(way, 'mirror.test', 'registry.test')).toBe('refused');
});

test('addresses that the user allows are not reachable through a redirect of a foreign registry', async () => {
  const way = wayOut([`mirror.test:${port}`], [`${ORIGIN}/32`]);
  expect(await led(way, 'registry.test')).toBe('there');
  expect(await led(way, 'mirror.test', 'registry.test')).toBe('refused');
  // The user's own registry may have its tokens or its storage at another address.
  expect(await led(way, 'registry.test', 'mirror.test')).toBe('there');
});
