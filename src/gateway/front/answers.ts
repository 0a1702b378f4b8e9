// gateway/front/answers.ts: answers of the gateway itself to programs inside.
// Invariant: an answer is one line of ASCII that names the host and the rule, so a reader sees that it is policy, not a fault.
import type { Socket } from 'node:net';

/** `remedy`: how the user can allow this host, as the rest of a sentence. */
export type Remedy = (host: string) => string;

export const ASK_AGS: Remedy = (host) => `with: ags allow ${host}`;

export function policySentence(place: string, reason: string, remedy: Remedy): string {
  return (
    `ags: ${place} is not allowed by the network policy of this sandbox (${reason}). ` +
    `This is policy, not a fault: do not look for a way round. The user can allow it ${remedy(place.replace(/:443$/, ''))}`
  );
}

export function failureSentence(place: string, reason: string): string {
  return `ags: ${place} is allowed, but could not be reached: ${reason}`;
}

/**
 * The status line repeats the sentence, because many programs show nothing else of a failed request. `kept`: another request may
 * follow; `bare`: the answer to a HEAD request, without a body.
 */
export function httpAnswer(status: number, sentence: string, how: { kept?: boolean; bare?: boolean } = {}): string {
  const line = onOneLine(sentence);
  const head = [
    `HTTP/1.1 ${status} ${line}`,
    'Content-Type: text/plain; charset=us-ascii',
    `Content-Length: ${line.length + 1}`,
    'Cache-Control: no-store',
    `X-Ags: ${status === 403 ? 'policy' : 'gateway'}`,
    ...(status === 407 ? ['Proxy-Authenticate: Basic realm="ags"'] : []),
    `Connection: ${how.kept === true ? 'keep-alive' : 'close'}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${how.bare === true ? '' : `${line}\n`}`;
}

/** Closes once the client has read the answer, or after LINGER_MS. An earlier reset would discard the answer. */
export function sayAndClose(socket: Socket, text: string | Buffer): void {
  socket.end(text);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.on('close', () => clearTimeout(timer));
}

/** Closing while the client still sends would make its kernel discard the answer. */
export const LINGER_MS = 2000;

function onOneLine(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]+/g, ' ');
}
