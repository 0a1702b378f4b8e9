// services/life.ts: one service from its data to its end.
// Invariant: a service that has failed stays so: nothing is started again behind a task's back.
import { mkdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgsError } from '../protocol/errors.ts';
import type { ServiceStatus } from '../protocol/service.ts';
import { HOST_ROOT } from '../protocol/spec.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { rootOf } from '../sandbox/spec/image.ts';
import { insideHostArgv } from '../sandbox/io/inside-host.ts';
import { perlInside } from '../sandbox/spec/interpreter.ts';
import type { TaskPaths } from '../store/layout.ts';
import { serviceLog, servicePlace } from '../store/service-files.ts';
import { tellDiskTrouble } from '../run/disk-errors.ts';
import type { InnerDocker } from '../nested-docker/nested-docker.ts';
import { startInside } from '../run/join-sandbox.ts';
import { openPrinted, type Printed } from '../run/output-reader.ts';
import { kindOf, type PlannedService } from '../run/planned-services.ts';
import type { RunPlan } from '../run/plan-run.ts';
import { lastWord } from './data.ts';
import { runService } from './sandbox.ts';
import { READY_LOOP, readyPort, readyScript, runScript } from './scripts.ts';
import { serviceRoot, type ServiceRoot } from './root.ts';
import type { SeedSource } from '../workspace/seed-files.ts';
import { mountData } from './mount-data.ts';
import type { World } from '../run/host-context.ts';

export interface RunServicesInput {
  readonly world: World;
  readonly plan: RunPlan;
  readonly task: string;
  readonly paths: Pick<TaskPaths, 'services'>;
  readonly source: SeedSource;
  /** The task's engine, where compose files are brought up; null: it has none. */
  readonly docker: InnerDocker | null;
  /** Whether anybody will come back to the data: then they are ended in good order. */
  readonly keep: boolean;
  onEvent(event: ServiceEvent): void;
}

export type ServiceEvent =
  | { readonly type: 'service.seeding' | 'service.healthy'; readonly service: string; readonly kind: string }
  | {
      readonly type: 'service.failed';
      readonly service: string;
      readonly kind: string;
      readonly why: string;
      /** The last ones of its log. */
      readonly lines: readonly string[];
    };

export interface LiveService {
  /** Rejects when it has failed. */
  readonly ready: Promise<Sandbox>;
  stop(): Promise<void>;
}

const PATIENCE_MS = 10_000;

export function startService(
  input: RunServicesInput,
  one: PlannedService,
  set: (change: Partial<ServiceStatus>) => void,
): LiveService {
  const { service } = one;
  const about = { service: service.name, kind: kindOf(one) };
  const stopping = new AbortController();
  let sandbox: Sandbox | null = null;
  let settle = { resolve: (_up: Sandbox): void => undefined, reject: (_error: AgsError): void => undefined };
  const ready = new Promise<Sandbox>((resolve, reject) => (settle = { resolve, reject }));
  // Who comes to the door hears of it; if nobody does, nobody has to.
  ready.catch(() => undefined);
  const fail = (why: string, lines: readonly string[]): void => {
    settle.reject(new AgsError('service.failed', why));
    if (stopping.signal.aborted) return set({ state: 'stopped' });
    set({ state: 'failed', why, lines });
    input.onEvent({ type: 'service.failed', ...about, why, lines });
  };
  const tell = {
    onSeeding: () => input.onEvent({ type: 'service.seeding', ...about }),
    onLayer: (layer: string) => set({ layer }),
    onStart: (up: Sandbox) => void (sandbox = up),
    onReady(up: Sandbox) {
      set({ state: 'healthy' });
      input.onEvent({ type: 'service.healthy', ...about });
      settle.resolve(up);
    },
  };
  const over = tellDiskTrouble(input.world, () => liveOf(input, one, stopping.signal, tell)).then(
    ({ why, lines }) => fail(why, lines),
    (error: unknown) => {
      const told = error instanceof AgsError ? error : null;
      const hint = told?.hint === undefined ? '' : ` ${told.hint}`;
      const lines = Array.isArray(told?.details['lines']) ? (told.details['lines'] as string[]) : [];
      fail(`${told === null ? `This is a bug in ags: ${String(error)}` : told.message}${hint}`, lines);
    },
  );
  // Who stops it hears of it.
  over.catch(() => undefined);
  return {
    ready,
    async stop() {
      stopping.abort();
      if (!input.keep) sandbox?.kill();
      else sandbox?.signal('SIGTERM');
      const patience = setTimeout(() => sandbox?.kill(), PATIENCE_MS);
      await over.finally(() => clearTimeout(patience));
    },
  };
}

/** From its data to its end, which it comes to by itself only when it fails. */
async function liveOf(
  input: RunServicesInput,
  one: PlannedService,
  signal: AbortSignal,
  tell: {
    onSeeding(): void;
    onLayer(layer: string): void;
    onStart(sandbox: Sandbox): void;
    onReady(sandbox: Sandbox): void;
  },
): Promise<{ why: string; lines: readonly string[] }> {
  const { world, task } = input;
  const { service } = one;
  const on = await serviceRoot(world, input.plan, service);
  const paths = servicePlace(input.paths, service.name);
  mkdirSync(paths.runDir, { recursive: true, mode: 0o755 });
  const data = await mountData({ ...input, on }, one, paths, { signal, ...tell });
  using printed = openPrinted(serviceLog(input.paths, service.name), () => undefined);
  let late = false;
  let wasReady = false;
  let untold: { readonly error: unknown } | null = null;
  let timer: NodeJS.Timeout | undefined;
  const reading: Promise<void>[] = [];
  const outcome = await runService(world, on, one, {
    task,
    group: `${task}-${service.name}`,
    paths,
    data,
    files: [],
    command: insideHostArgv(commandOf(one, on), perlInside(on.image === null ? HOST_ROOT : rootOf(on.image))),
    wallSeconds: null,
    onStart(sandbox) {
      tell.onStart(sandbox);
      for (const stream of [sandbox.stdout, sandbox.stderr]) if (stream !== null) reading.push(read(stream, printed));
      for (const one of reading) one.catch(() => sandbox.kill());
      if (signal.aborted) return sandbox.kill();
      timer = setTimeout(() => {
        late = true;
        sandbox.kill();
      }, service.ready.timeoutSeconds * 1000);
      untilReady(sandbox, one)
        .then((isReady) => {
          if (!isReady || late) return;
          clearTimeout(timer);
          wasReady = true;
          tell.onReady(sandbox);
        })
        .catch((error: unknown) => {
          untold = { error };
          sandbox.kill();
        });
    },
  });
  clearTimeout(timer);
  await Promise.all(reading);
  printed.end();
  if (untold !== null) throw (untold as { readonly error: unknown }).error;
  // What it prints later may be in the words of whoever uses it.
  const said = outcome.ended ?? (wasReady ? null : lastWord(printed.tail()));
  const how = late
    ? `was not ready after ${service.ready.timeoutSeconds} s (ready.timeout)`
    : `ended${said === null ? ` with ${outcome.exitCode}` : `: ${said}`}`;
  return { why: `The service ${service.name} ${how}.`, lines: printed.tail() };
}

/** An image that is told nothing runs what it runs by itself. */
function commandOf(one: PlannedService, { image }: ServiceRoot): string[] {
  const { preset, service } = one;
  if (image === null || preset !== null || typeof service.run === 'string') return ['sh', '-c', runScript(one)];
  const command = service.run ?? image.command;
  if (command.length > 0) return [...command];
  throw new AgsError('service.failed', `The image ${image.reference} does not say what it runs.`, {
    hint: `Say it: services: { ${service.name}: { run: [program] } }`,
  });
}

async function untilReady(sandbox: Sandbox, one: PlannedService): Promise<boolean> {
  const port = readyPort(one);
  if (port !== null) return untilOpen(sandbox, port);
  try {
    const asking = await startInside(sandbox, ['sh', '-c', READY_LOOP, 'sh', readyScript(one)], {
      window: null,
      onData: () => undefined,
    });
    return (await asking.done) === 0;
  } catch {
    // It has ended meanwhile, which says more.
    return false;
  }
}

/** Somebody listens there. */
async function untilOpen(sandbox: Sandbox, port: number): Promise<boolean> {
  const end = new AbortController();
  void sandbox.done.finally(() => end.abort()).catch(() => undefined);
  for (; !end.signal.aborted; await sleep(LOOK_MS)) {
    try {
      (await sandbox.connect(port)).on('error', () => undefined).destroy();
      return true;
    } catch {
      continue;
    }
  }
  return false;
}

const LOOK_MS = 20;

async function read(stream: NonNullable<Sandbox['stdout']>, printed: Printed): Promise<void> {
  for await (const chunk of stream) printed.bytes(chunk as Buffer);
}
