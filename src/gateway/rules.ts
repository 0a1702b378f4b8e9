// gateway/rules.ts: may this sandbox open this connection, make this request? Pure.
// Invariants: no rule, no connection; a deny rule beats every allow rule. A decision takes as many lookups as the name has
// parts, however many rules there are.
import { hostAndPort } from '../protocol/host-name.ts';
import type { NetworkRule } from '../protocol/network.ts';
import { formatRule, isNarrow } from '../protocol/network-rule.ts';

export type Verdict =
  /** `inspect`: the rules name methods or paths, so the gateway must read each request. */
  | { readonly kind: 'allowed'; readonly rule: NetworkRule; readonly inspect: boolean }
  /** `unknown`: no rule covers it, so the user can still be asked. */
  | { readonly kind: 'denied'; readonly reason: string; readonly unknown: boolean };

export interface Rules {
  readonly list: readonly NetworkRule[];
  connect(host: string, port: number): Verdict;
  request(host: string, port: number, method: string, path: string): Verdict;
  /** At least one port of this host may be reached. */
  knows(host: string): boolean;
}

export function compileRules(list: readonly NetworkRule[]): Rules {
  const byHost = new Map<string, NetworkRule[]>();
  for (const rule of list) {
    const rules = byHost.get(rule.host);
    if (rules === undefined) byHost.set(rule.host, [rule]);
    else rules.push(rule);
  }
  const about = (host: string): readonly NetworkRule[] => {
    let found: readonly NetworkRule[] = byHost.get(host) ?? [];
    for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
      const more = byHost.get(`*${host.slice(dot)}`);
      if (more !== undefined) found = [...found, ...more];
    }
    return found;
  };
  return {
    list,
    connect: (host, port) => decideConnection(about(host), host, port),
    request: (host, port, method, path) => decideRequest(about(host), port, method, path),
    knows: (host) => {
      const rules = about(host);
      return rules.some(({ action, port }) => action === 'allow' && isOpen(rules, port));
    },
  };
}

/** A deny rule for one port leaves the other ports open. */
function isOpen(rules: readonly NetworkRule[], port: number): boolean {
  return !rules.some((rule) => deniesAll(rule) && deniesPort(rule, port));
}

function decideConnection(rules: readonly NetworkRule[], host: string, port: number): Verdict {
  const denying = rules.find((rule) => deniesAll(rule) && deniesPort(rule, port));
  if (denying !== undefined) return deniedBy(denying);
  const allowing = rules.filter((rule) => rule.action === 'allow' && rule.port === port);
  const whole = allowing.find((rule) => !isNarrow(rule));
  const rule = whole ?? allowing[0];
  if (rule === undefined) return { kind: 'denied', reason: noRule(rules, host, port), unknown: true };
  const partlyDenied = rules.some((one) => one.action === 'deny' && isNarrow(one) && deniesPort(one, port));
  return { kind: 'allowed', rule, inspect: whole === undefined || partlyDenied };
}

function decideRequest(rules: readonly NetworkRule[], port: number, method: string, path: string): Verdict {
  const denying = rules.find(
    (rule) => rule.action === 'deny' && deniesPort(rule, port) && speaksOf(rule, method, path),
  );
  if (denying !== undefined) return deniedBy(denying);
  const allowing = rules.find((rule) => rule.action === 'allow' && rule.port === port && speaksOf(rule, method, path));
  if (allowing !== undefined) return { kind: 'allowed', rule: allowing, inspect: true };
  return { kind: 'denied', reason: `no rule covers ${method} of this path`, unknown: false };
}

// A deny rule covers every port, unless it names a port other than 443.
function deniesPort(rule: NetworkRule, port: number): boolean {
  return rule.port === 443 || rule.port === port;
}

function deniesAll(rule: NetworkRule): boolean {
  return rule.action === 'deny' && !isNarrow(rule);
}

function speaksOf(rule: NetworkRule, method: string, path: string): boolean {
  return (rule.methods === null || rule.methods.includes(method)) && (rule.path === null || covers(rule.path, path));
}

function covers(pattern: string, path: string): boolean {
  return pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}

function deniedBy(rule: NetworkRule): Verdict {
  return { kind: 'denied', reason: `denied by ${formatRule(rule)} (${rule.origin})`, unknown: false };
}

function noRule(rules: readonly NetworkRule[], host: string, port: number): string {
  const ports = [...new Set(rules.filter((rule) => rule.action === 'allow').map((rule) => rule.port))];
  const others = ports.length === 0 ? '' : `; of this host, port ${ports.join(', ')} is allowed`;
  return `no rule covers ${hostAndPort(host, port)}${others}`;
}
