// cli/terminal/task-table.ts: tasks as a text table.
import { basename } from 'node:path';
import { readableSize } from '../../lib/units.ts';
import { type TaskRow } from '../../queries/list.ts';
import { type Paint } from './colour.ts';
import { age, count, cut, lineWidth, shellLine, table, widthOf, type Cell } from './format.ts';
import type { Context } from '../verb.ts';
import { flat } from '../../protocol/errors.ts';
import { sumsAt } from '../../protocol/run-time.ts';
import { STATE_WORDS, type ShownState } from '../../protocol/run-state.ts';
import { describeAction } from './show-event.ts';

/** Lines fit the terminal, or PIPE_WIDTH without one. In a narrow terminal, the goal or command is on a line of its own. */
export function taskTable(tasks: readonly TaskRow[], projects: boolean, paint: Paint, ctx: Context): string {
  const nowMs = ctx.now().getTime();
  const columns = lineWidth(ctx.stdout, PIPE_WIDTH);
  const wide = wideTable(tasks, projects, paint, nowMs);
  const used = widestLine(table(wide.map((row) => [...row, '|']))) - 1;
  const room = columns - used;
  const narrow = room < LEAST_GOAL;
  const rows = narrow
    ? narrowTable(tasks, paint, columns)
    : wide.map((row, i): Cell[] => [...row, i === 0 ? head('WHAT', paint) : cut(whatOf(tasks[i - 1]), room)]);
  return table(rows)
    .trimEnd()
    .split('\n')
    .map((line, i) => {
      const task = tasks[i - 1];
      const what = narrow && task !== undefined ? `  ${cut(whatOf(task), columns - 2)}\n` : '';
      return `${line}\n${what}${below(task, paint, columns)}`;
    })
    .join('');
}

/** Enough for the beginning of a goal in a file or a pipe. `--json` has the whole goal. */
const PIPE_WIDTH = 160;
const LEAST_GOAL = 20;
const LONGEST_PROJECT = 24;

const head = (text: string, paint: Paint): Cell => ({ text, paint: (shown) => paint('dim', shown) });

/** All columns but the last, which takes what is left of the line. */
function wideTable(tasks: readonly TaskRow[], projects: boolean, paint: Paint, nowMs: number): Cell[][] {
  const sizes = tasks.some((task) => task.sizeBytes !== undefined);
  const attacked = tasks.some((task) => task.attacked !== null);
  const times = tasks.map(({ time }) => sumsAt(time, nowMs));
  const waits = times.map(({ queueMs, userMs }) => queueMs + userMs);
  const waited = waits.some((ms) => ms >= 1000);
  return [
    [
      'NAME',
      'STATE',
      'CHANGES',
      'AGE',
      'WORKED',
      ...(waited ? ['WAITED'] : []),
      ...(sizes ? ['SIZE'] : []),
      ...(attacked ? ['ATTACKED'] : []),
      ...(projects ? ['PROJECT'] : []),
    ].map((title) => head(title, paint)),
    ...tasks.map((task, i): Cell[] => [
      task.name,
      stateCell(task, paint),
      changesOf(task),
      task.startedAtMs === 0 ? '' : age(nowMs - task.startedAtMs),
      workedCell(times[i]?.workMs ?? 0),
      ...(waited ? [workedCell(waits[i] ?? 0)] : []),
      ...(sizes ? [readableSize(task.sizeBytes ?? 0)] : []),
      ...(attacked ? [attackedCell(task, paint, nowMs)] : []),
      ...(projects ? [task.project === null ? '' : cut(basename(task.project), LONGEST_PROJECT)] : []),
    ]),
  ];
}

/** Attempts differ at the end of their names, so a long name loses its middle. */
function narrowTable(tasks: readonly TaskRow[], paint: Paint, columns: number): Cell[][] {
  const states = Math.max(...tasks.map(({ state }) => STATE_WORDS[state].length));
  const room = Math.max(LEAST_NAME, columns - states - 4);
  const changes = tasks.map((task) => cut(changesOf(task), Math.max(1, room - LEAST_NAME)));
  const names = room - Math.max('CHANGES'.length, ...changes.map(widthOf));
  return [
    ['NAME', 'STATE', 'CHANGES'].map((title) => head(title, paint)),
    ...tasks.map((task, i): Cell[] => [cutMiddle(task.name, names), stateCell(task, paint), changes[i] ?? '']),
  ];
}

const LEAST_NAME = 9;

function cutMiddle(name: string, width: number): string {
  if (name.length <= width) return name;
  const end = Math.floor((width - 1) / 2);
  return `${name.slice(0, width - 1 - end)}…${name.slice(-end)}`;
}

function widestLine(text: string): number {
  return Math.max(...text.split('\n').map((line) => widthOf(line.replaceAll(/\u001b\[\d+m/g, ''))));
}

/** The goal of an agent, or the command line. */
export function whatOf(task: TaskRow | undefined): string {
  if (task === undefined) return '';
  return task.goal === null ? shellLine(task.command) : `${task.agent}: ${task.goal.split('\n')[0]}`;
}

/** The reason for the state, or the current action. */
function below(task: TaskRow | undefined, paint: Paint, columns: number): string {
  const room = columns - 2;
  if (task?.reason != null) return `  ${paint('dim', cut(flat(task.reason), room))}\n`;
  if (task?.doing == null) return '';
  return `  ${paint('dim', cut(doingText(task.doing, room), room))}\n`;
}

function stateCell(task: TaskRow, paint: Paint): Cell {
  return { text: STATE_WORDS[task.state], paint: (text) => paint(stateStyle(task), text) };
}

export function stateStyle(task: TaskRow): Parameters<Paint>[0] {
  return task.state === 'stopped' && task.changed ? 'yellow' : STYLES[task.state];
}

const workedCell = (ms: number): Cell => (ms < 1000 ? '' : age(ms));

/** The last `ags doctor --attack` on a sandbox like this one: "200/200 2h". */
function attackedCell({ attacked }: TaskRow, paint: Paint, nowMs: number): Cell {
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

function doingText(event: NonNullable<TaskRow['doing']>, room: number): string {
  if (event.type === 'tool.started') return describeAction(event.action, event.tool, room);
  if (event.type === 'run.started') return `${event.title} started`;
  const words = 'text' in event ? event.text : 'why' in event ? event.why : 'question' in event ? event.question : '';
  return words?.split('\n')[0] ?? '';
}

const STYLES: Readonly<Record<ShownState, Parameters<Paint>[0]>> = {
  queued: 'dim',
  'needs-you': 'yellow',
  preparing: 'green',
  running: 'green',
  interrupted: 'red',
  ready: 'yellow',
  stopped: 'dim',
  'no-changes': 'dim',
  failed: 'red',
  merged: 'dim',
  discarded: 'dim',
  damaged: 'red',
};
