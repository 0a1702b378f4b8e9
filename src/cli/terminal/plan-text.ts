// cli/terminal/plan-text.ts: a whole plan as readable text (`ags plan --verbose`). Pure.
// Invariant: every mount, variable and limit of the plan has its line, in the plan's order.
import type { Limits, Mount, SandboxSpec } from '../../protocol/spec.ts';
import { perlProgram } from '../../lib/perl.ts';
import { visible } from '../../lib/sanitize.ts';
import { formatSize } from '../../lib/units.ts';
import { budgetText } from '../../queries/budgets.ts';
import type { LimitInForce } from '../../sandbox/watch/limits.ts';
import type { PlanView } from '../../exec/plan-view.ts';
import type { Paint } from './colour.ts';
import { count, cut, meanings, section, shellLine, shellQuote, table } from './format.ts';

export function renderPlan(view: PlanView, paint: Paint): string {
  const { spec, launch } = view;
  return [
    `${paint('bold', view.label)}\n`,
    facts(view),
    section('Mounts, in this order; a later one covers an earlier one', mounts(view), paint),
    ...hiddenFiles(view, paint),
    ...services(view, paint),
    section('Environment, and no other variable', variables(view), paint),
    section(
      'Limits',
      table(
        view.limits.map((limit) => [LIMIT_WORDS[limit.name], HELD_BY[limit.held], limit.means]),
        { indent: 2 },
      ),
      paint,
    ),
    section('Kernel', kernel(spec, launch.bwrapArgs.length === 0), paint),
    section('Command line', `${commandLine(launch.argv)}\n`, paint),
    ...view.beside.map(({ what, argv }) => section(what, `${commandLine(argv)}\n`, paint)),
    ...(launch.bwrapArgs.length === 0 ? [] : [bubblewrap(view, paint)]),
  ].join('\n');
}

function bubblewrap({ launch, privateNames }: PlanView, paint: Paint): string {
  return section(
    "bubblewrap's arguments, which it reads from descriptor 3",
    optionLines(launch.bwrapArgs, privateNames)
      .map((line) => `  ${line}\n`)
      .join(''),
    paint,
  );
}

export function head({ project: { repository } }: PlanView): string {
  if (repository === null) return 'not a git repository';
  const branch = repository.headRef?.replace('refs/heads/', '') ?? 'detached HEAD';
  return `git, ${branch}${repository.headCommit === null ? ', no commits yet' : ` at ${repository.headCommit.slice(0, 12)}`}`;
}

function facts(view: PlanView): string {
  const { spec, project } = view;
  return table([
    ['Project', `${project.root} (${head(view)})`],
    ['<task>', view.taskDir],
    ['Command', shellLine(view.command)],
    ['Starts in', spec.workdir],
    ['Workspace', WORKSPACE[view.workspace]],
    ...(spec.root.kind === 'host' ? [] : [['Image', `${spec.root.reference} (${spec.root.id}), read-only`]]),
    ['User', `${spec.user.name}, uid ${spec.user.uid}, gid ${spec.user.gid}, on the host "${spec.hostname}"`],
    ['Network', NETWORK[spec.network.kind]],
    ...(view.docker === null ? [] : [['Docker', view.docker]]),
    ...(view.compose === null ? [] : [['Compose', view.compose]]),
    ...view.models.map((model) => ['Model of', visible(model)]),
    ...view.budgets.map((one) => ['Budget', `${budgetText(one)} (${visible(one.origin)})`]),
    ...view.notices.map((notice) => ['Note', notice]),
  ]);
}

function services(view: PlanView, paint: Paint): string[] {
  if (view.services.length === 0) return [];
  const rows = view.services.map((one) => [
    one.name,
    one.kind,
    `${one.address}:${one.ports.join(',')}`,
    one.url,
    `at most ${formatSize(one.memoryBytes)}`,
    one.problem ?? (one.seed.length === 0 ? '' : `filled with ${one.seed.join(', ')}`),
  ]);
  return [
    section('Services beside it, each in a sandbox of its own without network', table(rows, { indent: 2 }), paint),
  ];
}

export const WORKSPACE = {
  overlay: 'overlay: copy-on-write, the original is never written',
  copy: 'copy: a full copy of the project, the original is never written',
} as const;

export const NETWORK = {
  loopback: 'loopback only: nothing outside the sandbox can be reached',
  gateway: 'loopback only, with the gateway as the only way out',
} as const;

// A path that is the same inside and outside is printed once.
function mounts({ spec, taskDir }: PlanView): string {
  const from = (mount: Mount): string => source(mount).replace(`${taskDir}/`, '<task>/');
  return table(
    spec.mounts.map((mount) => [access(mount), mount.to, mount.why, from(mount)]),
    { indent: 2 },
  );
}

function access(mount: Mount): string {
  switch (mount.kind) {
    case 'bind':
      return mount.writable ? 'rw' : 'ro';
    case 'tmpfs':
      return 'rw';
    case 'workspace':
      return mount.workspace.kind === 'overlay' || (mount.workspace.kind === 'copy' && mount.workspace.writable)
        ? 'rw'
        : 'ro';
    case 'proc':
      return 'rw';
    // The root and /dev become read-only after the last mount.
    case 'symlink':
    case 'dir':
    case 'dev':
    case 'file':
      return 'ro';
  }
}

function source(mount: Mount): string {
  switch (mount.kind) {
    case 'bind':
      return String(mount.from) === String(mount.to) ? '' : mount.from;
    case 'symlink':
      return `link to ${mount.target}`;
    case 'tmpfs':
      return `memory, ${formatSize(mount.bytes)}`;
    case 'dir':
      return 'empty directory';
    case 'proc':
    case 'dev':
      return `new ${mount.kind}`;
    case 'file':
      return count(Buffer.byteLength(mount.content), 'byte');
    case 'workspace':
      return mount.workspace.kind === 'copy' ? mount.workspace.directory : `${mount.workspace.upper} over the original`;
  }
}

function hiddenFiles({ hidden, trackedSecrets }: PlanView, paint: Paint): string[] {
  const list = (paths: readonly string[]): string => paths.map((path) => `  ${visible(path)}\n`).join('');
  return [
    ...(hidden.length === 0
      ? []
      : [section('Hidden: they do not exist inside; show one with --reveal <path>', list(hidden), paint)]),
    ...(trackedSecrets.length === 0
      ? []
      : [section('Visible although they look like secrets, because git tracks them', list(trackedSecrets), paint)]),
  ];
}

const LONGEST_VALUE = 100;

function variables({ spec, privateNames }: PlanView): string {
  return table(
    Object.entries(spec.env).map(([name, value]) => [
      name,
      privateNames.includes(name) ? '(set)' : cut(value, LONGEST_VALUE),
    ]),
    { indent: 2 },
  );
}

const LIMIT_WORDS = {
  processes: 'processes',
  memoryBytes: 'memory',
  openFiles: 'openFiles',
  fileBytes: 'fileSize',
  diskBytes: 'disk',
  tmpBytes: 'tmp',
  cpuSeconds: 'cpu',
  wallSeconds: 'time',
  cpus: 'cpus',
} as const satisfies Record<keyof Limits, string>;

const HELD_BY = { kernel: 'held by the kernel', watched: 'watched', no: 'no limit' } as const satisfies Record<
  LimitInForce['held'],
  string
>;

function kernel({ kernel: rules }: SandboxSpec, container: boolean): string {
  const own = 'mount, pid, network, ipc, uts and cgroup of its own; no further user namespaces inside';
  return meanings([
    ['namespaces', container ? own : `user, ${own}`],
    ['privileges', 'no capabilities, no new privileges'],
    ['system calls', 'filtered by seccomp; what the filter does not know is refused'],
    ['ptrace', rules.ptrace ? 'allowed, on processes of the sandbox only' : 'refused (kernel.ptrace)'],
    ['unix sockets', rules.unixSockets ? 'allowed; no socket of the host is visible' : 'refused (kernel.unixSockets)'],
  ]);
}

const PROGRAMS = 'launcher gate pause namespace-wrapper stage stream-broker user-namespace-helper nested-broker'.split(
  ' ',
);
/** The variables that lib/perl.ts puts before a program. */
const GIVEN = /^(?:\$main::[A-Z_]+ = (?:\d+|'[\w /.]*');\n)*/;

/** Our own programs keep their line breaks; other words show them as escapes. */
export function commandLine(argv: readonly string[]): string {
  const programs = new Set(PROGRAMS.map((name) => perlProgram(`sandbox/perl/${name}.pl`)));
  const isOurs = (word: string): boolean => programs.has(word.replace(GIVEN, ''));
  return argv
    .map((word) => (isOurs(word) ? `'${word.replaceAll("'", String.raw`'\''`)}'` : shellQuote(word)))
    .join(' ');
}

/** One option with its values per line. */
export function optionLines(args: readonly string[], privateNames: readonly string[] = []): string[] {
  const lines: string[] = [];
  for (let at = 0; at < args.length;) {
    const option = args[at] ?? '';
    const words = args.slice(at, at + 1 + (VALUES[option] ?? 0));
    const [, name] = words;
    const shown =
      option === '--setenv' && name !== undefined && privateNames.includes(name) ? [option, name, '(set)'] : words;
    lines.push(shellLine(shown));
    at += words.length;
  }
  return lines;
}

// A value may look like an option, so the number of values is fixed for each option.
const VALUES: Readonly<Record<string, number>> = {
  '--uid': 1,
  '--gid': 1,
  '--hostname': 1,
  '--cap-drop': 1,
  '--setenv': 2,
  '--bind': 2,
  '--ro-bind': 2,
  '--symlink': 2,
  '--size': 1,
  '--perms': 1,
  '--tmpfs': 1,
  '--dir': 1,
  '--proc': 1,
  '--dev': 1,
  '--remount-ro': 1,
  '--chdir': 1,
  '--seccomp': 1,
  '--json-status-fd': 1,
};
