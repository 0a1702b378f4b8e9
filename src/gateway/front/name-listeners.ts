// gateway/front/name-listeners.ts: the doors for programs that know nothing of a proxy. They ask for a name, get an address of loopback that
// stands for it, and connect to that.
// Invariant: the name that stands behind the address and the name that is spoken must be the same.
import { hostAndPort, readBareHost } from '../../protocol/host-name.ts';
import { httpAnswer, sayAndClose } from './answers.ts';
import { readFirst } from './first-bytes.ts';
import { readAuthority, refuse, type Travel } from './front.ts';
import type { BoundSecret } from '../gateway.ts';
import type { Names } from './names.ts';
import type { Passages } from '../authorize.ts';
import { headerValues, readRequestHead, type RequestHead } from '../intercept/request-head.ts';
import type { createTravel } from '../carry.ts';
import type { Visit } from '../connection.ts';

/** A fatal alert, "access denied": what TLS has to say no. */
const ACCESS_DENIED = Buffer.from([0x15, 3, 3, 0, 2, 2, 49]);

export function serveTls(visit: Visit, names: Names, travel: Travel): void {
  const host = nameBehind(visit, names);
  if (host === null) return stray(visit);
  travel.settled(visit);
  travel.tunnel(visit, { kind: 'name', host }, 443, Buffer.alloc(0), {
    granted: () => undefined,
    refused: () => sayAndClose(visit.socket, ACCESS_DENIED),
  });
}

export function serveWeb(visit: Visit, names: Names, travel: Travel): void {
  const host = nameBehind(visit, names);
  if (host === null) return stray(visit);
  readHead(visit, (head, bytes) => {
    const named = readAuthority(headerValues(head, 'host')[0] ?? '');
    if (named?.name.host !== host || (named.port ?? 80) !== 80)
      return refuse(visit, 421, 'its Host is not the host it connected to');
    travel.settled(visit);
    travel.plainHttp(visit, { kind: 'name', host }, 80, bytes);
  });
}

/** `http://127.0.0.1:3129/<name of the secret>/...` stands for `https://<its host>/...`. */
export function serveEndpoint(
  visit: Visit,
  secrets: readonly BoundSecret[],
  passages: Passages,
  travel: ReturnType<typeof createTravel>,
): void {
  readHead(visit, (head, bytes) => {
    const name = /^\/([A-Za-z0-9_-]+)(?:[/?]|$)/.exec(head.target)?.[1];
    const bound = secrets.filter((secret) => secret.viaEndpoint && secret.name === name);
    const [first] = bound;
    if (first === undefined) return refuse(visit, 404, 'no endpoint has this name; they are listed by: ags net rules');
    travel.settled(visit);
    const target = readBareHost(first.host);
    if (target === null) return refuse(visit, 502, `${hostAndPort(first.host, first.port)} is not a host`);
    const work = passages.permit(visit, target, first.port).then((permission) => {
      if (permission.kind === 'refused')
        return sayAndClose(visit.socket, httpAnswer(permission.status, permission.sentence));
      travel.endpoint(visit, permission, bytes, `/${first.name}`, bound);
    });
    visit.guard(work);
  });
}

/** The first request of a connection that speaks nothing but HTTP; `bytes` begin with it. */
function readHead(visit: Visit, serve: (head: RequestHead, bytes: Buffer) => void): void {
  readFirst(visit.socket, Buffer.alloc(0), (bytes, seen) => {
    const result = readRequestHead(bytes, seen);
    if (result.kind === 'more') return null;
    if (result.kind === 'bad') return () => refuse(visit, result.status, result.problem);
    return () => serve(result.head, bytes);
  });
}

function nameBehind(visit: Visit, names: Names): string | null {
  return names.nameOf(visit.socket.localAddress ?? '') ?? null;
}

function stray(visit: Visit): void {
  visit.finish('denied', 'no allowed host has this address');
  visit.socket.destroy();
}
