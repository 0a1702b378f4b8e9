// sandbox/io/prepare-mounts.ts: creates the directories of a run before anything is mounted.
// Invariant: this code creates every mount point inside a writable directory, in a directory that the sandbox has never seen, so bwrap
// never walks a path that an agent could have prepared.
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  type Stats,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import type { Layer, SandboxSpec, WorkspaceMount } from '../../protocol/spec.ts';
import type { PlannedFile } from '../spec/mount-sources.ts';

export interface PrepareInput {
  readonly runDir: string;
  /** A character device 0:0 on the same file system, which means "deleted" to overlayfs. */
  readonly whiteout: string;
  readonly callerIsRoot: boolean;
}

export function prepareRunDir(
  input: PrepareInput,
  spec: SandboxSpec,
  launch: { readonly files: readonly PlannedFile[] },
): void {
  const { runDir } = input;
  const own = (path: string): void => {
    if (input.callerIsRoot) chownSync(path, spec.user.uid, spec.user.gid);
  };
  const workspace = spec.mounts.find((m) => m.kind === 'workspace')?.workspace;
  if (workspace !== undefined && workspace.kind !== 'copy') prepareOverlay(input, workspace, own);
  if (launch.files.length > 0) mkdirSync(join(runDir, 'files'), { recursive: true });
  for (const { path, content, binary } of launch.files)
    writeFileSync(join(runDir, path), content, { mode: 0o644, encoding: binary ? 'latin1' : 'utf8' });
  mkdirSync(join(runDir, 'stage'), { recursive: true });
  prepareMountPoints(spec, own);
}

export function prepareOverlay(
  { runDir, whiteout }: PrepareInput,
  workspace: Exclude<WorkspaceMount, { kind: 'copy' }>,
  own: (path: string) => void,
): void {
  mkdirSync(join(runDir, 'merged'), { recursive: true });
  if (workspace.upper !== join(runDir, 'upper')) linkOnce(workspace.upper, join(runDir, 'upper'));
  const layer = join(runDir, 'hide');
  if (workspace.hidden.length === 0 || existsSync(layer)) return;
  mkdirSync(layer);
  for (const path of workspace.hidden) {
    mkdirSync(dirname(join(layer, path)), { recursive: true });
    linkSync(whiteout, join(layer, path));
  }
  // The topmost layer sets the attributes of a merged directory, so these copies must match the originals.
  for (const dir of new Set(['.', ...workspace.hidden.flatMap(parents)])) {
    const original = topmost(workspace.layers, dir);
    const copy = join(layer, dir);
    chmodSync(copy, original.mode & 0o777);
    own(copy);
    utimesSync(copy, original.atime, original.mtime);
  }
}

function topmost(layers: readonly Layer[], dir: string): Stats {
  for (const { path } of layers) {
    const stat = lstatSync(join(path, dir), { throwIfNoEntry: false });
    if (stat?.isDirectory() === true) return stat;
  }
  throw new Error(`no layer has the directory ${dir}`);
}

/** A run directory is reused when its content is captured. */
function linkOnce(target: string, path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) symlinkSync(target, path);
}

function parents(path: string): string[] {
  const names = path.split('/').slice(0, -1);
  return names.map((_, i) => names.slice(0, i + 1).join('/'));
}

function placeholder(path: string, directory: boolean): void {
  if (directory) mkdirSync(path, { recursive: true });
  else writeFileSync(path, '');
}

/**
 * Mount points below a writable bind (the home) are created in its host directory. After the first turn an agent has been there, so only
 * plain directories are walked, and nothing is mounted or created behind a link.
 */
export function prepareMountPoints(spec: SandboxSpec, own: (path: string) => void): void {
  const writable = spec.mounts.filter((m) => m.kind === 'bind' && m.writable);
  for (const mount of spec.mounts) {
    const parent = writable.findLast((m) => m !== mount && mount.to.startsWith(`${m.to}/`));
    if (parent === undefined || parent.kind !== 'bind' || isUnderWorkspace(spec, mount.to)) continue;
    const names = mount.to.slice(parent.to.length + 1).split('/');
    const isFile = mount.kind === 'file' || (mount.kind === 'bind' && !statSync(mount.from).isDirectory());
    names.forEach((_, i) => {
      const path = join(parent.from, ...names.slice(0, i + 1));
      const directory = !(isFile && i === names.length - 1);
      const stat = lstatSync(path, { throwIfNoEntry: false });
      if (stat === undefined) {
        placeholder(path, directory);
        own(path);
      } else if (directory ? !stat.isDirectory() : !stat.isFile()) throw inTheWay(mount.to);
    });
  }
}

function inTheWay(to: string): AgsError {
  return new AgsError(
    'backend.failed',
    `${to} cannot be mounted: the sandbox's home has something else in its place.`,
    { hint: 'Start again with a fresh home: ags restart <task>. If the home is kept between tasks: ags home reset' },
  );
}

function isUnderWorkspace(spec: SandboxSpec, path: string): boolean {
  return spec.mounts.some((m) => m.kind === 'workspace' && path.startsWith(`${m.to}/`));
}
