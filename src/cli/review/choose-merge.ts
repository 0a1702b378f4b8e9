// cli/review/choose-merge.ts: `ags merge --patch`: asks which files and which parts of them a merge takes.
import { AgsError } from '../../protocol/errors.ts';
import { asDirectory, findSides, selectionProblem } from '../../merge/merge-tree.ts';
import { type Chosen, showChanges } from '../../results/change-set.ts';
import { covers } from '../../review/selection.ts';
import type { StoredTask } from '../../store/tasks.ts';
import { createPaint } from '../terminal/colour.ts';
import { count } from '../terminal/format.ts';
import { LOOKING, meanwhile } from '../terminal/meanwhile.ts';
import type { Context } from '../verb.ts';
import { askAboutChanges, openKeys } from './prompt.ts';

/** null: cancelled. */
export async function chooseForMerge(
  ctx: Context,
  task: StoredTask,
  wanted: { readonly paths: readonly string[]; readonly into: string | undefined },
): Promise<Chosen | null> {
  if (!ctx.terminal.stdin || !ctx.terminal.stderr)
    throw new AgsError('usage.no-terminal', '--patch asks on a terminal, and there is none.', {
      hint: `Name the files instead: ags merge ${task.task.name} <paths>`,
    });
  // A running task, or one without a branch, is refused before the first question.
  await findSides(ctx.host, task, wanted.into);
  const shown = await meanwhile(ctx, LOOKING, showChanges(ctx.host, task));
  const all = shown.files.map(({ change }) => change);
  const patterns = wanted.paths.map((path) => asDirectory(path, all));
  const unknown = patterns.find((pattern) => !all.some((change) => covers(pattern, change)));
  if (unknown !== undefined) throw selectionProblem({ path: unknown, problem: 'not-found' }, task);
  const asked = shown.files.filter(
    ({ change }) => patterns.length === 0 || patterns.some((pattern) => covers(pattern, change)),
  );
  ctx.stderr.write(`${task.task.name}: ${count(asked.length, 'file')} changed.\n`);
  const keys = openKeys(ctx);
  try {
    const answers = await askAboutChanges(
      { task, compared: shown.compared },
      asked.map(({ change }) => change),
      { ctx, paint: createPaint(ctx.colour), key: keys.key, purpose: 'merge' },
    );
    if (answers === null) return null;
    const files = asked.flatMap(({ n }, i) => {
      const decision = answers.decisions[i];
      if (decision?.kind === 'take') return [{ n }];
      return decision?.kind === 'part' ? [{ n, hunks: decision.hunks }] : [];
    });
    return { changes: shown.id, files };
  } finally {
    keys.close();
  }
}
