// services/run-services.ts: the services of one run while it runs, and the doors to them in the sandbox of the task.
// Invariant: a door leads to the port of one service that was declared, and nowhere else. Whoever comes before it is ready waits; if it
// fails, everybody is told, and nobody waits any longer.
import { mkdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { ServiceStatus } from '../protocol/service.ts';
import { isDiskFull } from '../lib/error-code.ts';
import { relay } from '../gateway/front/relay.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { writeServices } from '../store/service-files.ts';
import { kindOf, type ComposedService, type PlannedService } from '../run/planned-services.ts';
import { openRunCompose, urlOf } from '../nested-docker/run-compose.ts';
import type { ServiceDoors } from '../run/network/run-network.ts';
import { startService, type RunServicesInput } from './life.ts';
import { requireServices } from '../run/plan-services.ts';

export interface RunServices extends ServiceDoors, AsyncDisposable {
  /** Resolves when those of the compose files are up, or have failed. Whoever connects to others waits by itself. */
  readonly up: Promise<void>;
}

/** They start at once; nobody waits for them but who connects. */
export function openRunServices(input: RunServicesInput): RunServices {
  const { plan, world, paths, docker } = input;
  requireServices(plan.services, world.uid === 0 || plan.namespaces);
  mkdirSync(paths.services, { recursive: true, mode: 0o700 });
  const states = new Map<string, ServiceStatus>([
    ...plan.services.list.map((one) => [one.service.name, firstStatus(one)] as const),
    ...(plan.services.compose?.list ?? []).map((one) => [one.name, firstComposed(one)] as const),
  ]);
  const set = (name: string, change: Partial<ServiceStatus>): void => {
    const before = states.get(name);
    if (before === undefined) return;
    states.set(name, { ...before, ...change });
    try {
      writeServices(paths, [...states.values()]);
    } catch (error) {
      // For whoever looks on: a full disk ends neither the service nor the run for it, and the next change is written with this one.
      if (!isDiskFull(error)) throw error;
    }
  };
  writeServices(paths, [...states.values()]);
  const live = new Map(
    plan.services.list.map((one) => [
      one.service.name,
      startService(input, one, (change) => set(one.service.name, change)),
    ]),
  );
  const compose =
    plan.services.compose === null || docker === null
      ? null
      : openRunCompose(input, plan.services.compose, docker, set, (socket) => void services.enter(socket));
  const open = new Set<Socket>();
  const services: RunServices = {
    up: compose?.up ?? Promise.resolve(),
    addresses: new Map([...states.values()].map(({ name, address }) => [name, address])),
    enter(socket) {
      const place = `${socket.localAddress}:${socket.localPort}`;
      const door = plan.services.doors.get(place) ?? compose?.doors.get(place);
      if (door === undefined) return false;
      if (open.size >= MOST_OPEN) {
        socket.on('error', () => undefined).resetAndDestroy();
        return true;
      }
      open.add(socket);
      socket.on('error', () => undefined).on('close', () => open.delete(socket));
      const service = live.get(door.name);
      if (service === undefined) compose?.enter(socket, door.name, door.port);
      else void connect(socket, service.ready, door.port);
      return true;
    },
    started: (sandbox) => compose?.started(sandbox),
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await Promise.all([compose?.stop(), ...[...live.values()].map((one) => one.stop())]);
    },
  };
  return services;
}

/** As many as the gateway has by itself: each takes two descriptors of this process, which people want to talk to. */
const MOST_OPEN = 512;

async function connect(client: Socket, ready: Promise<Sandbox>, port: number): Promise<void> {
  try {
    const origin = await (await ready).connect(port);
    origin.on('error', () => undefined).setNoDelay(true);
    relay({
      client,
      origin,
      fromClient: NOTHING,
      fromOrigin: NOTHING,
      counter: UNCOUNTED,
      firstWords: null,
      done: () => undefined,
    });
  } catch {
    client.resetAndDestroy();
  }
}

const NOTHING = Buffer.alloc(0);
const UNCOUNTED = { out: () => true, in: () => undefined };

function firstStatus(one: PlannedService): ServiceStatus {
  return {
    name: one.service.name,
    kind: kindOf(one),
    state: 'starting',
    address: one.address,
    ports: one.to.ports,
    url: one.url,
    client: one.preset?.client(one.to) ?? null,
    layer: null,
    why: null,
    lines: [],
  };
}

function firstComposed({ name, address, ports }: ComposedService): ServiceStatus {
  return {
    name,
    kind: 'compose',
    state: 'starting',
    address,
    ports,
    url: urlOf(name, ports),
    client: null,
    layer: null,
    why: null,
    lines: [],
  };
}
