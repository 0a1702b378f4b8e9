// cli/verbs/list.ts: `ags list`: the tasks of this project, or of all.
import { basename } from 'node:path';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { formatSize } from '../../lib/units.ts';
import { listTasks, type Listing, type ShownState, type TaskRow } from '../../queries/list.ts';
import type { Action } from '../../protocol/agent-event.ts';
import { createPaint, type Paint } from '../terminal/colour.ts';
import { age, count, cut, shellLine, table, widthOf, type Cell } from '../terminal/format.ts';
import { describeAction } from '../terminal/show-event.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'list tasks: who needs you, what waits for a review, what runs',
  usage: 'list [--all] [--size] [-q | --json]',
  about:
    'Sorted by who needs you. A command that has ended without changes leaves nothing behind; tasks of agents stay until you remove them. Where a task is to be named, the beginning of its name is enough, and @ is the latest one.',
  examples: [
    'ags list',
    'ags list --watch',
    'ags list --all --size',
    'ags list -q',
    "ags list --json | jq '.tasks[] | select(.needsReview) | .name'",
  ],
  options: {
    all: { type: 'boolean', short: 'a', about: 'tasks of all projects; those of this one come first' },
    size: { type: 'boolean', about: 'also measure what each task takes on the disk' },
    quiet: { type: 'boolean', short: 'q', about: 'names only' },
    watch: { type: 'boolean', short: 'w', about: 'stay, and show what changes; Ctrl-C ends it' },
    json: { type: 'boolean', about: 'print one JSON document' },
  },
  async run({ values, positionals }, ctx) {
    if (positionals.length > 0)
      throw new AgsError('usage.invalid', 'ags list takes no arguments.', { hint: 'For one task: ags diff <task>' });
    if (values['watch'] === true) {
      const { watchList } = await import('../terminal/watch-list.ts');
      return watchList(values['all'] === true, ctx);
    }
    const listing = await listTasks(ctx.world, { all: values['all'] === true, size: values['size'] === true });
    if (values['json'] === true) ctx.stdout.write(`${JSON.stringify(listDocument(listing), null, 2)}\n`);
    else if (values['quiet'] === true) ctx.stdout.write(listing.tasks.map(({ name }) => `${name}\n`).join(''));
    else show(listing, values['all'] === true, ctx);
    return EXIT.done;
  },
};
export default verb;

function show(listing: Listing, all: boolean, ctx: Context): void {
  const { tasks, elsewhere } = listing;
  if (tasks.length === 0) {
    ctx.stderr.write(
      `${all || listing.project === null ? 'No task is running or waits for a review.' : 'No task of this project is running or waits for a review.'}\nStart one: ags exec -- <command>\n`,
    );
  } else {
    ctx.stdout.write(taskTable(tasks, all || listing.project === null, createPaint(ctx.colour), ctx));
  }
  if (elsewhere > 0)
    ctx.stderr.write(
      `${tasks.length === 0 ? '' : '\n'}${count(elsewhere, 'task')} in other projects: ags list --all\n`,
    );
}

/** On a terminal, the command gives way until a line fits; elsewhere everything is written in full. */
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

function widestLine(text: string): number {
  return Math.max(...text.split('\n').map((line) => widthOf(line.replaceAll(/\u001b\[\d+m/g, ''))));
}

/** An agent by its goal, anything else by its command line. */
function whatOf(task: TaskRow): string {
  return task.goal === null ? shellLine(task.command) : `${task.agent}: ${task.goal.split('\n')[0]}`;
}

/** Why it is so, or what it is doing. */
function below(task: TaskRow | undefined, paint: Paint, columns: number): string {
  const room = Math.min(300, columns - 3);
  if (task?.reason != null) return `  ${paint('dim', cut(task.reason, room))}\n`;
  if (task?.doing == null) return '';
  return `  ${paint('dim', cut(doingText(task.doing, room), room))}\n`;
}

function doingText(event: NonNullable<TaskRow['doing']>, room: number): string {
  if (event.type === 'tool.started') return describeAction(event['action'] as Action, String(event['tool']), room);
  if (event.type === 'run.started') return `${String(event['title'])} is up`;
  const words = [event['text'], event['why'], event['question']].find((value) => typeof value === 'string');
  return words?.split('\n')[0] ?? '';
}

function stateCell(task: TaskRow, paint: Paint): Cell {
  const { word, style } = STATES[task.state];
  if (task.state === 'stopped' && !task.changed) return { text: 'stopped', paint: (text) => paint('dim', text) };
  return { text: word, paint: (text) => paint(style, text) };
}

/** How a sandbox like its own fared: "200/200 2h". */
function attackedCell({ attacked }: TaskRow, paint: Paint, nowMs: number): Cell {
  if (attacked === null) return '';
  const { held, of, atMs } = attacked;
  return { text: `${held}/${of} ${age(nowMs - atMs)}`, paint: (text) => paint(held === of ? 'green' : 'red', text) };
}

const STATES = {
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

function changesOf(task: TaskRow): string {
  if (task.live || task.state === 'damaged') return '';
  const checks = task.checks === null ? '' : `, checks ${task.checks.state}`;
  if (task.changes === null) return task.changed ? `yes${checks}` : 'none';
  if (task.changes.files === 0) return 'none';
  const cost = task.costMicros === null ? '' : `, $${(task.costMicros / 1e6).toFixed(2)}`;
  const risky = task.changes.risky === 0 || task.changes.risky === null ? '' : `, ${task.changes.risky} risky`;
  return `${count(task.changes.files, 'file')}${risky}${cost}${checks}`;
}

function listDocument(listing: Listing): unknown {
  const iso = (ms: number | null): string | null => (ms === null || ms === 0 ? null : new Date(ms).toISOString());
  return {
    project: listing.project,
    elsewhere: listing.elsewhere,
    tasks: listing.tasks.map(({ startedAtMs, endedAtMs, ...task }) => ({
      ...task,
      startedAt: iso(startedAtMs),
      endedAt: iso(endedAtMs),
    })),
  };
}
