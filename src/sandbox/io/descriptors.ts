// sandbox/io/descriptors.ts: the descriptors and streams that a sandbox is started with, for all backends.
import type { Listener, SandboxSpec } from '../../protocol/spec.ts';
import { inheritedDescriptors } from '../../lib/process/inherited.ts';
import type { Stdio } from '../backend.ts';

/**
 * Descriptors that the launcher inherits: bwrap's arguments, the filter, bwrap's report, our go signal, and a stdin that is not the
 * terminal.
 */
export const DESCRIPTORS = { args: 3, seccomp: 4, status: 5, go: 6, stdin: 7 } as const;

/** The number of listeners, followed by each of them. */
export function listenerList(listeners: readonly Listener[]): string[] {
  // Node lets other sockets bind the address of a datagram socket too. Below 1024 no program inside may bind.
  for (const { name, protocol, port } of listeners)
    if (protocol === 'udp' && port >= 1024)
      throw new Error(`The listener ${name} could be taken over: ${port} is too high.`);
  return [
    String(listeners.length),
    ...listeners.map(({ protocol, address, port }) => `${protocol},${address},${port}`),
  ];
}

export const SYSTEM_PATH = '/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin:/run/current-system/sw/bin';

export type StdioList = (number | 'pipe' | 'ignore' | 'ipc')[];

/** The stdio list in the order of DESCRIPTORS; Node's channel comes last. */
export function streamList(stdio: Stdio, status: number, network: SandboxSpec['network']): StdioList {
  const separateStdin = stdio.terminal !== null && stdio.stdin !== stdio.terminal;
  return [
    separateStdin ? stdio.terminal : stdio.stdin,
    stdio.stdout,
    stdio.stderr,
    'pipe',
    'pipe',
    status,
    'pipe',
    ...(separateStdin ? [stdio.stdin] : []),
    ...(network.kind === 'gateway' ? (['ipc'] as const) : []),
  ];
}

// node-pty opens the master of a terminal without close-on-exec, and Node cannot set it: the child would inherit it. A descriptor that is
// replaced by another is not inherited; "ignore" leaves a number above 2 as it is.
export function withoutStrangers(stdio: StdioList, nothing: number): StdioList {
  const all = [...stdio];
  for (const fd of inheritedDescriptors()) {
    if (fd < stdio.length) continue;
    while (all.length <= fd) all.push('ignore');
    all[fd] = nothing;
  }
  return all;
}
