// cli/ui/view-diff.ts: all changes of one task, file by file.
import { createPaint } from '../terminal/colour.ts';
import type { Context } from '../verb.ts';
import { BLANK, fromPainted, type Line, restyled, span } from './cells.ts';
import { createScroll } from './scroll.ts';
import type { View } from './view.ts';

const PAINT = createPaint(true);
/** More is for `ags diff` and its pager. */
const MOST_LINES = 15_000;

/** Shows what is read so far and calls `changed` when there is more. Rejects if the changes cannot be read. */
export function createDiffView(ctx: Context, id: string, changed: () => void): { view: View; loaded: Promise<void> } {
  const scroll = createScroll({ atEnd: false, indent: 1 });
  const starts: number[] = [];
  let files = 0;
  let lines = 0;
  let state: 'reading' | 'read' | 'cut' = 'reading';

  const add = (more: readonly Line[]): void => {
    lines += more.length;
    scroll.add(more);
    changed();
  };
  const load = async (): Promise<void> => {
    const { findWork } = await import('../../agent-run/find-work.ts');
    const { openChanges } = await import('../review/open-changes.ts');
    const { changeLine, paintDiff, readDiff, reasonLines } = await import('../review/show-change.ts');
    using opened = await openChanges(ctx, await findWork(ctx.host, id));
    const { changes, refused } = opened.compared.changeSet;
    files = changes.length;
    if (changes.length === 0) add([[span('It changed nothing.', 'dim')]]);
    for (const change of changes) {
      if (lines > MOST_LINES) {
        state = 'cut';
        add([[span(`The rest is not shown here. All of it: ags diff ${id}`, 'yellow')]]);
        return;
      }
      starts.push(lines);
      const { lines: text, size } = await readDiff(opened, change);
      add([
        restyled([...fromPainted(changeLine(change, PAINT)), span(size === '' ? '' : `  ${size}`)], 'bold'),
        ...reasonLines(change, PAINT).map(fromPainted),
        ...paintDiff(text, PAINT).map(fromPainted),
        BLANK,
      ]);
    }
    for (const one of refused) add([[span(`never taken: ${one.path} (${one.reason})`, 'yellow')]]);
    state = 'read';
    changed();
  };

  /** The file at the top of the screen. */
  const current = (): number => starts.findLastIndex((start) => start <= scroll.top());
  const view: View = {
    task: id,
    title: () => [
      span(`changes of ${id}`, 'bold'),
      span(files === 0 ? '' : `  file ${Math.max(0, current()) + 1} of ${files}`, 'dim'),
      span(`  ${scroll.place()}`, 'dim'),
    ],
    body: (size) => (lines === 0 ? [[span('Looking at what changed …', 'dim')]] : scroll.body(size)),
    hints: () => [
      ['Up Down PgUp PgDn', 'scroll'],
      ['n', 'next file'],
      ['p', 'previous file'],
      ...(state === 'reading' ? ([['', 'reading …']] as const) : []),
    ],
    key(key) {
      if (scroll.key(key)) return true;
      if (key.name !== 'char' || (key.text !== 'n' && key.text !== 'p')) return false;
      const at = current();
      const back = (starts[at] ?? 0) < scroll.top() ? at : at - 1;
      scroll.goTo(starts[Math.max(0, Math.min(starts.length - 1, key.text === 'n' ? at + 1 : back))] ?? 0);
      return true;
    },
  };
  return { view, loaded: load() };
}
