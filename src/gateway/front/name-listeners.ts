// gateway/front/name-listeners.ts: listeners for programs that do not use the proxy. Such a program looks a
// name up, gets a synthetic address for it, and connects to that address.
// Invariant: the name behind the address and the name in the TLS greeting or Host header must be the same.
import { hostAndPort, readBareHost } from '../../protocol/host-name.ts';
import { httpAnswer, sayAndClose } from './answers.ts';
import { readFirst } from './first-bytes.ts';
import { readAuthority, refuse, type Carry } from './front.ts';
import type { BoundSecret } from '../values.ts';
import type { Names } from './names.ts';
import type { Authorize } from '../authorize.ts';
import { headerValues, readRequestHead, type RequestHead } from '../intercept/request-head.ts';
import type { createCarry } from '../carry.ts';
import type { Connection } from '../connection.ts';

/** A fatal TLS alert, "access denied". */
const ACCESS_DENIED = Buffer.from([0x15, 3, 3, 0, 2, 2, 49]);

export function serveTls(connection: Connection, names: Names, carry: Carry): void {
  const host = nameBehind(connection, names);
  if (host === null) return denyUnknown(connection);
  carry.settled(connection);
  carry.tunnel(connection, { kind: 'name', host }, 443, Buffer.alloc(0), {
    granted: () => undefined,
    refused: () => sayAndClose(connection.socket, ACCESS_DENIED),
  });
}

export function serveWeb(connection: Connection, names: Names, carry: Carry): void {
  const host = nameBehind(connection, names);
  if (host === null) return denyUnknown(connection);
  readHead(connection, (head, bytes) => {
    const named = readAuthority(headerValues(head, 'host')[0] ?? '');
    if (named?.name.host !== host || (named.port ?? 80) !== 80)
      return refuse(connection, 421, 'its Host is not the host it connected to');
    carry.settled(connection);
    carry.plainHttp(connection, { kind: 'name', host }, 80, bytes);
  });
}

/** `http://127.0.0.1:3129/<name of the secret>/...` leads to `https://<its host>/...`, or to a model endpoint of the user's own. */
export function serveEndpoint(
  connection: Connection,
  secrets: readonly BoundSecret[],
  authorize: Authorize,
  carry: ReturnType<typeof createCarry>,
): void {
  readHead(connection, (head, bytes) => {
    const name = /^\/([A-Za-z0-9_-]+)(?:[/?]|$)/.exec(head.target)?.[1];
    const bound = secrets.filter((secret) => secret.viaEndpoint && secret.name === name);
    const [first] = bound;
    if (first === undefined)
      return refuse(connection, 404, 'no endpoint has this name; they are listed by: ags net rules');
    carry.settled(connection);
    const target = readBareHost(first.host);
    if (target === null) return refuse(connection, 502, `${hostAndPort(first.host, first.port)} is not a host`);
    const { own } = first;
    const asked =
      own === undefined
        ? authorize.permit(connection, target, first.port)
        : authorize.permitOwn(connection, target, first.port, own);
    const work = asked.then((permission) => {
      if (permission.kind === 'refused')
        return sayAndClose(connection.socket, httpAnswer(permission.status, permission.sentence));
      const values = bound.filter(({ keyless }) => keyless !== true);
      carry.endpoint(connection, permission, bytes, `/${first.name}`, values);
    });
    connection.guard(work);
  });
}

/** Reads the first request of an HTTP connection; `bytes` begin with it. */
function readHead(connection: Connection, serve: (head: RequestHead, bytes: Buffer) => void): void {
  readFirst(connection.socket, Buffer.alloc(0), (bytes, seen) => {
    const result = readRequestHead(bytes, seen);
    if (result.kind === 'more') return null;
    if (result.kind === 'bad') return () => refuse(connection, result.status, result.problem);
    return () => serve(result.head, bytes);
  });
}

function nameBehind(connection: Connection, names: Names): string | null {
  return names.nameOf(connection.socket.localAddress ?? '') ?? null;
}

function denyUnknown(connection: Connection): void {
  connection.finish('denied', 'no allowed host has this address');
  connection.socket.destroy();
}
