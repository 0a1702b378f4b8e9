// queries/find-task.ts: finds the task that a name, the beginning of a name, "@" or no argument stands for.
// Invariant: ags guesses only if there is exactly one candidate, and prints its guess.
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import type { StoredTask } from '../store/tasks.ts';
import { currentProject, entryIds, readEntries, readEntry, type TaskEntry } from './entries.ts';
import { taskNotFound } from '../store/task-lock.ts';
import { describeTask } from './list.ts';
import type { HostContext } from '../run/host-context.ts';

/** A name, the beginning of one, "@" for the latest task of this project, "@2" for the one before. */
export async function findTask(
  context: HostContext,
  name: string | undefined,
  options: { say?: (text: string) => void } = {},
): Promise<StoredTask> {
  const entry = name === undefined ? await onlyCandidate(context, options.say) : await findEntry(context, name);
  if (entry.kind === 'whole') return entry.stored;
  throw new AgsError('state.damaged', `The files of task ${entry.id} cannot be read.`, {
    hint: `Inspect ${entry.paths.root}, or remove the task: ags rm ${entry.id}`,
  });
}

/** Also finds damaged and incomplete tasks, so that users can remove them. */
export async function findEntry(context: HostContext, name: string): Promise<TaskEntry> {
  const position = /^@(\d{0,6})$/.exec(name);
  if (position !== null) return latest(context, name, Number(position[1] === '' ? 1 : position[1]));
  const ids = entryIds(context.stateDir);
  const matching = ids.includes(name) ? [name] : ids.filter((id) => name !== '' && id.startsWith(name));
  const [id, ...more] = matching;
  if (id === undefined) throw taskNotFound(name);
  if (more.length > 0)
    throw new AgsError('task.ambiguous', `Several tasks begin with "${visible(name)}".`, {
      hint: `Which one?\n${matching.map((one) => `  ${one}`).join('\n')}`,
      details: { tasks: matching },
    });
  return readEntry(context.stateDir, id);
}

async function latest(context: HostContext, name: string, position: number): Promise<TaskEntry> {
  const here = byAge(await tasksHere(context));
  const entry = here[position - 1];
  if (entry !== undefined) return entry;
  if (here.length === 0)
    throw new AgsError('task.not-found', 'This project has no tasks.', {
      hint: 'Tasks of all projects: ags list --all',
    });
  throw new AgsError(
    'task.not-found',
    `There is no ${name}: this project has ${here.length === 1 ? 'one task' : `${here.length} tasks`}.`,
    { hint: 'List them: ags list' },
  );
}

async function onlyCandidate(context: HostContext, say: ((text: string) => void) | undefined): Promise<TaskEntry> {
  const shown = await Promise.all(
    byAge(await tasksHere(context)).map(async (entry) => ({ entry, row: await describeTask(entry) })),
  );
  const waiting = shown.filter(({ row }) => row.needsReview);
  const [first, ...more] = waiting;
  if (first === undefined)
    throw new AgsError('task.not-found', 'No task of this project has changes to review.', {
      hint: 'Tasks of all projects: ags list --all',
    });
  if (more.length > 0)
    throw new AgsError('task.ambiguous', 'Several tasks of this project have changes.', {
      hint: `Name one, or @ for the latest:\n${waiting.map(({ row }) => `  ${row.name}`).join('\n')}`,
      details: { tasks: waiting.map(({ row }) => row.name) },
    });
  say?.(`using task ${first.row.name}.`);
  return first.entry;
}

type WholeEntry = Extract<TaskEntry, { kind: 'whole' }>;

async function tasksHere(context: HostContext): Promise<WholeEntry[]> {
  const project = await currentProject(context);
  const entries = (await readEntries(context.stateDir)).filter((entry) => entry.kind === 'whole');
  return project === null ? entries : entries.filter((entry) => entry.stored.task.project === project);
}

function byAge(entries: readonly WholeEntry[]): WholeEntry[] {
  return entries.toSorted((a, b) => b.stored.run.startedAtMs - a.stored.run.startedAtMs);
}
