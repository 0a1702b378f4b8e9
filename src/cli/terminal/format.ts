// cli/terminal/format.ts: tables, wrapping, widths and errors as terminal text.
// Invariant: `table`, `cut` and `shellQuote` escape every character that is invisible or would move the cursor,
// and colour carries no meaning that the words do not have.
import { visible, createSanitizer } from '../../lib/sanitize.ts';
import type { Paint } from './colour.ts';
import type { AgsError } from '../../protocol/errors.ts';

export { count } from '../../lib/units.ts';

export type Cell =
  | string
  | { readonly text: string; readonly paint?: (text: string) => string; readonly right?: boolean };

/** Complete lines. The widest cell sets a column's width; the last column is not padded. */
export function table(rows: readonly (readonly Cell[])[], options: { indent?: number; gap?: number } = {}): string {
  const cells = rows.map((row) =>
    row.map((cell) =>
      typeof cell === 'string'
        ? { text: visible(cell), paint: same, right: false }
        : { paint: same, right: false, ...cell, text: visible(cell.text) },
    ),
  );
  const widths: number[] = [];
  for (const row of cells)
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, widthOf(cell.text));
  const indent = ' '.repeat(options.indent ?? 0);
  const gap = ' '.repeat(options.gap ?? 2);
  return cells
    .map((row) => {
      const line = row.map(({ text, paint, right }, i) => {
        const fill = ' '.repeat((widths[i] ?? 0) - widthOf(text));
        if (right) return fill + paint(text);
        return row.slice(i + 1).every((later) => later.text === '') ? paint(text) : paint(text) + fill;
      });
      return `${indent}${line.join(gap)}`.trimEnd();
    })
    .map((line) => `${line}\n`)
    .join('');
}

export function section(title: string, body: string, paint: Paint): string {
  return `${paint('bold', title)}\n${body}`;
}

/** Names with their descriptions, wrapped at 80 columns or the given number. */
export function meanings(list: readonly (readonly [string, string])[], columns = 80): string {
  const width = Math.max(0, ...list.map(([name]) => widthOf(visible(name))));
  return list
    .map(
      ([name, means]) =>
        `  ${visible(name).padEnd(width)}  ${wrap(means, { width: columns, indent: width + 4 }).trimStart()}`,
    )
    .join('');
}

/** Columns of the terminal; without one, or if it does not know its size, the other number. */
export function lineWidth(
  { isTTY, columns }: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>,
  otherwise: number,
): number {
  return isTTY && columns > 0 ? columns : otherwise;
}

/** Complete lines, wrapped between words. Line breaks in the text stay. */
export function wrap(text: string, options: { width?: number; indent?: number } = {}): string {
  const room = (options.width ?? 80) - (options.indent ?? 0);
  const lines = text.split('\n').flatMap((paragraph) => breakWords(paragraph, room));
  return lines.map((line) => `${' '.repeat(line === '' ? 0 : (options.indent ?? 0))}${line}\n`).join('');
}

function breakWords(paragraph: string, room: number): string[] {
  const lines = [''];
  for (const word of paragraph.split(' ').filter((part) => part !== '')) {
    const line = lines.at(-1) ?? '';
    if (line === '') lines[lines.length - 1] = word;
    else if (widthOf(line) + 1 + widthOf(word) <= room) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Terminal cells. A joined emoji may count too wide, never too narrow. */
export function widthOf(text: string): number {
  if (/^[\u0020-\u007e]*$/.test(text)) return text.length;
  return [...text].reduce((sum, char) => sum + (/\p{M}/u.test(char) ? 0 : WIDE.test(char) ? 2 : 1), 0);
}

const WIDE =
  /[\p{Emoji_Presentation}\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u;

/** One line that fits; "…" stands for the rest. */
export function cut(text: string, width: number): string {
  const shown = visible(text);
  if (widthOf(shown) <= width) return shown;
  let kept = '';
  let used = 0;
  for (const char of shown) {
    used += widthOf(char);
    if (used >= width) break;
    kept += char;
  }
  return `${kept}…`;
}

/** Quotes a word for a shell. Invisible characters become escapes, so the line is exact and safe to print. */
export function shellQuote(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  if (visible(word) === word) return `'${word.replaceAll("'", String.raw`'\''`)}'`;
  return `$'${[...word].map(escapeChar).join('')}'`;
}

export function shellLine(argv: readonly string[]): string {
  return argv.map(shellQuote).join(' ');
}

function escapeChar(char: string): string {
  if (char === "'" || char === '\\') return `\\${char}`;
  if (char === '\n') return '\\n';
  if (char === '\t') return '\\t';
  if (visible(char) === char) return char;
  return [...Buffer.from(char)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
}

/** "45s", "12m", "3h", "5d": one unit, rounded down. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** Shortens a path in the home directory to "~/…". */
export function shortPath(path: string, home: string): string {
  return path === home ? '~' : path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

function same(text: string): string {
  return text;
}

// An error may contain names from an agent, so its text is sanitized.

/** For standard error: text for a person, or one JSON document. */
export function errorOutput(error: AgsError, json: boolean): string {
  const { code, message, hint, details } = error;
  if (!json) return errorText(error);
  return `${JSON.stringify({ error: { code, message, ...(hint === undefined ? {} : { hint }), ...details } })}\n`;
}

export function errorText({ message, hint }: AgsError): string {
  return seen(`ags: ${message}\n${hint === undefined ? '' : `     ${hint.replaceAll('\n', '\n     ')}\n`}`);
}

export function seen(text: string): string {
  const sanitizer = createSanitizer();
  return sanitizer.push(text) + sanitizer.end();
}
