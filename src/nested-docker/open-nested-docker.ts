// nested-docker/open-nested-docker.ts: put the engine of a task together: its programs, its limits, and where its images come from. Loaded when
// somebody first comes to its door.
import { join } from 'node:path';
import type { Server as HttpServer } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { EffectiveConfig } from '../config/effective.ts';
import { createImageCache } from './image-cache/cache.ts';
import { DOCKER_HUB } from './image-cache/request.ts';
import { openImageStore } from './image-cache/store.ts';
import { createRegistryClient } from './image-cache/upstream.ts';
import { hostAndPort } from '../protocol/host-name.ts';
import type { Engine } from '../sandbox/engine/engine.ts';
import { findEngine } from '../sandbox/engine/find-engine.ts';
import { findProgram, programMissing } from '../sandbox/checks/host.ts';
import { ENGINE_ENV, INNER_BASE, innerEngineArgv, REGISTRY_PORT } from '../sandbox/nested/engine-args.ts';
import { INNER_USERS, TRUST_INSIDE } from '../sandbox/inner-scripts.ts';
import {
  findInnerPrograms,
  startInnerEngine,
  type InnerEngine,
  type InnerOptions,
} from '../sandbox/nested/nested-engine.ts';
import { seccompArch } from '../sandbox/spec/seccomp.ts';
import { AgsError } from '../protocol/errors.ts';
import { innerDir, type EngineNews, type InnerDockerInput } from './nested-docker.ts';
import { wayOut } from '../run/network/open-gateway.ts';
import type { World } from '../run/host-context.ts';

export async function startFor(input: InnerDockerInput, on: EngineNews): Promise<InnerEngine> {
  const { world, config } = input;
  let cache: Promise<HttpServer> | null = null;
  const enter = async (socket: Socket): Promise<void> => {
    socket.on('error', () => undefined);
    cache ??= openCache(world, config).catch((error: unknown) => {
      cache = null;
      throw error;
    });
    (await cache).emit('connection', socket);
  };
  return startInnerEngine({
    ...innerOptions(world, config, input.id),
    trust: await trustOf(input),
    onDoor(name, door) {
      if (name !== 'registry') return on.onHall(name, door);
      (door as Server).maxConnections = 256;
      (door as Server).on('connection', (socket: Socket) => void enter(socket).catch(() => socket.destroy()));
    },
    onPorts: on.onPorts,
  });
}

async function trustOf({ secrets, world }: InnerDockerInput): Promise<string> {
  const { planTrust } = await import('../run/network/secrets.ts');
  const { files } = await planTrust(secrets?.authority ?? null, world);
  return files.find(({ to }) => to === TRUST_INSIDE)?.content ?? '';
}

/** Throws what is missing for it on this machine. */
export function innerOptions(
  world: World,
  { docker, limits, network }: Pick<EffectiveConfig, 'docker' | 'limits' | 'network'>,
  id: string,
): Omit<InnerOptions, 'onDoor' | 'onPorts' | 'trust'> {
  const engine = outerEngine(world);
  const perl = findProgram('perl');
  const arch = seccompArch(world.nodeArch);
  if (engine === null || arch === null)
    throw new AgsError('backend.unavailable', `Docker inside sandboxes does not work on ${world.nodeArch}.`);
  if (perl === null) throw programMissing(['perl']);
  return {
    engine,
    perl,
    arch,
    dir: innerDir(world, id),
    name: `ags-${id}-${process.pid}-${Date.now().toString(36)}d`,
    runMark: id,
    limits,
    tmpBytes: limits.tmpBytes,
    gateway: network.mode !== 'off',
    argv: innerEngineArgv(findInnerPrograms(), [
      `--registry-mirror=http://127.0.0.1:${REGISTRY_PORT}`,
      // Asked without TLS, which ends at the loopback; the cache asks them with it.
      ...[...registriesOf(docker.registries).keys()]
        .filter((name) => name !== DOCKER_HUB)
        .map((name) => `--insecure-registry=${name}`),
    ]),
    env: ENGINE_ENV,
  };
}

function outerEngine(world: World): Engine | null {
  try {
    return findEngine('docker', world, true);
  } catch (error) {
    if (!(error instanceof AgsError)) throw error;
    throw new AgsError(
      'backend.unavailable',
      `Docker inside a sandbox needs Docker on this machine. ${error.message}`,
      {
        hint: (error.hint ?? '').replace(
          /,? or use: --backend native$/,
          ', or leave "docker" out of the configuration',
        ),
        cause: error,
      },
    );
  }
}

/** For people: what it can do and cannot. */
export function describeInner({ docker, network }: Pick<EffectiveConfig, 'docker' | 'network'>): string {
  const names = [...registriesOf(docker.registries).keys()].join(', ');
  const ways = network.mode === 'off' ? 'the cache of images' : 'the gateway of the task and the cache of images';
  return `an engine of its own, rootless: users ${INNER_BASE} to ${INNER_BASE + INNER_USERS - 1} here, who own nothing; no privileges on this machine, filtered system calls, no network but ${ways} (${names}); runtime runc`;
}

/** Kept for all tasks of the user. */
const MOST_BYTES = 20 * 1024 ** 3;

async function openCache(
  world: World,
  { docker, network }: Pick<EffectiveConfig, 'docker' | 'network'>,
): Promise<HttpServer> {
  const registries = registriesOf(docker.registries);
  const way = await wayOut(world, network, namedAddresses(docker.registries));
  return createImageCache({
    store: openImageStore(join(world.cacheDir, 'images'), MOST_BYTES),
    client: createRegistryClient(way),
    registries,
    now: () => world.now().getTime(),
    log: () => undefined,
  });
}

/** By the name that images begin with: where it is asked. Of two entries for one the later counts. */
export function registriesOf(entries: readonly string[]): ReadonlyMap<string, string> {
  return new Map([
    [DOCKER_HUB, 'https://registry-1.docker.io'],
    ...entries.map((entry): [string, string] => {
      const [name = '', from] = entry.split('=');
      return [name, from ?? `https://${name}`];
    }),
  ]);
}

/** What the user has spelled out may have any address. */
function namedAddresses(entries: readonly string[]): string[] {
  return entries.flatMap((entry) => {
    const from = entry.split('=')[1];
    if (from === undefined) return [];
    const { hostname, port, protocol } = new URL(from);
    return [hostAndPort(hostname, port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port))];
  });
}
