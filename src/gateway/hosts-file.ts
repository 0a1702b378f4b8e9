// gateway/hosts-file.ts: the names that this machine's own hosts file gives addresses to.
// Invariant: localhost and what is below it is loopback whatever the file says.
export interface HostsFile {
  /** In the order of the file; empty: it names no such host. */
  lookup(host: string): readonly string[];
}

export function createHostsFile(_input: { readonly path: string; readonly now: () => number }): HostsFile {
  throw new Error('not yet');
}
