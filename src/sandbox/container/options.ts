// sandbox/container/options.ts: the options of a container backend.
import type { SandboxSpec } from '../../protocol/spec.ts';
import { type Engine } from '../engine/engine.ts';
import { ENGINE_KINDS } from '../engine/engine-kinds.ts';
import { type LimitHost } from '../watch/limits.ts';

export interface ContainerOptions {
  readonly engine: Engine;
  readonly runDir: string;
  readonly whiteout: string;
  readonly callerIsRoot: boolean;
  readonly owner: { readonly uid: number; readonly gid: number };
  readonly arch: 'x64' | 'arm64';
  readonly perl: string;
  /** For a sandbox over an image: see interpreter.ts. */
  readonly interpreter: string | null;
  readonly ipv6: boolean;
  readonly limitHost: LimitHost;
  /** Names the run. */
  readonly runMark: string;
  /** Names this sandbox: a run has several, one after the other. */
  readonly name: string;
  /** On the run's file system: the work directories of overlays that the engine mounts and fills as root. */
  readonly workRoot: string;
  /** Records what must be copied back from a remote engine. */
  readonly stateDir: string;
}

/** True if the engine mounts the overlay and so needs a work directory. */
export function usesWorkDirectory({ callerIsRoot, engine }: ContainerOptions, spec: SandboxSpec): boolean {
  const upper = spec.mounts.some((mount) => mount.kind === 'workspace' && mount.workspace.kind === 'overlay');
  return upper && !callerIsRoot && ENGINE_KINDS[engine.name].daemon;
}
