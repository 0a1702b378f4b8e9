// cli/verbs/rm.ts: `ags rm <task>...`: deletes tasks.
// Invariant: every check and every prompt comes before the first task is removed.
import { existsSync } from 'node:fs';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { readableSize } from '../../lib/units.ts';
import type { TaskEntry } from '../../queries/entries.ts';
import { findEntry } from '../../queries/find-task.ts';
import { describeTask, type TaskRow } from '../../queries/list.ts';
import { openedDirectory } from '../../projects/opened-directory.ts';
import { isRunning, removeEntry } from '../../housekeeping/remove.ts';
import { count } from '../terminal/format.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'delete a task and its changes',
  usage: 'rm <task>... [--force] [--yes] [--json]',
  takes: 'any',
  about:
    'Removes everything the sandbox wrote, and the branch of an agent. Changes that you took or merged stay in your project. The beginning of a task name is enough; @ is the latest task.',
  examples: ['ags rm npm-test-4kd2', 'ags rm @ --yes', 'ags rm --force build-w8xz'],
  options: {
    force: { type: 'boolean', short: 'f', about: 'also end a task that is running' },
    yes: { type: 'boolean', short: 'y', about: 'do not ask, even if there are unreviewed changes' },
    json: { type: 'boolean', about: 'print one JSON document; asks nothing, so unreviewed changes need --yes' },
  },
  async run({ values, positionals }, ctx) {
    if (positionals.length === 0) throw new AgsError('usage.invalid', 'Which task?', { hint: 'List them: ags list' });
    const named = await Promise.all(positionals.map((name) => findEntry(ctx.host, name)));
    const entries = named.filter((entry, i) => named.findIndex(({ id }) => id === entry.id) === i);
    const force = values['force'] === true;
    if (!force) refuseRunning(entries);
    const json = values['json'] === true;
    const wanted = values['yes'] === true ? entries : await askEach(entries, json, ctx);
    const removed: { name: string; freedBytes: number }[] = [];
    for (const entry of wanted) {
      const { freedBytes, branches } = await removeEntry(ctx.host, entry, { force });
      removed.push({ name: entry.id, freedBytes });
      if (!json)
        ctx.stdout.write(
          `Removed ${entry.id}${branches.length === 0 ? '' : ` and branch ${branches.join(', ')}`}, ${readableSize(freedBytes)} freed.\n`,
        );
      // The user may have worked in this directory, so it stays.
      const opened = openedDirectory(ctx.host, entry.id);
      if (existsSync(opened)) ctx.stderr.write(`ags: Its opened directory was kept: ${opened}\n`);
    }
    if (json) ctx.stdout.write(`${JSON.stringify({ removed }, null, 2)}\n`);
    return wanted.length === entries.length ? EXIT.done : EXIT.failed;
  },
};
export default verb;

function refuseRunning(entries: readonly TaskEntry[]): void {
  const running = entries.filter(isRunning);
  if (running.length === 0) return;
  const names = running.map(({ id }) => id).join(' ');
  throw new AgsError('task.busy', running.length === 1 ? `${names} is running.` : `These are running: ${names}`, {
    hint: `To stop ${running.length === 1 ? 'it' : 'them'} and delete the changes: ags rm --force ${names}`,
  });
}

async function askEach(entries: readonly TaskEntry[], json: boolean, ctx: Context): Promise<TaskEntry[]> {
  const rows = await Promise.all(entries.map(async (entry) => ({ entry, row: await describeTask(entry) })));
  const losing = rows.filter(({ row }) => row.changed);
  if (losing.length > 0 && (json || !ctx.stdin.isTTY)) {
    const names = losing.map(({ entry }) => entry.id).join(' ');
    throw new AgsError('usage.no-terminal', `These tasks have unreviewed changes: ${names}`, {
      hint: `To delete them without a prompt: ags rm --yes ${names}`,
    });
  }
  const wanted: TaskEntry[] = [];
  for (const { entry, row } of rows) {
    if (!row.changed || /^y(es)?$/i.test((await ctx.ask(question(row))).trim())) wanted.push(entry);
    else ctx.stderr.write(`Kept ${entry.id}.\n`);
  }
  return wanted;
}

function question(row: TaskRow): string {
  if (row.state === 'damaged') return `${row.name} cannot be read; it may have unreviewed changes. Delete it? [y/N] `;
  const changes = row.changes === null ? 'unreviewed changes' : count(row.changes.files, 'unreviewed file');
  return `${row.name} ${row.live ? 'is running and ' : ''}has ${changes}. Delete them? [y/N] `;
}
