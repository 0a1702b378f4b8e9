// The watcher's measurements and reports, tested on real processes and files that exceed their limits.
// uses: sandbox, python3
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { measureDisk, NOTHING } from '../../src/sandbox/watch/disk-usage.ts';
import {
  allowance,
  diskBreach,
  freeBreach,
  memoryUsed,
  nextDelayMs,
  placesOf,
  shouldLookForMemoryFiles,
  shouldMeasure,
  type Allowance,
  type FreeSpace,
  type Measured,
} from '../../src/sandbox/watch/governor-rules.ts';
import { watchSandbox, type Breach, type Watch, type WatchInput } from '../../src/sandbox/watch/governor.ts';
import { exactMemory, parseRollup, parseStatus, quickMemory } from '../../src/sandbox/watch/memory-usage.ts';
import { processTree, startTicks, unlessGone, walkParents } from '../../src/sandbox/watch/process-tree.ts';
import { hostPath, sandboxPath, type Limits } from '../../src/protocol/spec.ts';
import { until } from '../exec/given.ts';
import { HAS_SANDBOX } from '../harness.ts';

const HAS_PYTHON = existsSync('/usr/bin/python3');

const MiB = 2 ** 20;
const GiB = 2 ** 30;
const limits: Limits = {
  processes: 50,
  memoryBytes: 64 * MiB,
  openFiles: 256,
  fileBytes: GiB,
  diskBytes: 64 * MiB,
  tmpBytes: 16 * MiB,
  cpuSeconds: null,
  wallSeconds: null,
  cpus: null,
};

// Opens a memory file as perl's handle M.
const MEMFD = `my $name = "x\\0"; my $fd = syscall(${process.arch === 'arm64' ? 279 : 319}, $name, 0); open M, ">&=", $fd or die;`;

test('writable places are known by their path and by the target of a link in it', () => {
  const at = (to: string) => ({ to: sandboxPath(to), why: '' });
  const bind = (to: string, writable: boolean) => ({
    kind: 'bind' as const,
    from: hostPath('/somewhere'),
    writable,
    ...at(to),
  });
  expect(
    placesOf([
      bind('/usr', false),
      { kind: 'symlink', target: '../tmp', ...at('/var/tmp') },
      bind('/var/tmp/home', true),
      {
        kind: 'workspace',
        workspace: { kind: 'copy', directory: hostPath('/copy'), writable: true },
        ...at('/srv/project'),
      },
    ]),
  ).toEqual(['/var/tmp/home', '/tmp/home', '/srv/project']);
});

describe('the schedule and rules of the watcher', () => {
  test('memory is read four times a second, more often near the limit, less often when reading is slow', () => {
    const calm = { used: 10, growthPerMs: 0, allowed: 1000, costMs: 1 };
    expect(nextDelayMs(calm)).toBe(250);
    expect(nextDelayMs({ ...calm, growthPerMs: -5 })).toBe(250);
    expect(nextDelayMs({ ...calm, used: 800, growthPerMs: 1 })).toBe(100);
    expect(nextDelayMs({ ...calm, used: 999, growthPerMs: 10 })).toBe(50);
    expect(nextDelayMs({ ...calm, used: 2000, growthPerMs: 10 })).toBe(50);
    expect(nextDelayMs({ ...calm, costMs: 60 })).toBe(600);
    expect(nextDelayMs({ ...calm, used: 2000, growthPerMs: 10, costMs: 60_000 })).toBe(1000);
  });

  const allowed: Allowance = { bytes: 1000, files: 1000 };
  const free = (bytes: number, files = 5000): FreeSpace => ({
    bytes,
    files,
    leastBytes: bytes,
    leastFiles: files,
    totalFiles: 10_000,
  });
  const measured = (bytes: number, at: FreeSpace | null, more: Partial<Measured> = {}): Measured => ({
    atMs: 0,
    tookMs: 10,
    usage: { ...NOTHING, bytes },
    free: at,
    ...more,
  });

  test('a tree is measured when the file system has lost a quarter of the remaining allowance', () => {
    expect(shouldMeasure(measured(0, null), free(5000), free(4750), 300, allowed)).toBe(false);
    expect(shouldMeasure(measured(0, null), free(5000), free(4749), 300, allowed)).toBe(true);
    expect(shouldMeasure(measured(800, free(4000)), free(5000), free(3949), 300, allowed)).toBe(true);
    expect(shouldMeasure(measured(999, free(4000)), free(5000), free(3990), 300, allowed)).toBe(false);
    expect(shouldMeasure(measured(999, free(4000)), free(5000), free(3989), 300, allowed)).toBe(true);
    expect(shouldMeasure(measured(0, free(4000, 5000)), free(5000), free(4000, 4700), 300, allowed)).toBe(true);
  });

  test('a changed tree is measured after ten seconds, and measuring takes at most a quarter of the time', () => {
    expect(shouldMeasure(measured(0, free(4000)), free(5000), free(4001), 9999, allowed)).toBe(false);
    expect(shouldMeasure(measured(0, free(4000)), free(5000), free(4001), 10_000, allowed)).toBe(true);
    expect(shouldMeasure(measured(0, free(4000)), free(5000), free(4000), 60_000, allowed)).toBe(false);
    expect(shouldMeasure(measured(0, free(4000), { tookMs: 1000 }), free(5000), free(100), 2999, allowed)).toBe(false);
    expect(shouldMeasure(measured(0, free(4000), { tookMs: 1000 }), free(5000), free(100), 3000, allowed)).toBe(true);
  });

  test('an unmeasured tree is charged with the loss of the file system', () => {
    const usage = { ...NOTHING, bytes: 10, files: 1 };
    expect(diskBreach(usage, free(9000), free(1000), allowed)).toBe(null);
    expect(diskBreach({ ...usage, isListed: false }, free(9000), free(1000), allowed)).toEqual({
      limit: 'disk',
      unit: 'bytes',
      used: 8000,
      allowed: 1000,
    });
    expect(diskBreach({ ...usage, isSeen: false }, free(9000), free(8500), allowed)).toBe(null);
    expect(diskBreach({ ...usage, files: 1001 }, free(9000), free(9000), allowed)).toEqual({
      limit: 'disk',
      unit: 'files',
      used: 1001,
      allowed: 1000,
    });
    expect([allowance(GiB), allowance(20 * GiB)]).toEqual([
      { bytes: GiB, files: 1_000_000 },
      { bytes: 20 * GiB, files: 5_242_880 },
    ]);
  });

  test('a nearly full file system is a breach, in bytes or in files, unless it reports no number of files', () => {
    expect(freeBreach(free(100), 100)).toBe(null);
    expect(freeBreach(free(99), 100)).toEqual({ limit: 'free-space', unit: 'bytes', used: 99, allowed: 100 });
    expect(freeBreach(free(1000, 199), 100)).toEqual({ limit: 'free-space', unit: 'files', used: 199, allowed: 200 });
    expect(freeBreach({ ...free(1000, 0), totalFiles: 0 }, 100)).toBe(null);
  });

  test('a memory file counts once, mapped or not', () => {
    expect(memoryUsed({ bytes: 100, sharedBytes: 30 }, 0)).toBe(100);
    expect(memoryUsed({ bytes: 100, sharedBytes: 30 }, 30)).toBe(100);
    expect(memoryUsed({ bytes: 100, sharedBytes: 30 }, 500)).toBe(570);
    expect([
      shouldLookForMemoryFiles(250, 0, 1000),
      shouldLookForMemoryFiles(251, 0, 1000),
      shouldLookForMemoryFiles(11, 1000, 1000),
    ]).toEqual([false, true, true]);
  });

  test('memory figures of the kernel are read by name', () => {
    expect(
      parseStatus('VmRSS:\t 999 kB\nRssAnon:\t      10 kB\nRssFile:\t 20 kB\nRssShmem:\t 30 kB\nVmSwap:\t 5 kB\n'),
    ).toEqual({ atMostBytes: 65 * 1024, privateBytes: 15 * 1024 });
    expect(parseStatus('Name:\tgone\nState:\tZ (zombie)\n')).toEqual({ atMostBytes: 0, privateBytes: 0 });
    expect(parseRollup('Rss: 9 kB\nPss:                  20 kB\nPss_Shmem:  5 kB\nSwapPss:  1 kB\n')).toEqual({
      bytes: 21 * 1024,
      sharedBytes: 5 * 1024,
    });
  });
});

let scratch = '';
let children: ChildProcess[] = [];
let watches: Watch[] = [];
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'ags-governor-'));
});
afterEach(() => {
  for (const watch of watches) watch.stop();
  for (const pid of children.flatMap((child) => processTree(child.pid ?? 0)?.pids ?? []))
    unlessGone(() => process.kill(pid, 'SIGKILL'), true);
  [watches, children] = [[], []];
  // Node cannot remove a path that is too long, and an ordinary user cannot remove an unreadable directory.
  spawnSync('chmod', ['-R', 'u+rwx', '--', scratch]);
  spawnSync('rm', ['-rf', '--', scratch]);
});

describe('the processes of a sandbox', () => {
  test.runIf(HAS_SANDBOX)(
    'are all found from outside, even after they leave their parent, session and name',
    async () => {
      const daemon = '(setsid bash -c "(exec -a hidden sleep 30) & sleep 30" &); sleep 30';
      const { pid } = await inNamespace(['bash', '-c', daemon]);
      await until(() => commands(pid).filter((name) => name === 'sleep').length === 3);
      const tree = processTree(pid);
      expect(tree?.tasks).toBe(tree?.pids.length);
      expect(walkParents(pid)?.pids.toSorted()).toEqual(tree?.pids.toSorted());
    },
  );

  test('include threads, and are none after the first process has ended', async () => {
    const threads =
      'for (let i = 0; i < 3; i++) new (require("worker_threads").Worker)("setInterval(() => {}, 1000)", { eval: true })';
    const child = start(process.execPath, ['-e', threads]);
    await until(() => (processTree(child.pid ?? 0)?.tasks ?? 0) > 4);
    expect(processTree(child.pid ?? 0)?.pids).toEqual([child.pid]);
    child.kill('SIGKILL');
    await until(() => startTicks(child.pid ?? 0) === null);
    expect([processTree(child.pid ?? 0), walkParents(child.pid ?? 0)]).toEqual([null, null]);
  });

  test('share pages that the exact measurement counts once and the quick one for each process', async () => {
    const { pid } = await ready('perl', [
      '-e',
      '$| = 1; $x = "a" x (40 * 1024 * 1024); for (1 .. 5) { fork or do { sleep 30; exit } } print "ready\\n"; sleep 30',
    ]);
    const pids = processTree(pid)?.pids ?? [];
    expect(pids.length).toBe(6);
    expect(quickMemory(pids).atMostBytes).toBeGreaterThan(6 * 40 * MiB);
    const { bytes } = await exactMemory(pids);
    expect(bytes).toBeGreaterThan(40 * MiB);
    expect(bytes).toBeLessThan(120 * MiB);
  });
});

describe('data on disk', () => {
  const measure = async (pids: number[] = [], most: Partial<{ maxBytes: number; maxFiles: number }> = {}) =>
    measureDisk(
      { directories: [scratch], places: [scratch], pids, maxBytes: 1e15, maxFiles: 1e9, ...most },
      new AbortController().signal,
    );

  test('is counted by blocks, once per file, without following links', async () => {
    mkdirSync(join(scratch, 'a/b'), { recursive: true });
    writeFileSync(join(scratch, 'a/b/file'), Buffer.alloc(MiB));
    linkSync(join(scratch, 'a/b/file'), join(scratch, 'a/again'));
    symlinkSync('/usr', join(scratch, 'a/link'));
    closeSync(openSync(join(scratch, 'sparse'), 'w'));
    truncateSync(join(scratch, 'sparse'), 2 ** 40);
    const usage = await measure();
    expect(usage).toEqual({ ...NOTHING, bytes: expect.any(Number), files: 6 });
    expect(usage?.bytes).toBeGreaterThanOrEqual(MiB);
    expect(usage?.bytes).toBeLessThan(MiB + 64 * 1024);
  });

  test('is found behind names that are not UTF-8 and paths that are too long', async () => {
    writeFileSync(Buffer.concat([Buffer.from(`${scratch}/`), Buffer.from([0xff, 0xfe, 0x0a])]), Buffer.alloc(MiB));
    const deep = `for (1 .. 60) { mkdir "d" x 100 or die; chdir "d" x 100 } open F, ">f"; print F "a" x ${MiB}`;
    expect(await exitOf('perl', ['-e', deep])).toBe(0);
    const usage = await measure();
    expect([usage?.files, usage?.isListed]).toEqual([62, true]);
    expect(usage?.bytes).toBeGreaterThanOrEqual(2 * MiB);
  });

  test('below the greatest depth is reported as unmeasured, and counting stops beyond the limit', async () => {
    expect(await exitOf('perl', ['-e', 'for (1 .. 250) { mkdir "d" or die; chdir "d" }'])).toBe(0);
    expect(await measure()).toMatchObject({ files: 201, isListed: false });
    expect(await measure([], { maxFiles: 10 })).toMatchObject({ files: 11 });
  });

  test('that is deleted but open is counted, and so is a memory file', async () => {
    const code = `use IO::Handle; open F, ">", "f"; unlink "f"; print F "a" x (1 << 20); F->flush; ${MEMFD} print M "a" x (2 << 20); M->flush; $| = 1; print "ready\\n"; sleep 30`;
    const { pid } = await ready('perl', ['-e', code]);
    const usage = await measure([pid]);
    expect(usage).toEqual({
      ...NOTHING,
      bytes: usage?.deletedBytes,
      memoryFileBytes: 2 * MiB,
      deletedBytes: expect.any(Number),
    });
    expect(usage?.bytes).toBeGreaterThanOrEqual(MiB);
  });

  const PYTHON = 'import ctypes, mmap, os, sys, threading, time\nlibc = ctypes.CDLL(None)\n';
  const held = async (code: string): Promise<number> => (await ready('/usr/bin/python3', ['-c', PYTHON + code])).pid;

  test.runIf(HAS_PYTHON)('that is deleted but open in a thread with its own descriptors is counted', async () => {
    const pid = await held(`
def own():
    assert libc.unshare(0x400) == 0
    f = open('f', 'wb'); os.unlink('f'); f.write(b'a' * (1 << 20)); f.flush(); print('ready', flush=True); time.sleep(30)
threading.Thread(target=own).start()`);
    const usage = await measure([pid]);
    expect(usage).toMatchObject({ isSeen: true, deletedBytes: usage?.bytes });
    expect(usage?.bytes).toBeGreaterThanOrEqual(MiB);
  });

  test.runIf(HAS_PYTHON)(
    'that is deleted but mapped is counted by root, and reported as unmeasured by other users',
    async () => {
      const pid = await held(`
f = open('f', 'w+b'); f.write(b'a' * (1 << 20)); f.flush(); m = mmap.mmap(f.fileno(), 4096); os.unlink('f'); f.close()
print('ready', flush=True); time.sleep(30)`);
      expect(await measure([pid])).toMatchObject({ isSeen: true });
      const closed = await held(`
f = open('g', 'w+b'); f.write(b'a' * (1 << 20)); f.flush()
at = libc.mmap; at.restype = ctypes.c_void_p; at.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
at(None, 4096, 3, 1, f.fileno(), 0); os.unlink('g'); f.close(); print('ready', flush=True); time.sleep(30)`);
      const usage = await measure([closed]);
      expect(usage).toMatchObject({ isSeen: process.getuid?.() === 0 });
      if (usage?.isSeen === true) expect(usage.deletedBytes).toBeGreaterThanOrEqual(MiB);
    },
  );

  test('that is open under a path longer than the kernel reports is unmeasured, which is no breach', async () => {
    const deep =
      'for (1 .. 20) { mkdir "d" x 250; chdir "d" x 250 } open F, ">f"; unlink "f"; $| = 1; print "ready\\n"; sleep 30';
    const { pid } = await ready('perl', ['-e', deep]);
    expect(await measure([pid])).toMatchObject({ isSeen: false });
  });

  test('in an unreadable directory is reported as unmeasured', async () => {
    mkdirSync(join(scratch, 'closed'));
    writeFileSync(join(scratch, 'closed/f'), 'x');
    chmodSync(join(scratch, 'closed'), 0o311);
    // Root reads everything.
    expect(await measure()).toMatchObject(
      process.getuid?.() === 0 ? { files: 2, isListed: true } : { files: 1, isListed: false },
    );
  });
});

describe('the watcher reports', () => {
  test.runIf(HAS_SANDBOX)('memory that all processes together use, although each is below the limit', async () => {
    const eat = '$x = "a" x (12 * 1024 * 1024); sleep 30';
    const { pid } = await inNamespace(['sh', '-c', `for i in 1 2 3 4; do perl -e '${eat}' & done; wait`]);
    const { breach, watch } = await firstBreach(pid, {});
    expect(breach).toEqual({ limit: 'memory', unit: 'bytes', used: expect.any(Number), allowed: 64 * MiB });
    expect(breach.used).toBeGreaterThan(64 * MiB);
    expect(breach.used).toBeLessThan(160 * MiB);
    expect(watch.peak().processes).toBeGreaterThanOrEqual(5);
  });

  test.runIf(HAS_PYTHON)('memory of a process whose first thread has ended', async () => {
    const code = `import ctypes, threading, time
def fill():
    time.sleep(0.3)
    held = bytearray(b'a') * (100 << 20)
    time.sleep(30)
threading.Thread(target=fill).start()
ctypes.CDLL(None).syscall(${process.arch === 'arm64' ? 93 : 60}, 0)`;
    const { breach } = await firstBreach(start('/usr/bin/python3', ['-c', code]).pid ?? 0, {});
    expect(breach).toMatchObject({ limit: 'memory', allowed: 64 * MiB });
    expect(breach.used).toBeGreaterThan(64 * MiB);
  });

  test('memory in a file that no process has mapped', async () => {
    const code = `${MEMFD} for (1 .. 100) { print M "a" x (1 << 20) } sleep 30`;
    const { breach } = await firstBreach(start('perl', ['-e', code]).pid ?? 0, {});
    expect(breach).toMatchObject({ limit: 'memory', allowed: 64 * MiB });
    expect(breach.used).toBeGreaterThan(64 * MiB);
  });

  test('no memory use when a cgroup enforces the limit', async () => {
    const hog = await ready('perl', ['-e', '$| = 1; $x = "a" x (100 * 1024 * 1024); print "ready\\n"; sleep 30']);
    const { breach } = await firstBreach(hog.pid, { watchMemory: false, limits: { ...limits, wallSeconds: 1 } });
    expect(breach).toMatchObject({ limit: 'time', allowed: 1 });
  });

  test('a file that grows too large, by name or deleted', async () => {
    for (const unlink of ['', 'unlink "f";']) {
      const child = start('perl', [
        '-e',
        `open F, ">", "f"; ${unlink} for (1 .. 100) { print F "a" x (1 << 20); select undef, undef, undef, 0.005 } sleep 30`,
      ]);
      // A missing directory does not matter.
      const { breach, watch } = await firstBreach(child.pid ?? 0, { directories: [join(scratch, 'missing'), scratch] });
      expect(breach).toMatchObject({ limit: 'disk', unit: 'bytes', allowed: 64 * MiB });
      expect(watch.peak().diskBytes).toBe(breach.used);
      child.kill('SIGKILL');
      watch.stop();
    }
    // If another process frees as much at the same time, the breach is noticed only after ten seconds.
  }, 30_000);

  test('a file system that falls below its floor, even if other programs fill it', async () => {
    const { breach } = await firstBreach(start('sleep', ['30']).pid ?? 0, { freeFloorBytes: 2 ** 50 });
    expect(breach).toMatchObject({ limit: 'free-space', unit: 'bytes', allowed: 2 ** 50 });
  });

  test('the end of the time limit, and not earlier', async () => {
    const startedMs = performance.now();
    const { breach } = await firstBreach(start('sleep', ['30']).pid ?? 0, { limits: { ...limits, wallSeconds: 1 } });
    expect(breach).toEqual({ limit: 'time', unit: 'seconds', used: expect.any(Number), allowed: 1 });
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(1000);
  });

  test('nothing after it stopped or the sandbox ended', async () => {
    const { pid } = await ready('perl', ['-e', '$| = 1; $x = "a" x (100 * 1024 * 1024); print "ready\\n"; sleep 30']);
    const breaches: Breach[] = [];
    const input = {
      initPid: pid,
      limits,
      watchMemory: true,
      directories: [scratch],
      mounts: [],
      freeFloorBytes: 0,
      onBreach: (breach: Breach) => void breaches.push(breach),
    };
    watchSandbox(input).stop();
    watches.push(watchSandbox(input));
    children.at(-1)?.kill('SIGKILL');
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(breaches).toEqual([]);
  });
});

function firstBreach(initPid: number, more: Partial<WatchInput>): Promise<{ breach: Breach; watch: Watch }> {
  return new Promise((resolve) => {
    const onBreach = (breach: Breach): void => queueMicrotask(() => resolve({ breach, watch }));
    const watch = watchSandbox({
      initPid,
      limits,
      watchMemory: true,
      directories: [scratch],
      mounts: [],
      freeFloorBytes: 0,
      onBreach,
      ...more,
    });
    watches.push(watch);
  });
}

function start(file: string, args: readonly string[]): ChildProcess {
  const child = spawn(file, args, { cwd: scratch, stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  return child;
}

/** Starts a program and waits for its first output. */
async function ready(file: string, args: readonly string[]): Promise<{ pid: number }> {
  const child = start(file, args);
  await new Promise((resolve) => child.stdout?.once('data', resolve));
  return { pid: child.pid ?? 0 };
}

/** Starts a command in a PID namespace as an ordinary user; returns its first process. */
async function inNamespace(command: readonly string[]): Promise<{ pid: number }> {
  const asUser = process.getuid?.() === 0 ? ['setpriv', '--reuid=1001', '--regid=1001', '--clear-groups'] : ['env'];
  const argv = [
    ...asUser,
    'bwrap',
    '--unshare-user',
    '--unshare-pid',
    '--die-with-parent',
    '--ro-bind',
    '/',
    '/',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    '--chdir',
    '/',
    '--',
    ...command,
  ];
  const outer = start(argv[0] ?? '', argv.slice(1)).pid ?? 0;
  const first = (): number | undefined =>
    processTree(outer)?.pids.find((pid) =>
      unlessGone(() => /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')), false),
    );
  await until(() => first() !== undefined);
  return { pid: first() ?? 0 };
}

function commands(root: number): string[] {
  return (processTree(root)?.pids ?? []).map((pid) =>
    existsSync(`/proc/${pid}/comm`) ? readFileSync(`/proc/${pid}/comm`, 'utf8').trim() : '',
  );
}

function exitOf(file: string, args: readonly string[]): Promise<number | null> {
  return new Promise((resolve) => start(file, args).once('close', resolve));
}
