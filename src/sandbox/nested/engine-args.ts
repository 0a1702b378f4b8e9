// sandbox/nested/engine-args.ts: the engine inside as a container beside the sandbox: its command line, and that of the engine in it. Pure.
// Invariant: what it may do is entirely determined by these lists and by inner-scripts.ts.
import type { Limits } from '../../protocol/spec.ts';
import { LABEL, OWNER_LABEL } from '../container/container-args.ts';
import { bindArgs, type SkeletonEntry } from '../container/mounts.ts';
import { ENGINE_KINDS } from '../engine/engine-kinds.ts';
import { HALL_NAMES } from './egress-network.ts';
import { INNER_MEETING, KEEPER } from '../inner-scripts.ts';

/**
 * The first of the users that the engine and its containers have on this machine: above what systemd gives to containers, below
 * what some programs take for negative. Nobody else has files or processes under them.
 */
export const INNER_BASE = 0x7000_0000;

/** In the engine's own network: where it is asked, and where it finds images. */
export const ENGINE_PORT = 2375;
export const REGISTRY_PORT = 5000;

export const DATA_DIR = '/var/lib/docker';

export interface InnerInput {
  readonly name: string;
  readonly run: string;
  readonly owner: string;
  readonly image: string;
  readonly arch: 'x64' | 'arm64';
  readonly perl: string;
  readonly limits: Pick<Limits, 'memoryBytes' | 'processes'>;
  /** A directory of the host in which the keeper meets the usher. */
  readonly meeting: string;
  /** Directories of this machine that the engine's programs are in. */
  readonly system: readonly string[];
}

// prctl, capset, sendmsg, recvmsg, setresgid, setresuid, unshare, setns, mount
export const KEEPER_CALLS = {
  x64: '157,126,46,47,119,117,272,308,165',
  arm64: '167,91,211,212,149,147,97,268,40',
} as const;

/**
 * Root only to give everything up: its two rights are what mapping users takes. The engine's own filter and masks have to be off,
 * because they refuse what any container is made with; ours is laid before the engine starts (seccomp-table.ts).
 */
export function innerArgs(input: InnerInput): string[] {
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
    ...bindArgs(ENGINE_KINDS.docker, input.meeting, INNER_MEETING, false),
    // Without a name: it goes with its container.
    '--mount',
    `type=volume,dst=${DATA_DIR},volume-label=${LABEL}=${input.run}`,
    '--workdir',
    '/',
    '--entrypoint',
    input.perl,
    input.image,
    '-e',
    KEEPER,
    '--',
    KEEPER_CALLS[input.arch],
  ];
}

/** Directories that are made, links that are as on this machine. */
export function innerSkeleton(links: readonly { path: string; target: string }[]): readonly SkeletonEntry[] {
  const dirs = ['/run', '/tmp', '/root', '/etc/docker', '/etc/alternatives', DATA_DIR, INNER_MEETING];
  return [...links, { path: '/var/run', target: '/run' }, ...dirs.map((path) => ({ path, mode: '0755' }))];
}

export interface InnerPrograms {
  readonly dockerd: string;
  readonly proxy: string;
}

export function innerEngineArgv({ dockerd, proxy }: InnerPrograms, more: readonly string[]): string[] {
  return [
    dockerd,
    '--rootless',
    '--host=fd://',
    // For containers that are given the socket of their engine, as test tools do.
    '--host=unix:///run/docker.sock',
    `--data-root=${DATA_DIR}`,
    '--exec-root=/run/docker',
    '--pidfile=/run/docker.pid',
    `--userland-proxy-path=${proxy}`,
    // Whoever is not a container of its own is asked for in the hall.
    `--dns=${HALL_NAMES}`,
    ...more,
    '--log-level=error',
  ];
}

export const ENGINE_ENV: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  // Nothing else can be written: an engine makes directories that it is told to show and does not find, and a container that is to
  // have a directory of the sandbox would find an empty one.
  HOME: '/run',
  TMPDIR: '/run/tmp',
  XDG_RUNTIME_DIR: '/run',
  // Whatever is no Docker Hub is asked for here as well; what is not allowed gets its refusal here.
  HTTP_PROXY: `http://127.0.0.1:${REGISTRY_PORT}`,
  HTTPS_PROXY: `http://127.0.0.1:${REGISTRY_PORT}`,
  NO_PROXY: 'localhost,127.0.0.1,::1',
};
