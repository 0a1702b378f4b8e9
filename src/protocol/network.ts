// protocol/network.ts: what a sandbox may reach, as plain values, and what was decided about each attempt.
// Invariant: no rule, no connection.

/** `on`: the rules decide. `record`: what no rule covers is asked about and noted. `off`: nothing but loopback. */
export const NETWORK_MODES = ['on', 'off', 'record'] as const;
export type NetworkMode = (typeof NETWORK_MODES)[number];

/** Where the page is served unless another port is asked for; nothing out of a sandbox is published there. */
export const SERVER_PORT = 7780;

export interface NetworkRule {
  readonly action: 'allow' | 'deny';
  /** One spelling only (host-name.ts): `github.com`, `*.npmjs.org` (every name below it, not itself), `10.1.2.3`, `::1`. */
  readonly host: string;
  readonly port: number;
  /** Upper case; null: any. With methods or a path, the gateway has to look into the requests. */
  readonly methods: readonly string[] | null;
  /** `/repos/acme/*`: `*` at the end stands for any rest; null: any. */
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

/** A port of the sandbox that the user's loopback has too. */
export interface PublishedPort {
  readonly inside: number;
  /** Taken if it is free; otherwise any free one. */
  readonly outside: number;
}

/** Where a value is kept that nobody inside may read. */
export type ValueSource =
  | { readonly env: string }
  | { readonly file: string }
  | { readonly command: readonly string[] }
  | { readonly keychain: string };

/** A file of ours with the tokens of a log-in: they expire, and are renewed outside, by one process at a time. */
export interface LoginSource {
  readonly login: string;
  /** Whose: "claude". */
  readonly agent: string;
  /** null: when they have expired, somebody has to log in again. */
  readonly refresh: TokenRefresh | null;
}

export interface TokenRefresh {
  readonly url: string;
  readonly clientId: string;
  /** How the request is written; `form` if not given. */
  readonly as?: 'form' | 'json';
  /** Further fields that the server wants. */
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
  /** Who looks names up: we (and check the address), or the proxy. */
  readonly resolve: 'here' | 'there';
  readonly origin: string;
}

export interface SecretRule {
  readonly name: string;
  readonly from: ValueSource | LoginSource;
  readonly host: string;
  readonly port: number;
  /** Lower case. */
  readonly header: string;
  /** The header is set to this on every request, with `{}` standing for the value; null: only the placeholder is replaced. */
  readonly send: string | null;
  /** The variable inside that holds the placeholder. */
  readonly env: string | null;
  /** The variable inside that holds the base URL of a loopback endpoint for this host; null: no endpoint. */
  readonly endpoint: string | null;
  readonly origin: string;
}

export interface NetworkLimits {
  /** Open at one time. */
  readonly connections: number;
  /** New ones in a second, on average. */
  readonly perSecond: number;
  /** Sent out in all; null: no limit. */
  readonly bytesOut: number | null;
}

export interface NetworkPolicy {
  readonly mode: NetworkMode;
  /** Names of built-in lists of rules, in force before `rules`. */
  readonly presets: readonly string[];
  readonly rules: readonly NetworkRule[];
  /** Blocks of private and other special addresses that names may lead to: "10.1.0.0/16". */
  readonly addresses: readonly string[];
  readonly tcp: readonly TcpGrant[];
  readonly publish: readonly PublishedPort[];
  readonly upstreams: readonly UpstreamProxy[];
  /** "127.0.0.1:53"; empty: those of this machine. */
  readonly dns: readonly string[];
  readonly limits: NetworkLimits;
  /** How long a connection waits for a person in `record`. */
  readonly askSeconds: number;
}

/** How a connection came to the gateway. */
/** The first of the addresses that stand for names where containers ask; in a sandbox they are of its loopback. */
export const FIRST_CONTAINER_NAME = '100.64.1.1';

export type Entrance = 'connect' | 'http' | 'socks5' | 'tls' | 'endpoint' | 'tcp' | 'name';

/** One line of the decision log. Of what an agent sent there is a checked host name in it, and a path in one spelling. */
export interface Decision {
  readonly at: string;
  readonly run: string;
  readonly by: Entrance;
  readonly host: string;
  readonly port: number;
  /** Of a request that was looked into. */
  readonly method?: string;
  readonly path?: string;
  readonly verdict: 'allowed' | 'denied' | 'failed';
  /** Which rule, or why none: a sentence part. */
  readonly reason: string;
  /** `evil.test` in record mode and nobody said yes: a rule would be needed. */
  readonly unknown?: true;
  readonly address?: string;
  readonly program?: string;
  readonly bytesOut: number;
  readonly bytesIn: number;
  readonly ms: number;
}
