// sandbox/watch/memory-usage.ts: measures the memory of a process tree without any privilege over it.
// Invariant: the quick figure is never below the true one, so only a sandbox that might exceed its limit is measured exactly. In the
// exact figure a page shared by n processes counts once, not n times.
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { unlessGone } from './process-tree.ts';

export interface QuickMemory {
  /** Every resident page of every process, shared ones repeatedly: an upper bound. */
  readonly atMostBytes: number;
  /** Anonymous and swapped pages only: a fair estimate to show. */
  readonly privateBytes: number;
}

export interface ExactMemory {
  readonly bytes: number;
  /** The part that is mapped shared memory, including mapped memfds. */
  readonly sharedBytes: number;
}

/** Takes some 40 µs per process and none of its locks. */
export function quickMemory(pids: readonly number[]): QuickMemory {
  const each = pids.map((pid) => parseStatus(shownBy(pid).status));
  return {
    atMostBytes: sum(each.map((one) => one.atMostBytes)),
    privateBytes: sum(each.map((one) => one.privateBytes)),
  };
}

/** Walks page tables, a millisecond or more per process, and waits for its locks: never on the main thread. */
export async function exactMemory(pids: readonly number[]): Promise<ExactMemory> {
  const each = await Promise.all(pids.map(exactOf));
  return { bytes: sum(each.map((one) => one.bytes)), sharedBytes: sum(each.map((one) => one.sharedBytes)) };
}

/** Shared memory of the whole machine. It rises when a sandbox fills an unmapped memfd, which no process shows. */
export function machineSharedBytes(): number {
  return kilobytes(readFileSync('/proc/meminfo', 'latin1'), 'Shmem');
}

/** From /proc/<pid>/status. A zombie has none of these lines. */
export function parseStatus(text: string): QuickMemory {
  const anonymous = kilobytes(text, 'RssAnon') + kilobytes(text, 'VmSwap');
  return { atMostBytes: anonymous + kilobytes(text, 'RssFile') + kilobytes(text, 'RssShmem'), privateBytes: anonymous };
}

/** From /proc/<pid>/smaps_rollup. */
export function parseRollup(text: string): ExactMemory {
  return { bytes: kilobytes(text, 'Pss') + kilobytes(text, 'SwapPss'), sharedBytes: kilobytes(text, 'Pss_Shmem') };
}

async function exactOf(pid: number): Promise<ExactMemory> {
  try {
    return parseRollup(await readFile(`${placeOf(pid)}/smaps_rollup`, 'latin1'));
  } catch {
    // The process ended, or is not readable: fall back to the private part, which all users can read.
    return { bytes: quickMemory([pid]).privateBytes, sharedBytes: 0 };
  }
}

/** The /proc directory that shows the memory of a process. */
export const placeOf = (pid: number): string => shownBy(pid).place;

/** After the first thread of a process has ended, only its other threads show its memory. */
function shownBy(pid: number): { place: string; status: string } {
  const own = shown(`/proc/${pid}`);
  if (hasMemory(own)) return own;
  const threads = unlessGone(() => readdirSync(`${own.place}/task`), []);
  return threads.map((thread) => shown(`${own.place}/task/${thread}`)).find(hasMemory) ?? own;
}

const shown = (place: string): { place: string; status: string } => ({
  place,
  status: unlessGone(() => readFileSync(`${place}/status`, 'latin1'), ''),
});

const hasMemory = ({ status }: { status: string }): boolean => /^RssAnon:/m.test(status);

function kilobytes(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) * 1024;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
