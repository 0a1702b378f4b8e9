// nested-docker/run-compose.ts: runs the project's compose files in nested Docker during a run, and connects listeners to their services.
// Invariant: a connection goes to a current container of the listener's own service, and nowhere else.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Server, Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { basename, dirname, join } from 'node:path';
import { AgsError, inOneLine } from '../protocol/errors.ts';
import type { ServiceStatus } from '../protocol/service.ts';
import { joinSockets } from '../lib/stream/join-sockets.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import type { NestedEngine } from '../sandbox/nested/nested-engine.ts';
import { followComposed, openComposeLog, type LiveComposed } from './composed-service.ts';
import { listContainers, type Container, bringFiles } from './compose-engine.ts';
import { projectInside, clientDir, runClient, type ClientRun } from './compose-client.ts';
import { type RunServicesInput } from './services-input.ts';
import type { NestedDocker } from './nested-docker.ts';
import type { ComposedService, PlannedCompose } from '../run/planned-services.ts';
import type { Printed } from '../run/output-reader.ts';

export interface RunCompose {
  /** Resolves when every service is up or has failed. */
  readonly up: Promise<void>;
  /** Listeners for ports that were found after the start, by "address:port" in the sandbox. */
  readonly listeners: ReadonlyMap<string, { readonly name: string; readonly port: number }>;
  enter(socket: Socket, name: string, port: number): void;
  started(sandbox: Sandbox): void;
  stop(): Promise<void>;
}

const LOOK_MS = 250;
const CALM_MS = 3000;
const LAST_LOOK_MS = 3000;
/** The maximum number of listeners opened after the start. */
const MOST_LISTENERS = 128;

export function openRunCompose(
  input: RunServicesInput,
  compose: PlannedCompose,
  docker: NestedDocker,
  set: (name: string, change: Partial<ServiceStatus>) => void,
  /** Handles connections to these listeners. */
  admit: (socket: Socket) => void,
): RunCompose {
  const stopping = new AbortController();
  const { signal } = stopping;
  const listeners = new Map<string, { name: string; port: number }>();
  const live = new Map(
    compose.list.map((about) => [
      about.name,
      followComposed(
        input,
        about,
        { set: (change) => set(about.name, change), onPorts: (ports) => lead(about, ports) },
        signal,
      ),
    ]),
  );
  const waiting = (): LiveComposed[] => [...live.values()].filter((one) => one.waiting);
  let sandbox: Sandbox | null = null;
  let engine: NestedEngine | null = null;
  let project: string | null = null;

  async function look(at: NestedEngine, over: boolean, until = signal): Promise<void> {
    const containers = await listContainers(
      at,
      project === null ? { directory: projectInside(input.plan) } : { project },
      until,
    );
    // A service that is created again from another directory keeps its compose project.
    project ??= containers[0]?.project ?? null;
    await Promise.all(
      [...live].map(([name, one]) =>
        one.look(
          at,
          containers.filter(({ service }) => service === name),
          over,
        ),
      ),
    );
  }

  async function comeUp(): Promise<void> {
    const { timeoutSeconds } = compose;
    const until =
      timeoutSeconds === null ? signal : AbortSignal.any([signal, AbortSignal.timeout(timeoutSeconds * 1000)]);
    using printed = openComposeLog(input.paths, '.compose');
    const at = (engine = await docker.engine());
    // null: all services have started.
    const coming = bringUp({ ...input, compose, docker, engine: at, printed, signal: until }).then(
      () => null,
      sentence,
    );
    const started = coming.then(() => true);
    const see = (over: boolean): Promise<void> =>
      look(at, over, until).catch((error: unknown) => {
        if (!until.aborted) throw error;
      });
    for (let over = false; !over; over = await Promise.race([started, sleep(LOOK_MS, false)])) await see(false);
    const problem = await coming;
    for (; waiting().length > 0 && !until.aborted; await sleep(LOOK_MS)) {
      await see(problem === null);
      if (problem === null) continue;
      for (const one of waiting())
        if (!one.running) one.fail(`The service ${one.about.name} did not come up: ${problem}`, [...printed.tail()]);
    }
    for (const one of waiting())
      one.fail(`The service ${one.about.name} was not up after ${timeoutSeconds} s (compose.timeout).`);
  }

  /** Updates states from the containers for the rest of the run. */
  async function stay(): Promise<void> {
    if (engine === null) return;
    const ended = engine.done.then(() => true);
    for (let gone = false; !gone && !signal.aborted;) {
      gone = await Promise.race([ended, sleep(CALM_MS, false, { signal }).catch(() => true)]);
      if (!gone) await look(engine, true).catch(() => undefined);
    }
    for (const one of live.values()) one.fail('Nested Docker has ended.');
  }

  /** Opens listeners for exposed ports of the image that have none yet. */
  function lead({ name, address, ports: declared }: ComposedService, ports: readonly number[]): void {
    const found = ports.filter((port) => !declared.includes(port) && !listeners.has(`${address}:${port}`));
    const room = Math.max(0, MOST_LISTENERS - listeners.size);
    if (Math.min(found.length, room) === 0) return;
    for (const port of found.slice(0, room)) {
      listeners.set(`${address}:${port}`, { name, port });
      openListener(address, port);
    }
    const more = [...listeners.values()].filter((listener) => listener.name === name).map(({ port }) => port);
    set(name, { ports: [...declared, ...more], url: urlOf(name, [...declared, ...more]) });
  }

  function openListener(address: string, port: number): void {
    const { spec } = input.plan.network;
    const there = spec.kind === 'gateway' ? spec.listeners : [];
    // A listener on all addresses already handles this port.
    if (sandbox === null || there.some((listener) => listener.address === '0.0.0.0' && listener.port === port)) return;
    sandbox.open(port, address).then(
      (listener: Server) => void listener.on('connection', admit),
      // The port is below 1024, or the sandbox has ended.
      () => undefined,
    );
  }

  function enter(socket: Socket, name: string, port: number): void {
    socket.on('error', () => undefined);
    connect(name, port).then(
      (inner) => joinSockets(socket, inner),
      () => socket.resetAndDestroy(),
    );
  }

  async function connect(name: string, port: number): Promise<Socket> {
    await live.get(name)?.known;
    const running = (await listNow()).find(({ service, state }) => service === name && state === 'running');
    if (engine === null || running === undefined) throw new AgsError('service.failed', 'The service is not running.');
    return engine.connect(port, running.address);
  }

  let listing: Promise<readonly Container[]> | null = null;
  /** Concurrent callers share one request. */
  function listNow(): Promise<readonly Container[]> {
    if (engine === null || project === null) return Promise.resolve([]);
    listing ??= listContainers(engine, { project }, signal).finally(() => (listing = null));
    return listing;
  }

  const up = comeUp().catch((error: unknown) => {
    for (const one of waiting()) one.fail(`The service ${one.about.name} did not come up: ${sentence(error)}`);
  });
  const over = up.then(stay);
  return {
    up,
    listeners,
    enter,
    started(next) {
      sandbox = next;
      for (const [place, { port }] of listeners) openListener(place.split(':')[0] ?? '', port);
    },
    async stop() {
      // The logs are kept for later.
      if (input.keep && engine !== null)
        await Promise.race([look(engine, false).catch(() => undefined), sleep(LAST_LOOK_MS)]);
      stopping.abort();
      // The engine may keep a connection open forever; it closes when the engine ends.
      await Promise.race([over, sleep(LAST_LOOK_MS, undefined, { ref: false })]);
      for (const one of live.values()) one.end();
    },
  };
}

export function urlOf(name: string, ports: readonly number[]): string {
  return ports[0] === undefined ? '' : `${name}:${ports[0]}`;
}

function sentence(error: unknown): string {
  if (error instanceof AgsError) return inOneLine(error);
  return `This is a bug in ags: ${String(error)}`;
}

interface BringUp extends RunServicesInput {
  readonly compose: PlannedCompose;
  readonly docker: NestedDocker;
  readonly engine: NestedEngine;
  readonly printed: Printed;
  readonly signal: AbortSignal;
}

/** Resolves when the client reports that all services have started. */
async function bringUp(input: BringUp): Promise<void> {
  const { compose, printed } = input;
  if (compose.shared.length > 0) await copyShared(input);
  const code = await runClient({
    ...clientOf(input),
    argv: [...compose.client, 'up', '--detach', ...compose.chosen],
    docker: (socket) => input.docker.enter(socket),
    onOutput: (_stream, chunk) => printed.bytes(chunk),
  });
  printed.end();
  if (code === 0) return;
  // Both versions print their steps first and the error last.
  const line = printed.tail().find((one) => /^\s*error\b/i.test(one)) ?? printed.line();
  throw new AgsError('service.failed', line?.trim().slice(0, 500) ?? `compose ended with ${code}`);
}

function clientOf(input: BringUp): Pick<ClientRun, 'context' | 'plan' | 'task' | 'dir' | 'compose' | 'signal'> {
  const { context, plan, task, compose, signal } = input;
  return { context, plan, task, dir: clientDir(input.paths), compose, signal };
}

const MOST_USERS = 65_536;

/** Leaves out missing paths: the engine creates an empty directory or refuses, as it always does. */
const PACK = `cd "$1" || exit; owner=$2; shift 2
for path do shift; [ -e "$path" ] && set -- "$@" "$path"; done
[ $# -gt 0 ] || set -- --files-from=/dev/null
exec tar --create --numeric-owner --owner=+$owner --group=+$owner "$@"
`;

/** Nested Docker does not see the workspace, so the shared paths are copied there in their current state. */
async function copyShared(input: BringUp): Promise<void> {
  const { plan, compose, printed, engine } = input;
  const project = projectInside(plan);
  // An archive that fails before it is read has reported its error elsewhere.
  const archive = new PassThrough().on('error', () => undefined);
  // Files keep their owner if that user ID exists in the engine.
  const owner = plan.user.uid < MOST_USERS ? plan.user.uid : 0;
  const packed = runClient({
    ...clientOf(input),
    argv: [
      'sh',
      '-c',
      PACK,
      'sh',
      dirname(project),
      String(owner),
      ...compose.shared.map((path) => join(basename(project), path)),
    ],
    docker: null,
    onOutput(stream, chunk) {
      if (stream === 'stderr') return printed.bytes(chunk);
      if (archive.destroyed || archive.write(chunk)) return undefined;
      return new Promise((resolve) => archive.once('drain', resolve).once('close', resolve));
    },
  });
  const [code] = await Promise.all([
    packed.then(
      (done) => {
        archive.end();
        return done;
      },
      (error: unknown) => {
        archive.destroy(error as Error);
        throw error;
      },
    ),
    bringFiles(engine, archive, input.signal).finally(() => archive.destroy()),
  ]);
  if (code !== 0)
    throw new AgsError('service.failed', printed.line() ?? 'files of the project could not be copied', {
      hint: 'Files that compose files name must be in the commit that the task starts from.',
    });
}
