// sandbox/container/mounts.ts: turns the mounts of a SandboxSpec into engine options. The engine sorts them itself. Pure.
// Invariant: a covered mount is left out, so the order in which the engine mounts the rest does not matter.
import { isWithin } from '../../lib/files.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { Mount, SandboxSpec } from '../../protocol/spec.ts';
import type { EngineKind } from '../engine/engine-kinds.ts';
import type { StagedPath } from '../spec/mount-sources.ts';

/** Directories and links of the root image: an engine can mount neither. */
export type RootImageEntry =
  | { readonly path: string; readonly mode: string }
  | { readonly path: string; readonly target: string };

export interface MountInput {
  readonly kind: EngineKind;
  readonly spec: SandboxSpec;
  readonly source: (mount: Mount) => string;
  /** Overlays that the engine mounts itself, by source; null: they are mounted already. */
  readonly overlays: ((source: string, mount: Mount) => OverlayPlan | null) | null;
  readonly label: string;
}

export interface OverlayPlan {
  /** Topmost first. */
  readonly lower: readonly string[];
  readonly upper: { readonly upper: string; readonly work: string } | null;
}

export function uncovered(mounts: readonly Mount[]): readonly Mount[] {
  return mounts.filter(
    (mount, at) =>
      !mounts
        .slice(at + 1)
        .some((later) => later.kind !== 'dir' && later.kind !== 'symlink' && isWithin(mount.to, later.to)),
  );
}

export function rootImageOf(spec: SandboxSpec): readonly RootImageEntry[] {
  return uncovered(spec.mounts).flatMap((mount): RootImageEntry[] => {
    if (mount.kind === 'dir') return [{ path: mount.to, mode: mount.mode }];
    return mount.kind === 'symlink' ? [{ path: mount.to, target: mount.target }] : [];
  });
}

export function mountArgs(input: MountInput): string[] {
  return uncovered(input.spec.mounts).flatMap((mount) => oneMount(input, mount));
}

function oneMount(input: MountInput, mount: Mount): string[] {
  const { user } = input.spec;
  switch (mount.kind) {
    case 'tmpfs':
      if (!input.kind.daemon) return bindArgs(input.kind, input.source(mount), mount.to, true);
      if (mount.to.includes(':')) throw cannotMount(mount.to);
      return [
        '--tmpfs',
        `${mount.to}:rw,exec,nosuid,nodev,size=${mount.bytes},mode=${mount.mode},uid=${user.uid},gid=${user.gid}`,
      ];
    case 'bind':
    case 'file':
    case 'workspace': {
      const source = input.source(mount);
      const overlay = input.overlays?.(source, mount) ?? null;
      return overlay === null
        ? bindArgs(input.kind, source, mount.to, isWritable(mount))
        : // Without an upper it is read-only anyway, and engines reject "readonly" for an anonymous volume.
          ['--mount', csv([...overlayVolume(overlay, input.label), `dst=${mount.to}`])];
    }
    case 'symlink':
    case 'dir':
    case 'proc':
    case 'dev':
      return [];
  }
}

export function bindArgs(kind: EngineKind, from: string, to: string, writable: boolean): string[] {
  return ['--mount', csv(['type=bind', `src=${from}`, `dst=${to}`, ...readOnly(writable), ...kind.bindOptions])];
}

function readOnly(writable: boolean): string[] {
  return writable ? [] : ['readonly'];
}

export function isWritable(mount: Mount): boolean {
  if (mount.kind === 'bind') return mount.writable;
  if (mount.kind !== 'workspace') return false;
  return mount.workspace.kind === 'overlay' || (mount.workspace.kind === 'copy' && mount.workspace.writable);
}

/** Anonymous: removed with its container. */
function overlayVolume({ lower, upper }: OverlayPlan, label: string): string[] {
  const options = [
    `lowerdir=${lower.map(escaped).join(':')}`,
    ...(upper === null ? [] : [`upperdir=${escaped(upper.upper)}`, `workdir=${escaped(upper.work)}`]),
    'userxattr',
  ].join(',');
  // The kernel accepts one page of options.
  if (Buffer.byteLength(options) > 4000)
    throw new AgsError('backend.failed', 'The workspace has more layers than the engine can mount.', {
      hint: 'Use a copy: --workspace copy',
    });
  return [
    'type=volume',
    'volume-driver=local',
    'volume-nocopy=true',
    `volume-label=${label}`,
    'volume-opt=type=overlay',
    'volume-opt=device=overlay',
    `volume-opt=o=${options}`,
  ];
}

/** A backslash in overlay options keeps the next character from ending a path. */
function escaped(path: string): string {
  return path.replaceAll(/[\\:,]/g, (found) => `\\${found}`);
}

/** Quoted as Go reads it: a field with a quote, a comma or a line break needs quotes. */
export function csv(fields: readonly string[]): string {
  return fields.map((field) => (/[",\r\n]|^\s/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(',');
}

function cannotMount(path: string): AgsError {
  return new AgsError('backend.failed', `The engine cannot mount anything at ${path}: there is a colon in it.`);
}

/** The overlay that the native launcher would have mounted here, or null. */
export function overlayOf(
  source: string,
  mount: Mount,
  staged: readonly (StagedPath & { readonly source: string })[],
  runDir: string,
  work: string,
  isDirectory: (path: string) => boolean,
): OverlayPlan | null {
  if (mount.kind === 'workspace' && mount.workspace.kind !== 'copy') {
    const { workspace } = mount;
    const hidden = workspace.hidden.length > 0 ? [`${runDir}/hide`] : [];
    const layers = [...hidden, ...workspace.layers.map(({ path }) => path)];
    return workspace.kind === 'overlay'
      ? { lower: layers, upper: { upper: workspace.upper, work } }
      : { lower: [workspace.upper, ...layers], upper: null };
  }
  const found = staged.find((one) => one.source === source);
  if (found === undefined || found.veil === 'no' || !isDirectory(found.from)) return null;
  return { lower: [found.from, `${runDir}/none`], upper: null };
}
