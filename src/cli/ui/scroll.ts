// cli/ui/scroll.ts: a long text of which a screen shows a part: moves by keys, and stays at the end while text is added, if it was there.
import { type Line, wrapLine } from './cells.ts';
import type { Key } from './keys.ts';
import type { Size } from './view.ts';

export interface Scroll {
  add(lines: readonly Line[]): void;
  /** Replaces everything and goes to the beginning, or stays at the end. */
  reset(lines: readonly Line[]): void;
  body(size: Size): readonly Line[];
  key(key: Key): boolean;
  /** Goes to the added line of this number. */
  goTo(line: number): void;
  /** The number of the added line at the top of the screen. */
  top(): number;
  /** "12 %", "end". */
  place(): string;
}

/** Older lines are dropped. */
const MOST_LINES = 20_000;

export function createScroll(options: { atEnd: boolean; indent: number }): Scroll {
  let lines: Line[] = [];
  let wrapped: Line[] = [];
  /** For each added line, its first wrapped one. */
  let starts: number[] = [];
  let columns = 80;
  let rows = 1;
  let top = 0;
  let following = options.atEnd;

  const last = (): number => Math.max(0, wrapped.length - rows);
  const to = (line: number): void => {
    top = Math.min(Math.max(0, line), last());
    following = options.atEnd && top === last();
  };

  function wrapOne(line: Line): void {
    starts.push(wrapped.length);
    wrapped.push(...wrapLine(line, columns, options.indent));
  }

  function rewrap(): void {
    const line = lineAt(top);
    [wrapped, starts] = [[], []];
    for (const one of lines) wrapOne(one);
    top = following ? last() : Math.min(starts[line] ?? 0, last());
  }

  /** Binary search: the added line that the wrapped one belongs to. */
  function lineAt(row: number): number {
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((starts[middle] ?? 0) <= row) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  return {
    add(more) {
      lines.push(...more);
      if (lines.length > MOST_LINES + 1000) {
        lines = lines.slice(-MOST_LINES);
        rewrap();
      } else for (const one of more) wrapOne(one);
      if (following) top = last();
    },
    reset(all) {
      lines = all.slice(-MOST_LINES);
      top = 0;
      rewrap();
    },
    body(size) {
      if (size.columns !== columns || size.rows !== rows) {
        const narrower = size.columns !== columns;
        ({ columns, rows } = size);
        if (narrower) rewrap();
        else top = following ? last() : Math.min(top, last());
      }
      return wrapped.slice(top, top + rows);
    },
    key(key) {
      const text = key.name === 'char' ? key.text : key.name;
      switch (text) {
        case 'up':
        case 'k':
          to(top - 1);
          return true;
        case 'down':
        case 'j':
          to(top + 1);
          return true;
        case 'page-up':
        case 'b':
        case 'ctrl-b':
          to(top - Math.max(1, rows - 1));
          return true;
        case 'page-down':
        case ' ':
        case 'ctrl-f':
          to(top + Math.max(1, rows - 1));
          return true;
        case 'home':
        case 'g':
          to(0);
          return true;
        case 'end':
        case 'G':
          to(last());
          return true;
      }
      return false;
    },
    goTo: (line) => to(starts[line] ?? 0),
    top: () => lineAt(top),
    place() {
      if (wrapped.length <= rows) return '';
      return top === last() ? 'end' : `${Math.floor((100 * top) / last())} %`;
    },
  };
}
