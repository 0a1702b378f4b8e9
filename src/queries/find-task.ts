// queries/find-task.ts: which task is meant by a name, a part of one, "@", or nothing at all.
// Invariant: a guess is made only when there is nothing to choose between, and it is said aloud.
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import type { StoredTask } from '../store/tasks.ts';
import { currentProject, entryIds, readEntries, readEntry, type TaskEntry } from './entries.ts';
import { taskNotFound } from '../store/task-lock.ts';
import { describeTask } from './list.ts';
import type { World } from '../run/host-context.ts';

/**
 * A name, the beginning of one, "@" for the latest task of this project, "@2" for the one before. `work`: what it did is wanted, so
 * a run that was interrupted is put in order first.
 */
export async function findTask(
  world: World,
  name: string | undefined,
  options: { say?: (text: string) => void; work?: boolean } = {},
): Promise<StoredTask> {
  const entry = name === undefined ? await onlyCandidate(world, options.say) : await findEntry(world, name);
  if (entry.kind === 'whole')
    return options.work === true
      ? (await import('../agent-run/recover.ts')).settled(world, entry.stored)
      : entry.stored;
  throw new AgsError('state.damaged', `The files of task ${entry.id} cannot be read.`, {
    hint: `Look at ${entry.paths.root}, or remove it: ags rm ${entry.id}`,
  });
}

/** Also finds what is damaged or half-made, so that it can be removed. */
export async function findEntry(world: World, name: string): Promise<TaskEntry> {
  const place = /^@(\d{0,6})$/.exec(name);
  if (place !== null) return latest(world, name, Number(place[1] === '' ? 1 : place[1]));
  const ids = entryIds(world.stateDir);
  const fitting = ids.includes(name) ? [name] : ids.filter((id) => name !== '' && id.startsWith(name));
  const [id, ...more] = fitting;
  if (id === undefined) throw taskNotFound(name);
  if (more.length > 0)
    throw new AgsError('task.ambiguous', `Several tasks begin with "${visible(name)}".`, {
      hint: `Which one?\n${fitting.map((one) => `  ${one}`).join('\n')}`,
      details: { tasks: fitting },
    });
  return readEntry(world.stateDir, id);
}

async function latest(world: World, name: string, place: number): Promise<TaskEntry> {
  const here = byAge(await tasksHere(world));
  const entry = here[place - 1];
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

async function onlyCandidate(world: World, say: ((text: string) => void) | undefined): Promise<TaskEntry> {
  const shown = await Promise.all(
    byAge(await tasksHere(world)).map(async (entry) => ({ entry, row: await describeTask(entry) })),
  );
  const waiting = shown.filter(({ row }) => row.needsReview);
  const [first, ...more] = waiting;
  if (first === undefined)
    throw new AgsError('task.not-found', 'No task of this project has changes to look at.', {
      hint: 'Tasks of all projects: ags list --all',
    });
  if (more.length > 0)
    throw new AgsError('task.ambiguous', 'Several tasks of this project have changes.', {
      hint: `Name one, or @ for the latest:\n${waiting.map(({ row }) => `  ${row.name}`).join('\n')}`,
      details: { tasks: waiting.map(({ row }) => row.name) },
    });
  say?.(`this is about ${first.row.name}.`);
  return first.entry;
}

type WholeEntry = Extract<TaskEntry, { kind: 'whole' }>;

async function tasksHere(world: World): Promise<WholeEntry[]> {
  const project = await currentProject(world);
  const entries = (await readEntries(world.stateDir)).filter((entry) => entry.kind === 'whole');
  return project === null ? entries : entries.filter((entry) => entry.stored.task.project === project);
}

function byAge(entries: readonly WholeEntry[]): WholeEntry[] {
  return entries.toSorted((a, b) => b.stored.run.startedAtMs - a.stored.run.startedAtMs);
}
