// sandbox/nested/engine-args.ts: the command lines of nested Docker: of the container beside the sandbox, and of the engine in it. Pure.
// Invariant: these lists and perl/user-namespace-helper.pl alone determine what nested Docker may do.
import { perlProgram } from '../../lib/perl.ts';
import type { Limits } from '../../protocol/spec.ts';
import { LABEL, OWNER_LABEL } from '../container/container-args.ts';
import { bindArgs, type RootImageEntry } from '../container/mounts.ts';
import { ENGINE_KINDS } from '../engine/engine-kinds.ts';
import { EGRESS_INTERFACES, EGRESS_NAMES } from './egress-network.ts';

/**
 * The first user ID that the engine and its containers have on this machine: above the range that systemd gives to containers, below the
 * values that some programs take for negative. No other user has files or processes under these IDs.
 */
export const NESTED_BASE = 0x7000_0000;
/** The number of user IDs of the engine; the next one belongs to the user-namespace helper. */
export const NESTED_USERS = 65_536;

/** The directory in which the user-namespace helper finds the stream broker. */
export const NESTED_MEETING = '/ags';

/** For containers whose requests the gateway inspects: they mount this file with `-v`. It has the same path in the sandbox. */
export const TRUST_INSIDE = '/run/ags/ca-bundle.pem';

/** Ports in the engine's network: its API, and the image cache. */
export const ENGINE_PORT = 2375;
export const REGISTRY_PORT = 5000;

export const DATA_DIR = '/var/lib/docker';

export interface NestedInput {
  readonly name: string;
  readonly run: string;
  readonly owner: string;
  readonly image: string;
  readonly arch: 'x64' | 'arm64';
  readonly perl: string;
  readonly limits: Pick<Limits, 'memoryBytes' | 'processes'>;
  /** The host directory in which the user-namespace helper meets the stream broker. */
  readonly meeting: string;
  /** System directories with the engine's programs. */
  readonly system: readonly string[];
}

// prctl, capset, sendmsg, recvmsg, setresgid, setresuid, unshare, setns, mount
export const USER_HELPER_CALLS = {
  x64: '157,126,46,47,119,117,272,308,165',
  arm64: '167,91,211,212,149,147,97,268,40',
} as const;

/**
 * Starts as root only to give everything up: it needs its two capabilities to map users. The engine's default filter and masks are off,
 * because they refuse the calls that create containers; ours is installed before the engine starts (seccomp-table.ts).
 */
export function nestedArgs(input: NestedInput): string[] {
  const memory = String(input.limits.memoryBytes);
  return [
    'run',
    '--detach',
    '--rm',
    '--pull',
    'never',
    '--name',
    input.name,
    '--label',
    `${LABEL}=${input.run}`,
    '--label',
    `${OWNER_LABEL}=${input.owner}`,
    '--log-driver',
    'none',
    ...ENGINE_KINDS.docker.always,
    '--read-only',
    '--network',
    'none',
    '--hostname',
    'docker',
    '--user',
    '0:0',
    '--cap-drop',
    'ALL',
    '--cap-add',
    'SETUID',
    '--cap-add',
    'SETGID',
    ...['seccomp=unconfined', 'systempaths=unconfined', 'apparmor=unconfined'].flatMap((option) => [
      '--security-opt',
      option,
    ]),
    '--ipc',
    'private',
    '--cgroupns',
    'private',
    '--oom-score-adj',
    '800',
    '--ulimit',
    'core=1:1',
    '--pids-limit',
    String(input.limits.processes),
    '--memory',
    memory,
    '--memory-swap',
    memory,
    ...input.system.flatMap((path) => bindArgs(ENGINE_KINDS.docker, path, path, false)),
    ...bindArgs(ENGINE_KINDS.docker, input.meeting, NESTED_MEETING, false),
    // Anonymous: removed with its container.
    '--mount',
    `type=volume,dst=${DATA_DIR},volume-label=${LABEL}=${input.run}`,
    '--workdir',
    '/',
    '--entrypoint',
    input.perl,
    input.image,
    '-e',
    userHelper(),
    '--',
    USER_HELPER_CALLS[input.arch],
  ];
}

/** The first process of the container. */
export function userHelper(): string {
  const given = { MEETING_PLACE: NESTED_MEETING, USERS: NESTED_USERS, TRUST: TRUST_INSIDE, ...EGRESS_INTERFACES };
  return perlProgram('sandbox/perl/user-namespace-helper.pl', given);
}

/** The directories to create, and this machine's links. */
export function nestedRootImage(links: readonly { path: string; target: string }[]): readonly RootImageEntry[] {
  const dirs = ['/run', '/tmp', '/root', '/etc/docker', '/etc/alternatives', DATA_DIR, NESTED_MEETING];
  return [...links, { path: '/var/run', target: '/run' }, ...dirs.map((path) => ({ path, mode: '0755' }))];
}

export interface NestedPrograms {
  readonly dockerd: string;
  readonly proxy: string;
}

export function nestedEngineArgv({ dockerd, proxy }: NestedPrograms, more: readonly string[]): string[] {
  return [
    dockerd,
    '--rootless',
    '--host=fd://',
    // For containers that mount the engine's socket, as test tools do.
    '--host=unix:///run/docker.sock',
    `--data-root=${DATA_DIR}`,
    '--exec-root=/run/docker',
    '--pidfile=/run/docker.pid',
    `--userland-proxy-path=${proxy}`,
    // Names that are not containers are resolved in the egress network.
    `--dns=${EGRESS_NAMES}`,
    ...more,
    '--log-level=error',
  ];
}

export const ENGINE_ENV: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  // No other directory is writable. An engine creates missing bind sources, and a container that should see a directory of the sandbox
  // would get an empty one instead.
  HOME: '/run',
  TMPDIR: '/run/tmp',
  XDG_RUNTIME_DIR: '/run',
  // Requests to registries other than Docker Hub come here too, and forbidden ones are refused here.
  HTTP_PROXY: `http://127.0.0.1:${REGISTRY_PORT}`,
  HTTPS_PROXY: `http://127.0.0.1:${REGISTRY_PORT}`,
  NO_PROXY: 'localhost,127.0.0.1,::1',
};
