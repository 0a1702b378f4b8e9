// queries/list.ts: tasks as people see them: what state each is in, and whether somebody should look at it.
// Invariant: what cannot be looked into counts as changed. Nobody's work is lost because it could not be read.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FAR_MEMO } from '../sandbox/backend.ts';
import type { ChangeSet } from '../protocol/changes.ts';
import { isUnderWay, type RunState } from '../protocol/run-state.ts';
import type { EventLine } from '../store/events.ts';
import { lastEvents } from '../store/follow-events.ts';
import { measureDisk } from '../sandbox/watch/disk-usage.ts';
import { attackedOf, type AttackedBefore } from '../store/attacked.ts';
import { readChecks } from '../store/checks.ts';
import { pendingMerges } from '../store/merges.ts';
import type { StoredTask } from '../store/tasks.ts';
import { currentProject, readEntries, type TaskEntry } from './entries.ts';
import type { World } from '../run/host-context.ts';

/** The states of a run; "interrupted": its runner was killed; "damaged": its files cannot be read. */
export type ShownState = RunState | 'interrupted' | 'damaged';

export interface ChangeCounts {
  /** Files that nobody has decided about yet. */
  readonly files: number;
  /** Of these, files that would run on this machine or in CI; null: nobody has looked. */
  readonly risky: number | null;
}

/** The last checks of what the task did; null: there were none since. */
export interface ChecksRow {
  readonly state: 'running' | 'passed' | 'failed' | 'ended';
  /** How many have passed, and of how many. */
  readonly passed: number;
  readonly of: number;
  /** The one that runs, or the first that failed. */
  readonly name: string | null;
  /** Of one that failed: the line that tells why. */
  readonly line: string | null;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  /** They are about this tree, and no other. */
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
  /** It has changes that are not decided about. */
  readonly changed: boolean;
  /** Known once somebody has begun to review them. */
  readonly changes: ChangeCounts | null;
  readonly live: boolean;
  /** It has ended, and has changes. */
  readonly needsReview: boolean;
  /** What an agent was asked to do; null for commands. */
  readonly goal: string | null;
  readonly agent: string | null;
  readonly costMicros: number | null;
  /** The last thing that a running agent did or said. */
  readonly doing: EventLine | null;
  readonly checks: ChecksRow | null;
  /** How a sandbox like its own fared under `ags doctor --attack`; null: none was attacked. */
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

export async function listTasks(world: World, options: { all: boolean; size: boolean }): Promise<Listing> {
  const project = await currentProject(world);
  const cutOff = pendingMerges(world.stateDir);
  if (cutOff.length > 0) await (await import('../merge/move-branch.ts')).recoverMoves(world, cutOff);
  // A task that is just being made, or removed, is nobody's business yet; `ags cleanup` knows when it is too old for that.
  const entries = (await readEntries(world.stateDir)).filter((entry) => entry.kind !== 'partial');
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
    reason: underWay && !live ? 'ags was killed while it ran.' : (run.reason ?? null),
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
    checks: checksRow(entry.stored),
    attacked: attackedOf(entry.paths.root, run.sandboxKey),
  };
}

/** Of an earlier result they say nothing any more. */
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

/** Who needs a person, then what went wrong, what waits for a review, what runs, what waits its turn, the rest; the latest first in each. */
export function compareRows(a: TaskRow, b: TaskRow): number {
  return rankOf(a) - rankOf(b) || b.startedAtMs - a.startedAtMs;
}

/** 0: needs a person now. 1: went wrong. 2: waits for a review. 3: runs. 4: waits its turn. 5: nobody has to look. */
export function rankOf(row: TaskRow): 0 | 1 | 2 | 3 | 4 | 5 {
  if (row.live) return row.state === 'needs-you' ? 0 : row.state === 'queued' ? 4 : 3;
  if (row.goal !== null && (row.state === 'failed' || row.state === 'interrupted')) return 1;
  return row.needsReview ? 2 : 5;
}

function lastAction({ paths }: StoredTask): EventLine | null {
  return lastEvents(paths.events).findLast(({ type }) => DOING.has(type)) ?? null;
}

const DOING = new Set([
  'agent.said',
  'tool.started',
  'run.waiting',
  'run.prepared',
  'run.started',
  'run.printed',
  'agent.waited',
  'agent.asked',
]);

/** Null: nobody has counted them. */
function countChanges({ task, paths, run }: StoredTask): ChangeCounts | null {
  if (run.fetched === false) return null;
  if (!existsSync(paths.changes)) {
    // What is on its branch has been counted.
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
    // What it wrote is still on another machine.
    if (existsSync(join(paths.runDir, FAR_MEMO))) return true;
    if (run.workspace === 'overlay')
      return existsSync(paths.upper) && readdirSync(paths.upper).some((name) => name !== '.git' || !task.git);
    // Until the copy is complete nothing runs in it, and it differs from the project only by what is still missing.
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
