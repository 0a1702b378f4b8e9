// gateway/gateway.ts: the only way out of a sandbox. Doors bring connections in; each is decided, carried and written down.
// Invariant: one decision function for every door; when the gateway is closed, every connection is.
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
import { createGuard } from './dial/address.ts';
import { ASK_AGS, httpAnswer, sayAndClose, type Remedy } from './front/answers.ts';
import { createAsks, type Ask } from './asks.ts';
import type { Authority } from './intercept/certificate.ts';
import { createDialer, type DialUpstream } from './dial/dial.ts';
import { serveEndpoint, serveTls, serveWeb } from './front/name-listeners.ts';
import { serveProxy } from './front/front.ts';
import type { LiveSecret } from './intercept/intercept.ts';
import { createBudget, type Refusal } from './limits.ts';
import { createNames, type Names } from './front/names.ts';
import { createPassages, GONE } from './authorize.ts';
import { openOrigin } from './front/own-buffer.ts';
import { createResolver } from './dial/resolve.ts';
import { compileRules, type Verdict } from './rules.ts';
import { SOCKS, socksReply } from './front/socks5.ts';
import { createTravel, gone } from './carry.ts';
import { carry } from './tunnel.ts';
import { createVisits, type Visit } from './connection.ts';

/** A secret whose value is known, and where it may go. */
export interface BoundSecret extends LiveSecret {
  readonly host: string;
  readonly port: number;
  readonly viaEndpoint: boolean;
}

export type GatewayDoor =
  | { readonly kind: 'proxy' | 'tls' | 'web' | 'endpoint' }
  | { readonly kind: 'tcp'; readonly grant: TcpGrant };

/** Where the doors stand: on the loopback of the sandbox, or before the containers of its engine. Rules are the same. */
export type Origin = 'sandbox' | 'containers';

export interface GatewayInput {
  readonly run: string;
  readonly policy: NetworkPolicy;
  /** Built-in ones included. */
  readonly rules: readonly NetworkRule[];
  readonly secrets: readonly BoundSecret[];
  readonly upstreams: readonly DialUpstream[];
  readonly authority: Authority | null;
  /** Whom an origin's certificate must come from, where its TLS is ended here. */
  readonly roots: () => readonly string[];
  readonly ownAddresses: () => readonly string[];
  /** The addresses inside of the names of tcp grants. */
  readonly grantAddresses: ReadonlyMap<string, string>;
  readonly log: (decision: Decision) => void;
  readonly onLimit: (refusal: Refusal) => void;
  readonly onAsk: (ask: Ask) => void;
  readonly who: ((peerPort: number) => Promise<string | undefined>) | null;
  readonly isToken: ((given: string) => boolean) | null;
  readonly now: () => number;
  /** How the user can allow a host; by itself with `ags allow`. */
  readonly remedy?: Remedy;
  /** How long a client may take to say where to, and an origin to answer. */
  readonly waits?: { readonly firstWordsMs?: number; readonly connectMs?: number };
}

export interface Gateway {
  enter(door: GatewayDoor, socket: Socket, from?: Origin): void;
  /** What a program inside asks the name service; null: no answer. */
  answerName(question: Buffer, from?: Origin): Buffer | null;
  /** In force from now on; open connections stay as they are. */
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
  const visits = createVisits({ run, budget, now, log, onLimit, who, firstWordsMs, tell });
  const passages = createPassages({ rules: () => rules, asks, dialer, remedy });
  const noted = { sinceMs: -Infinity, names: new Set<string>() };
  const names: Readonly<Record<Origin, Names>> = {
    sandbox: createNames({ allowed: mayBeNamed, fixed: input.grantAddresses, first: '127.64.0.1' }),
    containers: createNames({ allowed: mayBeNamed, fixed: new Map(), first: FIRST_CONTAINER_NAME }),
  };
  const travel = createTravel({
    passages,
    rules: () => rules,
    secretsFor: (host, port) =>
      input.secrets.filter((secret) => secret.host === host && secret.port === port && !secret.viaEndpoint),
    authority: input.authority,
    roots: input.roots,
    settled: visits.settled,
    isToken: input.isToken,
    remedy,
  });

  /** While unknown hosts are asked about, their names have to lead somewhere. */
  function mayBeNamed(host: string): boolean {
    if (rules.knows(host)) return true;
    const verdict = rules.connect(host, 443);
    if (asks !== null && verdict.kind === 'denied' && verdict.unknown) return true;
    noteName(host, verdict);
    return false;
  }

  // A program that does not know of the proxy asks for a name first, and that is all anyone sees of it. Asking costs a
  // program nothing, so only so many are noted: they must not push everything else out of the log.
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

  async function enterGrant(visit: Visit, grant: TcpGrant): Promise<void> {
    visits.settled(visit);
    visit.host = grant.host;
    visit.port = grant.hostPort;
    const kind = readBareHost(grant.host)?.kind ?? 'name';
    const opened = await dialer.dial(
      { host: grant.host, port: grant.hostPort, kind, granted: true, exact: true },
      openOrigin,
      visit.socket,
    );
    if (opened.kind === 'refused') {
      visit.finish('failed', visit.socket.destroyed ? GONE : opened.reason);
      return void visit.socket.destroy();
    }
    opened.socket.on('error', () => undefined);
    if (gone(visit, opened.socket)) return;
    visit.address = opened.address;
    carry(visit, opened, Buffer.alloc(0), `tcp grant ${grant.name} (${grant.origin})`, 'any');
  }

  return {
    enter(door, socket, from = 'sandbox') {
      const who = from === 'containers' ? 'a container' : undefined;
      const visit = visits.welcome(socket, ENTRANCES[door.kind], who);
      if (visit === null) return;
      switch (door.kind) {
        case 'proxy':
          return serveProxy(visit, travel);
        case 'tls':
          return serveTls(visit, names[from], travel);
        case 'web':
          return serveWeb(visit, names[from], travel);
        case 'endpoint':
          return serveEndpoint(visit, input.secrets, passages, travel);
        case 'tcp':
          return visit.guard(enterGrant(visit, door.grant));
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
      return { open: visits.open, bytesOut: budget.bytesOut, decisions };
    },
    close() {
      asks?.close();
      visits.close();
      resolver.close();
    },
  };
}

const NAMES_NOTED_MS = 60_000;
const NAMES_NOTED = 500;

const ENTRANCES: Readonly<Record<GatewayDoor['kind'], Entrance>> = {
  proxy: 'connect',
  tls: 'tls',
  web: 'http',
  endpoint: 'endpoint',
  tcp: 'tcp',
};

/** Who gives a secret for a host means that host to be reached. */
function secretRules(secrets: readonly BoundSecret[]): NetworkRule[] {
  return secrets.map(({ host, port, name }) => ({
    action: 'allow',
    host,
    port,
    methods: null,
    path: null,
    origin: `secret ${name}`,
  }));
}

/** Too many: said in the language of whoever came, as far as that is known before the first byte. */
function tell(socket: Socket, by: Entrance, reason: string): void {
  if (by === 'connect' || by === 'http' || by === 'endpoint')
    return sayAndClose(socket, httpAnswer(503, `ags: refused by the network policy of this sandbox: ${reason}`));
  sayAndClose(socket, by === 'socks5' ? socksReply(SOCKS.notAllowed) : '');
}
