// agent-run/queue.ts: which of the waiting runs may start now. There is no daemon: every waiting runner looks for itself, one at a time
// under a lock, and the oldest goes first.
// Invariant: no more runs than allowed are under way at once, whoever started them; a run whose runner has died does not count.
import { loadavg } from 'node:os';
import { readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { isUnderWay } from '../protocol/run-state.ts';
import { tryLock } from '../lib/process/lock.ts';
import { pause } from '../lib/process/pause.ts';
import { freeFloor } from '../sandbox/watch/limits.ts';
import { formatSize } from '../lib/units.ts';
import { readEntries } from '../queries/entries.ts';
import type { World } from '../run/host-context.ts';

export interface QueueInput {
  readonly world: World;
  readonly id: string;
  /** How many may run at once. */
  readonly parallel: number;
  readonly cores: number;
  /** Called under the lock: from here on this run counts as under way. */
  admit(): void;
  /** Why it still waits; called whenever that changes. */
  onWait(why: string): void;
  readonly signal: AbortSignal;
}

/** Resolves when it may run; false: the signal came first. */
export async function waitForTurn(input: QueueInput): Promise<boolean> {
  let told = '';
  for (;;) {
    if (input.signal.aborted) return false;
    const why = await tryEnter(input);
    if (why === null) return true;
    if (why !== told && why !== '') input.onWait((told = why));
    await pause(LOOK_MS, input.signal);
  }
}

const LOOK_MS = 500;

/** null: it may run. An empty reason: somebody else is looking just now. */
async function tryEnter(input: QueueInput): Promise<string | null> {
  using lock = tryLock(join(input.world.stateDir, 'queue.lock'));
  if (lock === null) return '';
  const why = await reasonToWait(input);
  if (why === null) input.admit();
  return why;
}

async function reasonToWait({ world, id, parallel, cores }: QueueInput): Promise<string | null> {
  const agents = (await readEntries(world.stateDir)).flatMap((entry) =>
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
    return `${running} of ${parallel} run at once${ahead === 0 ? '' : `, ${ahead} wait before it`}`;
  const room = diskRoom(world);
  if (room !== null) return room;
  // Somebody has to make progress: what follows only keeps further ones back.
  return running === 0 ? null : (memoryRoom() ?? loadRoom(cores));
}

function diskRoom(world: World): string | null {
  const disk = statfsSync(world.stateDir);
  const free = disk.bavail * disk.bsize;
  const floor = freeFloor(disk);
  return free > floor ? null : `the disk is nearly full: ${formatSize(free)} free`;
}

function memoryRoom(): string | null {
  const text = readFileSync('/proc/meminfo', 'utf8');
  const kilobytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  const available = kilobytes('MemAvailable') * 1024;
  const wanted = Math.min(MOST_WANTED, (kilobytes('MemTotal') * 1024) / 8);
  return available >= wanted ? null : `little memory is free: ${formatSize(available)}`;
}

const MOST_WANTED = 2 * 2 ** 30;

function loadRoom(cores: number): string | null {
  const [minute = 0] = loadavg();
  return minute <= cores * BUSY ? null : `the machine is busy: a load of ${minute.toFixed(1)} on ${cores} cores`;
}

/** Agents mostly wait for their models; only a machine that is clearly behind keeps them back. */
const BUSY = 3;
