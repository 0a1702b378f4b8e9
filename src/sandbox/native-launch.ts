// sandbox/native-launch.ts: how a sandbox is started on this machine, as a plain value: an argv, bwrap's arguments and
// the directories that must exist first. Pure.
//
// Two callers, one shape. An ordinary user gets a user namespace of their own in which the launcher mounts the overlay;
// root mounts it directly, shows every host path through an id-mapped mount (so that root's files belong to the
// sandbox's user) and then gives root up for good before bwrap starts.
// Invariant: every name used in a mount option is one of ours, so no character of a user's path is ever interpreted.
import { isAbsolute, join, relative } from 'node:path';
import type { Mount, SandboxSpec, WorkspaceMount } from '../protocol/spec.ts';
import { bwrapArgs } from './native-args.ts';
import { ROOT_LAUNCHER, USER_LAUNCHER } from './native-scripts.ts';

export interface LaunchInput {
  readonly spec: SandboxSpec;
  readonly command: readonly string[];
  /** Sets the limits; runs inside, in front of the command. */
  readonly limitArgv: readonly string[];
  /** A directory of this sandbox alone, outside everything it can see. */
  readonly runDir: string;
  readonly callerIsRoot: boolean;
  /** Who owns the project; for root alone. */
  readonly owner: { readonly uid: number; readonly gid: number };
  readonly bwrap: string;
  readonly setsid: string;
  readonly arch: 'x64' | 'arm64';
  /** An empty directory of the system over which the launcher may mount in its own namespace. */
  readonly stage: string;
  readonly cgroupFiles: readonly string[];
  /** In front of everything, for example a systemd scope. */
  readonly prefix: readonly string[];
  readonly terminal: boolean;
  readonly stdinIsTerminal: boolean;
}

export interface Launch {
  readonly argv: readonly string[];
  readonly bwrapArgs: readonly string[];
  /** Where a mount's source stands when bwrap looks for it. */
  readonly staged: readonly StagedPath[];
  readonly files: readonly { readonly path: string; readonly content: string }[];
}

/** A host path that root shows to the sandbox's user through an id-mapped mount. */
export interface StagedPath {
  readonly from: string;
  /** Relative to the run directory, in a file system of memory that goes with the launcher's namespace. */
  readonly at: string;
}

/** Descriptors the launcher inherits: bwrap's arguments, the filter, where bwrap reports, our word to go, and a stdin that is not the terminal. */
export const DESCRIPTORS = { args: 3, seccomp: 4, status: 5, go: 6, stdin: 7 } as const;

const SYSCALLS = {
  x64: { mount: 165, unshare: 272, prctl: 157 },
  arm64: { mount: 40, unshare: 97, prctl: 167 },
} as const;

export function planLaunch(input: LaunchInput): Launch {
  const { spec, runDir } = input;
  const staged: StagedPath[] = [];
  const files: { path: string; content: string }[] = [];
  const here = input.callerIsRoot ? input.stage : runDir;
  const source = (mount: Mount): string => {
    switch (mount.kind) {
      case 'bind':
        return reach(mount.from);
      case 'file': {
        const at = join('files', String(files.length));
        files.push({ path: at, content: mount.content });
        return join(here, at);
      }
      case 'workspace':
        return mount.workspace.kind === 'copy' ? reach(mount.workspace.directory) : join(here, 'merged');
      case 'symlink':
      case 'tmpfs':
      case 'dir':
      case 'proc':
      case 'dev':
        return '';
    }
  };
  const reach = (path: string): string => {
    if (!input.callerIsRoot) return path;
    const inside = relative(runDir, path);
    if (inside !== '' && !inside.startsWith('..') && !isAbsolute(inside)) return join(input.stage, inside);
    if (SYSTEM.some((dir) => path === dir || path.startsWith(`${dir}/`))) return path;
    const at = join('stage', String(staged.length));
    staged.push({ from: path, at });
    return join(input.stage, at);
  };
  const workspace = spec.mounts.find((m) => m.kind === 'workspace')?.workspace ?? null;
  if (input.callerIsRoot && workspace !== null && workspace.kind !== 'copy')
    staged.push({ from: workspace.lower, at: 'stage/lower' });
  const args = bwrapArgs({ spec, source, terminal: input.terminal, descriptors: DESCRIPTORS });
  const overlay = overlayOptions(workspace, input.callerIsRoot ? 'stage/lower' : 'lower');
  // bwrap takes the command from its own command line only; that is nothing the command does not know of itself.
  const bwrap = [
    input.bwrap,
    '--args',
    String(DESCRIPTORS.args),
    '--',
    ...gateArgv(input),
    ...input.limitArgv,
    ...input.command,
  ];
  const launcher = input.callerIsRoot ? rootArgv(input, staged, overlay, bwrap) : userArgv(input, overlay, bwrap);
  return { argv: [...input.prefix, ...launcher], bwrapArgs: args, staged, files };
}

// Readable by everybody on every distribution, so root need not stage them.
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/etc', '/opt', '/nix'];

function overlayOptions(workspace: WorkspaceMount | null, original: string): string {
  if (workspace === null || workspace.kind === 'copy') return '';
  const lower = workspace.hidden.length > 0 ? `hide:${original}` : original;
  // userxattr: without it a directory that was removed cannot be made again by an unprivileged user (EIO).
  return workspace.kind === 'overlay'
    ? `userxattr,lowerdir=${lower},upperdir=upper,workdir=work`
    : `userxattr,lowerdir=upper:${lower}`;
}

function userArgv(input: LaunchInput, overlay: string, bwrap: readonly string[]): string[] {
  // Without an overlay to mount, bwrap is the only program that needs a namespace: some systems allow it to no other.
  const namespace =
    overlay === '' ? [] : ['unshare', '--user', '--map-root-user', '--mount', '--propagation', 'private', '--'];
  return [...namespace, 'sh', '-c', USER_LAUNCHER, 'ags', input.runDir, overlay, ...input.cgroupFiles, '--', ...bwrap];
}

function rootArgv(
  input: LaunchInput,
  staged: readonly StagedPath[],
  overlay: string,
  bwrap: readonly string[],
): string[] {
  const numbers = SYSCALLS[input.arch];
  return [
    'perl',
    '-e',
    ROOT_LAUNCHER,
    '--',
    [numbers.mount, numbers.unshare, numbers.prctl].join(','),
    [input.spec.user.uid, input.spec.user.gid, input.owner.uid, input.owner.gid].join(','),
    input.runDir,
    input.stage,
    overlay,
    String(input.cgroupFiles.length),
    ...input.cgroupFiles,
    String(staged.length),
    ...staged.flatMap(({ from, at }) => [from, at]),
    ...bwrap,
  ];
}

// The terminal is taken inside, so that bwrap itself stays out of its process group: Ctrl-C must reach the command, not end
// the sandbox. And the command waits for our word, which comes when nothing can outlive us any more: if we die before that,
// the word never comes, and the sandbox ends without having run anything.
function gateArgv(input: LaunchInput): string[] {
  const { go, stdin } = DESCRIPTORS;
  const apart = input.terminal && !input.stdinIsTerminal ? ` <&${stdin} ${stdin}<&-` : '';
  return [
    ...(input.terminal ? [input.setsid, '--ctty'] : []),
    '/bin/sh',
    '-c',
    `read -r go <&${go} && exec "$@" ${go}<&-${apart}`,
    'ags',
  ];
}
