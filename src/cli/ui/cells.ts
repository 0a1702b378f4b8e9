// cli/ui/cells.ts: lines of styled text, cut or wrapped to a number of terminal cells, and the bytes that draw them. Pure.
// Invariant: `draw` alone makes text for the terminal. It escapes every control and invisible character of the text, and a line
// never takes more cells than it is given.
import { visible } from '../../lib/sanitize.ts';
import { widthOf } from '../terminal/format.ts';

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'reverse';

export interface Span {
  readonly text: string;
  readonly styles: readonly Style[];
}

export type Line = readonly Span[];

export function span(text: string, ...styles: Style[]): Span {
  return { text, styles };
}

export const BLANK: Line = [];

/** Text with our own colours, as createPaint makes it, becomes spans. */
export function fromPainted(text: string): Line {
  const spans: Span[] = [];
  let styles: readonly Style[] = [];
  for (const [n, piece] of expandTabs(text).split(COLOUR).entries()) {
    if (n % 2 === 0) {
      if (piece !== '') spans.push({ text: piece, styles });
    } else {
      const style = STYLE_OF.get(piece);
      styles = style === undefined ? [] : [style];
    }
  }
  return spans;
}

/** At most `width` cells; "…" stands for the rest. */
export function clip(line: Line, width: number): Line {
  const clean = cleaned(line);
  if (lineWidth(clean) <= width) return clean;
  const [first = BLANK] = split(clean, Math.max(0, width - 1));
  return width > 0 ? [...first, { text: '…', styles: first.at(-1)?.styles ?? [] }] : BLANK;
}

/** As many lines as it takes; the later ones start with `indent` spaces. */
export function wrapLine(line: Line, width: number, indent = 0): Line[] {
  let rest = cleaned(line);
  if (rest.length === 0) return [BLANK];
  const lines: Line[] = [];
  const pad = width > 2 * indent ? indent : 0;
  while (rest.length > 0) {
    const room = lines.length === 0 ? width : width - pad;
    const [head, tail] = split(rest, Math.max(2, room), true);
    lines.push(lines.length === 0 || pad === 0 ? head : [span(' '.repeat(pad)), ...head]);
    rest = tail;
  }
  return lines;
}

/** Exactly `width` cells: two parts, at the left and at the right end. The right one wins. */
export function sides(left: Line, right: Line, width: number): Line {
  const end = clip(right, width);
  const start = clip(left, Math.max(0, width - lineWidth(end) - (end.length > 0 ? 1 : 0)));
  return [...start, span(' '.repeat(Math.max(0, width - lineWidth(start) - lineWidth(end)))), ...end];
}

export function pad(line: Line, width: number): Line {
  const cut = clip(line, width);
  return [...cut, span(' '.repeat(Math.max(0, width - lineWidth(cut))))];
}

export function restyled(line: Line, ...styles: Style[]): Line {
  return line.map((one) => ({ text: one.text, styles: [...one.styles, ...styles] }));
}

export function lineWidth(line: Line): number {
  return line.reduce((sum, { text }) => sum + widthOf(text), 0);
}

/** The bytes of one line. Without colour, bold, dim and reverse stay: they are no colours. */
export function draw(line: Line, width: number, colour: boolean): string {
  return clip(line, width)
    .map(({ text, styles }) => {
      const codes = styles.filter((style) => colour || PLAIN.has(style)).map((style) => CODES[style]);
      return codes.length === 0 ? text : `\u001b[${codes.join(';')}m${text}\u001b[0m`;
    })
    .join('');
}

const CODES: Readonly<Record<Style, string>> = {
  bold: '1',
  dim: '2',
  reverse: '7',
  red: '31',
  green: '32',
  yellow: '33',
  cyan: '36',
};
const PLAIN: ReadonlySet<Style> = new Set(['bold', 'dim', 'reverse']);
const STYLE_OF = new Map(Object.entries(CODES).map(([style, code]) => [code, style as Style]));
const COLOUR = /\u001b\[(\d+)m/;

function cleaned(line: Line): Line {
  return line.map(({ text, styles }) => ({ text: visible(expandTabs(text)), styles }));
}

function expandTabs(text: string): string {
  if (!text.includes('\t')) return text;
  let column = 0;
  let out = '';
  for (const piece of text.split(/(\t)/)) {
    const shown = piece === '\t' ? ' '.repeat(TAB - (column % TAB)) : piece;
    column += widthOf(shown);
    out += shown;
  }
  return out;
}

const TAB = 8;

/** The first `width` cells, and the rest. With `words`, between words if that leaves more than half of the line. */
function split(line: Line, width: number, words = false): [Line, Line] {
  const head: Span[] = [];
  let used = 0;
  for (const [n, one] of line.entries()) {
    const whole = widthOf(one.text);
    if (used + whole <= width) {
      head.push(one);
      used += whole;
      continue;
    }
    let at = 0;
    let gap = 0;
    for (const char of one.text) {
      const cells = widthOf(char);
      if (used + cells > width) break;
      used += cells;
      at += char.length;
    }
    if (words) {
      const space = one.text.lastIndexOf(' ', at);
      if (space > 0 && at - space < width / 2) [at, gap] = [space, 1];
    }
    if (at > 0) head.push({ ...one, text: one.text.slice(0, at) });
    const rest = one.text.slice(at + gap);
    return [head, [...(rest === '' ? [] : [{ ...one, text: rest }]), ...line.slice(n + 1)]];
  }
  return [head, []];
}
