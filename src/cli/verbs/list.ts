// cli/verbs/list.ts: `ags list`: the tasks of this project, or of all.
import { basename } from 'node:path';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { formatSize } from '../../lib/units.ts';
import { listTasks, type Listing, type ShownState, type TaskRow } from '../../tasks/list.ts';
import { createPaint, type Paint } from '../colour.ts';
import { age, count, cut, shellLine, table, widthOf, type Cell } from '../format.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'list sandboxes with changes, and running ones',
  usage: 'list [--all] [--size] [-q | --json]',
  about:
    'A sandbox that has ended without changes leaves nothing behind, so what is listed here is running, waits for your review, or was killed. Where a task is to be named, the beginning of its name is enough, and @ is the latest one.',
  examples: [
    'ags list',
    'ags list --all --size',
    'ags list -q',
    "ags list --json | jq '.tasks[] | select(.needsReview) | .name'",
  ],
  options: {
    all: { type: 'boolean', short: 'a', about: 'tasks of all projects; those of this one come first' },
    size: { type: 'boolean', about: 'also measure what each task takes on the disk' },
    quiet: { type: 'boolean', short: 'q', about: 'names only' },
    json: { type: 'boolean', about: 'print one JSON document' },
  },
  async run({ values, positionals }, ctx) {
    if (positionals.length > 0)
      throw new AgsError('usage.invalid', 'ags list takes no arguments.', { hint: 'For one task: ags diff <task>' });
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
function taskTable(tasks: readonly TaskRow[], projects: boolean, paint: Paint, ctx: Context): string {
  const nowMs = ctx.now().getTime();
  const sizes = tasks.some((task) => task.sizeBytes !== undefined);
  const head = (text: string): Cell => ({ text, paint: (shown) => paint('dim', shown) });
  const rows = (commandWidth: number): Cell[][] => [
    [
      head('NAME'),
      head('STATE'),
      head('CHANGES'),
      head('AGE'),
      ...(sizes ? [head('SIZE')] : []),
      ...(projects ? [head('PROJECT')] : []),
      head('COMMAND'),
    ],
    ...tasks.map((task): Cell[] => [
      task.name,
      { text: STATES[task.state].word, paint: (text) => paint(STATES[task.state].style, text) },
      changesOf(task),
      task.startedAtMs === 0 ? '' : age(nowMs - task.startedAtMs),
      ...(sizes ? [formatSize(task.sizeBytes ?? 0)] : []),
      ...(projects ? [task.project === null ? '' : basename(task.project)] : []),
      cut(shellLine(task.command), commandWidth),
    ]),
  ];
  const columns = ctx.stdout.isTTY ? ctx.stdout.columns : Number.POSITIVE_INFINITY;
  const used = widestLine(table(rows(0).map((row) => [...row.slice(0, -1), '|']))) - 1;
  const lines = table(rows(Math.max(12, columns - used)))
    .trimEnd()
    .split('\n');
  return lines.map((line, i) => `${line}\n${reasonLine(tasks[i - 1], paint)}`).join('');
}

function widestLine(text: string): number {
  return Math.max(...text.split('\n').map((line) => widthOf(line.replaceAll(/\u001b\[\d+m/g, ''))));
}

function reasonLine(task: TaskRow | undefined, paint: Paint): string {
  return task?.reason == null ? '' : `  ${paint('dim', cut(task.reason, 300))}\n`;
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
  if (task.changes === null) return task.changed ? 'yes' : 'none';
  if (task.changes.files === 0) return 'none';
  return `${count(task.changes.files, 'file')}${task.changes.risky === 0 ? '' : `, ${task.changes.risky} risky`}`;
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
