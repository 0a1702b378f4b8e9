// test/attacks/mutation/service-mutants.ts: the protections of a task's services, what the source is without each of them, and which attempt misses it.
import type { Attack } from '../../../src/attack/table/attack.ts';
import { fromService, LASTING_SERVICE_ATTACKS, SERVICE_ATTACKS, SPY } from '../../../src/attack/table/services.ts';
import type { Piece } from './mutated-source.ts';

export interface ServiceMutant {
  readonly name: string;
  /** The attempt that misses it, and what that then finds. */
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

/** What takes more than it was given: a task that wants to talk to a service, and a service, which is ended for that and says no more. */
export const SERVICE_GREED: readonly Attack[] = [
  greedy(
    'service-connections',
    'connect to a service until whoever holds its door has no descriptor left',
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

/** In a task before the one that looks for it: what a service of its own is left with. */
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

// One line for each, however long: it is read as a table.
// oxfmt-ignore
export const SERVICE_MUTANTS: readonly ServiceMutant[] = [
  one('no variable of the user', 'service-secrets', /= (there|found)$/, SANDBOX, "    envSet: {\n      LANG: 'C.UTF-8',", "    envSet: {\n      ...(context.env as Record<string, string>),\n      LANG: 'C.UTF-8',"),
  one('no door', 'service-doors', /^127\.0\.0\.1:3128 = connected/, SANDBOX, "network: { kind: 'gateway', doors: [], reach: true }", "network: { kind: 'gateway', doors: [{ name: 'proxy', protocol: 'tcp', address: '127.0.0.1', port: 3128 }], reach: true }"),
  one('nothing of the project', 'service-files', /\/project = exists/, SANDBOX, '.map(({ path }) => path)', '.map(({ path }) => path).concat(plan.project.root)'),
  one('nothing that the user has added', 'service-files', /\/added = exists/, SANDBOX, 'optional && existsSync(path)', 'optional !== null && existsSync(path)'),
  one('nothing to write but its own', 'service-writable-mounts', /^\/mnt = writable/, SANDBOX, '  return image === null\n    ? spec\n', "  return image === null\n    ? { ...spec, mounts: [...spec.mounts, { kind: 'bind', from: hostPath(want.paths.home), to: sandboxPath('/mnt'), writable: true, veil: 'no', why: '' }] }\n"),
  one('no debugger', 'service-kernel-trace-init', /^seize = done/, SANDBOX, 'kernel: { ptrace: false,', 'kernel: { ptrace: true,'),
  one('memory of its own', 'service-memory', /got it/, SANDBOX, 'memoryBytes: service.memoryBytes,', 'memoryBytes: 2 ** 40,'),
  one('disk of its own', 'service-disk', /got it/, SANDBOX, '      memoryBytes: service.memoryBytes,', '      diskBytes: 2 ** 40,\n      memoryBytes: service.memoryBytes,'),
  one('ports that are declared', 'service-undeclared-port', /= connected/, 'run/plan-services.ts', 'for (const port of to.ports) {', `for (const port of [...to.ports, ${SPY.undeclared}]) {`),
  one('so many connections', 'service-connections', /all are in/, 'services/run-services.ts', 'if (open.size >= MOST_OPEN) {', 'if (open.size < 0) {'),
  one('data of its own', 'service-of-another-task', /neighbour\.txt = exists/, 'store/service-files.ts', 'return taskPaths(services, name);', "return taskPaths(services.replace(/\\/tasks\\/.*/, ''), name);"),
  // What every sandbox has: seen from a service too.
  one('no keyring', 'service-kernel-keyrings', /^add = /, 'sandbox/spec/seccomp-table.ts', '  add_key: [248, 217],\n', ''),
];

/** Attempts that nothing of a service's own could let succeed, and what else shows that they can. Those that are made elsewhere too name what they follow. */
export const NEVER: Readonly<Record<string, string>> = {
  'service-processes': 'the processes of every sandbox are apart: test/attacks/mutation/mutation.proof.test.ts',
  'service-data-from-task': 'what the sandbox of a task is shown: test/attacks/mutation/mutation.proof.test.ts',
};

export const ALL_SERVICE_ATTACKS: readonly Attack[] = [
  ...SERVICE_ATTACKS,
  ...LASTING_SERVICE_ATTACKS,
  ...SERVICE_GREED,
];
