// test/faults/processes.ts: lists the processes of one machine with their roles.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { AGS } from '../harness.ts';

export interface Seen {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
  readonly role: Role;
}

/** `helper`: a program started by ags, such as git. `inside`: runs in a sandbox. */
export type Role = 'cli' | 'runner' | 'server' | 'gateway' | 'launcher' | 'inside' | 'helper';

/** `spare`: the test's own processes. */
export function processesOf(place: { home: string; root: string }, spare: readonly number[]): Seen[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid && !spare.includes(Number(name)))
    .flatMap((pid) => look(pid, place) ?? []);
}

function look(pid: string, place: { home: string; root: string }): Seen | null {
  const stat = read(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (stat === '' || fields[0] === 'Z' || fields[0] === 'X') return null;
  const words = read(`/proc/${pid}/cmdline`).split('\0');
  const command = words.join(' ').trim();
  const environment = read(`/proc/${pid}/environ`).split('\0');
  const launched = environment.some((one) => one.startsWith('AGS_RUN='));
  // Only the mounts of a machine's sandboxes and of our own processes name its file systems.
  const inside = depthOf(pid) > 1 && read(`/proc/${pid}/mountinfo`).includes(basename(place.root));
  const own = environment.includes(`HOME=${place.home}`);
  if (!own && !inside && !(launched && command.includes(place.root)) && !isAt(pid, place.root)) return null;
  return { pid: Number(pid), parent: Number(fields[1]), command, role: roleOf({ words, launched, inside }) };
}

function roleOf(seen: { words: readonly string[]; launched: boolean; inside: boolean }): Role {
  if (seen.inside) return 'inside';
  if (seen.launched) return 'launcher';
  const verb = seen.words[seen.words.indexOf(AGS) + 1];
  if (!seen.words.includes(AGS)) return 'helper';
  return verb === '__run' ? 'runner' : verb === 'serve' ? 'server' : verb === 'gateway' ? 'gateway' : 'cli';
}

/** The number of nested PID namespaces, as seen from here. */
function depthOf(pid: string): number {
  return (/^NSpid:\s+(.*)$/m.exec(read(`/proc/${pid}/status`))?.[1] ?? '').split(/\s+/).length;
}

function isAt(pid: string, root: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`).startsWith(`${root}/`);
  } catch {
    return false;
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    // The process ended or belongs to another user.
    return '';
  }
}
