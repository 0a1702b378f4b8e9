// gateway/dial/post.ts: sends one request of ags itself to a server outside, under the same conditions as a sandbox's
// requests: the user's name servers and proxies, checked addresses, a valid certificate.
// Invariant: no error contains sent or received data; the response size is limited.
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { createWayOut, type WayOutInput } from './way-out.ts';

export interface Posted {
  readonly status: number;
  readonly text: string;
}

/** null: no answer came. */
export type Post = (url: string, body: { readonly type: string; readonly text: string }) => Promise<Posted | null>;

export type PostInput = Omit<WayOutInput, 'granted'>;

const ANSWER_MS = 30_000;
const MOST_BYTES = 256 * 1024;

export function createPost(input: PostInput): Post {
  return async (url, body) => {
    const target = new URL(url);
    // The body can contain tokens.
    if (target.protocol !== 'https:') throw new Error(`${url} is not https`);
    const way = createWayOut({ ...input, granted: [] });
    try {
      const secure = await way.open(target).catch(() => null);
      return secure === null ? null : await exchange(secure, `${target.pathname}${target.search}`, target.host, body);
    } finally {
      way.close();
    }
  };
}

function exchange(
  secure: Socket,
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
