// server/sign-in/guard.ts: which requests are listened to at all. Pure.
// Invariants: the name in Host is one of ours (a page cannot come by a name of its own that leads here); whoever says where the request
// comes from says our own address; what can change something says it; nothing is told to whoever has not entered.
import type { IncomingHttpHeaders } from 'node:http';
import type { Entry } from './sessions.ts';
import { Refusal } from '../routes/refusal.ts';

export interface Address {
  /** As they may stand in Host: "127.0.0.1:7780". */
  readonly hosts: readonly string[];
  /** The one of them that browsers are sent to. */
  readonly browser: string;
  readonly scheme: 'http' | 'https';
}

export interface Asked {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** A stream of events or a WebSocket: a request that goes on. */
  readonly stream?: 'sse' | 'socket';
}

export function requireHost(address: Address, headers: IncomingHttpHeaders): void {
  if (address.hosts.includes(headers.host ?? '')) return;
  // Which these are is not said: a page that came by another name could read it.
  throw new Refusal(421, 'request.host', 'This server answers under its own names only.', {
    hint: 'Open it with: ags web',
  });
}

/** A page of ours, or no page at all. */
export function requireOwnOrigin(address: Address, { method, headers, stream }: Asked): void {
  const { origin } = headers;
  const site = headers['sec-fetch-site'];
  const own = address.hosts.map((host) => `${address.scheme}://${host}`);
  // Another port of this machine is the "same site", and still not us.
  const elsewhere = site !== undefined && site !== 'same-origin' && site !== 'none';
  // Browsers always say it where something can change, and for a WebSocket; a script with the key need not. A password in an address is no key.
  const mustSay =
    headers.authorization?.startsWith('Bearer ') !== true &&
    ((method !== 'GET' && method !== 'HEAD') || stream === 'socket');
  const wrong =
    origin === undefined ? mustSay : !own.includes(origin) || origin !== `${address.scheme}://${headers.host}`;
  if (!elsewhere && !wrong) return;
  throw new Refusal(403, 'request.origin', 'This request comes from another page.', {
    hint: 'Scripts send the key (Authorization: Bearer …) and no Origin.',
  });
}

export function requireEntered(entry: Entry, headers: IncomingHttpHeaders): void {
  if (hasEntered(entry, headers)) return;
  throw new Refusal(401, 'request.sign-in', 'You have not entered here yet.', { hint: 'Open it with: ags web' });
}

export function hasEntered(entry: Entry, headers: IncomingHttpHeaders): boolean {
  return hasKey(entry, headers) || cookies(headers).some((session) => entry.isSession(session));
}

export function hasKey(entry: Entry, { authorization }: IncomingHttpHeaders): boolean {
  const key = /^Bearer ([\w-]{20,200})$/.exec(authorization ?? '')?.[1];
  return key !== undefined && entry.isKey(key);
}

/** JSON, and said so: a form or a plain text of another page is neither. */
export function requireJson({ headers }: Asked): void {
  if (/^application\/json(\s*;\s*charset=utf-8)?$/i.test(headers['content-type'] ?? '')) return;
  throw new Refusal(415, 'request.type', 'The body of a request is JSON.', {
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
