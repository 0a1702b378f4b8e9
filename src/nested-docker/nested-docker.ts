// nested-docker/nested-docker.ts: nested Docker as the task's sandbox sees it: one listener that leads to the daemon, and one for each
// port that its containers publish.
// Invariants: the daemon starts at the first connection; bytes are passed on unchanged; the daemon ends with the run.
import type { Socket as Datagrams } from 'node:dgram';
import type { Server, Socket } from 'node:net';
import { joinSockets } from '../lib/stream/join-sockets.ts';
import { AgsError, inOneLine } from '../protocol/errors.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import type { NestedEngine } from '../sandbox/nested/nested-engine.ts';
import type { ContainerWay, DockerLink } from '../run/network/network-input.ts';
import { serveNames } from '../run/network/serve-names.ts';
import type { EngineNews, NestedDockerInput } from './open-nested-docker.ts';

export interface NestedDocker extends DockerLink, AsyncDisposable {
  /** The daemon, started if necessary. */
  engine(): Promise<NestedEngine>;
}

/** null: the task has no nested Docker. */
export function nestedDockerFor(input: NestedDockerInput): NestedDocker | null {
  return input.config.docker.enabled ? openNestedDocker(input) : null;
}

function openNestedDocker(input: NestedDockerInput): NestedDocker {
  return openEngineListener(input.notice, (on) =>
    import('./open-nested-docker.ts').then(({ startFor }) => startFor(input, on)),
  );
}

/** `startEngine` is called at the first connection, and again after the daemon has ended. */
export function openEngineListener(
  notice: (text: string) => void,
  startEngine: (on: EngineNews) => Promise<NestedEngine>,
): NestedDocker {
  const listeners = new Map<number, Promise<Server | null>>();
  let sandbox: Pick<Sandbox, 'open'> | null = null;
  let way: ContainerWay | null = null;
  let ports: readonly number[] = [];
  let starting: Promise<NestedEngine> | null = null;
  let closed = false;
  let said = '';
  const led = new Set<Socket>();
  const tell = (text: string): void => {
    if (text !== said) notice(text);
    said = text;
  };

  const start = (): Promise<NestedEngine> => {
    starting ??= startEngine({ onPorts: setPorts, onEgress })
      .then((engine) => {
        const over = (words: string): void => {
          starting = null;
          setPorts([]);
          if (!closed)
            tell(`Nested Docker has ended${words === '' ? '' : `: ${words}`}. The next command starts it again.`);
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

  /** The listeners stay as long as the daemon; the gateway behind them changes with every turn of an agent. */
  function onEgress(name: string, listener: Server | Datagrams): void {
    if (name === 'names')
      return serveNames(listener as Datagrams, async (question) => way?.answerName(question) ?? null);
    const kind = name === 'tls' || name === 'web' ? name : 'proxy';
    (listener as Server).on('connection', (socket: Socket) => {
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
      // A port that was just closed is not worth a message; `done` reports that the daemon itself has ended.
      const inner = await engine.connect(port).catch(() => null);
      if (inner === null) socket.resetAndDestroy();
      else joinSockets(socket, inner);
    } catch (error) {
      if (error instanceof AgsError && !closed && error.code !== 'usage.invalid')
        tell(`Nested Docker: ${inOneLine(error)}`);
      socket.resetAndDestroy();
    }
  };

  async function openListener(port: number, inside: Pick<Sandbox, 'open'>): Promise<Server | null> {
    try {
      const listener = await inside.open(port);
      listener.on('connection', (socket: Socket) => void lead(socket, port));
      return listener;
    } catch {
      const why =
        port < 1024
          ? 'ports below 1024 are not available there'
          : 'another program listens there, or too many ports are open';
      tell(`Nested Docker: port ${port} of a container is not at 127.0.0.1:${port} of the sandbox: ${why}.`);
      return null;
    }
  }

  function setPorts(now: readonly number[]): void {
    ports = now;
    for (const [port, listener] of listeners) {
      if (now.includes(port)) continue;
      listeners.delete(port);
      void listener.then((server) => server?.close());
    }
    if (sandbox === null) return;
    for (const port of now) if (!listeners.has(port)) listeners.set(port, openListener(port, sandbox));
  }

  return {
    engine: start,
    enter: (socket) => void lead(socket, ENGINE_PORT),
    publishIn(next) {
      sandbox = next;
      listeners.clear();
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

/** Each connection takes two descriptors of this process, which must stay reachable for control. */
const MOST_OPEN = 512;

/** Same as in inner-args.ts, which most runs do not need to load. */
const ENGINE_PORT = 2375;
