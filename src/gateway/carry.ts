// gateway/carry.ts: take a visitor where the rules allow: through a tunnel as it is, or request by request where a rule or a
// secret needs that.
// Invariant: TLS is ended here only for hosts that a rule about requests or a secret names; every other is passed through.
import { connect, type Socket } from 'node:net';
import { hostAndPort } from '../protocol/host-name.ts';
import { httpAnswer, policySentence, sayAndClose, type Remedy } from './front/answers.ts';
import type { Authority } from './intercept/certificate.ts';
import type { Travel } from './front/front.ts';
import type { InterceptInput, LiveSecret } from './intercept/intercept.ts';
import { GONE, type Opened, type Passages, type Permission } from './authorize.ts';
import type { Rules } from './rules.ts';
import { carry, readHello } from './tunnel.ts';
import type { Visit } from './connection.ts';

type Granted = Extract<Permission, { kind: 'granted' }>;

export interface TravelInput {
  readonly passages: Passages;
  readonly rules: () => Rules;
  readonly secretsFor: (host: string, port: number) => readonly LiveSecret[];
  /** null: this sandbox trusts nobody but the world's authorities, so nothing can be looked into. */
  readonly authority: Authority | null;
  readonly roots: () => readonly string[];
  readonly settled: (visit: Visit) => void;
  readonly isToken: Travel['isToken'];
  readonly remedy: Remedy;
}

const PATH_SHOWN = 200;

const UNPREPARED =
  'its rule needs a look into the requests, for which this sandbox is not prepared: start it again to use the rule';

export function createTravel(input: TravelInput): Travel & {
  /** Requests for one host over a connection that is in clear here; `base` is a prefix of their paths. */
  endpoint(visit: Visit, granted: Granted, first: Buffer, base: string, secrets: readonly LiveSecret[]): void;
} {
  const { passages } = input;

  async function tunnel(...[visit, target, port, first, answer]: Parameters<Travel['tunnel']>): Promise<void> {
    const permission = await passages.permit(visit, target, port);
    if (permission.kind === 'refused') return answer.refused(permission.status, permission.sentence);
    const secrets = input.secretsFor(target.host, port);
    const { authority } = input;
    // In a tunnel to port 80 the host of each request could be another one.
    if (port === 80) {
      answer.granted();
      return inspect(visit, permission, first, { upstream: 'http', secrets: [] });
    }
    if (permission.verdict.inspect || secrets.length > 0) {
      if (authority === null) {
        visit.finish('denied', UNPREPARED);
        return answer.refused(403, policySentence(hostAndPort(target.host, port), UNPREPARED, input.remedy));
      }
      answer.granted();
      return readHello(
        visit,
        first,
        (problem) => drop(visit, problem),
        (bytes) => inspect(visit, permission, bytes, { upstream: 'https', secrets, authority }),
      );
    }
    const opened = await passages.open(visit, permission);
    if (opened.kind === 'refused') return answer.refused(opened.status, opened.sentence);
    if (gone(visit, opened.socket)) return;
    answer.granted();
    carry(visit, opened, first, reasonOf(permission));
  }

  async function plainHttp(...[visit, target, port, first]: Parameters<Travel['plainHttp']>): Promise<void> {
    const permission = await passages.permit(visit, target, port);
    if (permission.kind === 'refused')
      return sayAndClose(visit.socket, httpAnswer(permission.status, permission.sentence));
    inspect(visit, permission, first, { upstream: 'http', secrets: [], single: visit.by === 'http' });
  }

  function inspect(
    visit: Visit,
    granted: Granted,
    first: Buffer,
    how: Pick<InterceptInput, 'upstream' | 'secrets'> & { authority?: Authority; base?: string; single?: boolean },
  ): void {
    const { host, port } = visit;
    const reason = reasonOf(granted);
    const decide = (method: string, path: string): string | null => {
      if (!granted.verdict.inspect) return null;
      const verdict = input.rules().request(host, port, method, path);
      return verdict.kind === 'allowed' ? null : policySentence(hostAndPort(host, port), verdict.reason, input.remedy);
    };
    let unopened = false;
    visit.carried = reason;
    // What ends TLS is loaded when it is needed: most sandboxes never do.
    const work = import('./intercept/intercept.ts')
      .then(({ intercept }) =>
        intercept({
          client: visit.socket,
          first,
          upstream: how.upstream,
          host,
          port,
          authority: how.authority ?? null,
          roots: input.roots(),
          async dial() {
            const opened: Opened = await passages.open(visit, granted, openPlainly);
            unopened = opened.kind === 'refused';
            return opened.kind === 'open'
              ? opened
              : { kind: 'refused', status: opened.status, reason: opened.sentence };
          },
          decide,
          secrets: how.secrets,
          basePath: how.base ?? '',
          anyPath: !granted.verdict.inspect,
          single: how.single === true,
          count(direction, bytes) {
            if (direction === 'out') return visit.out(bytes);
            visit.in(bytes);
            return true;
          },
          onRequest({ method, path, status, refused, bytesOut, bytesIn, ms }) {
            // What could not be opened has been written down as it was tried.
            if (unopened) return void (unopened = false);
            const why = refused ?? (status === null ? 'no answer came' : `${reason}; answered ${status}`);
            const ours = status === null || (refused !== null && status >= 500);
            visit.request({
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
      .then(() => visit.finish('allowed', reason));
    visit.guard(work);
  }

  return {
    tunnel: (...args) => args[0].guard(tunnel(...args)),
    plainHttp: (...args) => args[0].guard(plainHttp(...args)),
    settled: input.settled,
    isToken: input.isToken,
    endpoint: (visit, granted, first, base, secrets) =>
      inspect(visit, granted, first, { upstream: 'https', secrets, base }),
  };
}

/** What ends TLS, or reads HTTP, reads in its own way. */
function openPlainly(address: string, port: number): Socket {
  return connect({ host: address, port, allowHalfOpen: true, noDelay: true });
}

export function reasonOf({ verdict }: Granted): string {
  return `allowed by ${verdict.rule.host} (${verdict.rule.origin})`;
}

/** The client did not wait. */
export function gone(visit: Visit, origin: Socket): boolean {
  if (!visit.socket.destroyed) return false;
  origin.destroy();
  visit.finish('failed', GONE);
  return true;
}

function drop(visit: Visit, problem: string): void {
  visit.finish('denied', problem);
  visit.socket.destroy();
}
