// gateway/intercept/web-socket.ts: after the origin has switched to a WebSocket, bytes pass both ways unchanged.
import type { Socket } from 'node:net';
import { send, type Source } from './byte-source.ts';
import type { Redactor } from './redact.ts';
import type { End } from './secure-ends.ts';

const LINGER_MS = 30_000;

/** Resolves when both directions have ended. */
export async function tunnel(
  client: End,
  origin: End,
  redactor: Redactor | null,
  count: (direction: 'in' | 'out', bytes: number) => boolean,
): Promise<void> {
  const stop = (): void => {
    client.socket.destroy();
    origin.socket.destroy();
  };
  await Promise.all([
    pour(client.source, origin.socket, null, (bytes) => count('out', bytes)).then((ok) => ok || stop()),
    pour(origin.source, client.socket, redactor, (bytes) => count('in', bytes)).then((ok) => ok || stop()),
  ]);
}

/** False: it did not end regularly. */
async function pour(
  from: Source,
  to: Socket,
  redactor: Redactor | null,
  count: (bytes: number) => boolean,
): Promise<boolean> {
  for (;;) {
    const chunk = await from.read();
    if (chunk === null) break;
    if (!count(chunk.length) || !(await send(to, redactor === null ? chunk : redactor.pass(chunk)))) return false;
  }
  if (from.state !== 'ended') return false;
  if (redactor !== null) await send(to, redactor.end());
  to.end();
  to.setTimeout(LINGER_MS, () => to.destroy());
  return true;
}
