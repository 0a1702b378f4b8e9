// gateway/post.ts: one request of our own to a server outside, by the same road as those of a sandbox: the user's name servers and
// proxies, checked addresses, a valid certificate.
// Invariant: nothing that was sent or received is in an error; the answer has a limit.
import { request } from 'node:http';
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import type { NetworkPolicy } from '../protocol/network.ts';
import { createGuard } from './address.ts';
import { createDialer, type DialUpstream } from './dial.ts';
import { createResolver } from './resolve.ts';

export interface Posted {
  readonly status: number;
  readonly text: string;
}

/** null: no answer came. */
export type Post = (url: string, body: { readonly type: string; readonly text: string }) => Promise<Posted | null>;

export interface PostInput {
  readonly policy: Pick<NetworkPolicy, 'dns' | 'addresses'>;
  readonly upstreams: readonly DialUpstream[];
  readonly roots: () => readonly string[];
  readonly ownAddresses: () => readonly string[];
}

const CONNECT_MS = 15_000;
const ANSWER_MS = 30_000;
const MOST_BYTES = 256 * 1024;

export function createPost({ policy, upstreams, roots, ownAddresses }: PostInput): Post {
  return async (url, body) => {
    const { protocol, hostname, port, pathname, search } = new URL(url);
    // Tokens travel.
    if (protocol !== 'https:') throw new Error(`${url} is not https`);
    const resolver = createResolver({ servers: policy.dns });
    try {
      const guard = createGuard({ granted: policy.addresses, ownAddresses });
      const dialer = createDialer({ resolver, guard, upstreams, connectTimeoutMs: CONNECT_MS });
      const to = { host: hostname, port: port === '' ? 443 : Number(port), kind: isIP(hostname) === 0 ? 'name' : 'ip' };
      const dialed = await dialer.dial({ ...to, kind: to.kind as 'name' | 'ip', granted: false, exact: true }, open);
      if (dialed.kind === 'refused') return null;
      const secure = connect({
        socket: dialed.socket,
        servername: isIP(hostname) === 0 ? hostname : '',
        host: hostname,
        ca: roots().length > 0 ? [...roots()] : undefined,
        minVersion: 'TLSv1.2',
        rejectUnauthorized: true,
      });
      return await exchange(secure, `${pathname}${search}`, port === '' ? hostname : `${hostname}:${port}`, body);
    } finally {
      resolver.close();
    }
  };
}

function open(address: string, port: number): Socket {
  return connectPlain({ host: address, port, noDelay: true });
}

function exchange(
  secure: TLSSocket,
  path: string,
  host: string,
  body: { readonly type: string; readonly text: string },
): Promise<Posted | null> {
  return new Promise((resolve) => {
    const end = (answer: Posted | null): void => {
      clearTimeout(timer);
      secure.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => end(null), ANSWER_MS);
    secure.on('error', () => end(null));
    const bytes = Buffer.from(body.text, 'utf8');
    const asked = request(
      {
        createConnection: () => secure,
        method: 'POST',
        path,
        headers: {
          Host: host,
          'Content-Type': body.type,
          'Content-Length': bytes.length,
          Accept: 'application/json',
          'User-Agent': 'ags',
          Connection: 'close',
        },
      },
      (answer) => {
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > MOST_BYTES) end(null);
          else chunks.push(chunk);
        });
        answer.on('error', () => end(null));
        answer.on('end', () => end({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }));
      },
    );
    asked.on('error', () => end(null));
    asked.end(bytes);
  });
}
