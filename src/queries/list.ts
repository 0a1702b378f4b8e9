// queries/list.ts: tasks as users see them: the state of each, and whether it needs attention.
// Invariant: a workspace that cannot be read counts as changed, so no work is lost because of a read error.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { REMOTE_MEMO } from '../sandbox/backend.ts';
import type { ChangeSet } from '../protocol/changes.ts';
import { hasBegun, isUnderWay, type ShownState } from '../protocol/run-state.ts';
import { sumsAt, timeOf, type RunTime } from '../protocol/run-time.ts';
import type { EventLine, EventType } from '../protocol/event.ts';
import { lastEvents } from '../store/follow-events.ts';
import { measureDisk } from '../sandbox/watch/disk-usage.ts';
import { attackedOf, type AttackedBefore } from '../store/attacked.ts';
import { readChecks } from '../store/checks.ts';
import type { StoredTask } from '../store/tasks.ts';
import { currentProject, readEntries, type TaskEntry } from './entries.ts';
import type { HostContext } from '../run/host-context.ts';

export interface ChangeCounts {
  /** Unreviewed files. */
  readonly files: number;
  /** How many of them would run on the host or in CI; null: not counted yet. */
  readonly risky: number | null;
}

/** The last checks of the task's result. */
export interface ChecksRow {
  readonly state: 'running' | 'passed' | 'failed' | 'ended';
  readonly passed: number;
  /** How many checks there are. */
  readonly of: number;
  /** The running check, or the first failed one. */
  readonly name: string | null;
  /** The output line that shows why the check failed. */
  readonly line: string | null;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  /** The git tree that was checked. The result counts for no other tree. */
  readonly tree: string;
}

export interface TaskRow {
  readonly name: string;
  readonly state: ShownState;
  readonly reason: string | null;
  readonly project: string | null;
  readonly command: readonly string[];
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  readonly exitCode: number | null;
  readonly label: string | null;
  /** It has unreviewed changes. */
  readonly changed: boolean;
  /** null: not counted yet; a review counts them. */
  readonly changes: ChangeCounts | null;
  readonly live: boolean;
  /** It has ended with unreviewed changes. */
  readonly needsReview: boolean;
  /** null for commands. */
  readonly goal: string | null;
  readonly agent: string | null;
  readonly costMicros: number | null;
  /** The last action or message of a running agent. */
  readonly doing: EventLine | null;
  readonly time: RunTime;
  readonly checks: ChecksRow | null;
  /** The result of `ags doctor --attack` for a sandbox with the same settings; null: none was attacked. */
  readonly attacked: AttackedBefore | null;
  readonly sizeBytes?: number;
}

export interface Listing {
  readonly tasks: readonly TaskRow[];
  /** How many tasks of other projects were left out. */
  readonly elsewhere: number;
  /** null: not in a project, so tasks of all projects are listed. */
  readonly project: string | null;
}

export async function listTasks(context: HostContext, options: { all: boolean; size: boolean }): Promise<Listing> {
  const project = await currentProject(context);
  // A partial task is being created or removed. `ags cleanup` removes it once it is too old for that.
  const entries = (await readEntries(context.stateDir)).filter((entry) => entry.kind !== 'partial');
  const here = entries.filter((entry) => project === null || projectOf(entry) === project);
  const elsewhere = entries.filter((entry) => !here.includes(entry));
  const shown = options.all ? [here, elsewhere] : [here];
  const groups = await Promise.all(
    shown.map((group) => Promise.all(group.map((entry) => withSize(entry, options.size)))),
  );
  return { tasks: groups.flatMap(inOrder), elsewhere: options.all ? 0 : elsewhere.length, project };
}

export async function describeTask(entry: TaskEntry): Promise<TaskRow> {
  if (entry.kind !== 'whole') {
    const why = entry.kind === 'damaged' ? entry.why : 'It has no task.json or no run.json.';
    return {
      name: entry.id,
      state: 'damaged',
      reason: why,
      project: null,
      command: [],
      startedAtMs: 0,
      endedAtMs: null,
      exitCode: null,
      label: null,
      changed: true,
      changes: null,
      live: false,
      needsReview: false,
      goal: null,
      agent: null,
      costMicros: null,
      doing: null,
      time: { workMs: 0, queueMs: 0, userMs: 0, phase: null, sinceMs: 0 },
      checks: null,
      attacked: null,
    };
  }
  const { task, run, live } = entry.stored;
  const underWay = isUnderWay(run.state);
  const isLive = underWay && live;
  const changes =
    run.state === 'merged' || run.state === 'discarded' ? { files: 0, risky: 0 } : countChanges(entry.stored);
  const changed = changes === null ? await isTouched(entry.stored) : changes.files > 0;
  return {
    name: task.name,
    state: underWay && !live ? 'interrupted' : run.state,
    reason: underWay && !live ? whyInterrupted(entry.stored) : (run.reason ?? null),
    project: task.project,
    command: task.command,
    startedAtMs: run.startedAtMs,
    endedAtMs: run.endedAtMs ?? null,
    exitCode: run.exitCode,
    label: run.label,
    changed,
    changes,
    live: isLive,
    needsReview: changed && !isLive,
    goal: task.goal?.text ?? null,
    agent: task.goal === undefined ? null : (task.goal.command?.[0] ?? task.goal.agent),
    costMicros: run.used?.costMicros ?? null,
    doing: isLive && task.goal !== undefined ? lastAction(entry.stored) : null,
    time: isLive || !underWay ? timeOf(run) : { ...timeSoFar(entry.stored), phase: null, sinceMs: 0 },
    checks: checksRow(entry.stored),
    attacked: attackedOf(entry.paths.root, run.sandboxKey),
  };
}

/** Of a run that is not live. A killed runner left no end, so its last event counts. */
export function timeSoFar({ run, paths }: StoredTask): ReturnType<typeof sumsAt> {
  return sumsAt(timeOf(run), statSync(paths.events, { throwIfNoEntry: false })?.mtimeMs ?? run.startedAtMs);
}

function whyInterrupted({ task, run }: StoredTask): string {
  if (task.goal === undefined) return 'ags was killed while the task ran.';
  const was = run.state === 'queued' ? 'Queued when ags was stopped' : 'ags was stopped while the task ran';
  return `${was}. To go on: ags continue ${task.name}`;
}

/** Tasks of all projects whose runner was killed, the oldest first. */
export async function unfinishedTasks(stateDir: string): Promise<StoredTask[]> {
  return (await readEntries(stateDir))
    .flatMap((entry) => (entry.kind === 'whole' ? [entry.stored] : []))
    .filter((one) => isUnfinished(one) && (isUnderWay(one.run.state) || one.run.interrupted === true))
    .toSorted((a, b) => a.run.startedAtMs - b.run.startedAtMs || (a.task.id < b.task.id ? -1 : 1));
}

/** Whether its goal is still to be worked on: it never began, or its runner was killed. Both ask for `ags continue`. */
export function isUnfinished({ task, run, live }: StoredTask): boolean {
  if (task.goal === undefined || live || run.state === 'merged' || run.state === 'discarded') return false;
  return isUnderWay(run.state) || run.interrupted === true || !hasBegun(run);
}

/** null: there are no checks, or they belong to an earlier result. */
function checksRow({ run, paths }: StoredTask): ChecksRow | null {
  const file = readChecks(paths);
  if (file === null || isUnderWay(run.state)) return null;
  if (run.result != null && file.result !== run.result.commit) return null;
  const { state, checks, startedAtMs, endedAtMs, tree } = file;
  const named = checks.find((one) => one.state === (state === 'running' ? 'running' : 'failed'));
  return {
    state,
    passed: checks.filter((one) => one.state === 'passed').length,
    of: checks.length,
    name: named?.name ?? null,
    line: named?.line ?? null,
    startedAtMs,
    endedAtMs,
    tree,
  };
}

export async function sizeOf(directory: string): Promise<number> {
  const usage = await measureDisk(
    {
      directories: [directory],
      pids: [],
      places: [],
      maxBytes: Number.POSITIVE_INFINITY,
      maxFiles: Number.POSITIVE_INFINITY,
    },
    new AbortController().signal,
  );
  return usage?.bytes ?? 0;
}

async function withSize(entry: TaskEntry, size: boolean): Promise<TaskRow> {
  const row = await describeTask(entry);
  return size ? { ...row, sizeBytes: await sizeOf(entry.paths.root) } : row;
}

function projectOf(entry: TaskEntry): string | null {
  return entry.kind === 'whole' ? entry.stored.task.project : null;
}

function inOrder(rows: readonly TaskRow[]): TaskRow[] {
  return rows.toSorted(compareRows);
}

/** Orders by rank; the latest task comes first within a rank. */
export function compareRows(a: TaskRow, b: TaskRow): number {
  return rankOf(a) - rankOf(b) || b.startedAtMs - a.startedAtMs;
}

/** 0: needs the user now. 1: failed. 2: waits for a review. 3: running. 4: queued. 5: needs no attention. */
export function rankOf(row: TaskRow): 0 | 1 | 2 | 3 | 4 | 5 {
  if (row.live) return row.state === 'needs-you' ? 0 : row.state === 'queued' ? 4 : 3;
  if (row.goal !== null && (row.state === 'failed' || row.state === 'interrupted')) return 1;
  return row.needsReview ? 2 : 5;
}

function lastAction({ paths }: StoredTask): EventLine | null {
  return lastEvents(paths.events).findLast(({ type }) => DOING.has(type)) ?? null;
}

/** Shown by `ags list` through doingText(); the page's words are in doing.ts. */
const DOING: ReadonlySet<EventType> = new Set([
  'agent.said',
  'tool.started',
  'run.waiting',
  'run.prepared',
  'run.started',
  'run.printed',
  'agent.waited',
  'agent.asked',
]);

/** null: not counted yet. */
function countChanges({ task, paths, run }: StoredTask): ChangeCounts | null {
  if (run.fetched === false) return null;
  if (!existsSync(paths.changes)) {
    // The runner counted the files when it brought them onto the branch.
    if (task.goal === undefined || run.result === undefined || isUnderWay(run.state)) return null;
    return { files: run.result?.files ?? 0, risky: run.result == null ? 0 : (run.result.risky ?? null) };
  }
  const { changes, ignored } = JSON.parse(readFileSync(paths.changes, 'utf8')) as ChangeSet;
  const left = changes.filter((change) => !run.settled.includes(change.path));
  return {
    files: left.length + (ignored.reviewed || run.ignoredDiscarded ? 0 : ignored.files),
    risky: left.filter((change) => change.lane !== 'inert').length,
  };
}

async function isTouched({ task, run, paths }: StoredTask): Promise<boolean> {
  try {
    // Its files are still on a remote engine.
    if (existsSync(join(paths.runDir, REMOTE_MEMO))) return true;
    if (run.workspace === 'overlay')
      return existsSync(paths.upper) && readdirSync(paths.upper).some((name) => name !== '.git' || !task.git);
    // Nothing runs in an incomplete copy. It differs from the project only by the files that are still missing.
    if (run.state === 'preparing') return false;
    const { listCopy } = await import('../results/list-copy.ts');
    const hidden = new Set(run.hidden);
    const listing = listCopy({
      copy: paths.copy,
      original: run.layers ?? [task.project],
      hidden: (path) => hidden.has(path),
    });
    return listing.entries.length > 0 || listing.refused.length > 0;
  } catch {
    return true;
  }
}
