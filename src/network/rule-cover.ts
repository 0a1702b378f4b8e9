// network/rule-cover.ts: does one rule of the network say all that another one says? Pure.
// Invariant: "yes" only if nothing that the second covers is left out; when in doubt, no.
import type { NetworkRule } from '../protocol/network.ts';

/** The deny that leaves nothing of this allow. */
export function findBeating(rules: readonly NetworkRule[], allow: NetworkRule): NetworkRule | undefined {
  return rules.find((rule) => rule.action === 'deny' && coversRule(rule, allow));
}

/** Is there an opinion about this host already, if only about a part of it? */
export function mentions(rule: NetworkRule, host: string, port: number): boolean {
  return rule.port === port && coversHost(rule.host, host);
}

export function coversRule(wide: NetworkRule, narrow: NetworkRule): boolean {
  return (
    mentions(wide, narrow.host, narrow.port) &&
    coversMethods(wide.methods, narrow.methods) &&
    coversPath(wide.path, narrow.path)
  );
}

function coversHost(wide: string, narrow: string): boolean {
  if (wide === narrow) return true;
  return wide.startsWith('*.') && narrow.replace(/^\*\./, '').endsWith(wide.slice(1));
}

function coversMethods(wide: NetworkRule['methods'], narrow: NetworkRule['methods']): boolean {
  return wide === null || (narrow !== null && narrow.every((method) => wide.includes(method)));
}

function coversPath(wide: string | null, narrow: string | null): boolean {
  if (wide === null || wide === narrow) return true;
  return narrow !== null && wide.endsWith('*') && narrow.startsWith(wide.slice(0, -1));
}
