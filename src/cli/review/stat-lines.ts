// cli/review/stat-lines.ts: one line for each change with its line counts, and a total.
import type { Change } from '../../protocol/changes.ts';
import type { Review } from '../../results/review.ts';
import { countShown, shownOf } from '../../results/change-set.ts';
import type { Paint } from '../terminal/colour.ts';
import { count } from '../../lib/units.ts';
import { changeLine } from './show-change.ts';

export async function statLines(
  { task, compared }: Pick<Review, 'task' | 'compared'>,
  changes: readonly Change[],
  paint: Paint,
): Promise<string[]> {
  if (changes.length === 0) return [];
  const shown = await shownOf(task, compared, null);
  const counts = await countShown(task, shown);
  const byPath = new Map(shown.files.map(({ n, change }) => [change.path, counts[n] ?? null]));
  const sum = { added: 0, removed: 0 };
  const rows = changes.map((change) => {
    const lines = byPath.get(change.path) ?? null;
    sum.added += lines?.added ?? 0;
    sum.removed += lines?.removed ?? 0;
    return `${changeLine(change, paint)}  ${lines === null ? 'not text' : size(lines, paint)}`;
  });
  return [...rows, `${count(changes.length, 'file')}, ${size(sum, paint)}`];
}

function size({ added, removed }: { added: number; removed: number }, paint: Paint): string {
  return `${paint('green', `+${added}`)} ${paint('red', `-${removed}`)}`;
}
