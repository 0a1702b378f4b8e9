// sandbox/native/bwrap-args.ts: turns a SandboxSpec into bubblewrap arguments. Pure.
// Invariant: this list alone determines the protection, so every part of it is here and nowhere else.
// The arguments go to bwrap through a descriptor: on its command line they would show in /proc/1/cmdline inside.
import type { Mount, SandboxSpec, WorkspaceMount } from '../../protocol/spec.ts';

export interface ArgsInput {
  readonly spec: SandboxSpec;
  /** The path of a mount's content: staged binds, generated files, the merged workspace. */
  readonly source: (mount: Mount) => string;
  /** True when the command gets our terminal as its controlling terminal. */
  readonly terminal: boolean;
  readonly descriptors: { readonly seccomp: number; readonly status: number };
}

export function bwrapArgs(input: ArgsInput): string[] {
  const { spec } = input;
  return [
    ...NAMESPACES,
    // With a gateway the launcher has created the network namespace and its listeners.
    ...(spec.network.kind === 'loopback' ? ['--unshare-net'] : []),
    '--uid',
    String(spec.user.uid),
    '--gid',
    String(spec.user.gid),
    '--hostname',
    spec.hostname,
    '--cap-drop',
    'ALL',
    '--die-with-parent',
    // With a terminal the command creates its own session, to which that terminal then belongs.
    ...(input.terminal ? [] : ['--new-session']),
    '--clearenv',
    ...Object.entries(spec.env).flatMap(([name, value]) => ['--setenv', name, value]),
    ...spec.mounts.flatMap((mount) => mountArgs(mount, input.source)),
    // bwrap's root and /dev are tmpfs mounts that the sandbox's user could fill.
    '--remount-ro',
    '/dev',
    '--remount-ro',
    '/',
    '--chdir',
    spec.workdir,
    '--seccomp',
    String(input.descriptors.seccomp),
    // Reports the process ID of the sandbox's init, and the exit code only if the command was really started.
    '--json-status-fd',
    String(input.descriptors.status),
  ];
}

// Listed one by one: --unshare-all silently continues without a user namespace.
const NAMESPACES = [
  '--unshare-user',
  '--disable-userns',
  '--unshare-pid',
  '--unshare-ipc',
  '--unshare-uts',
  '--unshare-cgroup',
] as const;

function mountArgs(mount: Mount, source: (mount: Mount) => string): string[] {
  switch (mount.kind) {
    case 'bind':
      return [mount.writable ? '--bind' : '--ro-bind', source(mount), mount.to];
    case 'file':
      return ['--ro-bind', source(mount), mount.to];
    case 'workspace':
      return [isWritable(mount.workspace) ? '--bind' : '--ro-bind', source(mount), mount.to];
    case 'symlink':
      return ['--symlink', mount.target, mount.to];
    case 'tmpfs':
      return ['--size', String(mount.bytes), '--perms', mount.mode, '--tmpfs', mount.to];
    case 'dir':
      return ['--perms', mount.mode, '--dir', mount.to];
    case 'proc':
      // PID 1 is bwrap itself, with the same user: a program that wrote its memory could make it outlive us.
      return ['--proc', mount.to, '--perms', '0555', '--tmpfs', `${mount.to}/1`, '--remount-ro', `${mount.to}/1`];
    case 'dev':
      return ['--dev', mount.to];
  }
}

function isWritable(workspace: WorkspaceMount): boolean {
  return workspace.kind === 'overlay' || (workspace.kind === 'copy' && workspace.writable);
}
