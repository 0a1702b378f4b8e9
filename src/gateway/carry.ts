// gateway/carry.ts: carry an allowed connection, either as an unchanged tunnel or request by request where a rule or a secret
// needs it.
// Invariant: TLS ends here only for hosts that a secret or a rule about requests names; all other TLS passes through.
import { connect, type Socket } from 'node:net';
import { hostAndPort } from '../protocol/host-name.ts';
import { httpAnswer, policySentence, sayAndClose, type Remedy } from './front/answers.ts';
import type { Authority } from './intercept/certificate.ts';
import type { Carry } from './front/front.ts';
import type { InterceptInput, LiveSecret } from './intercept/intercept.ts';
import type { ModelMeter } from './meter/model-meter.ts';
import { GONE, type Opened, type Authorize, type Permission } from './authorize.ts';
import { relayTunnel, readHello } from './tunnel.ts';
import type { Connection } from './connection.ts';

type Granted = Extract<Permission, { kind: 'granted' }>;

export interface CarryInput {
  readonly authorize: Authorize;
  readonly secretsFor: (host: string, port: number) => readonly LiveSecret[];
  /** null: this sandbox trusts only public authorities, so the gateway cannot read its requests. */
  readonly authority: Authority | null;
  readonly roots: () => readonly string[];
  readonly settled: (connection: Connection) => void;
  readonly isToken: Carry['isToken'];
  readonly remedy: Remedy;
  readonly meter: ModelMeter | null;
}

const PATH_SHOWN = 200;

const UNPREPARED =
  'its rule needs a look into the requests, for which this sandbox is not prepared: start it again to use the rule';

export function createCarry(input: CarryInput): Carry & {
  /** Requests to one host over an unencrypted connection from inside; `base` is a prefix of their paths. */
  endpoint(connection: Connection, granted: Granted, first: Buffer, base: string, secrets: readonly LiveSecret[]): void;
} {
  const { authorize } = input;

  async function tunnel(...[connection, target, port, first, answer]: Parameters<Carry['tunnel']>): Promise<void> {
    const permission = await authorize.permit(connection, target, port);
    if (permission.kind === 'refused') return answer.refused(permission.status, permission.sentence);
    const secrets = input.secretsFor(target.host, port);
    const { authority } = input;
    // In a tunnel to port 80 each request could name another host.
    if (port === 80) {
      answer.granted();
      return inspect(connection, permission, first, { upstream: 'http', secrets: [] });
    }
    if (permission.verdict.inspect || secrets.length > 0) {
      if (authority === null) {
        connection.finish('denied', UNPREPARED);
        return answer.refused(403, policySentence(hostAndPort(target.host, port), UNPREPARED, input.remedy));
      }
      answer.granted();
      return readHello(
        connection,
        first,
        (problem) => drop(connection, problem),
        (bytes) => inspect(connection, permission, bytes, { upstream: 'https', secrets, authority }),
      );
    }
    const opened = await authorize.open(connection, permission);
    if (opened.kind === 'refused') return answer.refused(opened.status, opened.sentence);
    if (gone(connection, opened.socket)) return;
    answer.granted();
    relayTunnel(connection, opened, first, reasonOf(permission));
  }

  async function plainHttp(...[connection, target, port, first]: Parameters<Carry['plainHttp']>): Promise<void> {
    const permission = await authorize.permit(connection, target, port);
    if (permission.kind === 'refused')
      return sayAndClose(connection.socket, httpAnswer(permission.status, permission.sentence));
    inspect(connection, permission, first, { upstream: 'http', secrets: [], single: connection.by === 'http' });
  }

  function inspect(
    connection: Connection,
    granted: Granted,
    first: Buffer,
    how: Pick<InterceptInput, 'upstream' | 'secrets'> & { authority?: Authority; base?: string; single?: boolean },
  ): void {
    const { host, port } = connection;
    const reason = reasonOf(granted);
    const decide = (method: string, path: string): string | null => {
      if (!granted.verdict.inspect) return null;
      const verdict = granted.rules().request(host, port, method, path);
      return verdict.kind === 'allowed' ? null : policySentence(hostAndPort(host, port), verdict.reason, input.remedy);
    };
    let unopened = false;
    connection.carried = reason;
    // Loaded on demand: most sandboxes never need TLS interception.
    const work = import('./intercept/intercept.ts')
      .then(({ intercept }) =>
        intercept({
          client: connection.socket,
          first,
          upstream: how.upstream,
          host,
          port,
          authority: how.authority ?? null,
          roots: input.roots(),
          async dial() {
            const opened: Opened = await authorize.open(connection, granted, openPlainly);
            unopened = opened.kind === 'refused';
            return opened.kind === 'open'
              ? opened
              : { kind: 'refused', status: opened.status, reason: opened.sentence };
          },
          decide,
          meter: input.meter,
          secrets: how.secrets,
          basePath: how.base ?? '',
          anyPath: !granted.verdict.inspect,
          single: how.single === true,
          count(direction, bytes) {
            if (direction === 'out') return connection.out(bytes);
            connection.in(bytes);
            return true;
          },
          onRequest({ method, path, status, refused, bytesOut, bytesIn, ms }) {
            // The failed open has already been logged.
            if (unopened) return void (unopened = false);
            const why = refused ?? (status === null ? 'no answer came' : `${reason}; answered ${status}`);
            const ours = status === null || (refused !== null && status >= 500);
            connection.request({
              method,
              path: path.slice(0, PATH_SHOWN),
              verdict: ours ? 'failed' : refused === null ? 'allowed' : 'denied',
              reason: why,
              bytesOut,
              bytesIn,
              ms,
            });
          },
        }),
      )
      .then(() => connection.finish('allowed', reason));
    connection.guard(work);
  }

  return {
    tunnel: (...args) => args[0].guard(tunnel(...args)),
    plainHttp: (...args) => args[0].guard(plainHttp(...args)),
    settled: input.settled,
    isToken: input.isToken,
    endpoint: (connection, granted, first, base, secrets) =>
      inspect(connection, granted, first, { upstream: granted.own?.tls === false ? 'http' : 'https', secrets, base }),
  };
}

/** Interception and HTTP parsing read the socket in their own way. */
function openPlainly(address: string, port: number): Socket {
  return connect({ host: address, port, allowHalfOpen: true, noDelay: true });
}

export function reasonOf({ verdict }: Granted): string {
  return `allowed by ${verdict.rule.host} (${verdict.rule.origin})`;
}

/** True if the client disconnected while the origin was being dialled. */
export function gone(connection: Connection, origin: Socket): boolean {
  if (!connection.socket.destroyed) return false;
  origin.destroy();
  connection.finish('failed', GONE);
  return true;
}

function drop(connection: Connection, problem: string): void {
  connection.finish('denied', problem);
  connection.socket.destroy();
}
