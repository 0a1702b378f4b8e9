// protocol/network-rule.ts: parses a network rule as people write it: `github.com`, `*.npmjs.org`, `example.com:8443`,
// `http://example.com`, `GET,HEAD api.example.com/v1/*`. Pure; configuration, flags and live rules all use it.
// Invariant: a text that cannot be parsed completely is no rule.
import { canonicalHost, hostInUrl } from './host-name.ts';
import type { NetworkRule } from './network.ts';

export type RuleText = Pick<NetworkRule, 'host' | 'port' | 'methods' | 'path'>;

export const RULE_WORDS = 'a host such as github.com, *.npmjs.org, example.com:8443 or GET api.example.com/v1/*';

/** The parsed rule, or its problem as part of a sentence. */
export function parseRule(text: string): RuleText | { readonly problem: string } {
  const match = /^(?:([A-Za-z]+(?:,[A-Za-z]+)*) +)?(?:(https?):\/\/)?([^/\s]*)(\/\S*)?$/.exec(text);
  if (match === null) return { problem: 'it is not a host' };
  const [, methods, scheme, authority = '', path] = match;
  const place = parsePlace(authority);
  if ('problem' in place) return place;
  const wrong = methods
    ?.toUpperCase()
    .split(',')
    .find((method) => !METHODS.includes(method));
  if (wrong !== undefined) return { problem: `${wrong} is not an HTTP method (${METHODS.join(', ')})` };
  if (path !== undefined) {
    const problem = pathProblem(path);
    if (problem !== null) return { problem };
  }
  return {
    host: place.host,
    port: place.port ?? (scheme === 'http' ? 80 : 443),
    methods: methods?.toUpperCase().split(',') ?? null,
    path: path === undefined || path === '/' || path === '/*' ? null : path,
  };
}

export const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** A host or `*.suffix`, with or without a port. */
export function parsePlace(text: string): { host: string; port: number | null } | { problem: string } {
  const match = /^(\*\.)?(\[[^\]]*\]|[^:[\]]*)(?::(\d{1,5}))?$/.exec(text);
  if (match === null || match[2] === '') return { problem: 'it is not a host' };
  const [, star, written = '', digits] = match;
  const port = digits === undefined ? null : Number(digits);
  if (port !== null && (port < 1 || port > 65_535)) return { problem: `${digits} is not a port` };
  const name = canonicalHost(written);
  if (name === null) return { problem: `${written} is not the name or address of a host` };
  if (star === undefined) return { host: name.host, port };
  if (name.kind === 'ip') return { problem: 'an address has nothing below it' };
  // A rule for a whole top-level domain would allow almost anything.
  if (!name.host.includes('.'))
    return { problem: `*.${name.host} is too wide; name at least two parts after the star` };
  return { host: `*.${name.host}`, port };
}

/** Whether the rule covers only some requests, so that the gateway must read them. */
export function isNarrow({ methods, path }: Pick<NetworkRule, 'methods' | 'path'>): boolean {
  return methods !== null || path !== null;
}

/** The one spelling of a rule, for files and output. */
export function formatRule(rule: RuleText): string {
  const host = rule.host.startsWith('*.') ? rule.host : hostInUrl(rule.host);
  const port = rule.port === 443 ? '' : `:${rule.port}`;
  return `${rule.methods === null ? '' : `${rule.methods.join(',')} `}${host}${port}${rule.path ?? ''}`;
}

// Servers interpret %2e and // differently.
function pathProblem(path: string): string | null {
  if (!/^[A-Za-z0-9/._~!$&'()+,;=:@%*-]*$/.test(path)) return 'its path has characters that are not allowed in a path';
  if (path.slice(0, -1).includes('*')) return '"*" is allowed only at the end of its path';
  if (/\/\.{0,2}(\/|$)/.test(path.replace(/\/\*?$/, ''))) return 'its path has an empty part, "." or ".."';
  return path.includes('%') ? 'its path has a "%"; write the character itself' : null;
}
