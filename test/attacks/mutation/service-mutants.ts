// test/attacks/mutation/service-mutants.ts: the protections of a task's services: each row removes one, and names the attempt that notices.
import type { Attack } from '../../../src/attack/table/attack.ts';
import { fromService, LASTING_SERVICE_ATTACKS, SERVICE_ATTACKS, SPY } from '../../../src/attack/table/services.ts';
import type { Piece } from './mutated-source.ts';

export interface ServiceMutant {
  readonly name: string;
  /** The attempt that succeeds without it, and its answer. */
  readonly by: string;
  readonly finds: RegExp;
  readonly pieces: readonly Piece[];
}

const greedy = (id: string, what: string, perl: string, expect: readonly string[]): Attack => ({
  id,
  area: 'services',
  references: ['A17'],
  what,
  perl,
  expect,
  needs: 'services',
});

/** Attempts to get more than the limits: a task that connects too often, and a service that is ended and then says no more. */
export const SERVICE_GREED: readonly Attack[] = [
  greedy(
    'service-connections',
    'connect to a service until the runner has no descriptor left for its listener',
    `my @all = map { socket(my $s, PF_INET, SOCK_STREAM, 0); connect($s, pack_sockaddr_in(${SPY.port}, inet_aton($V{SERVICE}))) or die $!; $s } 1 .. 600; my $away = 0; for (1 .. 25) { $away = grep { my $set = ''; vec($set, fileno $_, 1) = 1; select($set, undef, undef, 0) && !sysread $_, my $end, 1 } @all; last if $away > 80; select undef, undef, undef, 0.2 } line($away > 80 ? 'sent away' : 'all are in')`,
    ['sent away'],
  ),
  greedy(
    'service-memory',
    'from a service: have more memory than it was given',
    fromService(
      "alarm 0; open STDERR, '>', '/dev/null'; line('began'); my $size = 600 << 20; my $all = 'x' x $size; sleep 3; line('got it')",
    ),
    ['began', 'was cut off'],
  ),
  greedy(
    'service-disk',
    'from a service: fill the disk with its data (160 MiB of 50)',
    fromService(
      "alarm 0; line('began'); for (1 .. 40) { open my $f, '>', \"$ENV{DATA}/fill$_\" or die $!; syswrite $f, 'a' x (4 << 20); close $f; select undef, undef, undef, 0.1 } sleep 4; line('got it')",
    ),
    ['began', 'was cut off'],
  ),
];

/** Runs in the task before the attempt: a service leaves a file in its data. */
export const LEAVE: Attack = {
  ...greedy(
    'service-leave',
    '',
    fromService('open my $f, ">", "$ENV{DATA}/neighbour.txt" or die $!; print $f "x"; line("left")'),
    ['left'],
  ),
};

const SANDBOX = 'services/sandbox.ts';
const one = (name: string, by: string, finds: RegExp, file: string, from: string, to: string): ServiceMutant => ({
  name,
  by,
  finds,
  pieces: [[file, from, to]],
});

// One row for each mutant, as a table.
// oxfmt-ignore
export const SERVICE_MUTANTS: readonly ServiceMutant[] = [
  one('no variable of the user', 'service-secrets', /= (there|found)$/, SANDBOX, "    envSet: {\n      LANG: 'C.UTF-8',", "    envSet: {\n      ...(context.env as Record<string, string>),\n      LANG: 'C.UTF-8',"),
  one('no listener', 'service-doors', /^127\.0\.0\.1:3128 = connected/, SANDBOX, "network: { kind: 'gateway', doors: [], reach: true }", "network: { kind: 'gateway', doors: [{ name: 'proxy', protocol: 'tcp', address: '127.0.0.1', port: 3128 }], reach: true }"),
  one('nothing of the project', 'service-files', /\/project = exists/, SANDBOX, '.map(({ path }) => path)', '.map(({ path }) => path).concat(plan.project.root)'),
  one('nothing that the user has added', 'service-files', /\/added = exists/, SANDBOX, 'optional && existsSync(path)', 'optional !== null && existsSync(path)'),
  one('nothing to write but its own', 'service-writable-mounts', /^\/mnt = writable/, SANDBOX, '  return image === null\n    ? spec\n', "  return image === null\n    ? { ...spec, mounts: [...spec.mounts, { kind: 'bind', from: hostPath(want.paths.home), to: sandboxPath('/mnt'), writable: true, veil: 'no', why: '' }] }\n"),
  one('no debugger', 'service-kernel-trace-init', /^seize = done/, SANDBOX, 'kernel: { ptrace: false,', 'kernel: { ptrace: true,'),
  one('memory of its own', 'service-memory', /got it/, SANDBOX, 'memoryBytes: service.memoryBytes,', 'memoryBytes: 2 ** 40,'),
  one('disk of its own', 'service-disk', /got it/, SANDBOX, '      memoryBytes: service.memoryBytes,', '      diskBytes: 2 ** 40,\n      memoryBytes: service.memoryBytes,'),
  one('ports that are declared', 'service-undeclared-port', /= connected/, 'run/plan-services.ts', 'for (const port of to.ports) {', `for (const port of [...to.ports, ${SPY.undeclared}]) {`),
  one('a limit on connections', 'service-connections', /all are in/, 'services/run-services.ts', 'if (open.size >= MOST_OPEN) {', 'if (open.size < 0) {'),
  one('data of its own', 'service-of-another-task', /neighbour\.txt = exists/, 'store/service-files.ts', 'return taskPaths(services, name);', "return taskPaths(services.replace(/\\/tasks\\/.*/, ''), name);"),
  // Protections of every sandbox, seen from a service.
  one('no keyring', 'service-kernel-keyrings', /^add = /, 'sandbox/spec/seccomp-table.ts', '  add_key: [248, 217],\n', ''),
];

/** Attempts that no removed protection of a service lets succeed, with the test that shows that they can. */
export const NEVER: Readonly<Record<string, string>> = {
  'service-processes': 'every sandbox has its own process namespace: test/attacks/mutation/mutation.proof.test.ts',
  'service-data-from-task': 'what the sandbox of a task is shown: test/attacks/mutation/mutation.proof.test.ts',
};

export const ALL_SERVICE_ATTACKS: readonly Attack[] = [
  ...SERVICE_ATTACKS,
  ...LASTING_SERVICE_ATTACKS,
  ...SERVICE_GREED,
];
