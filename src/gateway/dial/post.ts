// gateway/dial/post.ts: sends one request of ags itself to a server outside, under the same conditions as a sandbox's
// requests: the user's name servers and proxies, checked addresses, a valid certificate.
// Invariant: no error contains sent or received data; the response size and the time are limited.
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { createWayOut, type WayOut, type WayOutInput } from './way-out.ts';

export interface Posted {
  readonly status: number;
  readonly text: string;
}

/** null: no answer came. */
export type Post = (url: string, body: { readonly type: string; readonly text: string }) => Promise<Posted | null>;

export type PostInput = Omit<WayOutInput, 'granted'>;

const ANSWER_MS = 30_000;
const MOST_BYTES = 2 * 1024 * 1024;

export function createPost(input: PostInput): Post {
  return async (url, body) => {
    const target = new URL(url);
    // The body can contain tokens.
    if (target.protocol !== 'https:') throw new Error(`${url} is not https`);
    const way = createWayOut({ ...input, granted: [] });
    const bytes = Buffer.from(body.text, 'utf8');
    const headers = { 'Content-Type': body.type, 'Content-Length': String(bytes.length) };
    try {
      const got = await ask(way, target, { method: 'POST', headers, bytes, answerMs: ANSWER_MS });
      return typeof got === 'string' ? null : got;
    } finally {
      way.close();
    }
  };
}

/** Asks for something that costs nothing. A text says why no answer came, as a part of a sentence. */
export function get(
  way: WayOut,
  url: URL,
  headers: Readonly<Record<string, string>>,
  answerMs: number,
): Promise<Posted | string> {
  return ask(way, url, { method: 'GET', headers, bytes: Buffer.alloc(0), answerMs });
}

interface Asked {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Buffer;
  readonly answerMs: number;
}

async function ask(way: WayOut, target: URL, what: Asked): Promise<Posted | string> {
  const socket = await way.open(target).catch((error: unknown) => (error as Error).message);
  return typeof socket === 'string' ? socket : exchange(socket, target, what);
}

function exchange(socket: Socket, target: URL, { method, headers, bytes, answerMs }: Asked): Promise<Posted | string> {
  return new Promise((resolve) => {
    const end = (answer: Posted | string): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => end(`${target.host} gave no answer within ${answerMs / 1000} s`), answerMs);
    // The error's message can hold text of the other side; its code cannot.
    const fail = ({ code }: NodeJS.ErrnoException): void =>
      end(
        `the connection to ${target.host} failed (${code !== undefined && /^[A-Z0-9_]+$/.test(code) ? code : 'error'})`,
      );
    socket.on('error', fail);
    const asked = request(
      {
        createConnection: () => socket,
        method,
        path: `${target.pathname}${target.search}`,
        headers: {
          Host: target.host,
          Accept: 'application/json',
          'User-Agent': 'ags',
          Connection: 'close',
          ...headers,
        },
      },
      (answer) => {
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > MOST_BYTES) end(`the answer of ${target.host} is too large`);
          else chunks.push(chunk);
        });
        answer.on('error', fail);
        answer.on('end', () => end({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }));
      },
    );
    asked.on('error', fail);
    asked.end(bytes);
  });
}
