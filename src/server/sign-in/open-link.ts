// server/sign-in/open-link.ts: a browser opens a link that works once, and gets its session.
// Invariant: a session is given to a program of the user we run as, under our own name, and to nobody else.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Entry } from './sessions.ts';
import { sendFile } from '../exchange.ts';
import { COOKIE, type Address } from './guard.ts';
import { HEADERS } from './headers.ts';
import { isOwnUser } from './own-user.ts';
import { plainPage } from '../page.ts';

export function enter(
  { entry, address }: { entry: Entry; address: Address },
  token: string,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { method, headers, socket } = request;
  const refuse = (status: number, title: string, text = 'Get a new one with: ags web'): void =>
    sendFile(response, plainPage(title, text), status);
  if (method !== 'GET') return refuse(405, 'A link is opened by a browser.');
  // A browser that only prepares for what somebody might open has not opened it.
  if (String(headers['sec-purpose'] ?? '').includes('prefetch')) return refuse(503, 'This link works once.');
  if (!entry.isToken(token)) return refuse(403, 'This link has been used, or is too old.');
  const hereAlone = address.browser.startsWith(entry.name);
  if (hereAlone && !isOwnUser(socket))
    return refuse(
      403,
      'This link is for a browser of the user who runs ags.',
      'From another user or machine: ssh -L 7780:127.0.0.1:7780 <user>@<this machine>',
    );
  const to = (location: string, more: Record<string, string> = {}): void =>
    void response.writeHead(303, { ...HEADERS, ...more, 'Cache-Control': 'no-store', Location: location }).end();
  // Only whoever has a good link is told our name.
  if (hereAlone && headers.host !== address.browser)
    return to(`${address.scheme}://${address.browser}${request.url ?? ''}`);
  const session = entry.enter(token) ?? '';
  const secure = address.scheme === 'https' ? '; Secure' : '';
  to('/', { 'Set-Cookie': `${COOKIE}=${session}; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000${secure}` });
}
