// gateway/intercept/judge.ts: may this request pass, and in which form? Pure except for the rules it calls.
// Invariant: the rules decide about exactly the request that is sent.
import type { Field } from './head.ts';
import type { RequestHead } from './request-head.ts';
import { type LiveSecret, type Rewritten, rewriteRequest, secretProblem } from './request-rewrite.ts';
import { type Place, readTarget, writtenHost } from './request-target.ts';

export interface Rules {
  readonly secrets: readonly LiveSecret[];
  /** null: allowed. */
  decide(method: string, path: string): string | null;
}

export type Judged =
  | { path: string; status: number; sentence: string }
  | { path: string; request: Rewritten; upgrade: boolean };

export function judge(at: Place & Rules, head: RequestHead): Judged {
  const { method } = head;
  const say = (path: string, status: number, problem: string): Judged => ({
    path,
    status,
    sentence: `ags refuses this request: ${problem}.`,
  });
  // TRACE would echo a request with its secrets to the client.
  const upper = method.toUpperCase();
  if (NEVER.includes(upper)) return say('-', 405, `${method} is not served here`);
  // To the rules "delete" differs from DELETE; to some servers it does not.
  if (method !== upper) return say('-', 400, 'its method is not in upper case');
  if (!at.anyPath && head.headers.some(isOverride)) {
    return say('-', 400, 'a header names another method or path than its first line');
  }
  const target = readTarget(head, at);
  if (target.kind === 'refused') return say('-', target.status, target.problem);
  const { path } = target;
  for (const reading of target.readings) {
    const sentence = at.decide(method, reading);
    if (sentence !== null) return { path, status: 403, sentence };
  }
  const problem = secretProblem(at.secrets);
  if (problem !== null) return say(path, 502, problem);
  // Any other protocol is ignored, as HTTP allows: the request is answered without an upgrade.
  const upgrade =
    head.upgrade === 'websocket' && method === 'GET' && head.body.kind === 'none' && head.version === '1.1';
  const host = writtenHost(at);
  const request = rewriteRequest(head, { target: path + target.query, host, secrets: at.secrets, upgrade });
  return { path, request, upgrade };
}

const NEVER: readonly string[] = ['TRACE', 'TRACK', 'CONNECT'];

/** Frameworks obey these headers, so the rules would have decided about another request. */
const OVERRIDES: readonly string[] = [
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-url',
  'x-rewrite-url',
];

function isOverride([name]: Field): boolean {
  return (name[0] === 'x' || name[0] === 'X') && OVERRIDES.includes(name.toLowerCase());
}
