// gateway/answers.ts: what the gateway itself says to a program inside.
// Invariant: an answer is one line of ASCII, and names the host and the rule, so that whoever reads it knows that it is no fault.
import type { Socket } from 'node:net';

export function policySentence(place: string, reason: string): string {
  const host = place.replace(/:443$/, '');
  return (
    `ags: ${place} is not allowed by the network policy of this sandbox (${reason}). ` +
    `This is policy, not a fault: do not look for a way round. The user can allow it with: ags allow ${host}`
  );
}

export function failureSentence(place: string, reason: string): string {
  return `ags: ${place} is allowed, but could not be reached: ${reason}`;
}

/** Clients that do not show the body of an answer often show its first line. */
export function httpAnswer(status: number, sentence: string): string {
  const line = onOneLine(sentence);
  return (
    `HTTP/1.1 ${status} ${line}\r\n` +
    'Content-Type: text/plain; charset=us-ascii\r\n' +
    `Content-Length: ${line.length + 1}\r\nX-Ags: ${status === 403 ? 'policy' : 'gateway'}\r\n` +
    `${status === 407 ? 'Proxy-Authenticate: Basic realm="ags"\r\n' : ''}Connection: close\r\n\r\n${line}\n`
  );
}

/** Said, and then closed: but only when it has been read, or a moment later, since a reset would take the answer away. */
export function sayAndClose(socket: Socket, text: string | Buffer): void {
  socket.end(text);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.on('close', () => clearTimeout(timer));
}

const LINGER_MS = 2000;

function onOneLine(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]+/g, ' ');
}
