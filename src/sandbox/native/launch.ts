// sandbox/native/launch.ts: how a sandbox is started on this machine, as a plain value: an argv, bwrap's arguments and
// the directories that must exist first. Pure.
//
// Two callers, one shape. An ordinary user gets a user namespace of their own in which the launcher mounts; root mounts
// directly, shows every host path through an id-mapped mount (so that root's files belong to the sandbox's user) and then
// gives root up for good before bwrap starts.
// Invariant: every name used in a mount option is one of ours, so no character of a user's path is ever interpreted.
import { AgsError } from '../../protocol/errors.ts';
import type { Door, SandboxSpec } from '../../protocol/spec.ts';
import { lateEnv } from '../spec/late-env.ts';
import { bwrapArgs } from './bwrap-args.ts';
import { LAUNCHER } from '../native-scripts.ts';
import { overlayOptions, planSources, type PlannedFile, type StagedPath } from '../spec/mount-sources.ts';

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
  readonly files: readonly PlannedFile[];
}

/** Descriptors the launcher inherits: bwrap's arguments, the filter, where bwrap reports, our word to go, and a stdin that is not the terminal. */
export const DESCRIPTORS = { args: 3, seccomp: 4, status: 5, go: 6, stdin: 7 } as const;

// mount, unshare, prctl, dup3, sendmsg, capset, setresgid, setresuid, prlimit64: in the order in which the launcher takes them.
export const SYSCALLS = {
  x64: [165, 272, 157, 292, 46, 126, 119, 117, 302],
  arm64: [40, 97, 167, 24, 211, 91, 149, 147, 261],
} as const;

export function planLaunch(input: LaunchInput): Launch {
  const { runDir } = input;
  const { first, argv: late } = lateEnv(input.spec.env);
  const spec = { ...input.spec, env: first };
  const workspace = spec.mounts.find((m) => m.kind === 'workspace')?.workspace ?? null;
  const overlay = overlayOptions(workspace);
  const here = input.callerIsRoot ? input.stage : runDir;
  // Without an overlay to mount, bwrap is the only program that needs a namespace: some systems allow it to no other.
  const mayMount = input.callerIsRoot || input.overlays || overlay !== '';
  const apart = mayMount || (spec.network.kind === 'gateway' && input.namespaces);
  const { source, staged, files } = planSources({ runDir, here, callerIsRoot: input.callerIsRoot, mayMount });
  const args = bwrapArgs({ spec, source, terminal: input.terminal, descriptors: DESCRIPTORS });
  // bwrap takes the command from its own command line only; that is nothing the command does not know of itself.
  const bwrap = [
    input.bwrap,
    '--args',
    String(DESCRIPTORS.args),
    '--',
    ...gateArgv(input),
    ...input.limitArgv,
    ...late,
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
  return [`${channelDescriptor(input)},${network.reach ? 1 : 0}`, ...doorList(network.doors)];
}

/** How many there are, and each of them. */
export function doorList(doors: readonly Door[]): string[] {
  // Node lets others bind the address of a datagram socket as well. Below 1024 nobody inside may.
  for (const { name, protocol, port } of doors)
    if (protocol === 'udp' && port >= 1024)
      throw new Error(`The door ${name} could be taken over: ${port} is too high.`);
  return [String(doors.length), ...doors.map(({ protocol, address, port }) => `${protocol},${address},${port}`)];
}

/** Where the launcher finds Node's channel: after all others. */
function channelDescriptor({ terminal, stdinIsTerminal }: Pick<LaunchInput, 'terminal' | 'stdinIsTerminal'>): number {
  return terminal && !stdinIsTerminal ? DESCRIPTORS.stdin + 1 : DESCRIPTORS.stdin;
}

const OWN_MOUNTS = ['unshare', '--user', '--map-root-user', '--mount', '--propagation', 'private', '--'];

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
