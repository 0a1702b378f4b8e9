// nested-docker/composed-service.ts: one service of the project's compose files: its state, derived from its containers, and its log.
// Invariant: whether it came up is reported once. After that the engine belongs to the task, which may stop, build and start the service
// again, and only the state follows.
import { mkdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceStatus } from '../protocol/service.ts';
import type { NestedEngine } from '../sandbox/nested/nested-engine.ts';
import { serviceLog, servicePlace } from '../store/service-files.ts';
import { followLog, type Container } from './compose-engine.ts';
import { openOutput, type Printed } from '../run/output-reader.ts';
import type { ComposedService } from '../run/planned-services.ts';
import type { RunServicesInput } from './services-input.ts';

export interface LiveComposed {
  readonly about: ComposedService;
  /** Resolves when the service has come up or failed. */
  readonly known: Promise<void>;
  /** Neither up nor failed yet. */
  readonly waiting: boolean;
  readonly running: boolean;
  /** `own`: the service's current containers. `over`: no more will be created. */
  look(engine: NestedEngine, own: readonly Container[], over: boolean): Promise<void>;
  fail(why: string, lines?: readonly string[]): void;
  end(): void;
}

/** Without a health check: how long the service may take until its port accepts connections. */
const PORT_PATIENCE_MS = 30_000;
/** Without a port either: how long it must have run; most failing programs end sooner. */
const START_MS = 1000;
/** How long reading the log of an ended container may take. */
const LOG_MS = 2000;

export function followComposed(
  input: Pick<RunServicesInput, 'paths' | 'onEvent'>,
  about: ComposedService,
  tell: {
    set(change: Partial<ServiceStatus>): void;
    /** Ports that the image exposes. */
    onPorts(ports: readonly number[]): void;
  },
  signal: AbortSignal,
): LiveComposed {
  const { name } = about;
  const printed = openComposeLog(input.paths, name);
  let state: ServiceStatus['state'] = 'starting';
  let runningSinceMs: number | null = null;
  let followed: { readonly id: string; readonly over: Promise<void>; readonly end: AbortController } | null = null;
  let waiting = true;
  let resolve = (): void => undefined;
  const known = new Promise<void>((done) => (resolve = done));

  function settle(next: 'healthy' | 'failed' | 'stopped', why: string | null, lines: readonly string[]): void {
    const first = waiting;
    waiting = false;
    resolve();
    if (state === next || signal.aborted) return;
    state = next;
    tell.set({ state, why, lines });
    if (!first || next === 'stopped') return;
    const event = { service: name, kind: 'compose' };
    if (next === 'healthy') input.onEvent({ type: 'service.healthy', ...event });
    else input.onEvent({ type: 'service.failed', ...event, why: why ?? '', lines });
  }
  const fail = (why: string, lines: readonly string[] = [...printed.tail()]): void => settle('failed', why, lines);

  function follow(engine: NestedEngine, id: string): Promise<void> {
    if (followed?.id === id) return followed.over;
    // One log at a time: a program that keeps creating containers must not get one connection for each.
    followed?.end.abort();
    const end = new AbortController();
    const until = AbortSignal.any([signal, end.signal]);
    const over = followLog(engine, id, (bytes) => printed.bytes(bytes), until).catch(() => undefined);
    followed = { id, over, end };
    return over;
  }

  async function isUp(engine: NestedEngine, { health, address, ports }: Container): Promise<boolean> {
    if (health !== null || state === 'healthy') return health !== 'starting';
    const all = [...new Set([...about.ports, ...ports])];
    const runningMs = Date.now() - (runningSinceMs ?? 0);
    if (all.length === 0) return runningMs > START_MS;
    if (runningMs > PORT_PATIENCE_MS) return true;
    const open = await Promise.all(all.map((port) => accepts(engine, port, address)));
    return open.includes(true);
  }

  return {
    about,
    known,
    get waiting() {
      return waiting;
    },
    get running() {
      return runningSinceMs !== null;
    },
    async look(engine, own, over) {
      const container = own.find((one) => one.state === 'running') ?? own[0];
      if (container?.state !== 'running') runningSinceMs = null;
      // The service has no container (scale: 0), or it was removed.
      if (container === undefined) return over ? settle('stopped', null, []) : undefined;
      // A container that was never started has no log yet.
      if (container.state === 'other') return;
      const log = follow(engine, container.id);
      if (container.state === 'running') {
        runningSinceMs ??= Date.now();
        tell.onPorts(container.ports);
        if (container.health === 'unhealthy') return fail(`The service ${name} is not healthy.`);
        return (await isUp(engine, container)) ? settle('healthy', null, []) : undefined;
      }
      // The last lines of the log tell why.
      await Promise.race([log, sleep(LOG_MS)]);
      const { exitCode } = container;
      if (exitCode === 0) settle('stopped', null, []);
      else fail(`The service ${name} ended${exitCode === null ? '' : ` with ${exitCode}`}.`);
    },
    fail,
    end() {
      printed.end();
      printed[Symbol.dispose]();
      if (state !== 'failed') tell.set({ state: 'stopped' });
    },
  };
}

export function openComposeLog(paths: RunServicesInput['paths'], name: string): Printed {
  mkdirSync(servicePlace(paths, name).root, { recursive: true, mode: 0o700 });
  return openOutput(serviceLog(paths, name), () => undefined);
}

async function accepts(engine: NestedEngine, port: number, address: string): Promise<boolean> {
  try {
    (await engine.connect(port, address)).on('error', () => undefined).destroy();
    return true;
  } catch {
    return false;
  }
}
