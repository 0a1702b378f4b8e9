// sandbox/remote/plan-remote.ts: a SandboxSpec for an engine on another machine: what has to be carried there, and the command lines. Pure.
// Invariant: what has no way there is refused in words, never left out.
import { AgsError } from '../../protocol/errors.ts';
import type { Mount, SandboxSpec } from '../../protocol/spec.ts';
import { agentArgs, holderArgs, type ContainerInput } from '../container/container-args.ts';
import type { DockerOptions } from '../container/container.ts';
import { isWritable, uncovered } from '../container/mounts.ts';
import { ENGINE_KINDS } from '../engine/engine-kinds.ts';
import { ferryArgs, relayArgs, type FarPlace } from './remote-args.ts';
import type { Cargo } from './payload.ts';
import { FERRY_IN } from '../far-scripts.ts';
import { perlInside } from '../spec/interpreter.ts';
import { prlimitArgv } from '../watch/limits.ts';
import { ownerText, stateMark } from '../engine/owner.ts';

export interface PlannedCargo {
  readonly list: readonly Cargo[];
  readonly returns: readonly (readonly [number, string])[];
  readonly at: ReadonlyMap<Mount, number>;
}

/** What a sandbox sees, by numbers; whatever it can write comes back. */
export function planCargo(spec: SandboxSpec): PlannedCargo {
  if (spec.root.kind === 'host')
    throw new AgsError(
      'backend.unavailable',
      'This needs the programs of this machine, and the engine is on another one.',
      {
        hint: 'Use an engine of this machine: --backend native',
      },
    );
  const list: Cargo[] = [];
  const returns: (readonly [number, string])[] = [];
  const at = new Map<Mount, number>();
  for (const mount of uncovered(spec.mounts)) {
    const what = cargoOf(mount);
    if (what === null) continue;
    at.set(mount, list.length);
    if (isWritable(mount) && 'from' in what) returns.push([list.length, what.from]);
    list.push({ at: list.length, what });
  }
  return { list, returns, at };
}

function cargoOf(mount: Mount): Cargo['what'] | null {
  switch (mount.kind) {
    case 'bind':
      return { from: mount.from };
    case 'file':
      return { content: Buffer.from(mount.content, mount.binary === true ? 'latin1' : 'utf8') };
    case 'workspace':
      if (mount.workspace.kind === 'copy') return { from: mount.workspace.directory };
      throw new AgsError(
        'backend.unavailable',
        'A workspace on another machine is a copy: layers of this one cannot be mounted there.',
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
      throw new AgsError('backend.failed', `${mount.to} cannot be made in an image on another machine.`);
  }
}

export function containerInput(
  options: DockerOptions,
  place: FarPlace,
  spec: SandboxSpec,
  at: PlannedCargo['at'],
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
    skeleton: place.image,
    perl: perlInside(spec.root),
    interpreter: `${mountpoint}/perl`,
    arch: options.arch,
    limitArgv: prlimitArgv(spec.limits, options.limitHost),
    ipv6: false,
    meeting: { gate: `${mountpoint}/meet/gate`, holder: `${mountpoint}/meet/holder` },
  };
}

export interface FarPlan {
  readonly ferry: readonly string[];
  readonly relay: readonly string[];
  readonly holder: readonly string[] | null;
  readonly agent: readonly string[];
}

/** The command lines; where the engine keeps the volume is known only when there is one. */
export function planFar(options: DockerOptions, spec: SandboxSpec): FarPlan {
  const place: FarPlace = {
    volume: options.name,
    mountpoint: `/<${options.name}>`,
    run: options.runMark,
    owner: ownerText(stateMark(options.stateDir)),
    image: 'ags-skeleton:far',
    arch: options.arch,
    user: spec.user,
  };
  const input = containerInput(options, place, spec, planCargo(spec).at);
  return {
    ferry: ferryArgs(place, 'in', FERRY_IN, []),
    relay: relayArgs(place),
    holder: spec.network.kind === 'gateway' ? holderArgs(input) : null,
    agent: agentArgs(input),
  };
}
