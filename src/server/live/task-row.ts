// server/live/task-row.ts: one row of the task list: the task's files, and facts from its events.
// Invariant: rows are built from files alone, so a restarted server shows the same rows.
import { statSync } from 'node:fs';
import type { ApiTask } from '../../protocol/api/api.ts';
import { isUnderWay } from '../../protocol/run-state.ts';
import { isAlive } from '../../lib/process/liveness.ts';
import { attackedFile } from '../../store/attacked.ts';
import { readChecks } from '../../store/checks.ts';
import { createEventTail, type EventTail } from '../../store/event-pages.ts';
import type { EventLine } from '../../protocol/event.ts';
import { doingWords } from '../../queries/doing.ts';
import { readEntry, type TaskEntry } from '../../queries/entries.ts';
import { describeTask, rankOf, type TaskRow } from '../../queries/list.ts';
import { followMerges, lastStanding, type StandingMerge } from '../../queries/standing-merges.ts';
import { projectId } from '../../projects/known-projects.ts';
import { agentTitle } from '../../agent-setup/about.ts';

export interface LiveRow {
  readonly id: string;
  entry: TaskEntry;
  row: TaskRow;
  /** As last published. */
  shown: ApiTask;
  /** Identifies the versions of the files that `row` was read from. */
  signature: readonly string[];
  readonly tail: EventTail;
  readonly facts: EventFacts;
  /** Events or file changes arrived since the row was last published. */
  dirty: boolean;
  toldAtMs: number;
}

export interface EventFacts {
  doing: string | null;
  readonly blocked: Set<string>;
  /** By path, latest last. */
  readonly touched: Map<string, string>;
  readonly merges: StandingMerge[];
}

/** null: the task does not exist (any more). */
export async function openRow(
  stateDir: string,
  id: string,
  on: { event(liveRow: LiveRow, event: EventLine): void; replaced(liveRow: LiveRow): void },
): Promise<LiveRow | null> {
  const entry = await readEntry(stateDir, id);
  if (entry.kind === 'partial') return null;
  const facts: EventFacts = { doing: null, blocked: new Set(), touched: new Map(), merges: [] };
  // Assigned below, before the tail is first read.
  let liveRow: LiveRow | null = null;
  const tail = createEventTail(entry.paths.events, LOOK_BACK, {
    event(event) {
      learn(facts, event);
      if (liveRow === null) return;
      liveRow.dirty = true;
      on.event(liveRow, event);
    },
    replaced() {
      facts.doing = null;
      facts.blocked.clear();
      facts.touched.clear();
      facts.merges.length = 0;
      if (liveRow !== null) on.replaced(liveRow);
    },
    matters: (line) => LASTING.test(line),
  });
  const signature = signatureOf(entry);
  const row = await describeTask(entry);
  tail.readOn();
  liveRow = {
    id,
    entry,
    row,
    shown: apiTask(id, entry, row, facts, tail.seq),
    signature,
    tail,
    facts,
    dirty: false,
    toldAtMs: 0,
  };
  return liveRow;
}

/** Reads the task's files again if they changed or, with `thorough`, if its runner died. Returns false if the task is gone. */
export async function renewRow(stateDir: string, liveRow: LiveRow, thorough: boolean): Promise<boolean> {
  // The run file changes often, the others rarely.
  if (!thorough && timeOf(liveRow.entry.paths.run) === liveRow.signature[0]) return true;
  const signature = signatureOf(liveRow.entry);
  if (signature.every((one, i) => one === liveRow.signature[i]) && !hasDied(liveRow)) return true;
  const entry = await readEntry(stateDir, liveRow.id);
  if (entry.kind === 'partial') return false;
  liveRow.signature = signature;
  liveRow.entry = entry;
  liveRow.row = await describeTask(entry);
  liveRow.dirty = true;
  return true;
}

/** Returns true if the row differs from the published one. */
export function redraw(liveRow: LiveRow): boolean {
  const next = apiTask(liveRow.id, liveRow.entry, liveRow.row, liveRow.facts, liveRow.tail.seq);
  liveRow.dirty = false;
  if (JSON.stringify(next) === JSON.stringify(liveRow.shown)) return false;
  liveRow.shown = next;
  return true;
}

/** How many bytes of earlier events are searched for facts that a row shows. */
const LOOK_BACK = 2 ** 20;
const MAX_TOUCHED = 500;
const MAX_BLOCKED = 100;

/** Matches raw log lines of the events that `learn` remembers beyond the next event. */
const LASTING = /"type":"(?:network\.denied|merge\.(?:done|undone))"|"kind":"write"/;

function learn(facts: EventFacts, event: EventLine): void {
  facts.doing = doingWords(event) ?? facts.doing;
  followMerges(facts.merges, event);
  if (event.type === 'network.denied' && facts.blocked.size < MAX_BLOCKED)
    facts.blocked.add(`${event.host}:${event.port}`);
  if (event.type !== 'tool.started' || event.action?.kind !== 'write') return;
  const { path, change } = event.action;
  facts.touched.delete(path);
  if (facts.touched.size < MAX_TOUCHED) facts.touched.set(path, change);
}

/** Writers replace these files, so every change alters the inode or the time. */
function signatureOf({ paths }: TaskEntry): string[] {
  return [paths.run, paths.task, paths.changes, paths.checks, attackedFile(paths.root)].map(timeOf);
}

function timeOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? '-' : `${stat.ino} ${stat.mtimeMs} ${stat.size}`;
}

function hasDied({ row, entry }: LiveRow): boolean {
  if (row.checks?.state === 'running' && readChecks(entry.paths)?.state !== 'running') return true;
  return row.live && entry.kind === 'whole' && !isAlive(entry.stored.run.runner);
}

const GROUPS = ['needs-you', 'look', 'look', 'running', 'queued', 'rest'] as const;

function apiTask(id: string, entry: TaskEntry, row: TaskRow, facts: EventFacts, seq: number): ApiTask {
  const stored = entry.kind === 'whole' ? entry.stored : null;
  const run = stored?.run;
  const goal = stored?.task.goal;
  const result = run === undefined || isUnderWay(run.state) ? null : (run.result ?? null);
  const title = row.goal?.split('\n', 1)[0] ?? row.command.join(' ');
  const used = run?.used;
  return {
    id,
    name: row.name,
    project: row.project === null ? 'none' : projectId(row.project),
    kind: stored?.task.kind ?? 'exec',
    state: row.state,
    reason: row.reason,
    needs: row.state === 'needs-you' ? (run?.needs ?? 'look') : null,
    live: row.live,
    group: GROUPS[rankOf(row)],
    title: title.length <= 200 ? title : `${title.slice(0, 199)}…`,
    agent: row.agent,
    agentTitle: goal === undefined ? null : agentTitle(goal),
    attemptOf: goal === undefined || stored === null ? null : (stored.task.attemptOf ?? null),
    doing: row.live ? facts.doing : null,
    time: row.time,
    startedAtMs: row.startedAtMs,
    endedAtMs: row.endedAtMs,
    costMicros: row.costMicros,
    tokens: used === undefined ? null : used.inputTokens + used.outputTokens,
    files: result?.files ?? row.changes?.files ?? null,
    added: result?.added ?? null,
    removed: result?.removed ?? null,
    risky: row.changes?.risky ?? null,
    blockedHosts: [...facts.blocked],
    checks: row.checks,
    attacked: row.attacked,
    merged: lastStanding(facts.merges, stored),
    seq,
  };
}
