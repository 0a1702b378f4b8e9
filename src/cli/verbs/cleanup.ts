// cli/verbs/cleanup.ts: `ags cleanup`: removes leftovers of killed or finished sandboxes.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { STATE_WORDS } from '../../protocol/run-state.ts';
import { readableSize, parseDuration } from '../../lib/units.ts';
import { cleanUp, planCleanup, type Cleanup } from '../../housekeeping/cleanup.ts';
import type { CleanupItem } from '../../housekeeping/leftovers.ts';
import type { TaskRow } from '../../queries/list.ts';
import { createPaint, type Paint } from '../terminal/colour.ts';
import { age, count, section, shortPath, table } from '../terminal/format.ts';
import type { Arguments, Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'remove leftovers of killed or finished sandboxes',
  usage: 'cleanup [--project <directory>] [--older-than <time>] [--all] [options]',
  takes: 0,
  instead: 'To remove one task: ags rm <task>',
  about:
    'Covers all projects. Ends processes whose ags was killed. Removes their tasks if they have no changes, finished tasks, and files of interrupted commands. Keeps and lists tasks with unreviewed changes and goals that were interrupted or never began. Never touches running sandboxes.',
  examples: ['ags cleanup', 'ags cleanup --dry-run', 'ags cleanup --project .', 'ags cleanup --all --older-than 7d'],
  options: {
    'dry-run': { type: 'boolean', short: 'n', about: 'only print what would be removed' },
    all: { type: 'boolean', about: 'also remove tasks with unreviewed changes or unfinished goals; asks first' },
    project: { type: 'string', value: 'directory', about: 'only the tasks of this project' },
    'older-than': { type: 'string', value: 'time', about: 'only tasks that ended longer ago than this: 12h, 7d' },
    yes: { type: 'boolean', short: 'y', about: 'do not ask' },
    json: { type: 'boolean', about: 'print one JSON document; asks nothing' },
  },
  async run(args, ctx) {
    const { values } = args;
    const project = await projectOf(args, ctx);
    const cleanup = await planCleanup(ctx.host, {
      all: values['all'] === true,
      olderThanMs: olderThan(args),
      ...(project === null ? {} : { project }),
    });
    const json = values['json'] === true;
    const dryRun = values['dry-run'] === true;
    if (!dryRun && values['yes'] !== true && !(await mayLoseWork(cleanup, json, ctx))) return EXIT.failed;
    const done = dryRun ? cleanup.items : await cleanUp(cleanup.items);
    const failed = cleanup.items.filter((item) => !done.includes(item));
    ctx.stdout.write(
      json
        ? `${JSON.stringify(cleanupDocument(cleanup, done, failed, dryRun), null, 2)}\n`
        : report(
            cleanup,
            done,
            failed,
            { dryRun, place: project === null ? 'in all projects' : `in ${shortPath(project, ctx.home)}` },
            ctx,
          ),
    );
    return failed.length === 0 ? EXIT.done : EXIT.failed;
  },
};
export default verb;

/** null: all projects. */
async function projectOf({ values }: Arguments, ctx: Context): Promise<string | null> {
  const dir = values['project'];
  if (typeof dir !== 'string') return null;
  const { currentProject, readEntries } = await import('../../queries/entries.ts');
  const place = resolve(ctx.cwd, dir);
  const root = existsSync(place) ? await currentProject({ ...ctx.host, cwd: place }) : null;
  if (root !== null) return root;
  // The project may be gone, and its tasks still there.
  const entries = await readEntries(ctx.stateDir);
  if (entries.some((entry) => entry.kind === 'whole' && entry.stored.task.project === place)) return place;
  throw new AgsError('path.not-found', `${shortPath(place, ctx.home)} is no project, and no task belongs to it.`, {
    hint: 'List the tasks of all projects: ags list --all',
  });
}

function olderThan({ values }: Arguments): number {
  const text = values['older-than'];
  if (typeof text !== 'string') return 0;
  const seconds = parseDuration(text);
  if (seconds === undefined)
    throw new AgsError('usage.invalid', `--older-than needs a time, not "${text}".`, {
      hint: 'For example: --older-than 7d',
    });
  return seconds * 1000;
}

async function mayLoseWork({ items }: Cleanup, json: boolean, ctx: Context): Promise<boolean> {
  const losing = items.filter((item) => item.losesWork).map(({ name }) => name);
  if (losing.length === 0) return true;
  if (json || !ctx.stdin.isTTY)
    throw new AgsError(
      'usage.no-terminal',
      `These tasks have unreviewed changes or unfinished goals: ${losing.join(' ')}`,
      {
        hint: 'To delete them without a prompt: ags cleanup --all --yes',
      },
    );
  const answer = await ctx.ask(
    `${losing.map((name) => `  ${name}\n`).join('')}Delete the unreviewed changes and goals of ${losing.length === 1 ? 'this task' : `these ${losing.length} tasks`}? [y/N] `,
  );
  return /^y(es)?$/i.test(answer.trim());
}

function report(
  cleanup: Cleanup,
  done: readonly CleanupItem[],
  failed: readonly CleanupItem[],
  { dryRun, place }: { dryRun: boolean; place: string },
  ctx: Context,
): string {
  const paint = createPaint(ctx.colour);
  const list = (items: readonly CleanupItem[]): string =>
    table(
      items.map((item) => [
        item.kind,
        shortPath(item.name, ctx.home),
        item.why,
        item.bytes === 0 ? '' : readableSize(item.bytes),
      ]),
      { indent: 2 },
    );
  const freed = done.reduce((sum, item) => sum + item.bytes, 0);
  const parts = [
    ...(done.length === 0 ? [] : [section(dryRun ? 'Would be removed' : 'Removed', list(done), paint)]),
    ...(failed.length === 0 ? [] : [section('In use, or could not be removed', list(failed), paint)]),
    ...keptPart(cleanup.kept, paint, ctx.now().getTime()),
    `${done.length === 0 ? `There is nothing to clean up ${place}` : `${count(done.length, 'item')} ${place}${freed === 0 ? '' : `, ${readableSize(freed)}${dryRun ? '' : ' freed'}`}`}${cleanup.running === 0 ? '' : `; ${count(cleanup.running, 'sandbox is', 'sandboxes are')} running`}.\n`,
  ];
  return parts.join('\n');
}

function keptPart(kept: readonly TaskRow[], paint: Paint, nowMs: number): string[] {
  const part = (title: string, rows: readonly TaskRow[], verb: (row: TaskRow) => string): string[] => {
    const cells = rows.map((row) => [
      `ags ${verb(row)} ${row.name}`,
      STATE_WORDS[row.state],
      row.startedAtMs === 0 ? '' : `${age(nowMs - row.startedAtMs)} ago`,
    ]);
    return rows.length === 0 ? [] : [section(title, table(cells, { indent: 2 }), paint)];
  };
  const changed = kept.filter((row) => row.changed);
  const unfinished = kept.filter((row) => !row.changed);
  return [
    ...part('Kept, because of unreviewed changes', changed, (row) => (row.state === 'damaged' ? 'rm' : 'review')),
    ...part('Kept, because their goals are unfinished', unfinished, () => 'continue'),
  ];
}

function cleanupDocument(
  cleanup: Cleanup,
  done: readonly CleanupItem[],
  failed: readonly CleanupItem[],
  dryRun: boolean,
): unknown {
  const plain = ({ kind, name, why, bytes, losesWork }: CleanupItem): unknown => ({
    kind,
    name,
    why,
    bytes,
    losesWork,
  });
  return {
    dryRun,
    removed: done.map(plain),
    failed: failed.map(plain),
    kept: cleanup.kept.map(({ name, state, project }) => ({ name, state, project })),
    running: cleanup.running,
    freedBytes: done.reduce((sum, item) => sum + item.bytes, 0),
  };
}
