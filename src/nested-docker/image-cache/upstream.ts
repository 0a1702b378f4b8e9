// nested-docker/image-cache/upstream.ts: asks a registry for a part of an image, as an anonymous client: with the token that the registry
// gives to any client, and following its redirects.
// Invariant: a token is sent only to the registry that it is for, never to the target of a redirect.
import { request, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { errorCode } from '../../lib/error-code.ts';

export interface Upstream {
  /**
   * Opens a connection to a host; TLS with a valid certificate unless the URL is http. Rejects with a sentence. `of` is the registry that
   * caused the connection: permissions of a registry do not extend to the hosts it redirects to.
   */
  open(url: URL, of: URL): Promise<Duplex>;
}

export interface Wanted {
  readonly method: 'GET' | 'HEAD';
  /** The registry: "https://registry-1.docker.io". */
  readonly origin: string;
  readonly repository: string;
  /** "manifests/latest". */
  readonly path: string;
  readonly accept: readonly string[];
  readonly signal: AbortSignal;
}

export class UpstreamError extends Error {}

const MOST_REDIRECTS = 5;
const MOST_TOKEN_BYTES = 64 * 1024;
const IDLE_MS = 60_000;

export interface RegistryClient {
  /** Any response but a redirect or a request for a token. The caller must read or destroy the body. */
  ask(wanted: Wanted): Promise<IncomingMessage>;
}

export function createRegistryClient({ open }: Upstream, now: () => number = Date.now): RegistryClient {
  const tokens = new Map<string, { readonly token: string; readonly untilMs: number }>();

  async function once(method: string, url: URL, headers: Record<string, string>, { origin, signal }: Wanted) {
    if (signal.aborted) throw new UpstreamError('the client has disconnected');
    const socket = await open(url, new URL(origin)).catch((error: unknown) => {
      throw new UpstreamError(error instanceof Error ? error.message : 'it cannot be reached', { cause: error });
    });
    return new Promise<IncomingMessage>((resolve, reject) => {
      const asking = request({
        method,
        createConnection: () => socket,
        path: `${url.pathname}${url.search}`,
        headers: { host: url.host, 'user-agent': 'ags', connection: 'close', ...headers },
        signal,
      });
      asking.setTimeout(IDLE_MS, () => asking.destroy(new Error('it did not answer in time')));
      asking.on('response', resolve).on('error', (error) => {
        socket.destroy();
        reject(new UpstreamError(errorCode(error) ?? error.message, { cause: error }));
      });
      asking.end();
    });
  }

  async function follow(wanted: Wanted, first: URL, token: string | null): Promise<IncomingMessage> {
    let url = first;
    for (let hops = 0; hops <= MOST_REDIRECTS; hops++) {
      const headers: Record<string, string> = { accept: wanted.accept.join(', ') || '*/*' };
      if (token !== null && url.origin === first.origin) headers['authorization'] = `Bearer ${token}`;
      const answer = await once(wanted.method, url, headers, wanted);
      const to = answer.headers.location;
      if (![301, 302, 303, 307, 308].includes(answer.statusCode ?? 0) || to === undefined) return answer;
      answer.destroy();
      const next = parse(to, url);
      if (next === null || (next.protocol !== 'https:' && next.origin !== first.origin))
        throw new UpstreamError('it redirects to an address without TLS');
      url = next;
    }
    throw new UpstreamError('it redirects too often');
  }

  async function tokenFor(challenge: string, wanted: Wanted): Promise<string> {
    const of = (name: string): string | undefined => new RegExp(`\\b${name}="([^"]*)"`).exec(challenge)?.[1];
    const realm = parse(of('realm') ?? '');
    if (!/^bearer /i.test(challenge) || realm === null) throw new UpstreamError('it requires a password');
    if (realm.protocol !== 'https:' && realm.origin !== wanted.origin)
      throw new UpstreamError('it requires a password without TLS');
    const service = of('service');
    if (service !== undefined) realm.searchParams.set('service', service);
    // The scope is fixed, whatever the challenge says: reading, of this repository.
    realm.searchParams.set('scope', `repository:${wanted.repository}:pull`);
    const answer = await once('GET', realm, { accept: 'application/json' }, wanted);
    if (answer.statusCode !== 200) {
      answer.destroy();
      throw new UpstreamError(`it gives no token (${answer.statusCode})`);
    }
    const body = JSON.parse(await readAll(answer, MOST_TOKEN_BYTES)) as {
      token?: unknown;
      access_token?: unknown;
      expires_in?: unknown;
    };
    const token = body.token ?? body.access_token;
    if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) throw new UpstreamError('it gives no token');
    const seconds = typeof body.expires_in === 'number' ? body.expires_in : 60;
    if (tokens.size > 1000) tokens.clear();
    tokens.set(keyOf(wanted), { token, untilMs: now() + Math.max(0, seconds - 10) * 1000 });
    return token;
  }

  return {
    async ask(wanted) {
      const url = new URL(`${wanted.origin}/v2/${wanted.repository}/${wanted.path}`);
      const known = tokens.get(keyOf(wanted));
      const answer = await follow(wanted, url, known !== undefined && known.untilMs > now() ? known.token : null);
      const challenge = answer.headers['www-authenticate'];
      if (answer.statusCode !== 401 || challenge === undefined) return answer;
      answer.destroy();
      return follow(wanted, url, await tokenFor(challenge, wanted));
    },
  };
}

function parse(text: string, base?: URL): URL | null {
  return URL.canParse(text, base?.href) ? new URL(text, base) : null;
}

function keyOf({ origin, repository }: Wanted): string {
  return `${origin} ${repository}`;
}

/** Rejects a longer body. */
export async function readAll(from: AsyncIterable<Uint8Array>, most: number): Promise<string> {
  return (await readBytes(from, most)).toString('utf8');
}

export async function readBytes(from: AsyncIterable<Uint8Array>, most: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of from) {
    bytes += chunk.length;
    if (bytes > most) throw new UpstreamError('its answer is too long');
    parts.push(chunk);
  }
  return Buffer.concat(parts);
}
