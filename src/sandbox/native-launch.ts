// sandbox/native-launch.ts: how a sandbox is started on this machine, as a plain value: an argv, bwrap's arguments and
// the directories that must exist first. Pure.
//
// Two callers, one shape. An ordinary user gets a user namespace of their own in which the launcher mounts; root mounts
// directly, shows every host path through an id-mapped mount (so that root's files belong to the sandbox's user) and then
// gives root up for good before bwrap starts.
// Invariant: every name used in a mount option is one of ours, so no character of a user's path is ever interpreted.
import { isAbsolute, join, relative } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { Mount, SandboxSpec, WorkspaceMount } from '../protocol/spec.ts';
import { LOCAL_DIRS, SYSTEM_DIRS } from './machine.ts';
import { bwrapArgs } from './native-args.ts';
import { LAUNCHER } from './native-scripts.ts';

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
  /** The caller may mount overlays here. */
  readonly overlays: boolean;
  /** The caller may have namespaces of its own: some systems allow them to bwrap alone. */
  readonly namespaces: boolean;
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
  readonly files: readonly { readonly path: string; readonly content: string; readonly binary: boolean }[];
}

/** A host path that the sandbox sees through a mount of the launcher's. */
export interface StagedPath {
  readonly from: string;
  /** Relative to the run directory, in a file system of memory that goes with the launcher's namespace. */
  readonly at: string;
  /** The owner's files are shown as the sandbox user's. */
  readonly mapped: boolean;
  readonly veil: Veil;
}

/** Whether an overlay lies over it: it must, it may, or it does not. */
type Veil = 'must' | 'may' | 'no';

/** Descriptors the launcher inherits: bwrap's arguments, the filter, where bwrap reports, our word to go, and a stdin that is not the terminal. */
export const DESCRIPTORS = { args: 3, seccomp: 4, status: 5, go: 6, stdin: 7 } as const;

// mount, unshare, prctl, dup3, sendmsg, capset, setresgid, setresuid: in the order in which the launcher takes them.
const SYSCALLS = {
  x64: [165, 272, 157, 292, 46, 126, 119, 117],
  arm64: [40, 97, 167, 24, 211, 91, 149, 147],
} as const;

export function planLaunch(input: LaunchInput): Launch {
  const { spec, runDir } = input;
  const staged: StagedPath[] = [];
  const files: { path: string; content: string; binary: boolean }[] = [];
  const workspace = spec.mounts.find((m) => m.kind === 'workspace')?.workspace ?? null;
  const overlay = overlayOptions(workspace);
  const here = input.callerIsRoot ? input.stage : runDir;
  // Without an overlay to mount, bwrap is the only program that needs a namespace: some systems allow it to no other.
  const mayMount = input.callerIsRoot || input.overlays || overlay !== '';
  const apart = mayMount || (spec.network.kind === 'gateway' && input.namespaces);
  const source = (mount: Mount): string => {
    switch (mount.kind) {
      case 'bind':
        return reach(mount.from, mount.writable ? 'no' : (mount.veil ?? 'must'));
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
  const reach = (path: string, veil: Veil): string => {
    const inside = relative(runDir, path);
    if (inside !== '' && !inside.startsWith('..') && !isAbsolute(inside)) return join(here, inside);
    // What everybody can read, root need not map.
    const mapped = input.callerIsRoot && !LOCAL_DIRS.includes(path) && !path.startsWith('/etc/');
    if (!mayMount || SYSTEM_DIRS.includes(path) || (!mapped && veil === 'no')) return path;
    const at = join('stage', String(staged.length));
    staged.push({ from: path, at, mapped, veil });
    return join(here, at);
  };
  const args = bwrapArgs({ spec, source, terminal: input.terminal, descriptors: DESCRIPTORS });
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
  const layers = workspace === null || workspace.kind === 'copy' ? [] : workspace.layers;
  const launcher = [
    ...(apart && !input.callerIsRoot ? OWN_MOUNTS : []),
    'perl',
    '-e',
    LAUNCHER,
    '--',
    SYSCALLS[input.arch].join(','),
    input.callerIsRoot ? [spec.user.uid, spec.user.gid, input.owner.uid, input.owner.gid].join(',') : '',
    runDir,
    input.stage,
    overlay,
    String(layers.length),
    ...layers.flatMap(({ path, identity }) => [path, identity]),
    String(input.cgroupFiles.length),
    ...input.cgroupFiles,
    String(staged.length),
    ...staged.flatMap(({ from, at, mapped, veil }) => [from, at, `${mapped ? 'map,' : ''}${veil}`]),
    ...doorArgs(input, apart),
    ...bwrap,
  ];
  return { argv: [...input.prefix, ...launcher], bwrapArgs: args, staged, files };
}

// The doors are known by their place in the list, so that no name is ever interpreted.
function doorArgs(input: LaunchInput, ownNamespace: boolean): string[] {
  const { network } = input.spec;
  if (network.kind === 'loopback') return ['', '0'];
  if (!ownNamespace)
    throw new AgsError(
      'backend.unavailable',
      'The sandbox cannot have a gateway: on this system bwrap alone may make namespaces.',
      { hint: 'Start it without a network: --network off' },
    );
  const { doors, reach } = network;
  // Node lets others bind the address of a datagram socket as well. Below 1024 nobody inside may.
  for (const { name, protocol, port } of doors)
    if (protocol === 'udp' && port >= 1024)
      throw new Error(`The door ${name} could be taken over: ${port} is too high.`);
  return [
    `${channelDescriptor(input)},${reach ? 1 : 0}`,
    String(doors.length),
    ...doors.map(({ protocol, address, port }) => `${protocol},${address},${port}`),
  ];
}

/** Where the launcher finds Node's channel: after all others. */
function channelDescriptor({ terminal, stdinIsTerminal }: Pick<LaunchInput, 'terminal' | 'stdinIsTerminal'>): number {
  return terminal && !stdinIsTerminal ? DESCRIPTORS.stdin + 1 : DESCRIPTORS.stdin;
}

const OWN_MOUNTS = ['unshare', '--user', '--map-root-user', '--mount', '--propagation', 'private', '--'];

/** The launcher puts in where the layers are. */
function overlayOptions(workspace: WorkspaceMount | null): string {
  if (workspace === null || workspace.kind === 'copy') return '';
  const lower = workspace.hidden.length > 0 ? 'hide:%s' : '%s';
  // The launcher adds userxattr: without it a directory that was removed cannot be made again by an unprivileged user (EIO).
  return workspace.kind === 'overlay' ? `lowerdir=${lower},upperdir=upper,workdir=work` : `lowerdir=upper:${lower}`;
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
