// test/attacks/mutation/filter-mutation.proof.test.ts: removes one rule of the system call filter at a time, and shows that an attempt then
// succeeds. A process may install a filter for itself, so one sandbox without a filter of its own tries them all.
import { expect, test } from 'vitest';
import { breaches, type Attack } from '../../../src/attack/table/attack.ts';
import { batchInput, batchProgram, parseAnswers } from '../../../src/attack/table/batch.ts';
import { FILE_ATTACKS } from '../../../src/attack/table/files.ts';
import { IDENTITY_ATTACKS } from '../../../src/attack/table/identity.ts';
import { KERNEL_ATTACKS } from '../../../src/attack/table/kernel.ts';
import { NETWORK_ATTACKS } from '../../../src/attack/table/network.ts';
import type { KernelRules } from '../../../src/protocol/spec.ts';
import { assemble } from '../../../src/sandbox/spec/seccomp.ts';
import { kernelPolicy, NUMBERS, type Policy } from '../../../src/sandbox/spec/seccomp-table.ts';
import { createMachine, ONE } from '../../harness.ts';
import { runMutant, type Mutation } from './mutant.ts';
import { createVictims } from '../victims.ts';

const ARCH = process.arch === 'arm64' ? 'arm64' : 'x64';
const RULES: KernelRules = { ptrace: false, unixSockets: true };

/** Calls that an agent would gain nothing by; the rules about them are tried all the same. */
const BESIDES: readonly Attack[] = [
  {
    id: 'pairs',
    what: 'make a pair of sockets of a network',
    perl: "tried(socketpair(my $a, my $b, PF_INET, SOCK_STREAM, 0), 'socketpair')",
    expect: ['EAFNOSUPPORT'],
  },
  {
    id: 'old-devices',
    what: 'make a device by the older call',
    perl: "my $at = '/tmp/node'; tried(call('mknod', $at, S_IFCHR | 0600, 0) == 0); unlink $at",
    expect: ['EPERM', 'ENOSYS'],
  },
  {
    id: 'large-pieces',
    what: 'have memory that outlives its processes',
    perl: "my $id = shmget(0, 65536, 01600); tried(defined $id, 'shmget'); shmctl($id, 0, 0) if defined $id",
    expect: ['EINVAL'],
  },
].map((one) => ({ ...one, area: 'kernel', references: [] }));

const ATTACKS = [...FILE_ATTACKS, ...KERNEL_ATTACKS, ...NETWORK_ATTACKS, ...IDENTITY_ATTACKS, ...BESIDES].filter(
  ({ needs }) => needs === undefined,
);

/** Also refused by a capability, or missing in this kernel: the filter is the first of two protections. */
const HELD_TWICE: readonly string[] =
  'fanotify_init pivot_root move_mount fsopen fsmount fspick kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff iopl ioperm acct syslog vhangup bpf perf_event_open listns listmount statmount memfd_secret open_tree_attr quotactl_fd uselib _sysctl create_module get_kernel_syms query_module nfsservctl lookup_dcookie'.split(
    ' ',
  );

const NO_FILTER: Mutation = { filter: () => assemble(ARCH, {}) };

const uses = (name: string): Attack[] =>
  ATTACKS.filter(({ perl }) => new RegExp(`'${name}'|\\b${name}\\(|qw\\([^)]*\\b${name}\\b`).test(perl));

test('an attempt uses every system call that the filter decides about', () => {
  expect(Object.keys(NUMBERS).filter((name) => uses(name).length === 0)).toEqual([]);
});

test('without the rule about a call, an attempt succeeds, or the kernel is known to refuse it too', async () => {
  using machine = createMachine(ONE);
  await using victims = await createVictims(machine);
  const whole = kernelPolicy(RULES);
  const rules = (Object.keys(whole) as (keyof Policy)[]).filter(
    (name) => NUMBERS[name][ARCH === 'x64' ? 0 : 1] !== null,
  );
  const mutants = rules.flatMap((name) => {
    const { [name]: _out, ...policy } = whole;
    return uses(name).map((attack) => ({ name, attack: under(policy, attack) }));
  });
  const all = [...ATTACKS.map((attack) => under(whole, attack)), ...mutants.map(({ attack }) => attack)];
  const run = await runMutant(
    machine,
    victims,
    NO_FILTER,
    ['perl', '-e', batchProgram(process.arch)],
    batchInput(all, victims.places),
  );
  const wrong = parseAnswers(run.stdout, all).map((answer, i) => breaches(all[i] as Attack, answer));
  expect(wrong.slice(0, ATTACKS.length).flat()).toEqual([]);
  const noticed = new Set(
    mutants.filter((_, i) => (wrong[ATTACKS.length + i] ?? []).length > 0).map(({ name }) => name),
  );
  expect(rules.filter((name) => !noticed.has(name) && !HELD_TWICE.includes(name))).toEqual([]);
});

/** `struct sock_fprog` and prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER). */
function under(policy: Policy, attack: Attack): Attack {
  const filter = assemble(ARCH, policy);
  const perl = `my $rules = pack 'H*', '${filter.toString('hex')}'; my $all = pack 'Sx6P', ${filter.length / 8}, $rules; call('prctl', 22, 2, $all) == 0 or die "no filter: $!"; ${attack.perl}`;
  return { ...attack, perl };
}
