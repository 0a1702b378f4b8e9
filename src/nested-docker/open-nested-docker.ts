// nested-docker/open-nested-docker.ts: assembles a task's nested Docker: programs, limits, and where images come from. Loaded at the first
// connection to it.
import { join } from 'node:path';
import type { Server as HttpServer } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { EffectiveConfig } from '../config/effective.ts';
import { createImageCache } from './image-cache/cache.ts';
import { openImageStore } from './image-cache/store.ts';
import { createRegistryClient } from './image-cache/upstream.ts';
import { hostAndPort } from '../protocol/host-name.ts';
import { NESTED_BASE, NESTED_USERS, TRUST_INSIDE } from '../sandbox/nested/engine-args.ts';
import { startNestedEngine, type NestedEngine } from '../sandbox/nested/nested-engine.ts';
import type { EngineNews, NestedDockerInput } from './engine-input.ts';
import { nestedOptions, registriesOf } from '../run/nested-docker-options.ts';
import { wayOut } from '../run/network/open-gateway.ts';
import type { HostContext } from '../run/host-context.ts';

export async function startFor(input: NestedDockerInput, on: EngineNews): Promise<NestedEngine> {
  const { context, config } = input;
  let cache: Promise<HttpServer> | null = null;
  const enter = async (socket: Socket): Promise<void> => {
    socket.on('error', () => undefined);
    cache ??= openCache(context, config).catch((error: unknown) => {
      cache = null;
      throw error;
    });
    (await cache).emit('connection', socket);
  };
  return startNestedEngine({
    ...nestedOptions(context, config, input.id),
    trust: await trustOf(input),
    onListener(name, listener) {
      if (name !== 'registry') return on.onEgress(name, listener);
      (listener as Server).maxConnections = 256;
      (listener as Server).on('connection', (socket: Socket) => void enter(socket).catch(() => socket.destroy()));
    },
    onPorts: on.onPorts,
  });
}

async function trustOf({ secrets, context }: NestedDockerInput): Promise<string> {
  const { planTrust } = await import('../run/network/secrets.ts');
  const { files } = await planTrust(secrets?.authority ?? null, context);
  return files.find(({ to }) => to === TRUST_INSIDE)?.content ?? '';
}

/** What nested Docker can and cannot do, as shown to users. */
export function describeNested({ docker, network }: Pick<EffectiveConfig, 'docker' | 'network'>): string {
  const names = [...registriesOf(docker.registries).keys()].join(', ');
  const ways = network.mode === 'off' ? 'the image cache' : "the task's gateway and the image cache";
  return `a private Docker daemon, rootless: user IDs ${NESTED_BASE} to ${NESTED_BASE + NESTED_USERS - 1}, which own nothing here; no privileges on this machine, filtered system calls, no network but ${ways} (${names}); runtime runc`;
}

/** The size of the image cache, which all tasks of the user share. */
const MOST_BYTES = 20 * 1024 ** 3;

async function openCache(
  context: HostContext,
  { docker, network }: Pick<EffectiveConfig, 'docker' | 'network'>,
): Promise<HttpServer> {
  const registries = registriesOf(docker.registries);
  const way = await wayOut(context, network, namedAddresses(docker.registries));
  return createImageCache({
    store: openImageStore(join(context.cacheDir, 'images'), MOST_BYTES),
    client: createRegistryClient(way),
    registries,
    now: () => context.now().getTime(),
    log: () => undefined,
  });
}

/** Addresses that the user wrote out are allowed, even private ones. */
function namedAddresses(entries: readonly string[]): string[] {
  return entries.flatMap((entry) => {
    const from = entry.split('=')[1];
    if (from === undefined) return [];
    const { hostname, port, protocol } = new URL(from);
    return [hostAndPort(hostname, port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port))];
  });
}
