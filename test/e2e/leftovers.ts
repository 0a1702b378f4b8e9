// test/e2e/leftovers.ts: what a sandbox may have left on this machine when it should be gone: processes and mounts.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AGS, type Machine } from '../harness.ts';

/** Gives what is dying a moment, then says what is still there. */
export async function leftovers(machine: Machine, withinMs = 30_000): Promise<string[]> {
  const end = Date.now() + withinMs;
  for (;;) {
    const left = [...sandboxProcesses(machine), ...mounts('self', machine)];
    if (left.length === 0 || Date.now() > end) return left;
    await sleep(20);
  }
}

/** Launchers, bwrap and the programs inside, of every sandbox over this machine's files. */
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

/** By the last part of its name: where /tmp is a file system of its own, what is mounted is named from there. */
function mounts(pid: string, machine: Machine): string[] {
  return read(`/proc/${pid}/mountinfo`)
    .split('\n')
    .filter((line) => line.includes(basename(machine.root)));
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    // It has ended, or is another user's.
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
