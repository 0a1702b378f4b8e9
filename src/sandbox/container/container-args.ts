// sandbox/container/container-args.ts: a SandboxSpec as command lines of an engine (docker, podman). Pure.
// Invariant: protection is entirely determined by these lists, so every part of it stands here and nowhere else.
import type { Limits } from '../../protocol/spec.ts';
import { interpreterMount, rootArgs } from './container-image.ts';
import { bindArgs, mountArgs, type MountInput } from './mounts.ts';
import { FAR_GATE, GATE, HOLDER, MEETING_PLACE } from '../docker-scripts.ts';
import { SYSTEM_DIRS } from '../spec/machine.ts';

export interface ContainerInput extends Omit<MountInput, 'label'> {
  /** Names the containers of this one sandbox. */
  readonly name: string;
  /** Names the run, so that what a crash has left can be found. */
  readonly run: string;
  /** Whoever is alive keeps them. */
  readonly owner: string;
  /** Of an engine on another machine: see far.ts. */
  readonly far?: boolean;
  /** Every container has a user namespace of its own, in which the caller is who it is outside. */
  readonly rootless: boolean;
  /** The engine has control groups to hold memory and processes by. */
  readonly counts: boolean;
  /** What the command stands on: the skeleton, or an image by its id. */
  readonly image: string;
  /** What ours stand on. */
  readonly skeleton: string;
  /** What starts Perl inside. */
  readonly perl: readonly string[];
  /** Over an image: the directory of this machine that has it. */
  readonly interpreter: string | null;
  readonly arch: 'x64' | 'arm64';
  /** The limits of each process, as prlimit takes them. */
  readonly limitArgv: readonly string[];
  /** The kernel has it; an engine turns it off where there is no interface, but programs expect it on loopback. */
  readonly ipv6: boolean;
  /** Directories of the host in which gate and holder meet the usher. */
  readonly meeting: { readonly gate: string; readonly holder: string };
}

// prctl, dup3, recvmsg
const GATE_CALLS = { x64: '157,292,47', arm64: '167,24,212' } as const;
// prctl, capset, sendmsg, recvmsg, setresgid, setresuid
const HOLDER_CALLS = { x64: '157,126,46,47,119,117', arm64: '167,91,211,212,149,147' } as const;

export const LABEL = 'ags.run';
/** Who started it: machine, user, process and start time (owner.ts). */
export const OWNER_LABEL = 'ags.owner';
/** Who started it from another machine: which, user, state directory, process and start time. An ags over there knows nothing of it, and leaves it alone. */
export const FAR_LABEL = 'ags.far';

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
    ...program(input, input.image, input.far === true ? FAR_GATE : GATE, GATE_CALLS[input.arch]),
  ];
}

/**
 * Root, because doors may have low ports, which nobody inside can then take; of root's rights it has this one and that of giving
 * itself up, which it does when the doors are open.
 */
export function holderArgs(input: ContainerInput): string[] {
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
    ...bindArgs(input.kind, input.meeting.holder, MEETING_PLACE, false),
    ...program(input, input.skeleton, HOLDER, HOLDER_CALLS[input.arch]),
  ];
}

/** What our own programs need: directories of this machine, or, over an image, the copy of Perl. */
function systemMounts(input: ContainerInput): string[] {
  const { spec } = input;
  const mounts = spec.mounts.filter((mount) => mount.kind === 'bind' && SYSTEM_DIRS.includes(mount.from));
  return [
    ...mountArgs({ ...input, spec: { ...spec, mounts }, label: `${LABEL}=${input.run}` }),
    ...interpreterMount(input.kind, input.interpreter),
  ];
}

/** What every container of ours has. */
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
    `${input.far === true ? FAR_LABEL : OWNER_LABEL}=${input.owner}`,
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
    // An engine shows the devices of the machine there.
    '--tmpfs',
    '/sys:ro,nosuid,nodev,noexec,size=4k,mode=0555',
    '--tmpfs',
    '/sys/fs/cgroup:ro,nosuid,nodev,noexec,size=4k,mode=0555',
    // Room that no limit counts.
    '--tmpfs',
    '/dev/mqueue:ro,nosuid,nodev,noexec,size=4k,mode=0555',
  ];
}

/** Without a daemon the "host" is what the engine's command was started in: a network of this sandbox's own. */
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

/** An engine mounts files of its own over these, unless they are mounted already. */
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
