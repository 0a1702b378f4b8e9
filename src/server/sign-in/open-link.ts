// server/sign-in/open-link.ts: a browser opens a link that works once, and gets its session.
// Invariant: only a program of the user that runs the server gets a session, and only under the server's own name.
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Sessions } from './sessions.ts';
import { sendFile } from '../exchange.ts';
import { COOKIE, type Address } from './guard.ts';
import { HEADERS } from './headers.ts';
import { plainPage } from '../page.ts';

export function enter(
  { sessions, address }: { sessions: Sessions; address: Address },
  token: string,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { method, headers, socket } = request;
  const refuse = (status: number, title: string, text = 'Get a new link: ags web'): void =>
    sendFile(response, plainPage(title, text), status);
  if (method !== 'GET') return refuse(405, 'Open this link in a browser.');
  // A prefetch is not the user opening the link.
  if (String(headers['sec-purpose'] ?? '').includes('prefetch')) return refuse(503, 'This link works once.');
  if (!sessions.isToken(token)) return refuse(403, 'This link was already used, or has expired.');
  const hereAlone = address.browser.startsWith(sessions.name);
  if (hereAlone && !isOwnUser(socket))
    return refuse(
      403,
      'This link is for a browser of the user who runs ags.',
      'From another user or machine: ssh -L 7780:127.0.0.1:7780 <user>@<this machine>',
    );
  const to = (location: string, more: Record<string, string> = {}): void =>
    void response.writeHead(303, { ...HEADERS, ...more, 'Cache-Control': 'no-store', Location: location }).end();
  // Only a valid link reveals the server's own name.
  if (hereAlone && headers.host !== address.browser)
    return to(`${address.scheme}://${address.browser}${request.url ?? ''}`);
  const session = sessions.enter(token) ?? '';
  const secure = address.scheme === 'https' ? '; Secure' : '';
  to('/', { 'Set-Cookie': `${COOKIE}=${session}; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000${secure}` });
}

// Every user of the machine can read a sign-in link on the command line of a browser; this check makes it useless to other users.

/** True for our own user, and for root, who can read our files anyway. A server that runs as root accepts every local user. */
function isOwnUser({ remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 }: Socket): boolean {
  const own = process.geteuid?.() ?? 0;
  if (own === 0) return true;
  const [from, to] = [spellings(remoteAddress, remotePort), spellings(localAddress, localPort)];
  const uids = ['/proc/net/tcp', '/proc/net/tcp6']
    .flatMap((file) => readFileSync(file, 'latin1').split('\n'))
    .map((line) => line.trim().split(/\s+/))
    // The client's socket: its local address is our remote address.
    .filter(([, begin = '', end = '']) => from.includes(begin) && to.includes(end))
    .map((words) => Number(words[7]));
  return uids.length > 0 && uids.every((uid) => uid === own || uid === 0);
}

/** An address in the notation of /proc/net/tcp: four-byte words in reversed byte order. */
function spellings(address: string, port: number): string[] {
  const at = port.toString(16).toUpperCase().padStart(4, '0');
  if (address === '::1') return [`${'0'.repeat(24)}01000000:${at}`];
  const bytes = address.replace('::ffff:', '').split('.').map(Number);
  const word = Buffer.from(bytes.toReversed()).toString('hex').toUpperCase();
  return [`${word}:${at}`, `${'0'.repeat(16)}FFFF0000${word}:${at}`];
}
