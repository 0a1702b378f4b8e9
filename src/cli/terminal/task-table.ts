// cli/terminal/task-table.ts: tasks as a text table.
import { basename } from 'node:path';
import { formatSize } from '../../lib/units.ts';
import { type TaskRow } from '../../queries/list.ts';
import { type Paint } from './colour.ts';
import { age, cut, table, type Cell } from './format.ts';
import type { Context } from '../verb.ts';
import { count, shellLine, widthOf } from './format.ts';
import { type ShownState } from '../../queries/list.ts';
import { describeAction } from './show-event.ts';

/** On a terminal, the last column is cut until the line fits; otherwise nothing is cut. */
export function taskTable(tasks: readonly TaskRow[], projects: boolean, paint: Paint, ctx: Context): string {
  const nowMs = ctx.now().getTime();
  const sizes = tasks.some((task) => task.sizeBytes !== undefined);
  const attacked = tasks.some((task) => task.attacked !== null);
  const head = (text: string): Cell => ({ text, paint: (shown) => paint('dim', shown) });
  const rows = (commandWidth: number): Cell[][] => [
    [
      head('NAME'),
      head('STATE'),
      head('CHANGES'),
      head('AGE'),
      ...(sizes ? [head('SIZE')] : []),
      ...(attacked ? [head('ATTACKED')] : []),
      ...(projects ? [head('PROJECT')] : []),
      head('WHAT'),
    ],
    ...tasks.map((task): Cell[] => [
      task.name,
      stateCell(task, paint),
      changesOf(task),
      task.startedAtMs === 0 ? '' : age(nowMs - task.startedAtMs),
      ...(sizes ? [formatSize(task.sizeBytes ?? 0)] : []),
      ...(attacked ? [attackedCell(task, paint, nowMs)] : []),
      ...(projects ? [task.project === null ? '' : basename(task.project)] : []),
      cut(whatOf(task), commandWidth),
    ]),
  ];
  const columns = ctx.stdout.isTTY ? ctx.stdout.columns : Number.POSITIVE_INFINITY;
  const used = widestLine(table(rows(0).map((row) => [...row.slice(0, -1), '|']))) - 1;
  const lines = table(rows(Math.max(12, columns - used)))
    .trimEnd()
    .split('\n');
  return lines.map((line, i) => `${line}\n${below(tasks[i - 1], paint, columns)}`).join('');
}

export function widestLine(text: string): number {
  return Math.max(...text.split('\n').map((line) => widthOf(line.replaceAll(/\u001b\[\d+m/g, ''))));
}

/** The goal of an agent, or the command line. */
export function whatOf(task: TaskRow): string {
  return task.goal === null ? shellLine(task.command) : `${task.agent}: ${task.goal.split('\n')[0]}`;
}

/** The reason for the state, or the current action. */
export function below(task: TaskRow | undefined, paint: Paint, columns: number): string {
  const room = Math.min(300, columns - 3);
  if (task?.reason != null) return `  ${paint('dim', cut(task.reason, room))}\n`;
  if (task?.doing == null) return '';
  return `  ${paint('dim', cut(doingText(task.doing, room), room))}\n`;
}

export function stateCell(task: TaskRow, paint: Paint): Cell {
  const { word, style } = STATES[task.state];
  if (task.state === 'stopped' && !task.changed) return { text: 'stopped', paint: (text) => paint('dim', text) };
  return { text: word, paint: (text) => paint(style, text) };
}

/** The last `ags doctor --attack` on a sandbox like this one: "200/200 2h". */
export function attackedCell({ attacked }: TaskRow, paint: Paint, nowMs: number): Cell {
  if (attacked === null) return '';
  const { held, of, atMs } = attacked;
  return { text: `${held}/${of} ${age(nowMs - atMs)}`, paint: (text) => paint(held === of ? 'green' : 'red', text) };
}

export function changesOf(task: TaskRow): string {
  if (task.live || task.state === 'damaged') return '';
  const checks = task.checks === null ? '' : `, checks ${task.checks.state}`;
  if (task.changes === null) return task.changed ? `yes${checks}` : 'none';
  if (task.changes.files === 0) return 'none';
  const cost = task.costMicros === null ? '' : `, $${(task.costMicros / 1e6).toFixed(2)}`;
  const risky = task.changes.risky === 0 || task.changes.risky === null ? '' : `, ${task.changes.risky} risky`;
  return `${count(task.changes.files, 'file')}${risky}${cost}${checks}`;
}

export function doingText(event: NonNullable<TaskRow['doing']>, room: number): string {
  if (event.type === 'tool.started') return describeAction(event.action, event.tool, room);
  if (event.type === 'run.started') return `${event.title} started`;
  const words = 'text' in event ? event.text : 'why' in event ? event.why : 'question' in event ? event.question : '';
  return words?.split('\n')[0] ?? '';
}

export const STATES = {
  queued: { word: 'queued', style: 'dim' },
  'needs-you': { word: 'needs you', style: 'yellow' },
  preparing: { word: 'preparing', style: 'green' },
  running: { word: 'running', style: 'green' },
  interrupted: { word: 'interrupted', style: 'red' },
  ready: { word: 'to review', style: 'yellow' },
  stopped: { word: 'to review', style: 'yellow' },
  'no-changes': { word: 'no changes', style: 'dim' },
  failed: { word: 'failed', style: 'red' },
  merged: { word: 'merged', style: 'dim' },
  discarded: { word: 'discarded', style: 'dim' },
  damaged: { word: 'damaged', style: 'red' },
} as const satisfies Record<ShownState, { word: string; style: Parameters<Paint>[0] }>;
