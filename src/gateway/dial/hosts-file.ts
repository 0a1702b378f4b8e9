// gateway/dial/hosts-file.ts: names from this machine's hosts file.
// Invariant: localhost and names below it are loopback, whatever the file says.
import { readFileSync, statSync } from 'node:fs';
import { isIP, isIPv4 } from 'node:net';

export interface HostsFile {
  /** IPv4 first; empty: the file does not name this host. */
  lookup(host: string): readonly string[];
}

export function createHostsFile(input: { readonly path: string; readonly now: () => number }): HostsFile {
  let names: ReadonlyMap<string, readonly string[]> = new Map();
  let version = '';
  let checkedAt = -Infinity;

  function refresh(): void {
    const at = input.now();
    if (at - checkedAt < 1000) return;
    checkedAt = at;
    const stat = statSync(input.path, { bigint: true, throwIfNoEntry: false });
    const current = stat?.isFile() === true ? `${stat.dev},${stat.ino},${stat.size},${stat.mtimeNs}` : '';
    if (current === version) return;
    version = current;
    names = stat !== undefined && current !== '' && stat.size <= MOST_BYTES ? parse(input.path) : new Map();
  }

  return {
    lookup(host) {
      if (host === 'localhost' || host.endsWith('.localhost')) return ['127.0.0.1', '::1'];
      refresh();
      return names.get(host) ?? [];
    },
  };
}

function parse(path: string): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const [address = '', ...hosts] = line
      .replace(/#.*/, '')
      .split(/\s+/)
      .filter((word) => word !== '');
    if (isIP(address) === 0) continue;
    for (const host of hosts) {
      const name = host.toLowerCase().replace(/\.$/, '');
      const addresses = names.get(name);
      if (addresses === undefined) names.set(name, [address]);
      else if (!addresses.includes(address) && addresses.length < 16) addresses.push(address);
    }
  }
  for (const addresses of names.values()) addresses.sort((a, b) => Number(isIPv4(b)) - Number(isIPv4(a)));
  return names;
}

// Ad-blocking lists in this file reach some megabytes.
const MOST_BYTES = 32 * 1024 * 1024;
