// sandbox/container/container-args.ts: turns a SandboxSpec into command lines of an engine (docker, podman). Pure.
// Invariant: these lists alone determine the protection, so every part of it is here and nowhere else.
import { perlProgram } from '../../lib/perl.ts';
import type { Limits } from '../../protocol/spec.ts';
import { interpreterMount, rootArgs } from './container-image.ts';
import { bindArgs, mountArgs, type MountInput } from './mounts.ts';
import { SYSTEM_DIRS } from '../spec/machine.ts';

export interface ContainerInput extends Omit<MountInput, 'label'> {
  /** Names the containers of this one sandbox. */
  readonly name: string;
  /** Names the run, so that leftovers of a crash can be found. */
  readonly run: string;
  /** The process that owns the containers while it lives. */
  readonly owner: string;
  /** For a remote engine: see remote/remote.ts. */
  readonly far?: boolean;
  /** Every container has its own user namespace, in which the caller keeps its user ID. */
  readonly rootless: boolean;
  /** The engine has cgroups that limit memory and processes. */
  readonly counts: boolean;
  /** The image for the command: the root image, or a user's image by its ID. */
  readonly image: string;
  /** The image for our own containers. */
  readonly rootImage: string;
  /** The command that starts Perl inside. */
  readonly perl: readonly string[];
  /** Over an image: the host directory with the copy of Perl. */
  readonly interpreter: string | null;
  readonly arch: 'x64' | 'arm64';
  /** The limits of each process, as prlimit options. */
  readonly limitArgv: readonly string[];
  /** The kernel has IPv6. An engine turns it off where there is no interface, but programs expect it on loopback. */
  readonly ipv6: boolean;
  /** Host directories in which the gate and the pause container meet the stream broker. */
  readonly meeting: { readonly gate: string; readonly pause: string };
}

/** The directory in which the gate and the pause container find the stream broker; afterwards the sandbox sees it empty. */
export const MEETING_PLACE = '/sys/ags';

// prctl, dup3, recvmsg
const GATE_CALLS = { x64: '157,292,47', arm64: '167,24,212' } as const;
// prctl, capset, sendmsg, recvmsg, setresgid, setresuid
const PAUSE_CALLS = { x64: '157,126,46,47,119,117', arm64: '167,91,211,212,149,147' } as const;

export const LABEL = 'ags.run';
/** The starter: machine, user, process and start time (owner.ts). */
export const OWNER_LABEL = 'ags.owner';
/**
 * The remote starter: machine, user, state directory, process and start time. An ags on the engine's machine leaves such containers
 * alone.
 */
export const REMOTE_LABEL = 'ags.far';

export function agentArgs(input: ContainerInput): string[] {
  const { spec } = input;
  const joined = spec.network.kind === 'gateway';
  return [
    'run',
    '--detach',
    ...common(input, `${input.name}-agent`),
    ...(joined ? joinedNetwork(input) : ownNetwork(input)),
    ...(spec.runtime === null ? [] : ['--runtime', spec.runtime]),
    '--user',
    `${spec.user.uid}:${spec.user.gid}`,
    ...(input.counts ? groupArgs(spec.limits) : []),
    ...limitArgs(input.limitArgv),
    ...mountArgs({ ...input, label: `${LABEL}=${input.run}` }),
    ...ownEtc(input),
    ...bindArgs(input.kind, input.meeting.gate, MEETING_PLACE, false),
    ...rootArgs(input.kind, spec, input.interpreter),
    ...program(input, input.image, gate(input.far === true), GATE_CALLS[input.arch]),
  ];
}

function gate(remote: boolean): string {
  return perlProgram('sandbox/perl/gate.pl', { MEETING_PLACE, REMOTE: remote ? 1 : 0 });
}

/**
 * Starts as root, because listeners may have low ports, which no program inside can then take. Its only rights are binding those ports
 * and giving up root, which it does once the listeners are open.
 */
export function pauseArgs(input: ContainerInput): string[] {
  const { name } = input;
  return [
    'run',
    '--detach',
    ...common(input, `${name}-net`),
    ...ownNetwork(input),
    '--user',
    '0:0',
    ...['NET_BIND_SERVICE', 'SETUID', 'SETGID'].flatMap((right) => ['--cap-add', right]),
    ...(input.counts ? ['--pids-limit', '8', '--memory', '64m'] : []),
    ...systemMounts(input),
    ...bindArgs(input.kind, input.meeting.pause, MEETING_PLACE, false),
    ...program(
      input,
      input.rootImage,
      perlProgram('sandbox/perl/pause.pl', { MEETING_PLACE }),
      PAUSE_CALLS[input.arch],
    ),
  ];
}

/** Mounts for our own programs: system directories or, over an image, the copy of Perl. */
function systemMounts(input: ContainerInput): string[] {
  const { spec } = input;
  const mounts = spec.mounts.filter((mount) => mount.kind === 'bind' && SYSTEM_DIRS.includes(mount.from));
  return [
    ...mountArgs({ ...input, spec: { ...spec, mounts }, label: `${LABEL}=${input.run}` }),
    ...interpreterMount(input.kind, input.interpreter),
  ];
}

/** Options of every container of ours. */
export function common(
  input: Pick<ContainerInput, 'run' | 'owner' | 'kind' | 'rootless' | 'far'>,
  name: string,
): string[] {
  return [
    '--rm',
    '--pull',
    'never',
    '--name',
    name,
    '--label',
    `${LABEL}=${input.run}`,
    '--label',
    `${input.far === true ? REMOTE_LABEL : OWNER_LABEL}=${input.owner}`,
    '--log-driver',
    'none',
    ...input.kind.always,
    ...(input.rootless ? ['--userns', 'keep-id'] : []),
    '--read-only',
    '--cap-drop',
    'ALL',
    '--security-opt',
    'no-new-privileges',
    '--ipc',
    'none',
    '--cgroupns',
    'private',
    '--oom-score-adj',
    '800',
    // An engine shows the machine's devices there.
    '--tmpfs',
    '/sys:ro,nosuid,nodev,noexec,size=4k,mode=0555',
    '--tmpfs',
    '/sys/fs/cgroup:ro,nosuid,nodev,noexec,size=4k,mode=0555',
    // No limit counts space there.
    '--tmpfs',
    '/dev/mqueue:ro,nosuid,nodev,noexec,size=4k,mode=0555',
  ];
}

/** Without a daemon, "host" is the network in which the engine's command was started: the sandbox's own. */
function joinedNetwork({ kind, name, spec }: ContainerInput): string[] {
  return kind.daemon ? ['--network', `container:${name}-net`] : ['--network', 'host', '--hostname', spec.hostname];
}

function ownNetwork({ spec, ipv6, kind }: ContainerInput): string[] {
  return [
    '--network',
    'none',
    '--hostname',
    spec.hostname,
    ...kind.ownResolver,
    '--sysctl',
    'net.ipv4.ip_unprivileged_port_start=1024',
    ...(ipv6 ? ['--sysctl', 'net.ipv6.conf.lo.disable_ipv6=0'] : []),
  ];
}

function groupArgs(limits: Limits): string[] {
  const memory = String(limits.memoryBytes);
  const cpus = limits.cpus === null ? [] : ['--cpus', String(limits.cpus)];
  return ['--pids-limit', String(limits.processes), '--memory', memory, '--memory-swap', memory, ...cpus];
}

function limitArgs(limitArgv: readonly string[]): string[] {
  return limitArgv.flatMap((arg) => {
    const [, name, soft, hard = soft] = /^--([a-z]+)=(\d+)(?::(\d+))?$/.exec(arg) ?? [];
    return name === undefined ? [] : ['--ulimit', `${name}=${soft}:${hard}`];
  });
}

/** An engine mounts its own files here, unless something is mounted already. */
function ownEtc(input: ContainerInput): string[] {
  const etc = input.spec.mounts.findLast((mount) => mount.kind === 'bind' && mount.to === '/etc');
  if (etc === undefined) return [];
  return ['hosts', 'hostname', 'resolv.conf'].flatMap((name) =>
    bindArgs(input.kind, `${input.source(etc)}/${name}`, `/etc/${name}`, false),
  );
}

export function program(
  { perl }: Pick<ContainerInput, 'perl'>,
  image: string,
  script: string,
  calls: string,
): string[] {
  const [file = '', ...first] = perl;
  return ['--workdir', '/', '--entrypoint', file, image, ...first, '-e', script, '--', calls];
}
