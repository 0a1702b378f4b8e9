// config/network/loopback.ts: what to do instead of a rule for this machine's loopback.
import type { NetworkRule } from '../../protocol/network.ts';

/** null: the rule is for another host. */
export function loopbackHint({ action, host, port }: Pick<NetworkRule, 'action' | 'host' | 'port'>): string | null {
  if (action !== 'allow' || (host !== 'localhost' && !host.endsWith('.localhost'))) return null;
  return `A rule for ${host} has no effect: a sandbox has a loopback of its own. For the model of an agent, put its URL into your config.yaml: agents: { <agent>: { url: "http://${host}:${port}" } }. For any other service: --tcp <name>:${port}=${host}:${port}`;
}
