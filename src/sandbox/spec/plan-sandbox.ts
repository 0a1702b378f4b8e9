// sandbox/spec/plan-sandbox.ts: plans a sandbox over a project. Pure: facts about the machine come in, a SandboxSpec comes out.
// Invariant: allow-list the host. A host path is visible only if a line below names it.
import {
  hostPath,
  sandboxPath,
  type KernelRules,
  type Limits,
  type Mount,
  type SandboxNetwork,
  type SandboxRoot,
  type SandboxSpec,
  type WorkspaceMount,
} from '../../protocol/spec.ts';
import { isWithin } from '../../lib/files.ts';
import { hasMountBelow, type Machine } from './machine.ts';

export interface PlanInput {
  readonly machine: Machine;
  readonly user: { readonly uid: number; readonly gid: number; readonly name: string; readonly shell: string };
  readonly home: string;
  readonly homeDir: string;
  /** It was there before this task, and stays after it. */
  readonly homeStays: boolean;
  readonly root: SandboxRoot;
  /** The copy of /etc made for sandboxes; over an image, the files that are mounted in its /etc. */
  readonly etc:
    | { readonly kind: 'copy'; readonly directory: string }
    | { readonly kind: 'files'; readonly files: Readonly<Record<string, string>> };
  /** The image's environment, which everything else overrides. */
  readonly imageEnv: Readonly<Record<string, string>>;
  readonly project: string;
  readonly cwd: string;
  readonly workspace: WorkspaceMount;
  /** The private git directory with its path inside, and the object stores it borrows from. */
  readonly git: {
    readonly mounts: readonly {
      readonly from: string;
      readonly to: string;
      readonly writable: boolean;
      readonly why: string;
    }[];
  } | null;
  readonly extraMounts: readonly string[];
  readonly hostEnv: Readonly<Record<string, string | undefined>>;
  readonly envPass: readonly string[];
  readonly pathEnv: readonly string[];
  /** Variables that lead programs to the gateway. */
  readonly networkEnv: Readonly<Record<string, string>>;
  /** Generated files, by their path inside. */
  readonly files: readonly { readonly to: string; readonly content: string; readonly binary: boolean }[];
  readonly envSet: Readonly<Record<string, string>>;
  readonly limits: Limits;
  readonly kernel: KernelRules;
  readonly network: SandboxNetwork;
  readonly runtime: string | null;
  readonly taskName: string;
  readonly more: MoreInside;
}

/** Additions for one sandbox: the program of an agent, its settings. */
export interface MoreInside {
  readonly mounts: readonly { readonly from: string; readonly to: string }[];
  readonly files: readonly { readonly to: string; readonly content: string }[];
  readonly env: Readonly<Record<string, string>>;
  /** Directories inside that come first in the PATH. */
  readonly path: readonly string[];
}

export const NOTHING_MORE: MoreInside = { mounts: [], files: [], env: {}, path: [] };

export function planSandbox(input: PlanInput): SandboxSpec {
  const { machine, home } = input;
  const tools = machine.toolDirs.map((path) => bind(path, path, 'tool directory of the home'));
  const extra = input.extraMounts.map((path): Mount => ({
    ...bind(path, path, 'mounts: in the configuration'),
    veil: hasMountBelow(machine, path) ? 'no' : 'may',
  }));
  const mounts: Mount[] = [
    ...machine.system
      .filter(({ path }) => !input.extraMounts.includes(path))
      .map((entry): Mount =>
        entry.link === null
          ? bind(entry.path, entry.path, 'the system')
          : { kind: 'symlink', target: entry.link, to: sandboxPath(entry.path), why: 'the system' },
      ),
    ...etcMounts(input.etc),
    { kind: 'proc', to: sandboxPath('/proc'), why: 'its own processes only' },
    { kind: 'dev', to: sandboxPath('/dev'), why: 'null, zero, random, terminals' },
    { kind: 'tmpfs', to: sandboxPath('/dev/shm'), bytes: 256 * MiB, mode: '1777', why: 'shared memory of its own' },
    {
      kind: 'tmpfs',
      to: sandboxPath('/tmp'),
      bytes: input.limits.tmpBytes,
      mode: '1777',
      why: 'temporary files of its own',
    },
    ...(input.root.kind === 'host'
      ? [{ kind: 'dir', to: sandboxPath('/run'), mode: '0755', why: 'no socket of the host' } as const]
      : []),
    ...input.files.map((file): Mount => ({
      kind: 'file',
      content: file.content,
      binary: file.binary,
      to: sandboxPath(file.to),
      why: 'certificate authorities that programs trust',
    })),
    ...varMounts(input),
    {
      kind: 'bind',
      from: hostPath(input.homeDir),
      to: sandboxPath(home),
      writable: true,
      why: input.homeStays ? 'a home that stays for the next task' : "the task's own home",
    },
    ...tools,
    ...extra,
    ...input.more.mounts.map(({ from, to }) => bind(from, to, 'a program of the agent')),
    ...input.more.files.map(({ to, content }): Mount => ({
      kind: 'file',
      content,
      to: sandboxPath(to),
      why: 'settings that it cannot change',
    })),
    {
      kind: 'workspace',
      workspace: input.workspace,
      to: sandboxPath(input.project),
      why: 'the project, copy-on-write',
    },
    ...(input.git?.mounts ?? []).map((m): Mount => ({
      kind: 'bind',
      from: hostPath(m.from),
      to: sandboxPath(m.to),
      writable: m.writable,
      veil: 'may',
      why: m.why,
    })),
  ];
  const visible = [
    ...machine.system.map((s) => s.path),
    ...machine.toolDirs,
    ...input.extraMounts,
    ...(input.root.kind === 'host' ? CERTIFICATES : []),
    input.project,
  ];
  return {
    hostname: 'sandbox',
    root: input.root,
    user: { uid: input.user.uid, gid: input.user.gid, name: input.user.name },
    mounts,
    env: planEnv(input, visible),
    workdir: sandboxPath(input.cwd),
    network: input.network,
    limits: input.limits,
    kernel: input.kernel,
    runtime: input.runtime,
  };
}

const MiB = 1024 * 1024;

function etcMounts(etc: PlanInput['etc']): Mount[] {
  if (etc.kind === 'copy')
    return [
      {
        ...bind(etc.directory, '/etc', 'a copy of the settings that etc: names, with accounts of its own'),
        veil: 'no',
      },
    ];
  return Object.entries(etc.files).map(([name, content]): Mount => ({
    kind: 'file',
    content,
    to: sandboxPath(`/etc/${name}`),
    why: 'accounts and names of its own',
  }));
}

function varMounts({ root, limits }: PlanInput): Mount[] {
  const to = sandboxPath('/var/tmp');
  if (root.kind === 'image')
    return [{ kind: 'tmpfs', to, bytes: limits.tmpBytes, mode: '1777', why: 'programs expect it' }];
  return [
    { kind: 'dir', to: sandboxPath('/var'), mode: '0755', why: 'nothing of the host' },
    { kind: 'symlink', target: '../tmp', to, why: 'programs expect it' },
  ];
}

/** Certificates in /etc, which every program may read; always part of the copy. */
const CERTIFICATES = [
  '/etc/ssl/certs',
  '/etc/ssl/cert.pem',
  '/etc/pki/tls/certs',
  '/etc/pki/tls/cert.pem',
  '/etc/pki/ca-trust',
];

function bind(from: string, to: string, why: string): Extract<Mount, { kind: 'bind' }> {
  return { kind: 'bind', from: hostPath(from), to: sandboxPath(to), writable: false, why };
}

/** Generated account files: the real ones name every account of the machine and its name servers. */
export function accountFiles(
  user: PlanInput['user'],
  home: string,
  resolvConf: string,
  moreHosts = '',
): Record<string, string> {
  const nobody = 'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin';
  return {
    passwd: `root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n${user.name}:x:${user.uid}:${user.gid}::${home}:${user.shell}\n${nobody}\n`,
    group: `root:x:0:\n${user.name}:x:${user.gid}:\nnogroup:x:65534:\n`,
    hosts: `127.0.0.1 localhost sandbox\n::1 localhost\n${moreHosts}`,
    hostname: 'sandbox\n',
    'resolv.conf': resolvConf,
  };
}

function planEnv(input: PlanInput, visible: readonly string[]): Record<string, string> {
  const env: Record<string, string> = { ...input.imageEnv };
  for (const [name, value] of Object.entries(input.hostEnv)) {
    if (value === undefined) continue;
    const named = input.envPass.some((p) => (p.endsWith('*') ? name.startsWith(p.slice(0, -1)) : p === name));
    // A variable that holds a tool's path is useful only if that path is visible.
    const located = input.pathEnv.includes(name) && isVisible(value, visible);
    if (named || located) env[name] = value;
  }
  return {
    ...env,
    PATH: [...input.more.path, planPath(input, visible), ...(input.homeStays ? [`${input.home}/.local/bin`] : [])].join(
      ':',
    ),
    HOME: input.home,
    USER: input.user.name,
    LOGNAME: input.user.name,
    SHELL: input.user.shell,
    TMPDIR: '/tmp',
    ...input.networkEnv,
    ...input.envSet,
    ...input.more.env,
    AGS_SANDBOX: '1',
    AGS_TASK: input.taskName,
  };
}

const USUAL_PATH = '/usr/local/bin:/usr/bin:/bin';

function planPath({ root, hostEnv, imageEnv }: PlanInput, visible: readonly string[]): string {
  const own = (hostEnv['PATH'] ?? '').split(':').filter((dir) => dir.startsWith('/') && isVisible(dir, visible));
  if (root.kind === 'host') return own.join(':') || USUAL_PATH;
  const theirs = (imageEnv['PATH'] ?? USUAL_PATH).split(':').filter((dir) => dir.startsWith('/'));
  return [...new Set([...theirs, ...own])].join(':') || USUAL_PATH;
}

export function isVisible(path: string, visible: readonly string[]): boolean {
  return visible.some((dir) => isWithin(path, dir));
}
