// gateway/admin.ts: health and metrics of a standalone gateway, for its operator. The interface is read-only.
// Invariant: it reports numbers, never a host, a path or a secret.
import { createServer, get, type Server } from 'node:http';
import type { Gateway } from './gateway.ts';

export function serveAdmin(gateway: Gateway, startedMs: number, now: () => number): Server {
  return createServer((request, response) => {
    const say = (status: number, text: string): void => {
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' });
      response.end(request.method === 'HEAD' ? undefined : text);
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') return say(405, 'GET only\n');
    if (request.url === '/healthz') return say(200, 'ok\n');
    if (request.url === '/metrics') return say(200, metrics(gateway, now() - startedMs));
    say(404, 'There are /healthz and /metrics.\n');
  });
}

/** In the text format of Prometheus. */
function metrics({ stats, rules, asks }: Gateway, upMs: number): string {
  const lines: string[] = [];
  const put = (
    name: string,
    kind: 'counter' | 'gauge',
    help: string,
    values: readonly (readonly [label: string, value: number])[],
  ) =>
    lines.push(
      `# HELP ags_gateway_${name} ${help}`,
      `# TYPE ags_gateway_${name} ${kind}`,
      ...values.map(([label, value]) => `ags_gateway_${name}${label} ${value}`),
    );
  const decisions = Object.entries(stats.decisions).map(
    ([verdict, count]) => [`{verdict="${verdict}"}`, count] as const,
  );
  put('decisions_total', 'counter', 'Decisions by verdict.', decisions);
  put('connections_open', 'gauge', 'Connections that are open now.', [['', stats.open]]);
  put('sent_bytes_total', 'counter', 'Bytes sent to origins.', [['', stats.bytesOut]]);
  put('asks_waiting', 'gauge', 'Hosts that wait for a person.', [['', asks.length]]);
  put('rules', 'gauge', 'Rules in force.', [['', rules.length]]);
  put('up_seconds', 'gauge', 'Seconds since the start.', [['', Math.round(upMs / 1000)]]);
  return `${lines.join('\n')}\n`;
}

/** Does a gateway answer at this Unix socket? */
export function askAdmin(socketPath: string, waitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get({ socketPath, path: '/healthz', timeout: waitMs }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.once('timeout', () => request.destroy());
    request.once('close', () => resolve(false));
    request.once('error', () => resolve(false));
  });
}
