// cli/several.ts: one command over several tasks.
// Invariant: each task is handled in the order given, and a failure of one neither hides nor stops the others.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError, ERRORS, EXIT } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import { listTree } from '../git/staging/staging.ts';
import { entryIds } from '../queries/entries.ts';
import { findTask } from '../queries/find-task.ts';
import { listTasks, type TaskRow } from '../queries/list.ts';
import { readCapture } from '../results/capture.ts';
import { inWords } from '../run/disk-errors.ts';
import type { StoredTask } from '../store/tasks.ts';
import { age, count, errorOutput, table } from './terminal/format.ts';
import type { Arguments, Context } from './verb.ts';

/** A task that a command names, or why there is none. */
export type Named = { readonly name: string } & (
  | { readonly task: StoredTask }
  | { readonly task: null; readonly error: AgsError }
);

/** What became of one task: its exit status, and the word under which the closing line counts it. */
export interface Done {
  readonly exit: number;
  readonly word: string;
  /** The user stopped the command here, so the tasks after this one are not begun. */
  readonly stop?: boolean;
}

/** A task that is named twice is handled once. */
export async function findTasks(
  ctx: Context,
  names: readonly string[],
  find: (name: string) => Promise<StoredTask> = (name) => findTask(ctx.host, name),
): Promise<Named[]> {
  const found: Named[] = [];
  for (const name of names) {
    try {
      const task = await find(name);
      if (!found.some((one) => one.task?.task.id === task.task.id)) found.push({ name: task.task.name, task });
    } catch (error) {
      found.push({ name, task: null, error: expected(ctx, error) });
    }
  }
  return found;
}

/**
 * The tasks and paths of `[task...] [paths...]`. Without "--", a word after the first is a task only if it is the full name of one, and a
 * word that could be both is refused: the agent chooses its files' names.
 */
export async function tasksAndPaths(
  { positionals, beforeDashes }: Arguments,
  ctx: Context,
): Promise<{ names: readonly string[]; paths: readonly string[] }> {
  if (beforeDashes !== undefined)
    return { names: positionals.slice(0, beforeDashes), paths: positionals.slice(beforeDashes) };
  const [first, ...rest] = positionals;
  if (first === undefined) return { names: [], paths: [] };
  const ids = entryIds(ctx.stateDir);
  const end = rest.findIndex((word) => !ids.includes(word) && !/^@\d{0,6}$/.test(word));
  const more = end < 0 ? rest : rest.slice(0, end);
  if (more.length > 0) {
    const stored = await findTask(ctx.host, first);
    const capture = readCapture(stored);
    for (const word of more) {
      const changed = capture !== null && (await listTree(stored.paths.staging, capture.tree, [word])).length > 0;
      if (!changed && !existsSync(join(stored.task.project, word))) continue;
      throw new AgsError('usage.invalid', `"${visible(word)}" is the name of a task and of a path.`, {
        hint: `Put "--" before the first path: ags <command> ${positionals.map(visible).join(' ')} --`,
      });
    }
  }
  return { names: [first, ...more], paths: rest.slice(more.length) };
}

/** The tasks of this project that are ready for review, the oldest first. */
export async function readyTasks(ctx: Context): Promise<string[]> {
  const { tasks } = await listTasks(ctx.host, { all: false, size: false });
  return tasks
    .filter(({ state, live }) => state === 'ready' && !live)
    .toSorted((a, b) => a.startedAtMs - b.startedAtMs)
    .map(({ name }) => name);
}

export function asNamed(tasks: readonly StoredTask[]): Named[] {
  return tasks.map((task) => ({ name: task.task.name, task }));
}

/** One task fails as if it were alone. Of several, each failure is told, and the status is that of the first one. */
export async function eachTask(
  ctx: Context,
  tasks: readonly Named[],
  json: boolean,
  act: (task: StoredTask) => Promise<Done>,
): Promise<number> {
  const [only] = tasks;
  if (only !== undefined && tasks.length === 1) {
    if (only.task === null) throw only.error;
    return (await act(only.task)).exit;
  }
  const ended = new Map<string, { readonly name: string; readonly exit: number }[]>();
  let status: number = EXIT.done;
  for (const one of tasks) {
    const { exit, word, stop } = await attempt(ctx, one, json, act);
    ended.set(word, [...(ended.get(word) ?? []), { name: one.name, exit }]);
    if (status === EXIT.done) status = exit;
    if (stop === true) break;
  }
  const words = [...ended].map(([word, group]) => {
    const bad = group.filter(({ exit }) => exit !== EXIT.done).map(({ name }) => visible(name));
    return `${group.length} ${word}${bad.length === 0 ? '' : ` (${bad.join(', ')})`}`;
  });
  if (!json && tasks.length > 0) ctx.stderr.write(`ags: ${count(tasks.length, 'task')}: ${words.join(', ')}.\n`);
  return status;
}

async function attempt(
  ctx: Context,
  one: Named,
  json: boolean,
  act: (task: StoredTask) => Promise<Done>,
): Promise<Done> {
  try {
    if (one.task === null) throw one.error;
    return await act(one.task);
  } catch (cause) {
    const error = expected(ctx, cause);
    if (error.code === 'prompt.cancelled') throw error;
    const { code, message, hint, details } = error;
    const text = json || message.includes(one.name) ? message : `${one.name}: ${message}`;
    ctx.stderr.write(errorOutput(new AgsError(code, text, { hint, details: { ...details, task: one.name } }), json));
    return { exit: ERRORS[code].exit, word: 'failed' };
  }
}

/** Anything else is a bug, and ends the command. */
function expected(ctx: Context, cause: unknown): AgsError {
  const error = inWords(ctx.host, cause);
  if (error instanceof AgsError) return error;
  throw error;
}

/** Names and an option that stands for many tasks exclude each other, so that no name is ignored. */
export function refuseNamesBeside({ positionals, values }: Arguments, verb: string, option: string): boolean {
  if (values[option] !== true) return false;
  if (positionals.length > 0)
    throw new AgsError('usage.invalid', `Name tasks or use --${option}, not both.`, {
      hint: `ags ${verb} --${option}`,
    });
  return true;
}

/** The task that a command without a name means: the only one that fits, or the one that the user picks. */
export async function pickTask(
  ctx: Context,
  verb: 'continue' | 'restart',
  states: readonly TaskRow['state'][],
): Promise<StoredTask> {
  const { tasks } = await listTasks(ctx.host, { all: false, size: false });
  const fitting = tasks
    .filter(({ goal, live, state }) => goal !== null && !live && states.includes(state))
    .toSorted((a, b) => b.startedAtMs - a.startedAtMs);
  const [first, ...more] = fitting;
  if (first === undefined)
    throw new AgsError('task.not-found', `This project has no task to ${verb}.`, {
      hint: 'Tasks of all projects: ags list --all',
    });
  if (more.length === 0) {
    ctx.stderr.write(`ags: using task ${first.name}.\n`);
    return findTask(ctx.host, first.name);
  }
  const names = fitting.map(({ name }) => name);
  if (!ctx.terminal.stdin || !ctx.terminal.stderr)
    throw new AgsError('task.ambiguous', `Which task? ags ${verb} can take ${count(names.length, 'task')}.`, {
      hint: `Name one or more, or @ for the latest:\n${names.map((name) => `  ${name}`).join('\n')}`,
      details: { tasks: names },
    });
  const now = ctx.now().getTime();
  ctx.stderr.write(
    table(
      fitting.map((row, i) =>
        [`${i + 1}`, row.name, row.state, age(now - row.startedAtMs), row.goal ?? ''].map(
          (text) => text.split('\n')[0] ?? '',
        ),
      ),
    ),
  );
  const answer = await ctx.ask(`Which task should ags ${verb}? [1-${names.length}] `);
  const chosen = names[Number(answer) - 1] ?? (names.includes(answer) ? answer : undefined);
  if (chosen === undefined) throw new AgsError('usage.invalid', `"${answer}" is none of them; nothing was done.`);
  return findTask(ctx.host, chosen);
}
