// sandbox/spec/mount-sources.ts: where the sources of a sandbox's mounts are when it starts, and what must be mounted or written before.
// Pure.
// Invariant: every name used in a mount option is one of ours, so no character of a user's path is ever interpreted.
import { isAbsolute, join, relative } from 'node:path';
import type { Mount, WorkspaceMount } from '../../protocol/spec.ts';
import { LOCAL_DIRS, SYSTEM_DIRS } from './machine.ts';

/** A host path that the sandbox sees through a mount made by the launcher. */
export interface StagedPath {
  readonly from: string;
  /** Relative to the run directory, in a memory file system that disappears with the launcher's namespace. */
  readonly at: string;
  /** Shows the owner's files as files of the sandbox user. */
  readonly mapped: boolean;
  readonly veil: Veil;
}

/** Whether it is mounted through an overlay. */
type Veil = 'must' | 'may' | 'no';

/** Below the run directory. */
export interface PlannedFile {
  readonly path: string;
  readonly content: string;
  readonly binary: boolean;
}

export interface Sources {
  /** The path of a mount's content once all staged paths are mounted. */
  readonly source: (mount: Mount) => string;
  readonly staged: readonly StagedPath[];
  readonly files: readonly PlannedFile[];
}

export function planSources(input: {
  readonly runDir: string;
  /** The path of the run directory when the sources are opened. */
  readonly here: string;
  readonly callerIsRoot: boolean;
  readonly mayMount: boolean;
}): Sources {
  const { runDir, here, mayMount } = input;
  const staged: StagedPath[] = [];
  const files: PlannedFile[] = [];
  const source = (mount: Mount): string => {
    switch (mount.kind) {
      case 'bind':
        return mount.writable ? reach(mount.from, 'no', true) : reach(mount.from, mount.veil ?? 'must');
      case 'file': {
        const at = join('files', String(files.length));
        files.push({ path: at, content: mount.content, binary: mount.binary === true });
        return join(here, at);
      }
      case 'workspace':
        return mount.workspace.kind === 'copy' ? reach(mount.workspace.directory, 'no') : join(here, 'merged');
      case 'symlink':
      case 'tmpfs':
      case 'dir':
      case 'proc':
      case 'dev':
        return '';
    }
  };
  const reach = (path: string, veil: Veil, writable = false): string => {
    const inside = relative(runDir, path);
    if (inside !== '' && !inside.startsWith('..') && !isAbsolute(inside)) return join(here, inside);
    // Directories that all users can read need no mapping. What a sandbox writes must belong to its own user: a program with the setuid
    // bit that it leaves would otherwise belong to the owner of the project, who may be root.
    const mapped = input.callerIsRoot && !writable && !LOCAL_DIRS.includes(path) && !path.startsWith('/etc/');
    const direct = veil === 'no' && !mapped && !(input.callerIsRoot && writable);
    if (!mayMount || SYSTEM_DIRS.includes(path) || direct) return path;
    const at = join('stage', String(staged.length));
    staged.push({ from: path, at, mapped, veil });
    return join(here, at);
  };
  return { source, staged, files };
}

/** Mount options of the workspace overlay; the launcher fills in the layers. */
export function overlayOptions(workspace: WorkspaceMount | null): string {
  if (workspace === null || workspace.kind === 'copy') return '';
  const lower = workspace.hidden.length > 0 ? 'hide:%s' : '%s';
  // The launcher adds userxattr: without it an unprivileged user cannot create a removed directory again (EIO).
  return workspace.kind === 'overlay' ? `lowerdir=${lower},upperdir=upper,workdir=work` : `lowerdir=upper:${lower}`;
}
