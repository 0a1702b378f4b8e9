// gateway/front/answers.ts: what the gateway itself says to a program inside.
// Invariant: an answer is one line of ASCII, and names the host and the rule, so that whoever reads it knows that it is no fault.
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
 * The sentence stands in the first line too, which is all that many programs show of a failed request. `kept`: another
 * request may follow; `bare`: it was a HEAD, so the body is only announced.
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

/** Said, and then closed: but only when it has been read, or a moment later, since a reset would take the answer away. */
export function sayAndClose(socket: Socket, text: string | Buffer): void {
  socket.end(text);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.on('close', () => clearTimeout(timer));
}

/** Closing while the other side still sends would make its kernel throw the answer away. */
export const LINGER_MS = 2000;

function onOneLine(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]+/g, ' ');
}
