// run/network/run-network.ts: the network of one run while it runs: listeners, gateway, log, published ports, and added rules.
// Invariant: a listener leads to the gateway or nowhere. The gateway is loaded on the first connection, so a command that needs no
// network does not pay for it.
import type { Socket as Datagrams } from 'node:dgram';
import { createServer, type Server, type Socket } from 'node:net';
import { SERVER_PORT, type Decision, type NetworkRule } from '../../protocol/network.ts';
import type { GatewayListener, Origin } from '../../gateway/gateway.ts';
import type { Sandbox } from '../../sandbox/backend.ts';
import { joinSockets } from '../../lib/stream/join-sockets.ts';
import type { Loaded, RunNetworkInput } from './network-input.ts';
import type { PlacedGrant } from './plan-network.ts';
import { serveNames } from './serve-names.ts';

export interface RunNetwork extends AsyncDisposable {
  onListener(name: string, handle: Server | Datagrams): void;
  /** Call when the sandbox runs: connections from outside are accepted from now on. */
  started(sandbox: Sandbox): void;
  /** Answers a request of the control socket. */
  answer(request: unknown): Promise<unknown>;
  /** Hosts that connections wait for until the user answers. */
  asked(): readonly string[];
  /** Refused hosts, the most frequent first. */
  denied(): readonly DeniedHost[];
}

export interface DeniedHost {
  readonly host: string;
  readonly port: number;
  readonly count: number;
}

export function openRunNetwork(input: RunNetworkInput): RunNetwork {
  const refused = new Map<string, { host: string; port: number; count: number }>();
  const state: { sandbox: Sandbox | null; live: NetworkRule[]; published: Published[] } = {
    sandbox: null,
    live: [],
    published: [],
  };
  const { docker } = input;
  let loading: Promise<Loaded> | null = null;
  let loaded: Loaded | null = null;
  const load = (): Promise<Loaded> => {
    loading ??= import('./open-gateway.ts').then(async ({ startGateway }) => {
      loaded = await startGateway(input, {
        live: () => state.live,
        initPid: () => state.sandbox?.initPid ?? null,
        onDecision(decision) {
          countRefused(refused, decision);
          input.onDecision?.(decision);
        },
      });
      return loaded;
    });
    return loading;
  };
  const enter = (listener: GatewayListener, socket: Socket, from: Origin = 'sandbox'): void => {
    if (loaded !== null) return loaded.gateway.enter(listener, socket, from);
    socket.on('error', () => undefined);
    load().then(
      ({ gateway }) => gateway.enter(listener, socket, from),
      (error: unknown) => {
        input.notice(`The gateway could not be started, so there is no network: ${String((error as Error).message)}`);
        socket.destroy();
      },
    );
  };
  const answerName = async (question: Buffer, from: Origin): Promise<Buffer | null> =>
    (await load()).gateway.answerName(question, from);
  if (input.config.network.mode !== 'off')
    docker?.leadOut({
      enter: (kind, socket) => enter({ kind }, socket, 'containers'),
      answerName: (question) => answerName(question, 'containers'),
    });
  return {
    onListener(name, handle) {
      if (name === 'names') return serveNames(handle as Datagrams, (question) => answerName(question, 'sandbox'));
      if (name === 'docker') return void (handle as Server).on('connection', (socket: Socket) => docker?.enter(socket));
      (handle as Server).on('connection', (socket: Socket) => {
        if (input.services?.enter(socket) === true) return;
        if (name.startsWith('service ')) return void socket.destroy();
        enter(listenerOf(name, socket, input.grants), socket);
      });
    },
    started(sandbox) {
      state.sandbox = sandbox;
      docker?.publishIn(sandbox);
      input.services?.started(sandbox);
      for (const { inside, outside } of input.config.network.publish)
        state.published.push(publish(sandbox, inside, outside, input.notice));
    },
    async answer(request) {
      const wish = request as { do?: unknown; rules?: unknown };
      switch (wish.do) {
        case 'add-rules':
          state.live.push(...(wish.rules as NetworkRule[]));
          loaded?.refresh();
          return { added: state.live.length };
        case 'rules': {
          const { effectiveRules } = await import('./open-gateway.ts');
          return { mode: input.config.network.mode, rules: effectiveRules(input.config.network, state.live) };
        }
        case 'asks':
          return { asks: loaded?.gateway.asks ?? [] };
        default:
          return { error: 'this is not understood' };
      }
    },
    asked: () => (loaded?.gateway.asks ?? []).map(({ host }) => host),
    denied: () => [...refused.values()].toSorted((a, b) => b.count - a.count),
    async [Symbol.asyncDispose]() {
      for (const one of state.published) one.close();
      docker?.leadOut(null);
      const made = await loading?.catch(() => null);
      made?.close();
    },
  };
}

/** Two listeners have their port on every address: a grant with that port comes through them as well. */
function listenerOf(name: string, socket: Socket, grants: readonly PlacedGrant[]): GatewayListener {
  if (name === 'proxy' || name === 'endpoint') return { kind: name };
  const placed = grants.find(({ listener, address }) => listener === name && address === socket.localAddress);
  if (placed !== undefined) return { kind: 'tcp', grant: placed.grant };
  return { kind: name === 'tls' ? 'tls' : 'web' };
}

interface Published {
  close(): void;
}

/** Listens only on the user's loopback: no other machine may see what an agent serves. */
function publish(sandbox: Sandbox, inside: number, outside: number, notice: (text: string) => void): Published {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
    sandbox.connect(inside).then(
      (inner) => joinSockets(socket, inner),
      // An accepted connection can only be reset; a regular end leaves some clients waiting for an answer.
      () => socket.resetAndDestroy(),
    );
  });
  const tell = (): void => {
    const { port } = server.address() as { port: number };
    notice(
      `Port ${inside} of the sandbox is 127.0.0.1:${port} here${port === outside ? '' : ` (${outside} is ${outside === SERVER_PORT ? 'for ags serve' : 'taken'})`}.`,
    );
  };
  let taken = false;
  server.on('error', () => {
    if (!server.listening && !taken) server.listen(0, '127.0.0.1', tell);
    taken = true;
  });
  // A browser that looks for the ags page there while `ags serve` is not running would send its session to an agent.
  server.listen(outside === SERVER_PORT ? 0 : outside, '127.0.0.1', tell);
  return {
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

function countRefused(
  refused: Map<string, { host: string; port: number; count: number }>,
  { verdict, host, port, by }: Decision,
): void {
  // No rule would allow what an endpoint refuses; its answer says why.
  if (verdict !== 'denied' || by === 'endpoint' || host === '' || refused.size > 1000) return;
  const key = `${host} ${port}`;
  const entry = refused.get(key);
  if (entry === undefined) refused.set(key, { host, port, count: 1 });
  else entry.count++;
}
