// run/network/run-network.ts: the network of one run while it runs: doors to the gateway, its log, published ports, and rules that are
// added meanwhile.
// Invariant: a door leads to the gateway or nowhere. The gateway is loaded when somebody comes to a door, so a command that
// needs no network does not pay for it.
import type { Socket as Datagrams } from 'node:dgram';
import { createServer, type Server, type Socket } from 'node:net';
import { SERVER_PORT, type Decision, type NetworkRule } from '../../protocol/network.ts';
import type { Gateway, GatewayDoor, Origin } from '../../gateway/gateway.ts';
import type { Sandbox } from '../../sandbox/backend.ts';
import type { EffectiveConfig } from '../../config/effective.ts';
import { joinSockets } from '../../lib/stream/join-sockets.ts';
import type { InnerDocker } from '../../nested-docker/nested-docker.ts';
import type { PlacedGrant } from './plan-network.ts';
import { serveNames } from './serve-names.ts';
import type { TaskSecrets } from './secrets.ts';
import type { World } from '../host-context.ts';

export interface RunNetwork extends AsyncDisposable {
  onDoor(name: string, handle: Server | Datagrams): void;
  /** The sandbox runs: what connects to it from outside may come. */
  started(sandbox: Sandbox): void;
  /** What the control socket asks. */
  answer(request: unknown): Promise<unknown>;
  /** Hosts that were refused, most often asked for first. */
  denied(): readonly DeniedHost[];
}

export interface DeniedHost {
  readonly host: string;
  readonly port: number;
  readonly count: number;
}

export interface RunNetworkInput {
  readonly world: World;
  readonly id: string;
  readonly startedAtMs: number;
  readonly project: string;
  /** The file of the task's events, or whoever holds it. */
  readonly events: string | ((event: { readonly type: string; readonly [field: string]: unknown }) => void);
  readonly onDecision?: (decision: Decision) => void;
  readonly config: Pick<EffectiveConfig, 'network' | 'docker' | 'limits'>;
  /** The task's engine, which its services may be in; null: it has none. */
  readonly docker: InnerDocker | null;
  readonly grants: readonly PlacedGrant[];
  readonly secrets: TaskSecrets;
  readonly notice: (text: string) => void;
  /** null: it has none. */
  readonly services: ServiceDoors | null;
}

/** Services beside the sandbox, as its doors know them. */
export interface ServiceDoors {
  /** Takes whoever came to the door of a service; false: it is none. */
  enter(socket: Socket): boolean;
  /** Where each is, inside. */
  readonly addresses: ReadonlyMap<string, string>;
  /** From now on what turns out to be there has its doors in this sandbox. */
  started(sandbox: Sandbox): void;
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
  const enter = (door: GatewayDoor, socket: Socket, from: Origin = 'sandbox'): void => {
    if (loaded !== null) return loaded.gateway.enter(door, socket, from);
    socket.on('error', () => undefined);
    load().then(
      ({ gateway }) => gateway.enter(door, socket, from),
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
    onDoor(name, handle) {
      if (name === 'names') return serveNames(handle as Datagrams, (question) => answerName(question, 'sandbox'));
      if (name === 'docker') return void (handle as Server).on('connection', (socket: Socket) => docker?.enter(socket));
      (handle as Server).on('connection', (socket: Socket) => {
        if (input.services?.enter(socket) === true) return;
        if (name.startsWith('service ')) return void socket.destroy();
        enter(doorOf(name, socket, input.grants), socket);
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
    denied: () => [...refused.values()].toSorted((a, b) => b.count - a.count),
    async [Symbol.asyncDispose]() {
      for (const one of state.published) one.close();
      docker?.leadOut(null);
      const made = await loading?.catch(() => null);
      made?.close();
    },
  };
}

export interface Loaded {
  readonly gateway: Gateway;
  /** The live rules have changed. */
  refresh(): void;
  close(): void;
}

/** Two doors have their port on every address: a grant with that port comes through them as well. */
function doorOf(name: string, socket: Socket, grants: readonly PlacedGrant[]): GatewayDoor {
  if (name === 'proxy' || name === 'endpoint') return { kind: name };
  const placed = grants.find(({ door, address }) => door === name && address === socket.localAddress);
  if (placed !== undefined) return { kind: 'tcp', grant: placed.grant };
  return { kind: name === 'tls' ? 'tls' : 'web' };
}

interface Published {
  close(): void;
}

/** On the user's loopback only: nobody else on the network may look at what an agent serves. */
function publish(sandbox: Sandbox, inside: number, outside: number, notice: (text: string) => void): Published {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
    sandbox.connect(inside).then(
      (inner) => joinSockets(socket, inner),
      // As near to a refusal as an accepted connection comes: an end alone leaves some clients waiting for an answer.
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
  // Whoever looks for our page there, while nobody serves it, would show its session to an agent.
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
  { verdict, host, port }: Decision,
): void {
  if (verdict !== 'denied' || host === '' || refused.size > 1000) return;
  const key = `${host} ${port}`;
  const entry = refused.get(key);
  if (entry === undefined) refused.set(key, { host, port, count: 1 });
  else entry.count++;
}
