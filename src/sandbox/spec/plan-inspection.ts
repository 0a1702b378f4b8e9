// sandbox/spec/plan-inspection.ts: plans an inspection: a throw-away sandbox in which one program of ours examines files that an agent
// left. The host itself never runs a program over those files. Pure.
import {
  HOST_ROOT,
  hostPath,
  sandboxPath,
  type Limits,
  type Mount,
  type SandboxSpec,
  type WorkspaceMount,
} from '../../protocol/spec.ts';
import type { Machine } from './machine.ts';

/** Paths inside. */
export const INSIDE = { upper: '/run/ags/upper', out: '/run/ags/out' } as const;

export function planInspection(input: {
  machine: Machine;
  user: { uid: number; gid: number };
  project: string;
  workspace: WorkspaceMount;
  upper: string | null;
  /** Fresh and ours; the only writable directory. null: there is none. */
  out: string | null;
  env: Readonly<Record<string, string>>;
  limits: Limits;
}): SandboxSpec {
  const bind = (from: string, to: string, writable: boolean, why: string): Mount => ({
    kind: 'bind',
    from: hostPath(from),
    to: sandboxPath(to),
    writable,
    // Only our own programs run here.
    veil: 'no',
    why,
  });
  return {
    hostname: 'sandbox',
    root: HOST_ROOT,
    user: { ...input.user, name: 'agent' },
    mounts: [
      ...input.machine.system.map((entry): Mount =>
        entry.link === null
          ? bind(entry.path, entry.path, false, 'the system')
          : { kind: 'symlink', target: entry.link, to: sandboxPath(entry.path), why: 'the system' },
      ),
      { kind: 'dir', to: sandboxPath('/etc'), mode: '0755', why: 'programs expect it' },
      ...input.machine.etc.map((name) => bind(`/etc/${name}`, `/etc/${name}`, false, 'settings of the system')),
      { kind: 'proc', to: sandboxPath('/proc'), why: 'its own processes only' },
      { kind: 'dev', to: sandboxPath('/dev'), why: 'null, zero, random' },
      {
        kind: 'tmpfs',
        to: sandboxPath('/tmp'),
        bytes: 64 * 1024 * 1024,
        mode: '1777',
        why: 'temporary files of its own',
      },
      {
        kind: 'workspace',
        workspace: input.workspace,
        to: sandboxPath(input.project),
        why: 'what the sandbox left behind',
      },
      ...(input.upper === null ? [] : [bind(input.upper, INSIDE.upper, false, 'what the sandbox wrote')]),
      ...(input.out === null ? [] : [bind(input.out, INSIDE.out, true, 'the answer')]),
    ],
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/tmp', LC_ALL: 'C', ...input.env },
    workdir: sandboxPath(input.project),
    network: { kind: 'loopback' },
    limits: input.limits,
    kernel: { ptrace: false, unixSockets: false },
    runtime: null,
  };
}
