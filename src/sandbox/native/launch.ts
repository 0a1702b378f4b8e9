// sandbox/native/launch.ts: plans the start of a native sandbox: an argv, bwrap's arguments, and the directories that must exist first.
// Pure.
//
// There are two kinds of caller. For an ordinary user the launcher mounts in a new user namespace. Root mounts directly, shows every host
// path through an ID-mapped mount (so that root's files belong to the sandbox's user) and gives up root for good before bwrap starts.
// Invariant: every name used in a mount option is one of ours, so no character of a user's path is ever interpreted.
import { perlProgram } from '../../lib/perl.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { SandboxSpec } from '../../protocol/spec.ts';
import { bwrapArgs } from './bwrap-args.ts';
import { overlayOptions, planSources, type PlannedFile, type StagedPath } from '../spec/mount-sources.ts';
import { DESCRIPTORS, listenerList } from '../io/descriptors.ts';

export interface LaunchInput {
  readonly spec: SandboxSpec;
  readonly command: readonly string[];
  /** The command that sets the limits; runs inside, before the command. */
  readonly limitArgv: readonly string[];
  /** A directory of this sandbox alone, outside everything it can see. */
  readonly runDir: string;
  readonly callerIsRoot: boolean;
  /** The owner of the project; only for root. */
  readonly owner: { readonly uid: number; readonly gid: number };
  readonly bwrap: string;
  readonly setsid: string;
  readonly arch: 'x64' | 'arm64';
  /** The caller may mount overlays here. */
  readonly overlays: boolean;
  /** The caller may create namespaces: some systems allow that to bwrap alone. */
  readonly namespaces: boolean;
  /** An empty directory of the system over which the launcher may mount in its own namespace. */
  readonly stage: string;
  readonly cgroupFiles: readonly string[];
  /** Prepended to everything, for example a systemd scope. */
  readonly prefix: readonly string[];
  readonly terminal: boolean;
  readonly stdinIsTerminal: boolean;
}

export interface Launch {
  readonly argv: readonly string[];
  readonly bwrapArgs: readonly string[];
  /** The sources of mounts that the launcher prepares for bwrap. */
  readonly staged: readonly StagedPath[];
  readonly files: readonly PlannedFile[];
}

// mount, unshare, prctl, dup3, sendmsg, capset, setresgid, setresuid, prlimit64: in the order that the launcher expects.
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
  // Without an overlay to mount, only bwrap needs a namespace: some systems allow that to no other program.
  const mayMount = input.callerIsRoot || input.overlays || overlay !== '';
  const ownNamespace = mayMount || (spec.network.kind === 'gateway' && input.namespaces);
  const { source, staged, files } = planSources({ runDir, here, callerIsRoot: input.callerIsRoot, mayMount });
  const args = bwrapArgs({ spec, source, terminal: input.terminal, descriptors: DESCRIPTORS });
  // bwrap reads the command from its command line only; the command knows it anyway.
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
    ...(ownNamespace && !input.callerIsRoot ? OWN_MOUNTS : []),
    'perl',
    '-e',
    perlProgram('sandbox/perl/launcher.pl'),
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
    ...listenerArgs(input, ownNamespace),
    ...bwrap,
  ];
  return { argv: [...input.prefix, ...launcher], bwrapArgs: args, staged, files };
}

// Listeners are identified by their position in the list, so that no name is ever interpreted.
function listenerArgs(input: LaunchInput, ownNamespace: boolean): string[] {
  const { network } = input.spec;
  if (network.kind === 'loopback') return ['', '0'];
  if (!ownNamespace)
    throw new AgsError(
      'backend.unavailable',
      'The sandbox cannot have a gateway: on this system bwrap alone may make namespaces.',
      { hint: 'Start it without a network: --network off' },
    );
  return [`${channelDescriptor(input)},${network.reach ? 1 : 0}`, ...listenerList(network.listeners)];
}

/** The descriptor of Node's channel, after all others. */
function channelDescriptor({ terminal, stdinIsTerminal }: Pick<LaunchInput, 'terminal' | 'stdinIsTerminal'>): number {
  return terminal && !stdinIsTerminal ? DESCRIPTORS.stdin + 1 : DESCRIPTORS.stdin;
}

const OWN_MOUNTS = ['unshare', '--user', '--map-root-user', '--mount', '--propagation', 'private', '--'];

// The command takes the terminal inside, so that bwrap stays out of its process group: Ctrl-C must reach the command, not end the
// sandbox.
// The command waits for our go signal, which is sent when nothing can outlive us any more. If we die before that, the sandbox ends
// without having run anything.
function gateArgv(input: LaunchInput): string[] {
  const { go, stdin } = DESCRIPTORS;
  const stdinRedirect = input.terminal && !input.stdinIsTerminal ? ` <&${stdin} ${stdin}<&-` : '';
  return [
    ...(input.terminal ? [input.setsid, '--ctty'] : []),
    '/bin/sh',
    '-c',
    `read -r go <&${go} && exec "$@" ${go}<&-${stdinRedirect}`,
    'ags',
  ];
}

// Variables that take effect before a program's first line: those of the loader, the C library and shells. A project may set them, and a
// library preloaded into prlimit would run before the limits are set. So only the command gets them, from the last step before it.
type Env = Readonly<Record<string, string>>;

const OBEYED_FIRST =
  /^(?:LD_|GLIBC_|MALLOC_|MUSL_|BASH|GCONV_PATH$|GETCONF_DIR$|LOCPATH$|NLSPATH$|ENV$|IFS$|PS4$|SHELLOPTS$)/;
/** A shell that has to export these fails; no program needs them from outside. */
const NEVER = /^(?:SHELLOPTS|BASHOPTS|BASH_VERSINFO)$/;

/** `first` is the environment of the sandbox's first process; `argv` is prepended to the command. */
export function lateEnv(env: Env): { readonly first: Env; readonly argv: readonly string[] } {
  const late = Object.keys(env).filter((name) => OBEYED_FIRST.test(name));
  if (late.length === 0) return { first: env, argv: [] };
  const given = late.filter((name) => !NEVER.test(name)).map((name, i) => ({ name, as: `AGS_LATE_${i}` }));
  const first = {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => !late.includes(name))),
    ...Object.fromEntries(given.map(({ name, as }) => [as, env[name] ?? ''])),
  };
  const script = [
    ...given.map(({ name, as }) => `export ${name}="$${as}"`),
    ...given.map(({ as }) => `unset ${as}`),
    'exec "$@"',
  ];
  return { first, argv: ['/bin/sh', '-c', script.join('; '), 'ags'] };
}
