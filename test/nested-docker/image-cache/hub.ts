// test/nested-docker/image-cache/hub.ts: a scripted registry that records its requests. Real HTTP, on loopback.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export const digestOf = (content: string): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;

export interface Hub extends AsyncDisposable {
  readonly origin: string;
  /** "GET /v2/…", in order. */
  readonly asked: string[];
  /** Answers by path; any other path is 404. */
  readonly content: Map<string, string | ((request: IncomingMessage, response: ServerResponse) => void)>;
}

export async function startHub(): Promise<Hub> {
  const asked: string[] = [];
  const content: Hub['content'] = new Map();
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const found = content.get(request.url ?? '');
    if (typeof found === 'function') return found(request, response);
    if (found === undefined) return void response.writeHead(404).end();
    response.writeHead(200, {
      'content-type': 'application/vnd.docker.distribution.manifest.v2+json',
      'content-length': Buffer.byteLength(found),
      'docker-content-digest': digestOf(found),
    });
    response.end(request.method === 'HEAD' ? undefined : found);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    content,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly digest: string | undefined;
  /** The connection was broken off before the end. */
  readonly broken: boolean;
}

/** Sends a request as an engine would. */
export function ask(
  origin: string,
  path: string,
  method = 'GET',
  headers: Record<string, string> = {},
): Promise<Answer> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve) => {
    const asking = httpRequest({ host: hostname, port, path, method, headers, agent: false }, (answer) => {
      let text = '';
      const end = (broken: boolean): void =>
        resolve({
          status: answer.statusCode ?? 0,
          text,
          digest: answer.headers['docker-content-digest'] as string | undefined,
          broken,
        });
      answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      answer.on('end', () => end(!answer.complete)).on('error', () => end(true));
    });
    asking.on('error', () => resolve({ status: 0, text: '', digest: undefined, broken: true }));
    asking.end();
  });
}
