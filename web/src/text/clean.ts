// web/src/text/clean.ts: sanitizes text from agents. All such text passes through here before it is shown.
// Invariant: control and bidirectional characters become visible, and long lines are cut.
// The page inserts the result only as text nodes, never as markup.
import { createSanitizer, visible } from '../../../src/lib/sanitize.ts';

const LONGEST_LINE = 4096;
const LONGEST_TEXT = 400_000;

/** Multi-line text. */
export function clean(text: string): string {
  const given = text.length > LONGEST_TEXT ? text.slice(0, LONGEST_TEXT) : text;
  const sanitizer = createSanitizer({ maxLine: LONGEST_LINE });
  const shown = sanitizer.push(given) + sanitizer.end();
  return given === text ? shown : `${shown}\n[${text.length - given.length} more characters cut]`;
}

/** One line of bounded length: a name, a path, a host, a command. */
export function cleanLine(text: string, most = 500): string {
  const line = visible(text.length > most ? text.slice(0, most) : text);
  return text.length > most ? `${line}…` : line;
}
