// cli/ui/frame.ts: the rows around a view: a question below it, and the footer. Pure.
import { type Line, lineWidth, span } from './cells.ts';
import type { Dialog } from './dialog.ts';
import type { Hint, Size, View } from './view.ts';

/** The answers stay visible: a long text loses its middle. */
export function sheet(
  dialog: Dialog,
  { columns, rows }: Size,
): { lines: readonly Line[]; cursor: { x: number; y: number } | null } {
  const most = Math.max(3, rows - 4);
  const lines = dialog.lines(columns);
  const cut = Math.max(0, lines.length - most);
  const kept = cut === 0 ? lines : [...lines.slice(0, HEAD), [span('  …', 'dim')], ...lines.slice(HEAD + cut + 1)];
  const cursor = dialog.cursor(columns);
  const head: Line = [span('── '), span(dialog.title, 'bold'), span(` ${'─'.repeat(columns)}`)];
  return {
    // The rule ends at the edge.
    lines: [trimmed(head, columns), ...kept],
    cursor: cursor === null ? null : { x: Math.min(cursor.x, columns - 1), y: cursor.y + 1 - cut },
  };
}

const HEAD = 2;

export function footerLine(state: {
  readonly busy: string | null;
  readonly message: Line | null;
  readonly dialog: Dialog | null;
  readonly view: View;
  readonly nested: boolean;
  readonly columns: number;
}): Line {
  if (state.busy !== null) return [span(`${state.busy} …`, 'yellow')];
  if (state.message !== null) return state.message;
  if (state.dialog !== null) return hintLine(state.dialog.hints(), [], state.columns);
  const always: Hint[] = [
    ['?', 'help'],
    ['q', state.nested ? 'back' : 'quit'],
  ];
  return hintLine(state.view.hints(), always, state.columns);
}

/** As many hints as fit; `always` are among them. */
function hintLine(hints: readonly Hint[], always: readonly Hint[], columns: number): Line {
  const lineOf = (some: readonly Hint[]): Line =>
    some.flatMap(([key, does], n) => [
      ...(n === 0 ? [] : [span('  ')]),
      ...(key === '' ? [] : [span(key, 'bold'), span(' ')]),
      span(does, 'dim'),
    ]);
  for (let many = hints.length; many > 0; many--) {
    const line = lineOf([...hints.slice(0, many), ...always]);
    if (lineWidth(line) <= columns) return line;
  }
  return lineOf(always);
}

function trimmed(line: Line, columns: number): Line {
  const [start, title, rule] = line;
  if (start === undefined || title === undefined || rule === undefined) return line;
  const room = Math.max(0, columns - lineWidth([start, title]));
  return [start, title, { ...rule, text: rule.text.slice(0, room) }];
}
