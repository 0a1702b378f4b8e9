// services/run-services.ts: the services of one run, and the listeners that lead to them in the task's sandbox.
// Invariant: a listener leads to one declared port of one service. Connections wait until the service is ready; if it fails, waiting
// connections are closed.
import { mkdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { ServiceStatus } from '../protocol/service.ts';
import { isDiskFull } from '../lib/error-code.ts';
import { relay } from '../gateway/front/relay.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { writeServices } from '../store/service-files.ts';
import { kindOf, type ComposedService, type PlannedService } from '../run/planned-services.ts';
import { openRunCompose, urlOf } from '../nested-docker/run-compose.ts';
import type { ServiceListeners } from '../run/network/network-input.ts';
import { startService } from './life.ts';
import type { RunServicesInput } from '../nested-docker/services-input.ts';
import { requireServices } from '../run/plan-services.ts';

export interface RunServices extends ServiceListeners, AsyncDisposable {
  /** Resolves when the compose services are up or have failed. Other services are not waited for: connections wait by themselves. */
  readonly up: Promise<void>;
}

/** Starts all services at once, without waiting for them. */
export function openRunServices(input: RunServicesInput): RunServices {
  const { plan, context, paths, docker } = input;
  requireServices(plan.services, context.uid === 0 || plan.namespaces);
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
      // The state file only informs viewers: a full disk must end neither service nor run, and the next change writes it again.
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
      const listener = plan.services.listeners.get(place) ?? compose?.listeners.get(place);
      if (listener === undefined) return false;
      if (open.size >= MOST_OPEN) {
        socket.on('error', () => undefined).resetAndDestroy();
        return true;
      }
      open.add(socket);
      socket.on('error', () => undefined).on('close', () => open.delete(socket));
      const service = live.get(listener.name);
      if (service === undefined) compose?.enter(socket, listener.name, listener.port);
      else void connect(socket, service.ready, listener.port);
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

/** The gateway's own limit: each connection takes two descriptors of this process, which must stay reachable for control. */
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
