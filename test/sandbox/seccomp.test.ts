// The seccomp filter: run by a small interpreter for both architectures, checked for its shape, and loaded into the kernel by
// bwrap, where real programs try forbidden calls and do ordinary work.
// uses: sandbox, python3
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { KernelRules } from '../../src/protocol/spec.ts';
import { assemble, engineFilter, seccompArch, seccompFilter } from '../../src/sandbox/spec/seccomp.ts';
import {
  ALLOW,
  ARCHES,
  EPERM,
  ENOSYS,
  FIRST_SHARED,
  kernelPolicy,
  LAST_SHARED,
  NUMBERS,
} from '../../src/sandbox/spec/seccomp-table.ts';
import type { CallName, Decision, SeccompArch } from '../../src/sandbox/spec/seccomp-table.ts';
import { HAS_SANDBOX } from '../harness.ts';

/** 'buffer' is writable memory and 'path:x' a path; both are for calls in a real sandbox only. */
type Argument = number | bigint | 'buffer' | `path:${string}`;
type Row = readonly [call: string, args: readonly Argument[], verdict: string, rules?: KernelRules];

const usual: KernelRules = { ptrace: false, unixSockets: true };
const debugging: KernelRules = { ptrace: true, unixSockets: true };
const withoutUnix: KernelRules = { ptrace: false, unixSockets: false };
const arches: readonly SeccompArch[] = ['x64', 'arm64'];
const errnoNames: Readonly<Record<number, string>> = {
  0: 'done',
  1: 'EPERM',
  38: 'ENOSYS',
  22: 'EINVAL',
  93: 'EPROTONOSUPPORT',
  97: 'EAFNOSUPPORT',
};

// Repeats the table on purpose: a call that is removed from it by mistake must fail a test.
const refused = (
  'add_key request_key keyctl bpf perf_event_open userfaultfd fanotify_init kcmp open_by_handle_at mount umount2 pivot_root chroot ' +
  'setns open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr open_tree_attr kexec_load kexec_file_load init_module ' +
  'finit_module delete_module reboot swapon swapoff iopl ioperm quotactl quotactl_fd acct syslog vhangup settimeofday clock_settime ' +
  'adjtimex clock_adjtime'
).split(' ');
const absent = (
  'clone3 io_uring_setup io_uring_enter io_uring_register memfd_secret statmount listmount listns modify_ldt uselib ustat sysfs ' +
  '_sysctl create_module get_kernel_syms query_module nfsservctl lookup_dcookie'
).split(' ');
const otherProcesses = ['ptrace', 'process_vm_readv', 'process_vm_writev', 'process_madvise', 'pidfd_getfd'];
const plainRows: readonly Row[] = [
  ...[...refused, ...otherProcesses].map((call): Row => [call, [], 'EPERM']),
  ...absent.map((call): Row => [call, [], 'ENOSYS']),
];

/** Calls that the table does not name and the filter must allow. */
const others = {
  read: [0, 63],
  execve: [59, 221],
  name_to_handle_at: [303, 264],
  landlock_create_ruleset: [444, 444],
  landlock_restrict_self: [446, 446],
  map_shadow_stack: [453, 453],
  lsm_set_self_attr: [460, 460],
} as const;
const numberOf = (arch: SeccompArch, call: string): number | null =>
  ({ ...others, ...NUMBERS })[call as CallName][arch === 'x64' ? 0 : 1];

describe.each(arches)('on %s nested Docker', (arch) => {
  const of = (call: CallName, ...args: number[]): string => {
    const number = NUMBERS[call][arch === 'x64' ? 0 : 1] ?? -1;
    return interpret(engineFilter(arch), { number, audit: ARCHES[arch].audit, args });
  };

  test('may make the calls that create containers, and no other call that the usual filter refuses', () => {
    const needed = new Set<CallName>(
      'keyctl mount umount2 pivot_root chroot setns open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr'.split(
        ' ',
      ) as CallName[],
    );
    const known = [...refused, ...absent].filter((call) => NUMBERS[call as CallName][arch === 'x64' ? 0 : 1] !== null);
    expect(known.filter((call) => of(call as CallName) === 'allow')).toEqual(
      known.filter((call) => needed.has(call as CallName)),
    );
    expect(of('unshare', 0x1000_0000)).toBe('allow');
    expect(of('clone', 0x1000_0000)).toBe('allow');
  });

  test('may open sockets of its network, and none that bypass it', () => {
    const [unix, inet, inet6, netlink, packet, vsock] = [1, 2, 10, 16, 17, 40];
    expect([unix, inet, inet6].map((family) => of('socket', family, 3, 0))).toEqual(['allow', 'allow', 'allow']);
    expect([0, 12, 16].map((protocol) => of('socket', netlink, 3, protocol))).toEqual(['allow', 'allow', 'allow']);
    expect([of('socket', netlink, 3, 9), of('socket', packet, 3, 0), of('socket', vsock, 1, 0)]).toEqual(
      Array(3).fill('EAFNOSUPPORT'),
    );
  });
});

describe('the verdict on a call', () => {
  const high = 0x1_0000_0000n;
  const namespaces = [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000];
  const strangeFamilies = [0, 3, 9, 11, 15, 17, 29, 38, 40, 44, 45, 46, 0xffffffff, high + 40n];
  const rows: readonly Row[] = [
    ...plainRows,
    ...otherProcesses.map((call): Row => [call, [], 'allow', debugging]),
    ...Object.keys(others).map((call): Row => [call, [], 'allow']),

    ...[0x5412, 0x541c, 0x541d, 0x5423, high + 0x5412n, 0xffffffff_00005412n].map((cmd): Row => [
      'ioctl',
      [0, cmd],
      'EPERM',
    ]),
    ...[0x5401, 0x5411, 0x5413, 0x541b, 0x541e].map((cmd): Row => ['ioctl', [0x5412, cmd, 0x5412], 'allow']),

    ...namespaces.map((flag): Row => ['clone', [flag | 17], 'EPERM']),
    ...namespaces.map((flag): Row => ['clone', [high + BigInt(flag)], 'EPERM']),
    ...[17, 0x003d0f00, 0x01200011, 0xffffffff_80000011n].map((flags): Row => ['clone', [flags], 'allow']),
    // 0x80 is CLONE_NEWTIME, 0x100000 UNSHARE_EMPTY_MNTNS.
    ...[...namespaces, 0x80, 0x100000, high, high + 0x400n].map((flags): Row => ['unshare', [flags], 'EPERM']),
    ...[0, 0x200, 0x400, 0x50f00].map((flags): Row => ['unshare', [flags], 'allow']),

    ...strangeFamilies.map((family): Row => ['socket', [family, 1, 0], 'EAFNOSUPPORT']),
    ['socket', [1, 1, 0], 'allow'],
    ['socket', [1, 2, 0], 'allow'],
    ['socket', [1, 1, 0], 'EPERM', withoutUnix],
    ['socket', [high + 1n, 2, 0], 'EPERM', withoutUnix],
    ['socket', [2, 0x80801, 0], 'allow'],
    ['socket', [2, 1, 6], 'allow'],
    ['socket', [10, 0x80802, 17], 'allow', withoutUnix],
    ['socket', [2, 3, 1], 'EPERM'],
    ['socket', [2, 0x80803, 255], 'EPERM'],
    ['socket', [high + 10n, high + 3n, 58], 'EPERM'],
    ['socket', [2, 10, 768], 'EPERM'],
    ['socket', [2, 5, 132], 'EPERM'],
    ['socket', [2, 1, 132], 'EPROTONOSUPPORT'],
    ['socket', [10, 1, high + 262n], 'EPROTONOSUPPORT'],
    ['socket', [16, 0x80003, 0], 'allow'],
    ['socket', [16, 3, 9], 'EAFNOSUPPORT'],
    ['socket', [high + 16n, 2, high + 12n], 'EAFNOSUPPORT'],
    ['socketpair', [1, 1, 0], 'allow'],
    ['socketpair', [1, 0x80002, 0], 'allow'],
    ['socketpair', [30, 1, 0], 'EAFNOSUPPORT'],
    ['socketpair', [2, 1, 0], 'EAFNOSUPPORT', withoutUnix],
    ['socketpair', [1, 0x80801, 0], 'allow', withoutUnix],
    ['socketpair', [1, 5, 0], 'allow', withoutUnix],
    ['socketpair', [1, 2, 0], 'EPERM', withoutUnix],
    ['socketpair', [1, high + 0x80002n, 0], 'EPERM', withoutUnix],
    // For Unix sockets the kernel treats SOCK_RAW as SOCK_DGRAM.
    ['socketpair', [1, 3, 0], 'EPERM', withoutUnix],

    ...[0o020000, 0o060644, high + 0o020666n, 0x10000 + 0o020000].flatMap((mode): Row[] => [
      ['mknod', [0, mode], 'EPERM'],
      ['mknodat', [0, 0, mode], 'EPERM'],
    ]),
    ...[0o600, 0o100600, 0o010600, 0o140600].flatMap((mode): Row[] => [
      ['mknod', [0, mode, 0o020000], 'allow'],
      ['mknodat', [0, 0o020000, mode], 'allow'],
    ]),
    ...[0, 1, 2, 3].map((flags): Row => ['renameat2', [0, 0, 0, 4, flags], 'allow']),
    ...[4, 5, high + 4n].map((flags): Row => ['renameat2', [0, 0, 0, 0, flags], 'EPERM']),

    ...[0, 0x8, 0x20000, 0x20008, 0xffffffff, -1n].map((value): Row => ['personality', [value], 'allow']),
    ...[0x40000, 0x400000, 0x100000, high + 0x400000n].map((value): Row => ['personality', [value], 'EPERM']),
    ['personality', [0x40000], 'allow', debugging],
    ['personality', [0x400000], 'EPERM', debugging],
    ...[4, high + 4n].map((resource): Row => ['setrlimit', [resource, 1], 'done']),
    ...[0, 3, 5, 7].map((resource): Row => ['setrlimit', [resource, 1], 'allow']),
    ...[1, high, high + 1n].map((limit): Row => ['prlimit64', [0, 4, limit, 0], 'done']),
    ['prlimit64', [0, high + 4n, 1, 0], 'done'],
    ['prlimit64', [0, 4, 0, 1], 'allow'],
    ['prlimit64', [0, 7, 1, 0], 'allow'],
    ...[0, 56, 0xffff].map((size): Row => ['shmget', [0, size], 'allow']),
    ...[0x10000, 0xffffffff, high, high + 56n].map((size): Row => ['shmget', [0, size], 'EINVAL']),
  ];

  test.each(arches)('is that of the table, on %s', (arch) => {
    const known = rows.filter(([call]) => numberOf(arch, call) !== null);
    expect(known.length).toBeGreaterThan(150);
    const found = known.map(([call, args, , rules = usual]): Row => [
      call,
      args,
      judge(arch, rules, numberOf(arch, call) ?? -1, args),
      rules,
    ]);
    expect(found).toEqual(known.map(([call, args, verdict, rules = usual]) => [call, args, verdict, rules]));
  });

  test.each(arches)('is ENOSYS for every unassigned number, on %s', (arch) => {
    const gap = [arch === 'x64' ? 337 : 295, 400, 423];
    const beyond = [472, 512, 547, 1000, 0x3fffffff, 0x7fffffff, 0xffffffff];
    expect([...gap, ...beyond].map((number) => judge(arch, usual, number, []))).toEqual(
      [...gap, ...beyond].map(() => 'ENOSYS'),
    );
  });

  test('is ENOSYS for the x32 variant of every call', () => {
    const twins = Array.from({ length: 600 }, (_, number) => 0x40000000 + number);
    expect(new Set(twins.map((number) => judge('x64', usual, number, [])))).toEqual(new Set(['ENOSYS']));
  });

  test.each(arches)('is "allow" for every assigned number that the table does not name, on %s', (arch) => {
    const named = new Set(Object.keys(NUMBERS).map((call) => numberOf(arch, call)));
    const all = Array.from({ length: LAST_SHARED + 1 }, (_, number) => number);
    const plain = all.filter(
      (number) => !named.has(number) && (number <= ARCHES[arch].lastOwn || number >= FIRST_SHARED),
    );
    expect(plain.filter((number) => judge(arch, usual, number, Array(6).fill(-1n)) !== 'allow')).toEqual([]);
  });

  test.each(arches)('is "kill" for a call of another architecture, on %s', (arch) => {
    const number = numberOf(arch, 'read') ?? -1;
    for (const audit of [0x40000003, 0x40000028, 0xc000003e, 0xc00000b7, 0, 0xffffffff]) {
      const verdict = interpret(seccompFilter(arch, usual), { number, audit, args: [] });
      expect([audit, verdict]).toEqual([audit, audit === ARCHES[arch].audit ? 'allow' : 'kill']);
    }
  });

  test('is right if a rule is longer than the reach of a conditional jump', () => {
    const cases = Array.from({ length: 300 }, (_, value) => [[value], value % 2 ? ALLOW : EPERM] as const);
    const filter = assemble('x64', {
      ptrace: { arg: 0, word: 'low', mask: 0xffffffff, cases, otherwise: ENOSYS },
      keyctl: EPERM,
    });
    checkShape(filter);
    const ask = (number: number, arg: number): string =>
      interpret(filter, { number, audit: ARCHES.x64.audit, args: [arg] });
    expect([ask(101, 0), ask(101, 299), ask(101, 300), ask(250, 0), ask(0, 0)]).toEqual([
      'EPERM',
      'allow',
      'ENOSYS',
      'EPERM',
      'allow',
    ]);
  });

  test('is not "allow" for an empty list of values', () => {
    const filter = assemble('x64', {
      ptrace: { arg: 0, word: 'low', mask: 0xffffffff, cases: [[[], ALLOW]], otherwise: EPERM },
    });
    expect(interpret(filter, { number: 101, audit: ARCHES.x64.audit, args: [0] })).toBe('EPERM');
  });

  test('cannot be wrong for a list that is too long for the format, which is refused', () => {
    const values = Array.from({ length: 300 }, (_, value) => value);
    const tooLong: Decision = { arg: 0, word: 'low', mask: 0xffffffff, cases: [[values, EPERM]], otherwise: ALLOW };
    expect(() => assemble('x64', { ptrace: tooLong })).toThrow(RangeError);
  });
});

describe('the filter', () => {
  test.each(arches)('only jumps forward, within the program, and ends with a verdict, on %s', (arch) => {
    for (const rules of [usual, debugging, withoutUnix, { ptrace: true, unixSockets: false }])
      checkShape(seccompFilter(arch, rules));
  });

  test('exists only for the two architectures with a table', () => {
    expect(['x64', 'arm64', 'ia32', 'arm', 'riscv64', ''].map(seccompArch)).toEqual([
      'x64',
      'arm64',
      null,
      null,
      null,
      null,
    ]);
  });

  const headers: readonly (readonly [SeccompArch, string])[] = [
    ['x64', '/usr/include/x86_64-linux-gnu/asm/unistd_64.h'],
    ['arm64', '/usr/include/asm-generic/unistd.h'],
  ];
  for (const [arch, path] of headers) {
    test.runIf(existsSync(path))(`uses the numbers of the system's headers, on ${arch}`, () => {
      const lines = [...readFileSync(path, 'utf8').matchAll(/^#define __NR(?:3264)?_(\w+)\s+(\d+)$/gm)];
      const header = new Map(lines.map(([, name = '', number]) => [name, Number(number)]));
      header.delete('syscalls');
      expect(header.size).toBeGreaterThan(280);
      const assigned = new Set(header.values());
      for (const call of Object.keys({ ...NUMBERS, ...others })) {
        const number = numberOf(arch, call);
        const inHeader = header.get(call);
        if (number === null || inHeader !== undefined) expect([call, number]).toEqual([call, inHeader ?? null]);
        // A call that the header lacks is newer, or was removed. Then no other call may have its number.
        else expect([call, assigned.has(number)]).toEqual([call, false]);
      }
      // The numbers from 403 to 423 exist only on 32-bit machines.
      expect([...assigned].filter((number) => number > ARCHES[arch].lastOwn && number < 403)).toEqual([]);
    });
  }
});

type Works = readonly [name: string, argv: readonly string[], stdout: string, input?: string];
const PYTHON_SAYS = '[0, 1, 4, 9]\n6\nthread\nchild\n';

describe.runIf(HAS_SANDBOX)('in a real sandbox', () => {
  const arch = seccompArch(process.arch);
  if (!arch) throw new Error(`There is no table for ${process.arch}.`);
  const here = -100;
  const forbidden: readonly Row[] = [
    ...plainRows,
    ['ioctl', [0, 0x5412, 'buffer'], 'EPERM'],
    ['ioctl', [0, 0x1_0000_5412n, 'buffer'], 'EPERM'],
    ['clone', [0x10000011, 0, 0, 0, 0], 'EPERM'],
    ['clone', [0x1_1000_0011n, 0, 0, 0, 0], 'EPERM'],
    ['unshare', [0x10000000], 'EPERM'],
    ['socket', [40, 1, 0], 'EAFNOSUPPORT'],
    ['socket', [17, 3, 0], 'EAFNOSUPPORT'],
    ['socket', [38, 5, 0], 'EAFNOSUPPORT'],
    ['socket', [16, 3, 9], 'EAFNOSUPPORT'],
    ['socket', [2, 3, 1], 'EPERM'],
    ['socket', [2, 1, 132], 'EPROTONOSUPPORT'],
    ['socketpair', [30, 1, 0, 'buffer'], 'EAFNOSUPPORT'],
    ['mknod', ['path:whiteout-1', 0o020000, 0], 'EPERM'],
    ['mknodat', [here, 'path:whiteout-2', 0o020000, 0], 'EPERM'],
    ['renameat2', [here, 'path:file', here, 'path:moved', 4], 'EPERM'],
    ['personality', [0x400000], 'EPERM'],
    ['shmget', [0, 0x10000, 0o1600], 'EINVAL'],
    ['setrlimit', [4, 'buffer'], 'ok'],
    ['prlimit64', [0, 4, 'buffer', 0], 'ok'],
  ].filter(([call]) => numberOf(arch, call as string) !== null) as Row[];

  test('forbidden calls fail with the errno of the table', () => {
    expect(attempt(seccompFilter(arch, usual), forbidden)).toEqual(forbidden.map(([, , verdict]) => verdict));
  });

  test('harmless calls that resemble forbidden ones work', () => {
    const harmless: readonly Row[] = [
      ['ioctl', [0, 0x541b, 'buffer'], 'ok'],
      ['clone', [17, 0, 0, 0, 0], 'ok'],
      ['unshare', [0x400], 'ok'],
      ['socket', [1, 2, 0], 'ok'],
      ['socket', [2, 0x80801, 6], 'ok'],
      ['socket', [16, 0x80003, 0], 'ok'],
      ['socketpair', [1, 2, 0, 'buffer'], 'ok'],
      ['mknodat', [here, 'path:fifo', 0o010600, 0], 'ok'],
      ['renameat2', [here, 'path:fifo', here, 'path:moved', 1], 'ok'],
      ['personality', [0xffffffff], 'ok'],
      ['shmget', [0, 0xffff, 0o1600], 'ok'],
    ];
    expect(attempt(seccompFilter(arch, usual), harmless)).toEqual(harmless.map(() => 'ok'));
  });

  test('without Unix sockets only connected pairs are left', () => {
    const tries: readonly Row[] = [
      ['socket', [1, 1, 0], 'EPERM'],
      ['socketpair', [1, 2, 0, 'buffer'], 'EPERM'],
      ['socketpair', [1, 1, 0, 'buffer'], 'ok'],
      ['socket', [2, 1, 0], 'ok'],
    ];
    expect(attempt(seccompFilter(arch, withoutUnix), tries)).toEqual(tries.map(([, , verdict]) => verdict));
  });

  test('with ptrace allowed a debugger works', () => {
    const tries: readonly Row[] = [
      ['personality', [0x40000], 'ok'],
      ['process_vm_readv', [0, 0, 0, 0, 0, 0], 'ok'],
      ['ptrace', [0, 0, 0, 0], 'ok'],
    ];
    expect(attempt(seccompFilter(arch, debugging), tries)).toEqual(tries.map(() => 'ok'));
  });

  // The kernel refuses many of these calls anyway. An errno that it never uses shows that the filter refused.
  const mark = 250;
  const marked = Object.fromEntries(
    Object.entries(kernelPolicy(usual)).map(([call, decision]) => [call, withErrno(decision, mark)]),
  );

  test('every refusal comes from the filter, and every rule is tested', () => {
    expect(attempt(assemble(arch, marked), forbidden)).toEqual(forbidden.map(() => String(mark)));
    const rules = Object.keys(marked).filter((call) => numberOf(arch, call) !== null);
    expect(new Set(forbidden.map(([call]) => call))).toEqual(new Set(rules));
  });

  test.each([...new Set(forbidden.map(([call]) => call))])('without its rule %s is no longer refused', (removed) => {
    const rest = Object.fromEntries(Object.entries(marked).filter(([call]) => call !== removed));
    const tries = forbidden.filter(([call]) => call === removed);
    expect(attempt(assemble(arch, rest), tries)).not.toContain(String(mark));
  });

  test.runIf(arch === 'x64')('a 32-bit system call ends the process, and only because of the filter', () => {
    const argv = ['sh', '-c', 'cat > program; chmod +x program; exec ./program'];
    const filter = seccompFilter('x64', usual);
    expect(sandboxed(filter, argv, program32())).toMatchObject({ status: 128 + 31 });
    // The last instruction is the verdict on foreign architectures.
    filter.writeUInt32LE(ALLOW, filter.length - 4);
    expect(sandboxed(filter, argv, program32())).toMatchObject({ status: 0 });
  });

  test("the sandbox's first process is filtered too", () => {
    // Bubblewrap's first process installs the filter while the command starts.
    const script = `for i in $(seq 200); do grep -q '^Seccomp:.2' /proc/1/status && break; sleep 0.05; done
      grep '^Seccomp:' /proc/1/status /proc/self/status`;
    const { stdout } = sandboxed(seccompFilter(arch, usual), ['sh', '-c', script]);
    expect(stdout).toBe('/proc/1/status:Seccomp:\t2\n/proc/self/status:Seccomp:\t2\n');
  });

  const git =
    'git init -q . && touch a && git add a && git -c user.name=n -c user.email=e commit -qm done && git log --format=%s';
  const python = `
import multiprocessing as m, subprocess, threading
def square(x): return x * x
if __name__ == '__main__':
    with m.Pool(2) as p: print(p.map(square, range(4)))
    q = m.get_context('spawn').Queue(); q.put(6); print(q.get())
    t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()
    print(subprocess.check_output(['echo', 'child'], text=True), end='')`;
  const node = `
    const { fork } = require('child_process'), net = require('net'), os = require('os'), { Worker } = require('worker_threads');
    const { once } = require('events');
    const echo = async (...where) => {
      const server = net.createServer((s) => s.end('hello')).listen(...where);
      await once(server, 'listening');
      const [data] = await once(net.connect(server.address().port ?? server.address()), 'data');
      server.close();
      return String(data);
    };
    (async () => {
      require('fs').writeFileSync('child.js', 'process.send("forked")');
      console.log((await once(fork('./child.js'), 'message'))[0]);
      console.log((await once(new Worker('require("worker_threads").parentPort.postMessage("worker")', { eval: true }), 'message'))[0]);
      console.log(await echo(0), await echo('./socket'), Object.keys(os.networkInterfaces()).join());
    })();`;
  const programs: readonly Works[] = [
    [
      'sh pipelines',
      ['sh', '-c', 'seq 1000 | sort -rn | head -n 1; mkfifo f; echo through > f & cat f; wait'],
      '1000\nthrough\n',
    ],
    ['npm', ['sh', '-c', 'npm --version | grep -c .'], '1\n'],
    ['git', ['sh', '-c', git], 'done\n'],
    ['node', ['node', '-'], 'forked\nworker\nhello hello lo\n', node],
    ...(existsSync('/usr/bin/python3')
      ? [['python multiprocessing', ['sh', '-c', 'cat > a.py; exec python3 a.py'], PYTHON_SAYS, python] satisfies Works]
      : []),
  ];
  test.for(programs)('%s works', ([, argv, stdout, input = '']) => {
    expect(sandboxed(seccompFilter(arch, usual), argv, input)).toEqual({ stdout, stderr: '', status: 0 });
  });

  /** Makes the calls in one process, in order; returns 'ok' or the errno of each. */
  function attempt(filter: Buffer, tries: readonly Row[]): readonly string[] {
    const perl = `
      while (my ($call, $number, @args) = split ' ', <STDIN> // '') {
        my @values = map { /^path:(.*)/ ? "$1" : $_ eq 'buffer' ? "\\0" x 256 : $_ + 0 } @args;
        my $result = syscall($number + 0, @values);
        my $errno = $! + 0;
        require POSIX, POSIX::_exit(0) if $call eq 'clone' && $result == 0;
        print $result == -1 ? $errno : 'ok', "\\n";
      }`;
    const word = (arg: Argument): string => (typeof arg === 'string' ? arg : String(BigInt.asIntN(64, BigInt(arg))));
    const lines = tries.map(([call, args]) => [call, numberOf(arch ?? 'x64', call), ...args.map(word)].join(' '));
    const { stdout, stderr } = sandboxed(filter, ['perl', '-e', perl], lines.join('\n'));
    const results = stdout.trimEnd().split('\n');
    if (stderr || results.length !== tries.length)
      throw new Error(`${results.length} of ${tries.length} calls answered. ${stderr}`);
    return results.map((result) => errnoNames[Number(result)] ?? result);
  }
});

interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: number | null;
}

/** Runs a command as an ordinary user in a minimal bwrap sandbox with the filter. */
function sandboxed(filter: Buffer, argv: readonly string[], input: string | Buffer = ''): Outcome {
  const directory = mkdtempSync(join(tmpdir(), 'ags-seccomp-'));
  writeFileSync(join(directory, 'filter'), filter);
  const fd = openSync(join(directory, 'filter'), 'r');
  try {
    const flags =
      '--unshare-all --die-with-parent --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --chdir /tmp --seccomp 3 --';
    const user = process.getuid?.() === 0 ? { uid: 1001, gid: 1001 } : {};
    const { stdout, stderr, status, error } = spawnSync('bwrap', [...flags.split(' '), ...argv], {
      ...user,
      input,
      stdio: ['pipe', 'pipe', 'pipe', fd],
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/tmp' },
      cwd: '/',
      timeout: 30_000,
    });
    if (error) throw error;
    return { stdout: String(stdout), stderr: String(stderr), status };
  } finally {
    closeSync(fd);
    rmSync(directory, { recursive: true });
  }
}

function withErrno(decision: Decision, errno: number): Decision {
  if (typeof decision === 'number') return decision === ALLOW ? ALLOW : 0x50000 + errno;
  const cases = decision.cases.map(([values, then]) => [values, withErrno(then, errno)] as const);
  return { ...decision, cases, otherwise: withErrno(decision.otherwise, errno) };
}

function judge(arch: SeccompArch, rules: KernelRules, number: number, args: readonly Argument[]): string {
  return interpret(seccompFilter(arch, rules), { number, audit: ARCHES[arch].audit, args });
}

/** Classic BPF as the kernel runs it over `struct seccomp_data`. */
function interpret(filter: Buffer, call: { number: number; audit: number; args: readonly Argument[] }): string {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number, 0);
  data.writeUInt32LE(call.audit, 4);
  for (const [at, arg] of call.args.entries()) data.writeBigUInt64LE(BigInt.asUintN(64, BigInt(arg)), 16 + 8 * at);
  const program = decode(filter);
  let a = 0;
  for (let at = 0; ; at++) {
    const { code, jt, jf, k } = program[at] ?? { code: -1, jt: 0, jf: 0, k: 0 };
    if (code === 0x20) a = data.readUInt32LE(k);
    else if (code === 0x54) a = (a & k) >>> 0;
    else if (code === 0x05) at += k;
    else if (code === 0x15) at += a === k ? jt : jf;
    else if (code === 0x25) at += a > k ? jt : jf;
    else if (code === 0x06 && k === 0x7fff0000) return 'allow';
    else if (code === 0x06 && k === 0x80000000) return 'kill';
    else if (code === 0x06 && k >>> 16 === 5) return errnoNames[k & 0xffff] ?? String(k & 0xffff);
    else throw new Error(`Instruction ${at} cannot be run.`);
  }
}

function checkShape(filter: Buffer): void {
  const program = decode(filter);
  expect(filter.length % 8).toBe(0);
  expect(program.length).toBeLessThanOrEqual(4096);
  for (const [at, { code, jt, jf, k }] of program.entries()) {
    expect([0x20, 0x54, 0x05, 0x15, 0x25, 0x06]).toContain(code);
    if (code === 0x20) expect([k % 4, k < 64]).toEqual([0, true]);
    const next = code === 0x06 ? [] : code === 0x05 ? [at + 1 + k] : [at + 1 + jt, at + 1 + jf];
    // Offsets are unsigned, so every jump goes forward.
    for (const target of next) expect(target).toBeLessThan(program.length);
  }
  expect(program.at(-1)?.code).toBe(0x06);
}

function decode(filter: Buffer): { code: number; jt: number; jf: number; k: number }[] {
  return Array.from({ length: filter.length / 8 }, (_, at) => ({
    code: filter.readUInt16LE(at * 8),
    jt: filter.readUInt8(at * 8 + 2),
    jf: filter.readUInt8(at * 8 + 3),
    k: filter.readUInt32LE(at * 8 + 4),
  }));
}

/** A 64-bit ELF program that makes the 32-bit call getpid by `int 0x80`, then ends with status 0. */
function program32(): Buffer {
  const code = Buffer.from('b814000000cd8031ffb83c0000000f05', 'hex');
  const base = 0x400000;
  const head = Buffer.alloc(120);
  head.write('7f454c46020101', 'hex');
  head.writeUInt16LE(2, 16);
  head.writeUInt16LE(62, 18);
  head.writeUInt32LE(1, 20);
  head.writeUInt32LE(base + head.length, 24);
  head.writeUInt32LE(64, 32);
  head.writeUInt16LE(64, 52);
  head.writeUInt16LE(56, 54);
  head.writeUInt16LE(1, 56);
  // One readable and executable segment with the whole file.
  head.writeUInt32LE(1, 64);
  head.writeUInt32LE(5, 68);
  head.writeUInt32LE(base, 80);
  head.writeUInt32LE(base, 88);
  head.writeUInt32LE(head.length + code.length, 96);
  head.writeUInt32LE(head.length + code.length, 104);
  head.writeUInt32LE(0x1000, 112);
  return Buffer.concat([head, code]);
}
