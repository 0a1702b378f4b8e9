// protocol/network-rule.ts: a rule of the network as people write it: `github.com`, `*.npmjs.org`, `example.com:8443`,
// `http://example.com`, `GET,HEAD api.example.com/v1/*`. Pure; configuration, flags and live rules all come through here.
// Invariant: a text that is not understood completely is no rule.
import { canonicalHost, hostInUrl } from './host-name.ts';
import type { NetworkRule } from './network.ts';

export type RuleText = Pick<NetworkRule, 'host' | 'port' | 'methods' | 'path'>;

export const RULE_WORDS = 'a host such as github.com, *.npmjs.org, example.com:8443 or GET api.example.com/v1/*';

/** What is wrong with it, as a part of a sentence, or what it means. */
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
  if (wrong !== undefined) return { problem: `${wrong} is not a method of HTTP (${METHODS.join(', ')})` };
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
  // Whoever may reach all of a top-level domain may reach anything.
  if (!name.host.includes('.'))
    return { problem: `*.${name.host} is too wide; name at least two parts after the star` };
  return { host: `*.${name.host}`, port };
}

/** It speaks of some requests only, so that they have to be looked into. */
export function isNarrow({ methods, path }: Pick<NetworkRule, 'methods' | 'path'>): boolean {
  return methods !== null || path !== null;
}

/** The one spelling of a rule: what is written into files and shown. */
export function formatRule(rule: RuleText): string {
  const host = rule.host.startsWith('*.') ? rule.host : hostInUrl(rule.host);
  const port = rule.port === 443 ? '' : `:${rule.port}`;
  return `${rule.methods === null ? '' : `${rule.methods.join(',')} `}${host}${port}${rule.path ?? ''}`;
}

// A server may read %2e or // as something else than it looks like.
function pathProblem(path: string): string | null {
  if (!/^[A-Za-z0-9/._~!$&'()+,;=:@%*-]*$/.test(path)) return 'its path has characters that no path has';
  if (path.slice(0, -1).includes('*')) return '"*" can stand only at the end of its path';
  if (/\/\.{0,2}(\/|$)/.test(path.replace(/\/\*?$/, ''))) return 'its path has an empty part, "." or ".."';
  return path.includes('%') ? 'its path has a "%"; write the character itself' : null;
}
