// agent-run/queue.ts: decides when a waiting run may start. There is no daemon: each waiting runner checks for itself, one at a
// time under a lock.
// Invariant: the oldest goes first, and only while fewer than `parallel` runs work, whichever command started them. A run that waits for
// a person does not work; one with a dead runner does not count.
import { availableParallelism, loadavg } from 'node:os';
import { readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { isUnderWay } from '../protocol/run-state.ts';
import type { RunFile } from '../protocol/task.ts';
import { tryLock } from '../lib/process/lock.ts';
import { pause } from '../lib/process/pause.ts';
import { freeFloor } from '../sandbox/watch/limits.ts';
import { count, readableSize } from '../lib/units.ts';
import type { RunBudget, UsedUp } from './model/budget.ts';
import { clockOf, failsFor, waitUntil } from './model/waits.ts';
import type { ControlServer } from './control-server.ts';
import type { RunRecord } from './run-record.ts';
import type { Goal } from '../protocol/task.ts';
import type { EventLog } from '../store/events.ts';
import type { StoredTask } from '../store/tasks.ts';
import { readEntries } from '../queries/entries.ts';
import type { HostContext } from '../run/host-context.ts';

export interface WaitingRun {
  readonly context: HostContext;
  readonly stored: StoredTask;
  readonly events: EventLog;
  readonly run: RunRecord;
  readonly control: Pick<ControlServer, 'stopped'>;
  readonly budget: RunBudget;
}

/** Waits in the queue. False: it was stopped meanwhile. */
export function admitted({ context, stored, events, run, control, budget }: WaitingRun, goal: Goal): Promise<boolean> {
  return waitForTurn({
    context,
    id: stored.task.id,
    parallel: goal.parallel,
    maxLoad: maxLoadOf(context.env),
    usedUp: () => budget.usedUpNow(),
    admit() {
      run.move('preparing');
      run.forgetReason();
    },
    onWait(why, isNew, untilMs) {
      run.set({ reason: `Waiting: ${why}`, waitsUntilMs: untilMs });
      if (isNew) events.append({ type: 'run.waiting', why });
    },
    signal: control.stopped,
  });
}

/** The same for a run that has begun: it gives its place to others. */
export function admittedAgain(runner: WaitingRun, goal: Goal): Promise<boolean> {
  runner.run.move('queued');
  return admitted(runner, goal);
}

/** Resolves when no budget is used up any more, or at the signal. */
export async function budgetAgain(budget: RunBudget, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && (await budget.usedUpNow()) !== null) await pause(USED_UP_MS, signal);
}

/** Gives its place in the queue to others until its model can be asked again. False: it was stopped meanwhile. */
export async function outlastModel(
  runner: WaitingRun,
  goal: Goal,
  { untilMs, status }: { untilMs: number; status: number | null },
): Promise<boolean> {
  const { context, events, run, control } = runner;
  const nowMs = (): number => context.now().getTime();
  const why = `the model ${failsFor(status) ? 'fails' : 'refuses'} for now; it goes on by itself at ${clockOf(untilMs, nowMs())}`;
  run.set({ waitsUntilMs: untilMs, reason: `Waiting: ${why}` });
  run.move('queued');
  events.append({ type: 'run.waiting', why });
  await waitUntil(untilMs, nowMs, control.stopped);
  run.forgetReason();
  return admitted(runner, goal);
}

export interface QueueInput {
  readonly context: HostContext;
  readonly id: string;
  /** How many may run at once. */
  readonly parallel: number;
  /** Of the machine, above which this run waits while others work. */
  readonly maxLoad: number;
  /** A budget is used up; null: none is. Such a run holds up no other. */
  usedUp(): Promise<UsedUp | null>;
  /** Called under the lock: from here on this run counts as active. */
  admit(): void;
  /** Called whenever the reason to wait changes. New: it has not yet waited for this kind of thing. */
  onWait(why: string, isNew: boolean, untilMs?: number): void;
  readonly signal: AbortSignal;
}

/** Resolves when it may run; false: the signal came first. */
export async function waitForTurn(input: QueueInput): Promise<boolean> {
  let lastReason = '';
  const told = new Set<string>();
  let waitMs = SOON_MS;
  for (;;) {
    if (input.signal.aborted) return false;
    const used = await input.usedUp();
    const why = used === null ? await tryEnter(input) : whyUsedUp(used);
    if (why === null) return true;
    if (why !== lastReason && why !== '') {
      const kind = why.includes(SLOTS) ? SLOTS : why;
      input.onWait((lastReason = why), !told.has(kind), used?.untilMs);
      told.add(kind);
      // The queue moves, so its next move may be near.
      waitMs = SOON_MS;
    }
    await pause(used === null ? waitMs : USED_UP_MS, input.signal);
    waitMs = Math.min(waitMs * 2, LOOK_MS);
  }
}

const whyUsedUp = ({ what, until, raise }: UsedUp): string =>
  `${what}; it goes on by itself at ${until}, or when you raise ${raise}`;

// The load can cross its limit, and the queue move, hundreds of times: the log tells each kind of reason once for each wait.
const SLOTS = 'slots used';
const SOON_MS = 50;
const LOOK_MS = 500;
/** Until a budget is looked at again. */
const USED_UP_MS = 2000;

/** null: it may run. An empty reason: another runner holds the lock. */
async function tryEnter(input: QueueInput): Promise<string | null> {
  using lock = tryLock(join(input.context.stateDir, 'queue.lock'));
  if (lock === null) return '';
  const why = await reasonToWait(input);
  if (why === null) input.admit();
  return why;
}

async function reasonToWait({ context, id, parallel, maxLoad }: QueueInput): Promise<string | null> {
  const agents = (await readEntries(context.stateDir)).flatMap((entry) =>
    entry.kind === 'whole' && entry.stored.live && entry.stored.task.kind === 'agent' ? [entry.stored] : [],
  );
  return whyWait(
    id,
    parallel,
    agents.map(({ task, run }) => ({ id: task.id, ...run })),
    { always: () => diskShortage(context), beside: () => memoryShortage() ?? loadShortage(maxLoad) },
  );
}

export type QueuedRun = Pick<RunFile, 'state' | 'needs' | 'startedAtMs' | 'after' | 'waitsUntilMs'> & {
  readonly id: string;
};

/** Why the machine cannot start any run, and why it cannot start one more beside others; null: it can. */
export interface Shortage {
  always(): string | null;
  beside(): string | null;
}

/** `runs` have a live runner, this one among them. null: it may start. */
export function whyWait(id: string, parallel: number, runs: readonly QueuedRun[], lacks: Shortage): string | null {
  const queue = runs
    // A run that waits for another task holds no place, so that it delays neither others nor the task it waits for. Nor does one that
    // waits for its model.
    .filter(({ state, after, waitsUntilMs }) => state === 'queued' && after === undefined && waitsUntilMs === undefined)
    .toSorted((a, b) => a.startedAtMs - b.startedAtMs || (a.id < b.id ? -1 : 1));
  const ahead = queue.findIndex((run) => run.id === id);
  const working = runs.filter(isWorking).length;
  // A run that is held back keeps all younger ones waiting, so that none overtakes it for ever.
  if (working >= parallel || ahead > 0)
    return `${working} of ${parallel} ${SLOTS}${ahead > 0 ? `, ${count(ahead, 'task')} ahead` : ''}`;
  // At least one run must make progress, so low memory and high load only delay further runs.
  return lacks.always() ?? (working === 0 ? null : lacks.beside());
}

/** A run that waits for a person, also at its prompt, gives its place to another. With a failed service the agent goes on. */
function isWorking({ state, needs }: QueuedRun): boolean {
  if (state === 'needs-you') return needs === 'look';
  return isUnderWay(state) && state !== 'queued';
}

// A reason names the limit and not the present figure: each change of a reason is written to run.json.
function diskShortage(context: HostContext): string | null {
  const disk = statfsSync(context.stateDir);
  const free = disk.bavail * disk.bsize;
  const floor = freeFloor(disk);
  return free > floor ? null : `the disk is nearly full: less than ${readableSize(floor)} free`;
}

function memoryShortage(): string | null {
  const text = readFileSync('/proc/meminfo', 'utf8');
  const kilobytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  const available = kilobytes('MemAvailable') * 1024;
  const wanted = Math.min(MOST_WANTED, (kilobytes('MemTotal') * 1024) / 8);
  return available >= wanted ? null : `memory is low: less than ${readableSize(wanted)} free`;
}

const MOST_WANTED = 2 * 2 ** 30;

function loadShortage(maxLoad: number): string | null {
  const [minute = 0] = loadavg();
  return minute <= maxLoad ? null : `the machine is busy: load over ${maxLoad}`;
}

/** High, because agents mostly wait for their models. AGS_MAX_LOAD overrides it. */
export function maxLoadOf(env: Readonly<Record<string, string | undefined>>): number {
  const wanted = Number(env['AGS_MAX_LOAD']);
  return wanted > 0 ? wanted : 3 * availableParallelism();
}
