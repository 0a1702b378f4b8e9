// services/life.ts: the life of one service: mount its data, start it, wait until it is ready, stop it.
// Invariant: a service that failed stays failed; ags never restarts it during a run.
import { mkdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgsError, inOneLine } from '../protocol/errors.ts';
import type { ServiceStatus } from '../protocol/service.ts';
import { HOST_ROOT } from '../protocol/spec.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { rootOf } from '../sandbox/spec/image.ts';
import { insideHostArgv } from '../sandbox/io/inside-host.ts';
import { perlInside } from '../sandbox/spec/interpreter.ts';
import { serviceLog, servicePlace } from '../store/service-files.ts';
import { explainDiskErrors } from '../run/disk-errors.ts';
import { startInside } from '../run/join-sandbox.ts';
import { openOutput, type Printed } from '../run/output-reader.ts';
import { kindOf, type PlannedService } from '../run/planned-services.ts';
import { lastWord, mountData } from './data.ts';
import { runService } from './sandbox.ts';
import { READY_LOOP, readyPort, readyScript, runScript } from './scripts.ts';
import { serviceRoot, type ServiceRoot } from './root.ts';
import type { RunServicesInput } from '../nested-docker/services-input.ts';

export interface LiveService {
  /** Rejects when the service has failed. */
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
  // Connections report this failure; without one it must not become an unhandled rejection.
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
  const over = explainDiskErrors(input.context, () => liveOf(input, one, stopping.signal, tell)).then(
    ({ why, lines }) => fail(why, lines),
    (error: unknown) => {
      const told = error instanceof AgsError ? error : null;
      const lines = Array.isArray(told?.details['lines']) ? (told.details['lines'] as string[]) : [];
      fail(told === null ? `This is a bug in ags: ${String(error)}` : inOneLine(told), lines);
    },
  );
  // stop() reports this failure.
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

/** Resolves when the service has ended, which it does on its own only when it fails. */
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
  const { context, task } = input;
  const { service } = one;
  const on = await serviceRoot(context, input.plan, service);
  const paths = servicePlace(input.paths, service.name);
  mkdirSync(paths.runDir, { recursive: true, mode: 0o755 });
  const data = await mountData({ ...input, on }, one, paths, { signal, ...tell });
  using printed = openOutput(serviceLog(input.paths, service.name), () => undefined);
  let late = false;
  let wasReady = false;
  let untold: { readonly error: unknown } | null = null;
  let timer: NodeJS.Timeout | undefined;
  const reading: Promise<void>[] = [];
  const outcome = await runService(context, on, one, {
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
  // After it was ready, a line that looks like ours may come from a client of the service.
  const said = outcome.ended ?? (wasReady ? null : lastWord(printed.tail()));
  const how = late
    ? `was not ready after ${service.ready.timeoutSeconds} s (ready.timeout)`
    : `ended${said === null ? ` with ${outcome.exitCode}` : `: ${said}`}`;
  return { why: `The service ${service.name} ${how}.`, lines: printed.tail() };
}

/** Without `run`, an image runs its own command. */
function commandOf(one: PlannedService, { image }: ServiceRoot): string[] {
  const { preset, service } = one;
  if (image === null || preset !== null || typeof service.run === 'string') return ['sh', '-c', runScript(one)];
  const command = service.run ?? image.command;
  if (command.length > 0) return [...command];
  throw new AgsError('service.failed', `The image ${image.reference} has no command.`, {
    hint: `Set one: services: { ${service.name}: { run: [program] } }`,
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
    // The service ended meanwhile; its own output is more useful than this error.
    return false;
  }
}

/** Waits until the port accepts connections. */
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
