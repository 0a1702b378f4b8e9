// sandbox/container/protection.ts: verifies from outside, whatever the engine reports, that a container's first process has given
// everything up and that only the planned mounts are writable.
import { readFileSync, readlinkSync } from 'node:fs';
import { isWithin } from '../../lib/files.ts';
import type { Mount, SandboxSpec } from '../../protocol/spec.ts';
import { INTERPRETER } from '../spec/interpreter.ts';
import { unescapePath } from '../spec/machine.ts';
import { MEETING_PLACE } from './container-args.ts';
import { PRELOAD } from './container-image.ts';
import { isWritable } from './mounts.ts';

/** The missing protection, as part of a sentence; null: none. */
export function unprotectedBy(pid: number, spec: SandboxSpec, ownUsers: boolean): string | null {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kept = keptBy(status, spec);
  if (kept !== null) return kept;
  for (const name of ['ipc', 'uts', 'mnt', 'pid', 'cgroup', ...(ownUsers ? ['user'] : [])])
    if (readlinkSync(`/proc/${pid}/ns/${name}`) === readlinkSync(`/proc/self/ns/${name}`))
      return `it shared the ${name} namespace of this machine`;
  const interfaces = strayInterfaces(readFileSync(`/proc/${pid}/net/dev`, 'utf8'));
  if (interfaces.length > 0) return `it had a network of this machine (${interfaces.join(', ')})`;
  if (!/^NSpid:[ \t]*\d+[ \t]+\d/m.test(status)) return 'it saw the processes of this machine';
  return misplacedMount(readFileSync(`/proc/${pid}/mountinfo`, 'utf8'), spec);
}

/** Checks /proc/<pid>/status. */
export function keptBy(status: string, { user }: Pick<SandboxSpec, 'user'>): string | null {
  const of = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1]?.trim() ?? '';
  for (const name of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
    if (!/^0+$/.test(of(name))) return 'it kept privileges (capabilities)';
  if (of('NoNewPrivs') !== '1') return 'it could gain new privileges';
  if (of('Seccomp') !== '2') return 'its system calls were not filtered';
  if (of('Uid') !== Array(4).fill(user.uid).join('\t') || of('Gid') !== Array(4).fill(user.gid).join('\t'))
    return 'it ran as another user';
  if (
    !of('Groups')
      .split(' ')
      .every((gid) => gid === '' || gid === String(user.gid))
  )
    return 'it belonged to further groups';
  return null;
}

/** Checks net/dev. Tunnels that lead nowhere are in every network once the machine has one. */
export function strayInterfaces(devices: string): string[] {
  return [...devices.matchAll(/^\s*([^\s:|]+):/gm)].flatMap(([, name = '']) => (HARMLESS.test(name) ? [] : [name]));
}
const HARMLESS = /^(lo|tunl0|sit0|gre0|gretap0|erspan0|ip_vti0|ip6_vti0|ip6tnl0|ip6gre0)$/;

/** Volumes of an image are writable; links in an image redirect mounts. */
export function misplacedMount(mountinfo: string, { root, mounts }: SandboxSpec): string | null {
  const found = mountinfo
    .split('\n')
    .filter((line) => line !== '')
    .map(readMount);
  const writable = new Set<string>(mounts.filter(mayBeWritten).map(({ to }) => to));
  const orphan = found.find(
    ({ path, rw }) => rw && !writable.has(path) && !ENGINES_OWN.some((place) => isWithin(path, place)),
  );
  if (orphan !== undefined) return `${orphan.path} could be written`;
  if (root.kind === 'host') return null;
  const there = new Set(found.map(({ path }) => path));
  const wanted = [...OURS, ...mounts.filter(isMounted).map(({ to }) => String(to))];
  const elsewhere = wanted.find((path) => !there.has(path) && !USUAL_LINKS.includes(path));
  return elsewhere === undefined ? null : `its image leads ${elsewhere} elsewhere`;
}

/** These belong to root, except terminals and the like. */
const ENGINES_OWN = ['/proc', '/dev'];
const OURS = ['/', '/sys', MEETING_PLACE, INTERPRETER, PRELOAD];
const USUAL_LINKS = ['/var/tmp'];

function mayBeWritten(mount: Mount): boolean {
  return mount.kind === 'tmpfs' || isWritable(mount);
}

function isMounted(mount: Mount, at: number, all: readonly Mount[]): boolean {
  if (mount.kind === 'dir' || mount.kind === 'symlink') return false;
  // A covered mount is left out.
  return !all.slice(at + 1).some((later) => isWithin(mount.to, later.to));
}

function readMount(line: string): { readonly path: string; readonly rw: boolean } {
  const [before = '', after = ''] = line.split(' - ');
  const [, , , , path = '', own = ''] = before.split(' ');
  const isReadWrite = (options: string): boolean => options.split(',').includes('rw');
  return { path: unescapePath(path), rw: isReadWrite(own) && isReadWrite(after.split(' ')[2] ?? '') };
}

/**
 * The missing protection of a remote container, as part of a sentence; null: none. Its /proc cannot be read from here, so our gate, its
 * first process, reports what the kernel says, and the engine reports the container's configuration (`inspected`). Both must be right.
 */
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
