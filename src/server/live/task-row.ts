// server/live/task-row.ts: one task as the list shows it: its files, and what its events add to them as they come.
// Invariant: built from files alone, so that a server that starts anew shows the same.
import { statSync } from 'node:fs';
import type { ApiTask } from '../../protocol/api/api.ts';
import { isUnderWay } from '../../protocol/run-state.ts';
import { isAlive } from '../../lib/process/liveness.ts';
import { attackedFile } from '../../store/attacked.ts';
import { readChecks } from '../../store/checks.ts';
import { createEventTail, type EventTail } from '../../store/event-pages.ts';
import type { EventLine } from '../../store/events.ts';
import { doingWords } from '../../queries/doing.ts';
import { readEntry, type TaskEntry } from '../../queries/entries.ts';
import { describeTask, rankOf, type TaskRow } from '../../queries/list.ts';
import { projectId } from '../../projects/known-projects.ts';
import { agentTitle } from '../../agent-setup/about.ts';

export interface Card {
  readonly id: string;
  entry: TaskEntry;
  row: TaskRow;
  /** As it was told last. */
  shown: ApiTask;
  /** Of the files that `row` was made from. */
  signature: readonly string[];
  readonly tail: EventTail;
  readonly facts: EventFacts;
  /** Events have come, or its files have changed, since it was told. */
  dirty: boolean;
  toldAtMs: number;
}

export interface EventFacts {
  doing: string | null;
  readonly blocked: Set<string>;
  /** By path, the latest last. */
  readonly touched: Map<string, string>;
}

/** null: there is no such task (any more). */
export async function openCard(
  stateDir: string,
  id: string,
  on: { event(card: Card, event: EventLine): void; replaced(card: Card): void },
): Promise<Card | null> {
  const entry = await readEntry(stateDir, id);
  if (entry.kind === 'partial') return null;
  const facts: EventFacts = { doing: null, blocked: new Set(), touched: new Map() };
  // Set below, before the tail is read for the first time.
  let card: Card | null = null;
  const tail = createEventTail(entry.paths.events, LOOK_BACK, {
    event(event) {
      learn(facts, event);
      if (card === null) return;
      card.dirty = true;
      on.event(card, event);
    },
    replaced() {
      facts.doing = null;
      facts.blocked.clear();
      facts.touched.clear();
      if (card !== null) on.replaced(card);
    },
    matters: (line) => LASTING.test(line),
  });
  const signature = signatureOf(entry);
  const row = await describeTask(entry);
  tail.readOn();
  card = {
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
  return card;
}

/** Reads its files again if they have changed, or (`thorough`) its runner has died. False: it is gone. */
export async function renewCard(stateDir: string, card: Card, thorough: boolean): Promise<boolean> {
  // The run changes all the time, the rest hardly ever.
  if (!thorough && timeOf(card.entry.paths.run) === card.signature[0]) return true;
  const signature = signatureOf(card.entry);
  if (signature.every((one, i) => one === card.signature[i]) && !hasDied(card)) return true;
  const entry = await readEntry(stateDir, card.id);
  if (entry.kind === 'partial') return false;
  card.signature = signature;
  card.entry = entry;
  card.row = await describeTask(entry);
  card.dirty = true;
  return true;
}

/** True: there is something new to tell. */
export function redraw(card: Card): boolean {
  const next = apiTask(card.id, card.entry, card.row, card.facts, card.tail.seq);
  card.dirty = false;
  if (JSON.stringify(next) === JSON.stringify(card.shown)) return false;
  card.shown = next;
  return true;
}

/** How far back events are looked through for what a row shows. */
const LOOK_BACK = 2 ** 20;
const MAX_TOUCHED = 500;
const MAX_BLOCKED = 100;

/** What `learn` remembers for longer than until the next event, as it is spelled in a log. */
const LASTING = /"type":"network\.denied"|"kind":"write"/;

function learn(facts: EventFacts, event: EventLine): void {
  facts.doing = doingWords(event) ?? facts.doing;
  if (event.type === 'network.denied' && facts.blocked.size < MAX_BLOCKED)
    facts.blocked.add(`${String(event['host'])}:${String(event['port'])}`);
  const action = event.type === 'tool.started' ? (event['action'] as { kind?: unknown } | undefined) : undefined;
  if (action?.kind !== 'write') return;
  const { path, change } = action as { path?: unknown; change?: unknown };
  facts.touched.delete(String(path));
  if (facts.touched.size < MAX_TOUCHED) facts.touched.set(String(path), String(change));
}

/** Whoever writes one of these replaces it, so that its number or its time is another one. */
function signatureOf({ paths }: TaskEntry): string[] {
  return [paths.run, paths.task, paths.changes, paths.checks, attackedFile(paths.root)].map(timeOf);
}

function timeOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? '-' : `${stat.ino} ${stat.mtimeMs} ${stat.size}`;
}

function hasDied({ row, entry }: Card): boolean {
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
    seq,
  };
}
