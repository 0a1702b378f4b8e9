// sandbox/remote/protection.ts: verifies a remote container. Its /proc cannot be read from here, so our gate, its first process, reports
// what the kernel says, and the engine reports the container's configuration. Both must be right. Pure.
import type { SandboxSpec } from '../../protocol/spec.ts';
import { keptBy, misplacedMount, strayInterfaces } from '../container/protection.ts';

/** The missing protection, as part of a sentence; null: none. `report` comes from the gate, `inspected` from the engine. */
export function remoteUnprotected(report: Buffer, inspected: unknown, spec: SandboxSpec): string | null {
  const words = readWords(report);
  if (words === null) return 'its report was incomplete';
  const [pid, status = '', mountinfo = '', devices = '', ...namespaces] = words;
  if (pid !== '1') return 'it saw the processes of its machine';
  const interfaces = strayInterfaces(devices);
  if (interfaces.length > 0) return `it had a network of its machine (${interfaces.join(', ')})`;
  if (namespaces.length !== 6 || namespaces.some((name) => !/^[a-z]+:\[\d+\]$/.test(name)))
    return 'its report was incomplete';
  return keptBy(status, spec) ?? misplacedMount(mountinfo, spec) ?? wronglyBuilt(inspected, spec);
}

function readWords(report: Buffer): string[] | null {
  const words: string[] = [];
  for (let at = 0; at < report.length;) {
    if (at + 4 > report.length) return null;
    const size = report.readUInt32BE(at);
    if (at + 4 + size > report.length) return null;
    words.push(report.toString('utf8', at + 4, at + 4 + size));
    at += 4 + size;
  }
  return words;
}

interface HostConfig {
  readonly Privileged?: unknown;
  readonly PidMode?: unknown;
  readonly IpcMode?: unknown;
  readonly UTSMode?: unknown;
  readonly UsernsMode?: unknown;
  readonly CgroupnsMode?: unknown;
  readonly NetworkMode?: unknown;
  readonly ReadonlyRootfs?: unknown;
  readonly CapAdd?: readonly string[] | null;
  readonly Devices?: readonly unknown[] | null;
  readonly Memory?: unknown;
  readonly PidsLimit?: unknown;
}

/** From inside, a shared namespace looks like a private one. */
function wronglyBuilt(inspected: unknown, { limits, network }: SandboxSpec): string | null {
  const config = (inspected as { HostConfig?: HostConfig } | null)?.HostConfig;
  if (config === undefined) return 'the engine did not report how it was built';
  if (config.Privileged !== false || (config.CapAdd?.length ?? 0) > 0) return 'it kept privileges (capabilities)';
  for (const [mode, wanted] of [
    ['PidMode', ''],
    ['IpcMode', 'none'],
    ['UTSMode', ''],
    ['UsernsMode', ''],
    ['CgroupnsMode', 'private'],
  ] as const)
    if (config[mode] !== wanted) return `it shared namespaces of its machine (${mode})`;
  const joined = network.kind === 'gateway' ? /^container:[0-9a-f]{64}$/ : /^none$/;
  if (!joined.test(String(config.NetworkMode))) return 'it had a network of its machine';
  if (config.ReadonlyRootfs !== true) return 'its image could be written';
  if ((config.Devices?.length ?? 0) > 0) return 'it had devices of its machine';
  if (config.Memory !== limits.memoryBytes || config.PidsLimit !== limits.processes) return 'it had no limits';
  return null;
}
