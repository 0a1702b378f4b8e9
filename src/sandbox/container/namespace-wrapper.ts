// sandbox/container/namespace-wrapper.ts: an engine without a daemon is started in a mount namespace of its own, in which everything that the
// container is to see is mounted already, and, with a gateway, in a network namespace that has its doors, by the same scripts as
// the native backend. Podman has words for an overlay, but of one layer only, and none for the owner of a tmpfs. Pure.
// Invariant: nothing is mounted where anybody else sees it, so nothing has to be taken away again.
import { directoryIdentity } from '../../lib/files.ts';
import type { Mount, SandboxSpec } from '../../protocol/spec.ts';
import type { DockerOptions } from './container.ts';
import { uncovered } from './mounts.ts';
import { ROOM } from '../docker-scripts.ts';
import { engineArgv } from '../engine/engine.ts';
import { overlayOptions, type StagedPath } from '../spec/mount-sources.ts';
import { existsSync } from 'node:fs';

// mount, unshare, prctl, capset, sendmsg, recvmsg, setresgid, setresuid
const CALLS = { x64: '165,272,157,126,46,47,119,117', arm64: '40,97,167,91,211,212,149,147' } as const;

/** Goes in front of the engine's command line. */
export function roomArgv(options: DockerOptions, spec: SandboxSpec, staged: readonly StagedPath[]): string[] {
  const { engine, runDir, perl, arch, owner } = options;
  const workspace = spec.mounts.find((mount) => mount.kind === 'workspace')?.workspace ?? null;
  const layers = workspace === null || workspace.kind === 'copy' ? [] : workspace.layers;
  const memory = tmpfsOf(spec);
  return [
    ...(engine.rootless ? engineArgv(engine, ['unshare']) : []),
    perl,
    '-e',
    ROOM,
    '--',
    CALLS[arch],
    runDir,
    existsSync(runDir) ? directoryIdentity(runDir) : '',
    // Whoever is not root sees only its own files, and as its own.
    engine.rootless ? '' : [spec.user.uid, spec.user.gid, owner.uid, owner.gid].join(','),
    overlayOptions(workspace),
    String(layers.length),
    ...layers.flatMap(({ path, identity }) => [path, identity]),
    String(staged.length),
    ...staged.flatMap(({ from, at, mapped, veil }) => [from, at, `${mapped ? 'map,' : ''}${veil}`]),
    String(memory.length),
    ...memory.map((mount) => tmpfsOptions(mount, spec, engine.rootless)),
    spec.network.kind === 'gateway' ? 'own' : '',
  ];
}

/** Where a tmpfs of the container stands, below the run directory. */
export function tmpfsPlace(spec: SandboxSpec, mount: Mount): string {
  return `memory/${tmpfsOf(spec).findIndex((one) => one === mount)}`;
}

type Tmpfs = Extract<Mount, { kind: 'tmpfs' }>;

function tmpfsOf(spec: SandboxSpec): Tmpfs[] {
  return uncovered(spec.mounts).filter((mount) => mount.kind === 'tmpfs');
}

/** In the user namespace that a rootless engine works in, its caller is root. */
function tmpfsOptions({ bytes, mode }: Tmpfs, { user }: SandboxSpec, rootless: boolean): string {
  return `size=${bytes},mode=${mode},uid=${rootless ? 0 : user.uid},gid=${rootless ? 0 : user.gid}`;
}
