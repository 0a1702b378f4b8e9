// nested-docker/nested-docker.ts: the engine of a task's own, as its sandbox sees it: a door that leads to it, and a door for each port that its
// containers publish.
// Invariants: it is started when somebody first comes to the door; nothing is done with what goes through but to pass it on; it ends
// with whoever opened it here.
import { join } from 'node:path';
import type { Socket as Datagrams } from 'node:dgram';
import type { Server, Socket } from 'node:net';
import { joinSockets } from '../lib/stream/join-sockets.ts';
import { AgsError } from '../protocol/errors.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import type { InnerEngine } from '../sandbox/nested/nested-engine.ts';
import type { TaskSecrets } from '../run/network/secrets.ts';
import { serveNames } from '../run/network/serve-names.ts';
import type { World } from '../run/host-context.ts';

export interface InnerDocker extends AsyncDisposable {
  /** The engine itself, started if it is not there. */
  engine(): Promise<InnerEngine>;
  /** Somebody came to the door. */
  enter(socket: Socket): void;
  /** From now on published ports are doors of this sandbox. */
  publishIn(sandbox: Pick<Sandbox, 'open'>): void;
  /** Where its containers get out from now on; null: nowhere. */
  leadOut(way: ContainerWay | null): void;
}

/** The gateway of a run, for containers. */
export interface ContainerWay {
  enter(kind: 'proxy' | 'tls' | 'web', socket: Socket): void;
  answerName(question: Buffer): Promise<Buffer | null>;
}

export interface InnerDockerInput {
  readonly world: World;
  readonly id: string;
  readonly config: Pick<EffectiveConfig, 'network' | 'docker' | 'limits'>;
  /** Containers can trust the authority of the gateway, if it has one. */
  readonly secrets?: Pick<TaskSecrets, 'authority'>;
  readonly notice: (text: string) => void;
}

/** null: it is to have none. */
export function innerDockerFor(input: InnerDockerInput): InnerDocker | null {
  return input.config.docker.enabled ? openInnerDocker(input) : null;
}

function openInnerDocker(input: InnerDockerInput): InnerDocker {
  return openEngineDoor(input.notice, (on) =>
    import('./open-nested-docker.ts').then(({ startFor }) => startFor(input, on)),
  );
}

/** What an engine tells while it runs: its published ports, and the doors of the hall. */
export interface EngineNews {
  onPorts(ports: readonly number[]): void;
  onHall(name: string, door: Server | Datagrams): void;
}

/** `startEngine` is called when somebody first comes, and again after the engine has ended. */
export function openEngineDoor(
  notice: (text: string) => void,
  startEngine: (on: EngineNews) => Promise<InnerEngine>,
): InnerDocker {
  const doors = new Map<number, Promise<Server | null>>();
  let sandbox: Pick<Sandbox, 'open'> | null = null;
  let way: ContainerWay | null = null;
  let ports: readonly number[] = [];
  let starting: Promise<InnerEngine> | null = null;
  let closed = false;
  let said = '';
  const led = new Set<Socket>();
  const tell = (text: string): void => {
    if (text !== said) notice(text);
    said = text;
  };

  const start = (): Promise<InnerEngine> => {
    starting ??= startEngine({ onPorts: setPorts, onHall })
      .then((engine) => {
        const over = (words: string): void => {
          starting = null;
          setPorts([]);
          if (!closed)
            tell(`Docker inside has ended${words === '' ? '' : `: ${words}`}. The next command starts it anew.`);
        };
        void engine.done.then(over, (error: unknown) => over((error as Error).message)).catch(() => undefined);
        return engine;
      })
      .catch((error: unknown) => {
        starting = null;
        throw error;
      });
    return starting;
  };

  /** The doors stay for as long as the engine does; what is behind them changes with every turn of an agent. */
  function onHall(name: string, door: Server | Datagrams): void {
    if (name === 'names') return serveNames(door as Datagrams, async (question) => way?.answerName(question) ?? null);
    const kind = name === 'tls' || name === 'web' ? name : 'proxy';
    (door as Server).on('connection', (socket: Socket) => {
      socket.on('error', () => undefined);
      if (way === null) socket.resetAndDestroy();
      else way.enter(kind, socket);
    });
  }

  const lead = async (socket: Socket, port: number): Promise<void> => {
    socket.on('error', () => undefined);
    if (led.size >= MOST_OPEN) return void socket.resetAndDestroy();
    led.add(socket.on('close', () => led.delete(socket)));
    try {
      const engine = await start();
      // Where nobody listens any more somebody did a moment ago, which is no news; that the engine itself has ended is told by `done`.
      const inner = await engine.connect(port).catch(() => null);
      if (inner === null) socket.resetAndDestroy();
      else joinSockets(socket, inner);
    } catch (error) {
      if (error instanceof AgsError && !closed && error.code !== 'usage.invalid')
        tell(`Docker inside: ${error.message}${error.hint === undefined ? '' : ` ${error.hint}`}`);
      socket.resetAndDestroy();
    }
  };

  async function openDoor(port: number, inside: Pick<Sandbox, 'open'>): Promise<Server | null> {
    try {
      const door = await inside.open(port);
      door.on('connection', (socket: Socket) => void lead(socket, port));
      return door;
    } catch {
      const why =
        port < 1024
          ? 'nobody may take ports below 1024 there'
          : 'something else listens there, or there are too many already';
      tell(`Docker inside: port ${port} of a container is not at 127.0.0.1:${port} of the sandbox: ${why}.`);
      return null;
    }
  }

  function setPorts(now: readonly number[]): void {
    ports = now;
    for (const [port, door] of doors) {
      if (now.includes(port)) continue;
      doors.delete(port);
      void door.then((server) => server?.close());
    }
    if (sandbox === null) return;
    for (const port of now) if (!doors.has(port)) doors.set(port, openDoor(port, sandbox));
  }

  return {
    engine: start,
    enter: (socket) => void lead(socket, ENGINE_PORT),
    publishIn(next) {
      sandbox = next;
      doors.clear();
      setPorts(ports);
    },
    leadOut: (next) => void (way = next),
    async [Symbol.asyncDispose]() {
      closed = true;
      const engine = await starting?.catch(() => null);
      await engine?.close();
    },
  };
}

/** Each takes two descriptors of this process, which people want to talk to. */
const MOST_OPEN = 512;

/** As inner-args.ts has it, which is not to be loaded for everybody. */
const ENGINE_PORT = 2375;

/** Where the engine of a run meets its keeper. */
export function innerDir({ stateDir }: World, id: string): string {
  return join(stateDir, `.inner-${id}-${process.pid}`);
}
