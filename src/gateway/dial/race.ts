// gateway/dial/race.ts: connect to the first of several addresses that answers (RFC 8305).
// Invariant: exactly one socket is left open, or none.
import type { Socket } from 'node:net';

export type Raced =
  | { readonly kind: 'open'; readonly socket: Socket; readonly address: string }
  /** The code of the first address that failed, ETIMEDOUT if none answered in time, ECANCELED if the client disconnected. */
  | { readonly kind: 'failed'; readonly code: string };

/** Tries the next address when one fails or stays silent for a while; a silent attempt goes on. */
export function race(
  addresses: readonly string[],
  open: (address: string) => Socket,
  timeoutMs: number,
  /** If this client disconnects, the race is cancelled. An AbortSignal would cost more than the rest of this function. */
  client?: Socket,
): Promise<Raced> {
  return new Promise((resolve) => {
    const trying = new Set<Socket>();
    let next = 0;
    let firstCode: string | null = null;
    let settled = false;
    let patience: NodeJS.Timeout | undefined;
    const deadline = setTimeout(() => settle({ kind: 'failed', code: 'ETIMEDOUT' }), timeoutMs);
    const onGone = (): void => settle({ kind: 'failed', code: 'ECANCELED' });

    function settle(result: Raced): void {
      settled = true;
      clearTimeout(deadline);
      clearTimeout(patience);
      client?.off('close', onGone);
      for (const socket of trying) if (result.kind === 'failed' || result.socket !== socket) socket.destroy();
      resolve(result);
    }

    function tryNext(): void {
      clearTimeout(patience);
      if (settled) return;
      const address = addresses[next++];
      if (address === undefined) {
        if (trying.size === 0) settle({ kind: 'failed', code: firstCode ?? 'EADDRNOTAVAIL' });
        return;
      }
      const socket = open(address);
      trying.add(socket);
      const onError = (error: NodeJS.ErrnoException): void => {
        if (!trying.delete(socket) || settled) return;
        firstCode ??= error.code ?? 'error';
        tryNext();
      };
      socket.on('error', onError).once('connect', () => {
        // The caller may add its error listener a moment later, and an unhandled error would end the process.
        socket.on('error', ignore).off('error', onError);
        if (!settled) settle({ kind: 'open', socket, address });
      });
      if (next < addresses.length) patience = setTimeout(tryNext, STEP_MS).unref();
    }
    if (client?.destroyed === true) return onGone();
    client?.once('close', onGone);
    tryNext();
  });
}

function ignore(): void {}

const STEP_MS = 250;
