// gateway/gateway.ts: the only way out of a sandbox. It decides, carries and logs each connection of its listeners.
// Invariant: one decision function for every listener; closing the gateway closes every connection.
import type { Socket } from 'node:net';
import { readBareHost } from '../protocol/host-name.ts';
import {
  FIRST_CONTAINER_NAME,
  type Decision,
  type Entrance,
  type NetworkPolicy,
  type NetworkRule,
  type TcpGrant,
} from '../protocol/network.ts';
import type { ModelAccount } from '../protocol/model-usage.ts';
import { createGuard } from './dial/address.ts';
import { ASK_AGS, httpAnswer, sayAndClose, type Remedy } from './front/answers.ts';
import { createAsks, type Ask } from './asks.ts';
import type { Authority } from './intercept/certificate.ts';
import { createDialer, type DialUpstream } from './dial/dial.ts';
import { serveEndpoint, serveTls, serveWeb } from './front/name-listeners.ts';
import { serveProxy } from './front/front.ts';
import { createBudget, type Refusal } from './limits.ts';
import { createModelMeter } from './meter/model-meter.ts';
import { createNames, type Names } from './front/names.ts';
import { createAuthorize, GONE } from './authorize.ts';
import { openOrigin } from './front/own-buffer.ts';
import { createResolver } from './dial/resolve.ts';
import { compileRules, type Verdict } from './rules.ts';
import { SOCKS, socksReply } from './front/socks5.ts';
import { createCarry, gone } from './carry.ts';
import { relayTunnel } from './tunnel.ts';
import { createConnections, type Connection } from './connection.ts';
import { type BoundSecret } from './values.ts';

export type GatewayListener =
  | { readonly kind: 'proxy' | 'tls' | 'web' | 'endpoint' }
  | { readonly kind: 'tcp'; readonly grant: TcpGrant };

/** The side of a listener: the loopback of the sandbox, or the egress network of nested Docker. The rules are the same. */
export type Origin = 'sandbox' | 'containers';

export interface GatewayInput {
  readonly run: string;
  readonly policy: NetworkPolicy;
  /** All rules, built-in ones included. */
  readonly rules: readonly NetworkRule[];
  readonly secrets: readonly BoundSecret[];
  readonly upstreams: readonly DialUpstream[];
  readonly authority: Authority | null;
  /** The authorities that may sign an origin's certificate where TLS ends here. */
  readonly roots: () => readonly string[];
  readonly ownAddresses: () => readonly string[];
  /** Addresses inside the sandbox for the names of tcp grants. */
  readonly grantAddresses: ReadonlyMap<string, string>;
  readonly log: (decision: Decision) => void;
  readonly onLimit: (refusal: Refusal) => void;
  readonly onAsk: (ask: Ask) => void;
  readonly who: ((peerPort: number) => Promise<string | undefined>) | null;
  readonly isToken: ((given: string) => boolean) | null;
  /** Told of requests to models. */
  readonly account?: ModelAccount | undefined;
  readonly now: () => number;
  /** How the user can allow a host; the default is `ags allow`. */
  readonly remedy?: Remedy;
  /** How long a client may take to name its destination, and an origin to answer. */
  readonly waits?: { readonly firstWordsMs?: number; readonly connectMs?: number };
}

export interface Gateway {
  enter(listener: GatewayListener, socket: Socket, from?: Origin): void;
  /** Answers a DNS query from inside; null: no answer. */
  answerName(question: Buffer, from?: Origin): Buffer | null;
  /** In force from now on; open connections stay open. */
  setRules(rules: readonly NetworkRule[]): void;
  readonly rules: readonly NetworkRule[];
  readonly asks: readonly Ask[];
  readonly stats: {
    readonly open: number;
    readonly bytesOut: number;
    readonly decisions: Readonly<Record<string, number>>;
  };
  close(): void;
}

const CONNECT_MS = 15_000;
const FIRST_WORDS_MS = 30_000;

export function createGateway(input: GatewayInput): Gateway {
  const { policy, now } = input;
  let rules = compileRules([...input.rules, ...secretRules(input.secrets)]);
  const decisions = { allowed: 0, denied: 0, failed: 0 };
  const log = (decision: Decision): void => {
    decisions[decision.verdict]++;
    input.log(decision);
  };
  const budget = createBudget(policy.limits);
  const resolver = createResolver({ servers: policy.dns });
  const guard = createGuard({ granted: policy.addresses, ownAddresses: input.ownAddresses });
  const { firstWordsMs = FIRST_WORDS_MS, connectMs = CONNECT_MS } = input.waits ?? {};
  const dialer = createDialer({ resolver, guard, upstreams: input.upstreams, connectTimeoutMs: connectMs });
  const asks =
    policy.mode === 'record'
      ? createAsks({ seconds: policy.askSeconds, now, decide: (h, p) => rules.connect(h, p), onAsk: input.onAsk })
      : null;
  const { run, onLimit, who, remedy = ASK_AGS } = input;
  const connections = createConnections({ run, budget, now, log, onLimit, who, firstWordsMs, tell });
  const authorize = createAuthorize({ rules: () => rules, asks, dialer, remedy });
  const noted = { sinceMs: -Infinity, names: new Set<string>() };
  const names: Readonly<Record<Origin, Names>> = {
    sandbox: createNames({ allowed: mayBeNamed, fixed: input.grantAddresses, first: '127.64.0.1' }),
    containers: createNames({ allowed: mayBeNamed, fixed: new Map(), first: FIRST_CONTAINER_NAME }),
  };
  const carry = createCarry({
    authorize,
    secretsFor: (host, port) =>
      input.secrets.filter((secret) => secret.host === host && secret.port === port && !secret.viaEndpoint),
    authority: input.authority,
    roots: input.roots,
    settled: connections.settled,
    isToken: input.isToken,
    remedy,
    meter: input.account === undefined ? null : createModelMeter(input.account),
  });

  /** While the user can be asked about unknown hosts, their names must resolve. */
  function mayBeNamed(host: string): boolean {
    if (rules.knows(host)) return true;
    const verdict = rules.connect(host, 443);
    if (asks !== null && verdict.kind === 'denied' && verdict.unknown) return true;
    noteName(host, verdict);
    return false;
  }

  // A program that does not use the proxy looks a name up first, and the log shows nothing else of it. Lookups cost the program
  // nothing, so their number in the log is limited: they must not push out other lines.
  function noteName(host: string, verdict: Verdict): void {
    const at = now();
    if (Math.abs(at - noted.sinceMs) >= NAMES_NOTED_MS) {
      noted.sinceMs = at;
      noted.names.clear();
    }
    if (noted.names.has(host) || noted.names.size >= NAMES_NOTED) return;
    noted.names.add(host);
    const reason = verdict.kind === 'denied' ? verdict.reason : 'no port of it is allowed';
    log({
      at: new Date(at).toISOString(),
      run: input.run,
      by: 'name',
      host,
      port: 0,
      verdict: 'denied',
      reason,
      bytesOut: 0,
      bytesIn: 0,
      ms: 0,
    });
  }

  async function enterGrant(connection: Connection, grant: TcpGrant): Promise<void> {
    connections.settled(connection);
    connection.host = grant.host;
    connection.port = grant.hostPort;
    const kind = readBareHost(grant.host)?.kind ?? 'name';
    const opened = await dialer.dial(
      { host: grant.host, port: grant.hostPort, kind, granted: true, exact: true },
      openOrigin,
      connection.socket,
    );
    if (opened.kind === 'refused') {
      connection.finish('failed', connection.socket.destroyed ? GONE : opened.reason);
      return void connection.socket.destroy();
    }
    opened.socket.on('error', () => undefined);
    if (gone(connection, opened.socket)) return;
    connection.address = opened.address;
    relayTunnel(connection, opened, Buffer.alloc(0), `tcp grant ${grant.name} (${grant.origin})`, 'any');
  }

  return {
    enter(listener, socket, from = 'sandbox') {
      const who = from === 'containers' ? 'a container' : undefined;
      const connection = connections.welcome(socket, ENTRANCES[listener.kind], who);
      if (connection === null) return;
      switch (listener.kind) {
        case 'proxy':
          return serveProxy(connection, carry);
        case 'tls':
          return serveTls(connection, names[from], carry);
        case 'web':
          return serveWeb(connection, names[from], carry);
        case 'endpoint':
          return serveEndpoint(connection, input.secrets, authorize, carry);
        case 'tcp':
          return connection.guard(enterGrant(connection, listener.grant));
      }
    },
    answerName: (question, from = 'sandbox') => names[from].answer(question),
    setRules(list) {
      rules = compileRules([...list, ...secretRules(input.secrets)]);
      asks?.reconsider();
    },
    get rules() {
      return rules.list;
    },
    get asks() {
      return asks?.list() ?? [];
    },
    get stats() {
      return { open: connections.open, bytesOut: budget.bytesOut, decisions };
    },
    close() {
      asks?.close();
      connections.close();
      resolver.close();
    },
  };
}

const NAMES_NOTED_MS = 60_000;
const NAMES_NOTED = 500;

const ENTRANCES: Readonly<Record<GatewayListener['kind'], Entrance>> = {
  proxy: 'connect',
  tls: 'tls',
  web: 'http',
  endpoint: 'endpoint',
  tcp: 'tcp',
};

/** A secret for a host implies that the host may be reached, unless only the endpoint of the user's own may be. */
function secretRules(secrets: readonly BoundSecret[]): NetworkRule[] {
  return secrets
    .filter(({ own }) => own === undefined)
    .map(({ host, port, name }) => ({
      action: 'allow',
      host,
      port,
      methods: null,
      path: null,
      origin: `secret ${name}`,
    }));
}

/** Reports a reached limit in the client's protocol, as far as it is known before the first byte. */
function tell(socket: Socket, by: Entrance, reason: string): void {
  if (by === 'connect' || by === 'http' || by === 'endpoint')
    return sayAndClose(socket, httpAnswer(503, `ags: refused by the network policy of this sandbox: ${reason}`));
  sayAndClose(socket, by === 'socks5' ? socksReply(SOCKS.notAllowed) : '');
}
