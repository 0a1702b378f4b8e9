// server/sign-in/guard.ts: decides which requests are answered at all. Pure functions.
// Invariants: Host is one of our own names, which stops DNS rebinding. A request with an Origin names our own, and requests that can
// change something must have one, or the key. Without a sign-in the server reveals nothing.
import type { IncomingHttpHeaders } from 'node:http';
import type { Sessions } from './sessions.ts';
import { Refusal } from '../routes/refusal.ts';

export interface Address {
  /** Accepted values of Host: "127.0.0.1:7780". */
  readonly hosts: readonly string[];
  /** The name that browsers are sent to. */
  readonly browser: string;
  readonly scheme: 'http' | 'https';
}

export interface Asked {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** A stream of events or a WebSocket: a request that stays open. */
  readonly stream?: 'sse' | 'socket';
}

export function requireHost(address: Address, headers: IncomingHttpHeaders): void {
  if (address.hosts.includes(headers.host ?? '')) return;
  // The names are not listed: a page under another name could read them.
  throw new Refusal(421, 'request.host', 'This server does not answer under this host name.', {
    hint: 'Open the page with: ags web',
  });
}

/** Only our own page, or a client that is no page, may send the request. */
export function requireOwnOrigin(address: Address, { method, headers, stream }: Asked): void {
  const { origin } = headers;
  const site = headers['sec-fetch-site'];
  const own = address.hosts.map((host) => `${address.scheme}://${host}`);
  // Another port of this machine counts as "same-site", but is not our page.
  const elsewhere = site !== undefined && site !== 'same-origin' && site !== 'none';
  // Browsers always send Origin with requests that can change something and with WebSockets; a script with the key need not. A password in
  // the URL (Basic authentication) does not count as the key.
  const mustSay =
    headers.authorization?.startsWith('Bearer ') !== true &&
    ((method !== 'GET' && method !== 'HEAD') || stream === 'socket');
  const wrong =
    origin === undefined ? mustSay : !own.includes(origin) || origin !== `${address.scheme}://${headers.host}`;
  if (!elsewhere && !wrong) return;
  throw new Refusal(403, 'request.origin', 'This request comes from another web page.', {
    hint: 'Scripts send the key (Authorization: Bearer …) and no Origin.',
  });
}

export function requireSignedIn(sessions: Sessions, headers: IncomingHttpHeaders): void {
  if (isSignedIn(sessions, headers)) return;
  throw new Refusal(401, 'request.sign-in', 'You are not signed in.', { hint: 'Open the page with: ags web' });
}

export function isSignedIn(sessions: Sessions, headers: IncomingHttpHeaders): boolean {
  return hasKey(sessions, headers) || cookies(headers).some((session) => sessions.isSession(session));
}

export function hasKey(sessions: Sessions, { authorization }: IncomingHttpHeaders): boolean {
  const key = /^Bearer ([\w-]{20,200})$/.exec(authorization ?? '')?.[1];
  return key !== undefined && sessions.isKey(key);
}

/** The type must be declared: another page can send a form or plain text without a preflight request, but not JSON. */
export function requireJson({ headers }: Asked): void {
  if (/^application\/json(\s*;\s*charset=utf-8)?$/i.test(headers['content-type'] ?? '')) return;
  throw new Refusal(415, 'request.type', 'The request body must be JSON.', {
    hint: 'Send: Content-Type: application/json',
  });
}

export const COOKIE = 'ags';

function cookies({ cookie }: IncomingHttpHeaders): string[] {
  return (cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${COOKIE}=`))
    .map((pair) => pair.slice(COOKIE.length + 1))
    .slice(0, 4);
}
