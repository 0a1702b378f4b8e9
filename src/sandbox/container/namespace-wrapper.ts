// sandbox/container/namespace-wrapper.ts: starts an engine without a daemon in its own mount namespace, where everything for the
// container is mounted already, and, with a gateway, in a network namespace with listeners. It uses the same scripts as the native
// backend. Podman's own options allow overlays of one layer only, and no owner of a tmpfs. Pure.
// Invariant: no mount is visible outside the namespace, so nothing has to be unmounted.
import { directoryIdentity } from '../../lib/files.ts';
import { perlProgram } from '../../lib/perl.ts';
import type { Mount, SandboxSpec } from '../../protocol/spec.ts';
import type { ContainerOptions } from './options.ts';
import { uncovered } from './mounts.ts';
import { engineArgv } from '../engine/engine.ts';
import { overlayOptions, type StagedPath } from '../spec/mount-sources.ts';
import { existsSync } from 'node:fs';

// mount, unshare, prctl, capset, sendmsg, recvmsg, setresgid, setresuid
const CALLS = { x64: '165,272,157,126,46,47,119,117', arm64: '40,97,167,91,211,212,149,147' } as const;

/** Prepended to the engine's command line. */
export function wrapperArgv(options: ContainerOptions, spec: SandboxSpec, staged: readonly StagedPath[]): string[] {
  const { engine, runDir, perl, arch, owner } = options;
  const workspace = spec.mounts.find((mount) => mount.kind === 'workspace')?.workspace ?? null;
  const layers = workspace === null || workspace.kind === 'copy' ? [] : workspace.layers;
  const memory = tmpfsOf(spec);
  return [
    ...(engine.rootless ? engineArgv(engine, ['unshare']) : []),
    perl,
    '-e',
    perlProgram('sandbox/perl/namespace-wrapper.pl'),
    '--',
    CALLS[arch],
    runDir,
    existsSync(runDir) ? directoryIdentity(runDir) : '',
    // A caller that is not root sees only its own files, as its own.
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

/** The path of a container's tmpfs, below the run directory. */
export function tmpfsPlace(spec: SandboxSpec, mount: Mount): string {
  return `memory/${tmpfsOf(spec).findIndex((one) => one === mount)}`;
}

type Tmpfs = Extract<Mount, { kind: 'tmpfs' }>;

function tmpfsOf(spec: SandboxSpec): Tmpfs[] {
  return uncovered(spec.mounts).filter((mount) => mount.kind === 'tmpfs');
}

/** In the user namespace of a rootless engine its caller is root. */
function tmpfsOptions({ bytes, mode }: Tmpfs, { user }: SandboxSpec, rootless: boolean): string {
  return `size=${bytes},mode=${mode},uid=${rootless ? 0 : user.uid},gid=${rootless ? 0 : user.gid}`;
}
