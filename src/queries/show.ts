// queries/show.ts: the facts about one task that `ags show` prints.
import { count } from '../lib/units.ts';
import { eachEvent } from '../store/follow-events.ts';
import type { EventLine } from '../protocol/event.ts';
import type { StoredTask } from '../store/tasks.ts';
import type { TaskRow } from './list.ts';
import { followMerges, lastStanding, type StandingMerge } from './standing-merges.ts';

export interface TaskFacts {
  readonly name: string;
  readonly state: TaskRow['state'];
  readonly reason: string | null;
  readonly goal: string | null;
  readonly agent: string | null;
  readonly project: string;
  /** Where the task was imported from; null: it was started here. */
  readonly imported: string | null;
  readonly base: string | null;
  readonly branch: string | null;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  readonly time: TaskRow['time'];
  readonly run: number;
  readonly turns: number;
  readonly used: string | null;
  readonly changes: string | null;
  /** Its last merge that was not undone. */
  readonly merged: Omit<StandingMerge, 'at'> | null;
  readonly checks: TaskRow['checks'];
  /** Hosts that the gateway refused. */
  readonly denied: readonly string[];
  readonly sandbox: string;
  readonly attacked: TaskRow['attacked'];
  readonly image: string | null;
  /** The agent's last message. */
  readonly lastWord: EventLine | null;
}

export function showTask({ task, run, paths }: StoredTask, row: TaskRow): TaskFacts {
  const denied = new Set<string>();
  const merges: StandingMerge[] = [];
  let lastWord: EventLine | null = null;
  eachEvent(paths.events, (event) => {
    if (event.type === 'network.denied') denied.add(`${event.host}:${event.port}`);
    if (event.type === 'agent.said') lastWord = event;
    followMerges(merges, event);
  });
  const { goal } = task;
  const branch = run.result == null ? null : `ags/${task.name}`;
  return {
    name: task.name,
    state: row.state,
    reason: row.reason,
    goal: goal?.text ?? null,
    agent:
      goal === undefined
        ? null
        : `${goal.command?.join(' ') ?? goal.agent}${goal.model === undefined ? '' : `, ${goal.model}`}`,
    project: task.project,
    imported: task.imported === undefined ? null : importedText(task.imported),
    base:
      goal === undefined ? null : `${goal.baseRef?.replace('refs/heads/', '') ?? ''} ${goal.base.slice(0, 8)}`.trim(),
    branch,
    startedAtMs: run.startedAtMs,
    endedAtMs: run.endedAtMs ?? null,
    time: row.time,
    run: run.number ?? 1,
    turns: run.turns ?? 0,
    used: run.used === undefined ? null : usedText(run.used),
    changes:
      run.result == null
        ? null
        : `${count(run.result.files, 'file')}, +${run.result.added} -${run.result.removed}, on branch ${branch}`,
    merged: lastStanding(merges, { task, run }),
    checks: row.checks,
    denied: [...denied],
    sandbox: run.label,
    attacked: row.attacked,
    image: run.image === undefined ? null : `${run.image.reference} (${run.image.id})`,
    lastWord,
  };
}

function importedText({ at, file, name, format, merges }: NonNullable<StoredTask['task']['imported']>): string {
  const day = (time: string): string => time.slice(0, 16).replace('T', ' ');
  const made = merges.map((one) => `${one.kind === 'merge' ? 'merged into' : 'undone on'} ${one.branch}`);
  const there = made.length === 0 ? '' : `; there it was ${made.join(', ')}`;
  return `${day(at)} from ${file} (format ${format}), originally named ${name}${there}`;
}

export function usedText(used: NonNullable<StoredTask['run']['used']>): string {
  const by = used.by === 'gateway' ? ', counted by the gateway' : used.by === 'agent' ? ', as the agent reports' : '';
  const tokens = `${used.inputTokens} tokens in, ${used.outputTokens} out${by}`;
  return used.costMicros === null ? tokens : `$${(used.costMicros / 1e6).toFixed(2)}, ${tokens}`;
}
