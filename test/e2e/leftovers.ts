// test/e2e/leftovers.ts: finds and ends leftovers of sandboxes on this machine: processes and mounts.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AGS, type Machine } from '../harness.ts';

/** Waits until no process and no mount of this machine's sandboxes is left; returns those left at the timeout. */
export async function leftovers(machine: Machine, withinMs = 30_000): Promise<string[]> {
  const end = Date.now() + withinMs;
  for (;;) {
    const left = [...sandboxProcesses(machine), ...mounts('self', machine)];
    if (left.length === 0 || Date.now() > end) return left;
    await sleep(20);
  }
}

/** Launchers, bwrap and programs inside, of every sandbox over this machine's files. */
export function sandboxProcesses(machine: Machine): string[] {
  const here = link('/proc/self/ns/mnt');
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      if (/\) [ZX] /.test(read(`/proc/${pid}/stat`))) return [];
      const command = read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
      const elsewhere = ![here, ''].includes(link(`/proc/${pid}/ns/mnt`));
      const launcher = read(`/proc/${pid}/environ`)
        .split('\0')
        .some((one) => one.startsWith('AGS_RUN='));
      const inside = elsewhere && mounts(pid, machine).length > 0;
      return inside || (launcher && command.includes(machine.root)) ? [`${pid} ${command}`] : [];
    });
}

/** Kills ags `afterMs` after it started or, if given, after `begun` holds; false if it had ended before. */
export async function killed(
  machine: Machine,
  args: readonly string[],
  afterMs: number,
  begun: () => boolean = () => true,
): Promise<boolean> {
  const child = machine.start(args);
  const ended = new Promise<boolean>((resolve) => child.on('exit', (_code, signal) => resolve(signal === 'SIGKILL')));
  child.stdout?.resume();
  child.stderr?.resume();
  child.stdin?.end();
  while (child.exitCode === null && !begun()) await sleep(1);
  await Promise.race([sleep(afterMs), ended]);
  child.kill('SIGKILL');
  return ended;
}

/** Sends a signal to the `ags` that runs on this machine. */
export function signalAgs(machine: Machine, signal: string): void {
  const running = readdirSync('/proc').filter(
    (pid) =>
      /^\d+$/.test(pid) &&
      read(`/proc/${pid}/cmdline`).split('\0')[1] === AGS &&
      read(`/proc/${pid}/environ`).split('\0').includes(`HOME=${machine.home}`),
  );
  if (running.length === 0) throw new Error('no ags is running');
  for (const pid of running) process.kill(Number(pid), `SIG${signal}`);
}

/** Matches the last part of the path, because mountinfo names sources from the root of their file system, which /tmp may be. */
function mounts(pid: string, machine: Machine): string[] {
  return read(`/proc/${pid}/mountinfo`)
    .split('\n')
    .filter((line) => line.includes(basename(machine.root)));
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    // The process has ended, or belongs to another user.
    return '';
  }
}

function link(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
