// agent-run/queue.ts: decides when a waiting run may start. There is no daemon: each waiting runner checks for itself, one at a
// time under a lock, and the oldest goes first.
// Invariant: no more than `parallel` runs are active at once, whichever command started them. A run with a dead runner does not count.
import { loadavg } from 'node:os';
import { readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { isUnderWay } from '../protocol/run-state.ts';
import { tryLock } from '../lib/process/lock.ts';
import { pause } from '../lib/process/pause.ts';
import { freeFloor } from '../sandbox/watch/limits.ts';
import { count, formatSize } from '../lib/units.ts';
import { readEntries } from '../queries/entries.ts';
import type { HostContext } from '../run/host-context.ts';

export interface QueueInput {
  readonly context: HostContext;
  readonly id: string;
  /** How many may run at once. */
  readonly parallel: number;
  readonly cores: number;
  /** Called under the lock: from here on this run counts as active. */
  admit(): void;
  /** Called whenever the reason to wait changes. */
  onWait(why: string): void;
  readonly signal: AbortSignal;
}

/** Resolves when it may run; false: the signal came first. */
export async function waitForTurn(input: QueueInput): Promise<boolean> {
  let lastReason = '';
  for (;;) {
    if (input.signal.aborted) return false;
    const why = await tryEnter(input);
    if (why === null) return true;
    if (why !== lastReason && why !== '') input.onWait((lastReason = why));
    await pause(LOOK_MS, input.signal);
  }
}

const LOOK_MS = 500;

/** null: it may run. An empty reason: another runner holds the lock. */
async function tryEnter(input: QueueInput): Promise<string | null> {
  using lock = tryLock(join(input.context.stateDir, 'queue.lock'));
  if (lock === null) return '';
  const why = await reasonToWait(input);
  if (why === null) input.admit();
  return why;
}

async function reasonToWait({ context, id, parallel, cores }: QueueInput): Promise<string | null> {
  const agents = (await readEntries(context.stateDir)).flatMap((entry) =>
    entry.kind === 'whole' && entry.stored.live && entry.stored.task.kind === 'agent' ? [entry.stored] : [],
  );
  const running = agents.filter(({ run }) => isUnderWay(run.state) && run.state !== 'queued').length;
  const before = agents.filter(({ task, run }) => run.state === 'queued' && task.id !== id);
  const mine = agents.find(({ task }) => task.id === id);
  const ahead = before.filter(
    ({ task, run }) =>
      run.startedAtMs < (mine?.run.startedAtMs ?? 0) || (run.startedAtMs === mine?.run.startedAtMs && task.id < id),
  ).length;
  if (running + ahead >= parallel)
    return `${running} of ${parallel} slots used${ahead === 0 ? '' : `, ${count(ahead, 'task')} ahead`}`;
  const disk = diskShortage(context);
  if (disk !== null) return disk;
  // At least one run must make progress, so low memory and high load only delay further runs.
  return running === 0 ? null : (memoryShortage() ?? loadShortage(cores));
}

function diskShortage(context: HostContext): string | null {
  const disk = statfsSync(context.stateDir);
  const free = disk.bavail * disk.bsize;
  const floor = freeFloor(disk);
  return free > floor ? null : `the disk is nearly full: ${formatSize(free)} free`;
}

function memoryShortage(): string | null {
  const text = readFileSync('/proc/meminfo', 'utf8');
  const kilobytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  const available = kilobytes('MemAvailable') * 1024;
  const wanted = Math.min(MOST_WANTED, (kilobytes('MemTotal') * 1024) / 8);
  return available >= wanted ? null : `memory is low: ${formatSize(available)} free`;
}

const MOST_WANTED = 2 * 2 ** 30;

function loadShortage(cores: number): string | null {
  const [minute = 0] = loadavg();
  return minute <= cores * BUSY ? null : `the machine is busy: load ${minute.toFixed(1)} on ${cores} cores`;
}

/** Load per core. It is high because agents mostly wait for their models. */
const BUSY = 3;
