// sandbox/spec/seccomp-table.ts: the system calls that a sandbox may make. Data only; seccomp.ts turns it into a filter.
// Invariant: an unknown call number is refused, so a newer kernel opens nothing by itself.
//
// Width of arguments: a register has 64 bits, but the kernel truncates a parameter declared `int`, `unsigned int` or `umode_t`. A filter
// that compared all 64 bits would let 0x1_0000_5412 pass, which the kernel then reads as 0x5412. So each decision below looks at the bits
// that the kernel uses, and names the parameter's type.
import type { KernelRules } from '../../protocol/spec.ts';

export type SeccompArch = 'x64' | 'arm64';

/** Verdicts for a call: SECCOMP_RET_*. */
export const ALLOW = 0x7fff0000;
export const KILL = 0x80000000;
export const EPERM = 0x00050001;
/** "This kernel has no such call": libraries fall back to an older one. */
export const ENOSYS = 0x00050000 | 38;
/** The kernel's own answer to a shared memory segment that is too large. */
const EINVAL = 0x00050000 | 22;
const EPROTONOSUPPORT = 0x00050000 | 93;
const EAFNOSUPPORT = 0x00050000 | 97;
/** Error number 0: the call does nothing and reports success. */
const PRETEND = 0x00050000;

/** `audit` is the AUDIT_ARCH_* that the kernel puts beside each call, `lastOwn` the end of the architecture's own numbers. */
export const ARCHES: Readonly<Record<SeccompArch, { readonly audit: number; readonly lastOwn: number }>> = {
  // 335 and 336 are uretprobe and uprobe: a tracer on the host can make any process call them, and refusing would crash the process.
  x64: { audit: 0xc000003e, lastOwn: 336 },
  arm64: { audit: 0xc00000b7, lastOwn: 294 },
};
/** Numbers from here on mean the same on every architecture. */
export const FIRST_SHARED = 424;
/** rseq_slice_yield, Linux 7.0. Increase it only after reading what the new calls do. */
export const LAST_SHARED = 471;

/** A verdict, or a test of one word of one argument: the first case that contains its value decides. */
export type Decision =
  | number
  | {
      readonly arg: number;
      readonly word: 'low' | 'high';
      readonly mask: number;
      readonly cases: readonly (readonly [values: readonly number[], then: Decision])[];
      readonly otherwise: Decision;
    };

export type Policy = Readonly<Partial<Record<CallName, Decision>>>;

/** Every call that is not simply allowed. Frequent calls come first, because the filter tests in this order. */
export function kernelPolicy(rules: KernelRules): Policy {
  const policy: Partial<Record<CallName, Decision>> = argumentRules(rules);
  for (const name of namesOf(REFUSED)) policy[name] = EPERM;
  for (const name of namesOf(ABSENT)) policy[name] = ENOSYS;
  if (!rules.ptrace) for (const name of namesOf(OTHER_PROCESSES)) policy[name] = EPERM;
  return policy;
}

/**
 * For nested Docker: it creates namespaces and mounts, so it runs in its own user namespace, with no rights in any other. Calls that act
 * on the machine, or that no container needs, stay refused to it and to all that it starts.
 */
export function enginePolicy(): Policy {
  const policy: Partial<Record<CallName, Decision>> = {};
  for (const name of namesOf(REFUSED)) if (!FOR_ENGINES.has(name)) policy[name] = EPERM;
  for (const name of namesOf(ABSENT)) policy[name] = ENOSYS;
  const { ioctl, setrlimit, prlimit64 } = argumentRules({ ptrace: true, unixSockets: true });
  const [unix, inet, inet6, netlink] = [1, 2, 10, 16];
  // Interfaces and routes, packet filters, and the protocol that finds their modules.
  const netlinkSocket = only(2, 0xffffffff, [0, 12, 16], ALLOW, EAFNOSUPPORT);
  const socket: Decision = {
    arg: 0,
    word: 'low',
    mask: 0xffffffff,
    cases: [
      [[unix, inet, inet6], ALLOW],
      [[netlink], netlinkSocket],
    ],
    otherwise: EAFNOSUPPORT,
  };
  return { ...policy, ioctl, socket, setrlimit, prlimit64 };
}

const FOR_ENGINES: ReadonlySet<string> = new Set([
  'mount',
  'umount2',
  'pivot_root',
  'chroot',
  'setns',
  'mount_setattr',
  'open_tree',
  'move_mount',
  'fsopen',
  'fsconfig',
  'fsmount',
  'fspick',
  // A container has its own keyring, and no other program has keys under these users.
  'keyctl',
]);

function namesOf<Name extends CallName>(calls: Readonly<Record<Name, unknown>>): readonly Name[] {
  return Object.keys(calls) as Name[];
}

/** [x64, arm64]; null where the architecture has no such call. The test compares them with the system's headers. */
type Numbers = Readonly<Record<string, readonly [number, number | null]>>;

// Only an administrator needs these calls, or they act beyond the sandbox's namespaces. Most also require a capability that the sandbox
// lacks; the filter covers a mistake there, or a bug behind that check.
const REFUSED = {
  // The keyrings belong to the user, not to a namespace: they may hold keys of the host session.
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  // Large interfaces with a long history of holes, for tools that no sandbox needs.
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  fanotify_init: [300, 262],
  kcmp: [312, 272],
  // A handle names any inode of a file system, also outside every visible mount. Creating one is harmless.
  open_by_handle_at: [304, 265],
  // The mount tree and the namespaces are the sandbox: no program inside may change them.
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  setns: [308, 268],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  open_tree_attr: [467, 467],
  // The machine: kernel, modules, swap, ports, quota, log, terminals and clock.
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  iopl: [172, null],
  ioperm: [173, null],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  acct: [163, 89],
  syslog: [103, 116],
  vhangup: [153, 58],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  adjtimex: [159, 171],
  clock_adjtime: [305, 266],
} as const satisfies Numbers;

// These calls have an older equivalent, or no users left.
const ABSENT = {
  // The flags are behind a pointer, which the filter cannot read. libc falls back to `clone`.
  clone3: [435, 435],
  // io_uring opens sockets and files without system calls, which would bypass this whole file.
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  // One page of secret memory keeps the host from hibernating.
  memfd_secret: [447, 447],
  // /proc/self/mountinfo and /proc/self/ns show what the sandbox may know.
  statmount: [457, 457],
  listmount: [458, 458],
  listns: [470, 470],
  // modify_ldt serves 16-bit and 32-bit programs, which cannot run here anyway.
  modify_ldt: [154, null],
  uselib: [134, null],
  ustat: [136, null],
  sysfs: [139, null],
  _sysctl: [156, null],
  create_module: [174, null],
  get_kernel_syms: [177, null],
  query_module: [178, null],
  nfsservctl: [180, 42],
  lookup_dcookie: [212, 18],
} as const satisfies Numbers;

// Access to other processes; only those of the sandbox are visible. This leaves less for an exploit to use, but separates nothing:
// /proc/<pid>/mem of a process with the same user stays open, and no filter sees that.
const OTHER_PROCESSES = {
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  pidfd_getfd: [438, 438],
} as const satisfies Numbers;

const BY_ARGUMENT = {
  ioctl: [16, 29],
  clone: [56, 220],
  socket: [41, 198],
  socketpair: [53, 199],
  renameat2: [316, 276],
  mknod: [133, null],
  mknodat: [259, 33],
  unshare: [272, 97],
  personality: [135, 92],
  shmget: [29, 194],
  setrlimit: [160, 164],
  prlimit64: [302, 261],
} as const satisfies Numbers;

/** Refused with any arguments. */
export const REFUSED_CALLS = { ...REFUSED, ...ABSENT, ...OTHER_PROCESSES };
export const NUMBERS = { ...BY_ARGUMENT, ...REFUSED_CALLS };
export type CallName = keyof typeof NUMBERS;

// Deliberately unfiltered: a set-user-id bit in chmod or open. `openat2` has its mode behind a pointer, so the rule could not be
// complete. The mounts are nosuid, the state directory is closed to other users, and a change leaves the sandbox as mode 644 or 755 only.
function argumentRules(rules: KernelRules): Record<keyof typeof BY_ARGUMENT, Decision> {
  const whole = 0xffffffff;
  // The type shares its word with SOCK_CLOEXEC and SOCK_NONBLOCK.
  const typeBits = 0xf;
  const [stream, datagram, seqpacket] = [1, 2, 5];
  const [unix, inet, inet6, netlink] = [1, 2, 10, 16];
  // 0 picks TCP or UDP, 6 and 17 name them. SCTP, DCCP, SMC and others would load modules that nothing needs.
  const inetSocket = only(1, typeBits, [stream, datagram], only(2, whole, [0, 6, 17], ALLOW, EPROTONOSUPPORT), EPERM);
  // Protocol 0, NETLINK_ROUTE, lists the interfaces for getifaddrs. The other protocols open more of the kernel.
  const netlinkSocket = only(2, whole, [0], ALLOW, EAFNOSUPPORT);
  // One end of a datagram pair can still send to any path; these two only reach each other.
  const connectedPair = only(1, typeBits, [stream, seqpacket], ALLOW, EPERM);
  // Any other type is a device. Character device 0:0 needs no privilege and means "deleted" to an overlay.
  // No type at all creates a regular file; the others are S_IFREG, S_IFIFO and S_IFSOCK.
  const node = (arg: number): Decision => only(arg, 0xf000, [0, 0x8000, 0x1000, 0xc000], ALLOW, EPERM);
  // PER_LINUX, PER_LINUX32, UNAME26, both, and the query of the current value. Debuggers also use ADDR_NO_RANDOMIZE. All other flags make
  // data executable or page zero usable.
  const personalities = [0, 0x8, 0x20000, 0x20008, 0xffffffff, ...(rules.ptrace ? [0x40000] : [])];
  return {
    // unsigned int cmd. TIOCSTI types into the terminal, TIOCLINUX and TIOCCONS drive the console, and TIOCSETD loads line disciplines, a
    // frequent target of kernel exploits.
    ioctl: only(1, whole, [0x5412, 0x541c, 0x541d, 0x5423], EPERM, ALLOW),
    // unsigned long flags, of which `clone` keeps the low word. The mask is every CLONE_NEW* but NEWTIME, whose bit is part of the signal
    // number here.
    clone: only(0, 0x7e020000, [0], ALLOW, EPERM),
    // int family, int type, int protocol.
    socket: {
      arg: 0,
      word: 'low',
      mask: whole,
      cases: [
        [[inet, inet6], inetSocket],
        [[unix], rules.unixSockets ? ALLOW : EPERM],
        [[netlink], netlinkSocket],
      ],
      // AF_VSOCK is the most dangerous: it ignores network namespaces and reaches the hypervisor.
      otherwise: EAFNOSUPPORT,
    },
    // int family, int type.
    socketpair: only(0, whole, [unix], rules.unixSockets ? ALLOW : connectedPair, EAFNOSUPPORT),
    // unsigned int flags. RENAME_WHITEOUT leaves a device 0:0 behind.
    renameat2: only(4, 0x4, [0], ALLOW, EPERM),
    // umode_t mode: 16 bits.
    mknod: node(1),
    mknodat: node(2),
    // unsigned long flags, used whole, so the high word counts too. Only CLONE_VM, FS, FILES, SIGHAND, THREAD and SYSVSEM
    // pass: the flags for namespaces are still growing in number.
    unshare: {
      arg: 0,
      word: 'high',
      mask: whole,
      cases: [[[0], only(0, ~0x50f00 >>> 0, [0], ALLOW, EPERM)]],
      otherwise: EPERM,
    },
    // size_t size, used whole. This memory outlives its processes, so no watcher can count it. At most 4096 segments of less than 64 KiB
    // each are enough for databases that use one as a lock.
    shmget: {
      arg: 1,
      word: 'high',
      mask: whole,
      cases: [[[0], only(1, 0xffff0000, [0], ALLOW, EINVAL)]],
      otherwise: EINVAL,
    },
    // unsigned int resource; a pointer, used whole. At a limit of 1 the kernel starts no host program for a crashed process; at 0 it
    // does, as root. Programs with secrets set it to 0, and stop if they may not.
    setrlimit: only(0, whole, [RLIMIT_CORE], PRETEND, ALLOW),
    prlimit64: only(
      1,
      whole,
      [RLIMIT_CORE],
      { arg: 2, word: 'high', mask: whole, cases: [[[0], only(2, whole, [0], ALLOW, PRETEND)]], otherwise: PRETEND },
      ALLOW,
    ),
    // unsigned int personality.
    personality: only(0, whole, personalities, ALLOW, EPERM),
  };
}

const RLIMIT_CORE = 4;

function only(arg: number, mask: number, values: readonly number[], then: Decision, otherwise: Decision): Decision {
  return { arg, word: 'low', mask, cases: [[values, then]], otherwise };
}
