// protocol/network.ts: what a sandbox may reach, as plain values, and the decision about each connection.
// Invariant: no rule, no connection.

/** `on`: the rules decide. `record`: ags asks about hosts without a rule, and notes them. `off`: only loopback. */
export const NETWORK_MODES = ['on', 'off', 'record'] as const;
export type NetworkMode = (typeof NETWORK_MODES)[number];

/** Default port of the page; sandboxes never publish on it. */
export const SERVER_PORT = 7780;

export interface NetworkRule {
  readonly action: 'allow' | 'deny';
  /** One spelling only (host-name.ts): `github.com`, `*.npmjs.org` (every name below it, not itself), `10.1.2.3`, `::1`. */
  readonly host: string;
  readonly port: number;
  /** Upper case; null: any. With methods or a path, the gateway must read the requests. */
  readonly methods: readonly string[] | null;
  /** `/repos/acme/*`: a final `*` matches any rest; null: any. */
  readonly path: string | null;
  /** "built-in npm", "ags.yaml:12", "--allow", "ags allow". */
  readonly origin: string;
}

/** `name:port` inside reaches `host:hostPort`, and nothing else. */
export interface TcpGrant {
  readonly name: string;
  readonly port: number;
  readonly host: string;
  readonly hostPort: number;
  readonly origin: string;
}

/** A port of the sandbox that is also reachable on the user's loopback. */
export interface PublishedPort {
  readonly inside: number;
  /** Used if it is free; otherwise any free port. */
  readonly outside: number;
}

/** The host's source of a value that no program inside may read. */
export type ValueSource =
  | { readonly env: string }
  | { readonly file: string }
  | { readonly command: readonly string[] }
  | { readonly keychain: string };

/** A credential file with the tokens of a log-in. They expire; one process at a time renews them, outside. */
export interface LoginSource {
  readonly login: string;
  /** The agent: "claude". */
  readonly agent: string;
  /** null: once they expire, the user must log in again. */
  readonly refresh: TokenRefresh | null;
}

export interface TokenRefresh {
  readonly url: string;
  readonly clientId: string;
  /** Encoding of the request; the default is `form`. */
  readonly as?: 'form' | 'json';
  /** Further fields that the server requires. */
  readonly more?: Readonly<Record<string, string>>;
}

export interface UpstreamProxy {
  readonly kind: 'http' | 'socks5';
  readonly host: string;
  readonly port: number;
  /** "user:password". */
  readonly auth: ValueSource | null;
  /** Patterns as in rules; null: every host. */
  readonly hosts: readonly string[] | null;
  /** Resolver of names: ags, which checks the address, or the proxy. */
  readonly resolve: 'here' | 'there';
  readonly origin: string;
}

/** A model endpoint of the user's own (`agents.<name>.url`). */
export interface ModelEndpoint {
  /** In one spelling, without a final slash. */
  readonly url: string;
  /** False only for loopback. */
  readonly tls: boolean;
  readonly host: string;
  readonly port: number;
  /** "" or "/v1". */
  readonly path: string;
  /** null: what `ags auth` has stored for it, if anything. */
  readonly key: ValueSource | null;
  /** null: the usual one of the agent. */
  readonly header: string | null;
  readonly origin: string;
}

export interface SecretRule {
  readonly name: string;
  /** null: there is no value; requests go on without one. Only for an endpoint of the user's own. */
  readonly from: ValueSource | LoginSource | null;
  readonly host: string;
  readonly port: number;
  /** Lower case. */
  readonly header: string;
  /** Sets the header to this on every request, with `{}` for the value; null: only replaces the placeholder. */
  readonly send: string | null;
  /** The variable inside that holds the placeholder. */
  readonly env: string | null;
  /** The variable inside that holds the base URL of a loopback endpoint for this host; null: no endpoint. */
  readonly endpoint: string | null;
  /** For an endpoint of the user's own: nothing else of its host can be reached because of it. */
  readonly own?: OwnEndpoint;
  /** The value is read for the first request that needs it; if that fails, only this request does. */
  readonly late?: true;
  readonly origin: string;
}

/** The user named the URL, so its host may have any address. No rule comes from it: only requests below its path can be made. */
export type OwnEndpoint = Pick<ModelEndpoint, 'tls' | 'path'>;

export interface NetworkLimits {
  /** Open at the same time. */
  readonly connections: number;
  /** New connections per second, on average. */
  readonly perSecond: number;
  /** Total bytes sent; null: no limit. */
  readonly bytesOut: number | null;
}

export interface NetworkPolicy {
  readonly mode: NetworkMode;
  /** Names of built-in rule lists, which apply before `rules`. */
  readonly presets: readonly string[];
  readonly rules: readonly NetworkRule[];
  /** Private and other special address blocks that names may resolve to: "10.1.0.0/16". */
  readonly addresses: readonly string[];
  readonly tcp: readonly TcpGrant[];
  readonly publish: readonly PublishedPort[];
  readonly upstreams: readonly UpstreamProxy[];
  /** "127.0.0.1:53"; empty: the name servers of this machine. */
  readonly dns: readonly string[];
  readonly limits: NetworkLimits;
  /** How long a connection waits for an answer in mode `record`. */
  readonly askSeconds: number;
}

/** First address that stands for an allowed name in the egress network; in a sandbox such addresses are on loopback. */
export const FIRST_CONTAINER_NAME = '100.64.1.1';

/** How a connection reached the gateway. */
export type Entrance = 'connect' | 'http' | 'socks5' | 'tls' | 'endpoint' | 'tcp' | 'name';

/** One line of the decision log. The agent's part in it is a checked host name, and a path in one spelling. */
export interface Decision {
  readonly at: string;
  readonly run: string;
  readonly by: Entrance;
  readonly host: string;
  readonly port: number;
  /** Only for requests that the gateway read. */
  readonly method?: string;
  readonly path?: string;
  readonly verdict: 'allowed' | 'denied' | 'failed';
  /** The rule, or why there is none; part of a sentence. */
  readonly reason: string;
  /** No rule covers the host and the ask was not answered with yes (mode `record`). */
  readonly unknown?: true;
  readonly address?: string;
  readonly program?: string;
  readonly bytesOut: number;
  readonly bytesIn: number;
  readonly ms: number;
}

/** The registry of images whose name has no registry. */
export const DOCKER_HUB = 'docker.io';
