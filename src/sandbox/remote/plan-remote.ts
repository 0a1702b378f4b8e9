// sandbox/remote/plan-remote.ts: plans a SandboxSpec for a remote engine: the files to send, and the command lines. Pure.
// Invariant: anything that cannot be sent is refused with an error, never left out.
import { AgsError } from '../../protocol/errors.ts';
import type { Mount, SandboxSpec } from '../../protocol/spec.ts';
import { agentArgs, pauseArgs, type ContainerInput } from '../container/container-args.ts';
import type { ContainerOptions } from '../container/options.ts';
import { isWritable, uncovered } from '../container/mounts.ts';
import { ENGINE_KINDS } from '../engine/engine-kinds.ts';
import { fileSyncArgs, relayArgs, type RemotePlace } from './remote-args.ts';
import type { Payload } from './payload.ts';
import { perlInside } from '../spec/interpreter.ts';
import { prlimitArgv } from '../watch/limits.ts';
import { ownerText, stateMark } from '../engine/owner.ts';

export interface PlannedPayload {
  readonly list: readonly Payload[];
  readonly returns: readonly (readonly [number, string])[];
  readonly at: ReadonlyMap<Mount, number>;
}

/** Numbers the files that a sandbox sees; writable ones are copied back. */
export function planPayload(spec: SandboxSpec): PlannedPayload {
  if (spec.root.kind === 'host')
    throw new AgsError('backend.unavailable', 'This needs the programs of this machine, but the engine is remote.', {
      hint: 'Use a local backend: --backend native',
    });
  const list: Payload[] = [];
  const returns: (readonly [number, string])[] = [];
  const at = new Map<Mount, number>();
  for (const mount of uncovered(spec.mounts)) {
    const what = payloadOf(mount);
    if (what === null) continue;
    at.set(mount, list.length);
    if (isWritable(mount) && 'from' in what) returns.push([list.length, what.from]);
    list.push({ at: list.length, what });
  }
  return { list, returns, at };
}

function payloadOf(mount: Mount): Payload['what'] | null {
  switch (mount.kind) {
    case 'bind':
      return { from: mount.from };
    case 'file':
      return { content: Buffer.from(mount.content, mount.binary === true ? 'latin1' : 'utf8') };
    case 'workspace':
      if (mount.workspace.kind === 'copy') return { from: mount.workspace.directory };
      throw new AgsError(
        'backend.unavailable',
        'A workspace on a remote engine must be a copy: local layers cannot be mounted there.',
        {
          hint: 'Allow a copy: --workspace auto',
        },
      );
    case 'tmpfs':
    case 'proc':
    case 'dev':
      return null;
    case 'symlink':
    case 'dir':
      throw new AgsError('backend.failed', `${mount.to} cannot be created in an image of a remote engine.`);
  }
}

export function containerInput(
  options: ContainerOptions,
  place: RemotePlace,
  spec: SandboxSpec,
  at: PlannedPayload['at'],
): ContainerInput {
  const { mountpoint } = place;
  return {
    kind: ENGINE_KINDS[options.engine.name],
    spec,
    source: (mount) => `${mountpoint}/d/${at.get(mount) ?? ''}`,
    overlays: null,
    name: place.volume,
    run: place.run,
    owner: place.owner,
    far: true,
    rootless: false,
    counts: true,
    image: spec.root.kind === 'image' ? spec.root.id : '',
    rootImage: place.image,
    perl: perlInside(spec.root),
    interpreter: `${mountpoint}/perl`,
    arch: options.arch,
    limitArgv: prlimitArgv(spec.limits, options.limitHost),
    ipv6: false,
    meeting: { gate: `${mountpoint}/meet/gate`, pause: `${mountpoint}/meet/pause` },
  };
}

export interface RemotePlan {
  readonly fileSync: readonly string[];
  readonly relay: readonly string[];
  readonly pause: readonly string[] | null;
  readonly agent: readonly string[];
}

/** The command lines to show; the volume's real path is known only after it was created. */
export function planRemote(options: ContainerOptions, spec: SandboxSpec): RemotePlan {
  const place: RemotePlace = {
    volume: options.name,
    mountpoint: `/<${options.name}>`,
    run: options.runMark,
    owner: ownerText(stateMark(options.stateDir)),
    image: 'ags-skeleton:far',
    arch: options.arch,
    user: spec.user,
  };
  const input = containerInput(options, place, spec, planPayload(spec).at);
  return {
    fileSync: fileSyncArgs(place, 'in', []),
    relay: relayArgs(place),
    pause: spec.network.kind === 'gateway' ? pauseArgs(input) : null,
    agent: agentArgs(input),
  };
}
