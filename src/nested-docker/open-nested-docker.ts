// nested-docker/open-nested-docker.ts: assembles a task's nested Docker: programs, limits, and where images come from. Loaded at the first
// connection to it. Also tests whether nested Docker works on this machine.
import { join } from 'node:path';
import type { Server as HttpServer } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Socket as Datagrams } from 'node:dgram';
import type { EffectiveConfig } from '../config/effective.ts';
import { createImageCache } from './image-cache/cache.ts';
import { openImageStore } from './image-cache/store.ts';
import { createRegistryClient } from './image-cache/upstream.ts';
import { hostAndPort } from '../protocol/host-name.ts';
import { NESTED_BASE, NESTED_USERS, TRUST_INSIDE } from '../sandbox/nested/engine-args.ts';
import { startNestedEngine, type NestedEngine } from '../sandbox/nested/nested-engine.ts';
import { nestedOptions, registriesOf } from '../run/nested-docker-options.ts';
import { wayOut } from '../run/network/open-gateway.ts';
import type { HostContext } from '../run/host-context.ts';
import type { TaskSecrets } from '../run/network/secrets.ts';
import { AgsError } from '../protocol/errors.ts';
import { errorCode } from '../lib/error-code.ts';
import { visible } from '../lib/sanitize.ts';
import { askNestedEngine } from './ask-engine.ts';

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

export interface NestedDockerInput {
  readonly context: HostContext;
  readonly id: string;
  readonly config: Pick<EffectiveConfig, 'network' | 'docker' | 'limits'>;
  /** Containers can trust the gateway's certificate authority, if it has one. */
  readonly secrets?: Pick<TaskSecrets, 'authority'>;
  readonly notice: (text: string) => void;
}

/** What nested Docker reports while it runs: published ports, and the listeners of the egress network. */
export interface EngineNews {
  onPorts(ports: readonly number[]): void;
  onEgress(name: string, listener: Server | Datagrams): void;
}

/** The isolation in a few words; throws the reason if it does not work. */
export async function tryNestedEngine(
  context: HostContext,
  config: Pick<EffectiveConfig, 'docker' | 'limits' | 'network'>,
): Promise<string> {
  const begunMs = Date.now();
  const nothing = { onPorts: () => undefined, onEgress: () => undefined };
  const engine = await startFor({ context, id: 'probe', config, notice: () => undefined }, nothing).catch(
    (error: unknown) => (errorCode(error) === undefined ? Promise.reject(error) : fail(String(errorCode(error)))),
  );
  try {
    const answer = await Promise.race([
      askNestedEngine(engine, { path: '/info' }),
      engine.done.then((words) => fail(words)),
    ]);
    const info = answer as { ServerVersion?: unknown; Driver?: unknown; SecurityOptions?: unknown };
    const options = Array.isArray(info.SecurityOptions) ? info.SecurityOptions.map(String) : [];
    if (!options.some((option) => option.includes('rootless'))) return fail('it is not rootless');
    const words = [`Docker ${String(info.ServerVersion)}`, 'rootless', 'no privileges', String(info.Driver)];
    return visible(`${words.join(', ')}, ready in ${Date.now() - begunMs} ms`);
  } finally {
    await engine.close();
  }
}

function fail(why: string): never {
  throw new AgsError('backend.failed', why === '' ? 'it ended at once' : why, {
    hint: 'Only needed if the configuration has docker: true',
  });
}
