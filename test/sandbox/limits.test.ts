// Limits as a command and as text, and whether the kernel enforces them in a sandbox of an ordinary user.
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { totalmem, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { run } from '../../src/lib/process/process.ts';
import type { CgroupPlan } from '../../src/sandbox/watch/cgroup-plan.ts';
import { limitsInForce, prlimitArgv, type LimitHost } from '../../src/sandbox/watch/limits.ts';
import type { Limits } from '../../src/protocol/spec.ts';
import { given } from '../exec/given.ts';

const MiB = 2 ** 20;
const GiB = 2 ** 30;

const limits: Limits = {
  processes: 50,
  memoryBytes: 64 * MiB,
  openFiles: 256,
  fileBytes: 8 * MiB,
  diskBytes: 64 * MiB,
  tmpBytes: 16 * MiB,
  cpuSeconds: null,
  wallSeconds: null,
  cpus: null,
};

const unlimited =
  'Max open files            1024                 1048576              files     \nMax processes             unlimited            unlimited            processes\n';
const noCgroup: CgroupPlan = { kind: 'none', why: 'no cgroup with memory and pids is writable' };
const host: LimitHost = { memoryBytes: 16 * GiB, kernel: '6.1.0-18-amd64', procLimits: unlimited, cgroup: noCgroup };
const v2: CgroupPlan = {
  kind: 'v2',
  parent: '/sys/fs/cgroup/a',
  holds: ['memory', 'pids'],
  enable: [],
  processesAtMost: null,
};

const scratch = mkdtempSync(join(tmpdir(), 'ags-limits-'));
chmodSync(scratch, 0o755);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const uid = process.getuid?.() ?? 0;
const sandboxStarts = (await sandboxed(['true'])).exitCode === 0;
const withSandbox = given(sandboxStarts, 'bwrap for an ordinary user');
const withJava = given(sandboxStarts && existsSync('/usr/bin/java'), 'bwrap for an ordinary user, and java');

describe('the command that sets limits', () => {
  test('sets every limit once, and memory per process only without a cgroup', () => {
    expect(prlimitArgv(limits, host)).toEqual([
      '/usr/bin/prlimit',
      '--core=1',
      '--nofile=256',
      '--fsize=8388608',
      '--nproc=50',
      `--data=${64 * MiB + 4 * GiB}`,
      '--',
    ]);
    expect(prlimitArgv({ ...limits, cpuSeconds: 60 }, { ...host, cgroup: v2 })).toEqual([
      '/usr/bin/prlimit',
      '--core=1',
      '--nofile=256',
      '--fsize=8388608',
      '--nproc=50',
      '--cpu=60:65',
      '--',
    ]);
  });

  test('never exceeds the hard limits of the caller', () => {
    const procLimits =
      'Max open files            1024                 4096                 files     \nMax processes             100                  300                  processes\n';
    expect(prlimitArgv({ ...limits, openFiles: 65_536, processes: 2048 }, { ...host, procLimits, cgroup: v2 })).toEqual(
      ['/usr/bin/prlimit', '--core=1', '--nofile=4096', '--fsize=8388608', '--nproc=300', '--'],
    );
  });

  test('sets no process limit on a kernel that counts all processes of the user', () => {
    for (const kernel of ['5.13.0', '5.4.0-150-generic', '4.18.0-553.el8'])
      expect(prlimitArgv(limits, { ...host, kernel })).not.toContain('--nproc=50');
    for (const kernel of ['5.14.0-427.el9', '5.15.0', '6.0.0', '10.1'])
      expect(prlimitArgv(limits, { ...host, kernel })).toContain('--nproc=50');
  });
});

describe('the list of limits in force', () => {
  test('shows memory as enforced by the kernel with a cgroup, and as watched with the reason without one', () => {
    const memory = (cgroup: CgroupPlan): unknown =>
      limitsInForce(limits, { ...host, cgroup }).find(({ name }) => name === 'memoryBytes');
    expect(memory(v2)).toEqual({
      name: 'memoryBytes',
      allowed: 64 * MiB,
      held: 'kernel',
      means: '64m for all processes together, cgroup v2',
    });
    expect(memory(noCgroup)).toEqual({
      name: 'memoryBytes',
      allowed: 64 * MiB,
      held: 'watched',
      means:
        '64m for all processes together, and RLIMIT_DATA 4.06g for each one (no cgroup with memory and pids is writable)',
    });
  });

  test('shows a limit that nothing enforces', () => {
    const rows = limitsInForce(limits, { ...host, kernel: '5.4.0' });
    expect(rows.filter(({ held }) => held === 'no').map(({ name }) => name)).toEqual([
      'processes',
      'cpuSeconds',
      'wallSeconds',
      'cpus',
    ]);
    expect(limitsInForce(limits, { ...host, kernel: '5.4.0', cgroup: v2 })[0]).toEqual({
      name: 'processes',
      allowed: 50,
      held: 'kernel',
      means: '50 processes and threads, cgroup v2',
    });
  });
});

describe('inside a sandbox of an ordinary user', () => {
  withSandbox('a fork bomb stops at its limit, and a second sandbox of the same user has its own limit', async () => {
    const bomb =
      'for (1 .. 120) { my $p = fork; if (!defined $p) { $refused++ } elsif ($p) { $made++ } else { sleep 60; exit } } print "$made $refused"; sleep 1';
    for (const { stdout } of await Promise.all([sandboxed(['perl', '-e', bomb]), sandboxed(['perl', '-e', bomb])])) {
      const [made = 0, refused = 0] = stdout.split(' ').map(Number);
      expect(made + refused).toBe(120);
      // The sandbox's first process and the bomb itself count too.
      expect(made).toBe(limits.processes - 2);
    }
  });

  withSandbox('file size, open files, CPU time and memory of a process stop at their limits', async () => {
    expect(
      (await sandboxed(['sh', '-c', 'dd if=/dev/zero of=/tmp/f bs=1M count=9 status=none; stat -c %s /tmp/f'])).stdout,
    ).toBe(`${8 * MiB}\n`);
    expect((await sandboxed(['sh', '-c', 'ulimit -Hn; ulimit -Hc'])).stdout).toBe('256\n0\n');
    expect((await sandboxed(['sh', '-c', 'while :; do :; done'], { ...limits, cpuSeconds: 1 })).exitCode).toBe(
      128 + 24,
    );
    // ags allows a quarter of this machine's memory on top, for memory that is reserved but never used, as here.
    const take =
      'let n = 0; const kept = []; try { for (; n < 64; n++) kept.push(new ArrayBuffer(2 ** 30)) } catch {} console.log(n)';
    const got = Number((await sandboxed([process.execPath, '-e', take], { ...limits, memoryBytes: GiB })).stdout);
    expect(got).toBeLessThan(1 + totalmem() / 4 / GiB);
  });

  withSandbox('node with workers and WebAssembly, and Python with threads, work', async () => {
    const roomy = { ...limits, processes: 200, memoryBytes: 512 * MiB };
    const js =
      'new (require("worker_threads").Worker)("", { eval: true }).on("exit", () => WebAssembly.instantiate(new Uint8Array([0,97,115,109,1,0,0,0,5,3,1,0,1])).then(() => console.log("ok")))';
    expect(await sandboxed([process.execPath, '-e', js], roomy)).toEqual({ exitCode: 0, stdout: 'ok\n', stderr: '' });
    const py =
      'import threading as t; x = [t.Thread(target=int) for _ in range(20)]; [i.start() for i in x]; [i.join() for i in x]; print("ok")';
    if (existsSync('/usr/bin/python3'))
      expect(await sandboxed(['/usr/bin/python3', '-c', py], roomy)).toEqual({
        exitCode: 0,
        stdout: 'ok\n',
        stderr: '',
      });
  });

  withJava(
    'a JVM that grows its heap works, although it reserves more memory than it uses',
    async () => {
      const java =
        'public class Grow { public static void main(String[] a) { byte[][] b = new byte[200][]; for (int i = 0; i < 200; i++) b[i] = new byte[1 << 20]; System.out.println("ok"); } }';
      writeFileSync(join(scratch, 'Grow.java'), java);
      const roomy = { ...limits, processes: 200, memoryBytes: 2 * GiB, fileBytes: GiB };
      expect(await sandboxed(['/usr/bin/java', join(scratch, 'Grow.java')], roomy)).toEqual({
        exitCode: 0,
        stdout: 'ok\n',
        stderr: '',
      });
    },
    60_000,
  );
});

function thisHost(): LimitHost {
  return {
    memoryBytes: totalmem(),
    kernel: release(),
    procLimits: readFileSync('/proc/self/limits', 'utf8'),
    cgroup: noCgroup,
  };
}

/** Runs a command as an ordinary user, even if the test runs as root: the kernel does not limit root's processes. */
async function sandboxed(
  command: readonly string[],
  within: Limits = limits,
): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const view = [
    '--ro-bind',
    '/',
    '/',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    '--tmpfs',
    '/tmp',
    '--ro-bind',
    scratch,
    scratch,
    '--chdir',
    '/',
  ];
  const argv = [
    'bwrap',
    '--unshare-user',
    '--unshare-pid',
    '--die-with-parent',
    ...view,
    '--',
    ...prlimitArgv(within, thisHost()),
    ...command,
  ];
  const asUser = uid === 0 ? ['setpriv', '--reuid=1001', '--regid=1001', '--clear-groups'] : [];
  const { exitCode, stdout, stderr } = await run([...asUser, ...argv], {
    env: { PATH: '/usr/bin:/bin', HOME: '/tmp' },
    timeoutMs: 30_000,
  });
  return { exitCode, stdout: stdout.toString('utf8'), stderr };
}
