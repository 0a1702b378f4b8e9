// gateway/intercept/request-target.ts: may this request pass, and in which form? Its host and path get their canonical spelling.
// Invariant: the path that the rules decide about is the path that is sent. A path that servers read in different ways is
// refused, or, where two readings remain, both must be allowed.
import { canonicalHost, hostAndPort, hostInUrl } from '../../protocol/host-name.ts';
import { headerValues, type RequestHead } from './request-head.ts';
import { type Field } from './head.ts';
import { type LiveSecret, type Rewritten, rewriteRequest, secretProblem } from './request-rewrite.ts';

export interface Place {
  /** The origin's protocol. */
  readonly upstream: 'https' | 'http';
  readonly host: string;
  readonly port: number;
  /** Not empty: a loopback endpoint, where the client names the endpoint and ags sets the host. */
  readonly basePath: string;
  /** No rule depends on the path, so it is sent unchanged. */
  readonly anyPath: boolean;
}

export type Target =
  | { readonly kind: 'target'; readonly path: string; readonly readings: readonly string[]; readonly query: string }
  | { readonly kind: 'refused'; readonly status: 400 | 404 | 421; readonly problem: string };

export function readTarget(head: RequestHead, place: Place): Target {
  const [host = ''] = headerValues(head, 'host');
  if (place.basePath === '' && !isPlace(host, place)) return elsewhere;
  const absolute = /^([A-Za-z]+):\/\/([^/?]*)(.*)$/.exec(head.target);
  if (
    absolute !== null &&
    (place.basePath !== '' || absolute[1]?.toLowerCase() !== place.upstream || !isPlace(absolute[2] ?? '', place))
  ) {
    return elsewhere;
  }
  const local = absolute === null ? head.target : (absolute[3] ?? '').replace(/^(?!\/)/, '/');
  if (!local.startsWith('/')) return refused('its target is not a path');
  const mark = local.indexOf('?');
  const written = mark === -1 ? local : local.slice(0, mark);
  const query = mark === -1 ? '' : local.slice(mark);
  if (local.includes('#')) return refused('its target has a fragment');
  const inside = stripBase(written, place.basePath);
  if (inside === null) return { kind: 'refused', status: 404, problem: 'nothing is served there' };
  if (place.anyPath || PLAIN.test(inside)) return { kind: 'target', path: inside, readings: [inside], query };
  const problem = pathProblem(inside);
  if (problem !== null) return refused(problem);
  const path = inside.replaceAll(/%[0-9a-f]{2}/gi, plainOrUpper);
  return { kind: 'target', path, readings: readingsOf(path), query };
}

/** Only literal characters, and no part that is empty or begins with a dot: every server reads such a path alike. */
const PLAIN = /^(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+\/?$/;

const elsewhere: Target = { kind: 'refused', status: 421, problem: 'it names another host than the connection does' };

// Some servers read %2F as "/", and some cut off the text after a ";" in a part.
function readingsOf(path: string): readonly string[] {
  if (!path.includes('%2F') && !path.includes(';') && !path.includes('%3B')) return [path];
  const decoded = path.replaceAll('%2F', '/');
  const cut = (text: string): string => text.replaceAll(/(?:;|%3B)[^/]*/g, '');
  return [...new Set([path, decoded, cut(path), cut(decoded)])];
}

function refused(problem: string): Target {
  return { kind: 'refused', status: 400, problem };
}

/** In the spelling of a `Host` header. */
export function writtenHost({ upstream, host, port }: Place): string {
  return port === USUAL[upstream] ? hostInUrl(host) : hostAndPort(host, port);
}

const USUAL = { https: 443, http: 80 } as const;

function isPlace(text: string, place: Place): boolean {
  if (text === writtenHost(place)) return true;
  const usual = USUAL[place.upstream];
  const [, name = '', digits] = /^(\[[^\]]*\]|[^:]*)(?::([1-9][0-9]{0,4}))?$/.exec(text) ?? [];
  return canonicalHost(name)?.host === place.host && Number(digits ?? usual) === place.port;
}

function stripBase(path: string, basePath: string): string | null {
  if (basePath === '') return path;
  if (path === basePath) return '/';
  return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : null;
}

function pathProblem(path: string): string | null {
  if (path.includes('\\') || /%5c/i.test(path)) return 'its path has a backslash';
  if (/%(?![0-9a-f]{2})/i.test(path)) return 'its path has a "%" that stands for nothing';
  if (/%[01][0-9a-f]|%7f/i.test(path)) return 'its path has a control character';
  if (/%2e|%25(?:2e|2f|5c)/i.test(path)) return 'its path has a dot or a slash that is written as something else';
  const parts = path.slice(1).split(/\/|%2f/i);
  if (parts.slice(0, -1).includes('')) return 'its path has an empty part';
  // Some servers cut off the text after a ";" before they look at the dots.
  return parts.some((part) => /^\.{1,2}(?:;|$)/.test(part)) ? 'its path has "." or ".." as a part' : null;
}

// %61 is "a" to every server, so "a" is decided about and sent.
function plainOrUpper(written: string): string {
  const character = String.fromCharCode(Number.parseInt(written.slice(1), 16));
  return /[A-Za-z0-9_~-]/.test(character) ? character : written.toUpperCase();
}

interface Rules {
  readonly secrets: readonly LiveSecret[];
  /** null: allowed. */
  decide(method: string, path: string): string | null;
}

type Judged =
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
