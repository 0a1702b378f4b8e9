// network/rule-cover.ts: does one network rule cover all of another? Pure.
// Invariant: "yes" only if nothing of the second is left out; when in doubt, no.
import type { NetworkRule } from '../protocol/network.ts';

/** A deny rule that covers all of this allow rule. */
export function findBeating(rules: readonly NetworkRule[], allow: NetworkRule): NetworkRule | undefined {
  return rules.find((rule) => rule.action === 'deny' && coversRule(rule, allow));
}

/** Does the rule concern this host and port, even if only in part? */
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
