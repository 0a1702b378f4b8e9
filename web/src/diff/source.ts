// web/src/diff/source.ts: from what the server says about a file to lines that can be shown.
// Invariant: texts are an agent's. Before anything sees them, what cannot be seen in them is made visible, endless lines are cut,
// and the number of lines stays what it was, so that lines keep their numbers.
import { parseDiffFromFile, processFile } from '@pierre/diffs';
import type { FileDiffMetadata } from '@pierre/diffs';
import { createSanitizer } from '../../../src/lib/sanitize.ts';

export type Side = 'old' | 'new';

/** A line of the diff in the order in which the unified layout shows them. */
export interface DiffLine {
  readonly side: Side;
  readonly line: number;
  readonly kind: 'same' | 'added' | 'removed';
  readonly hunk: number;
  readonly text: string;
}

export interface DiffHunk {
  readonly n: number;
  /** The line above its first change; 0: the change is the first of the file. */
  readonly above: number;
  readonly first: { readonly side: Side; readonly line: number };
  readonly added: number;
  readonly removed: number;
}

export interface DiffText {
  readonly parsed: FileDiffMetadata;
  readonly hunks: readonly DiffHunk[];
  readonly notes: readonly string[];
}

interface Given {
  readonly before: string | null;
  readonly after: string | null;
  readonly patch: string;
}

const LONGEST_LINE = 2000;
/** Colours come from the whole file up to this size; above it, from what changed. */
const WHOLE_CHARACTERS = 200_000;
/** Looking for lines that resemble each other is only worth it while there are few. */
const MATCHED_CHARACTERS = 100_000;

/** `exact`: the patch leads from the one text to the other, so that colours can come from them and more lines be shown. */
export function readDiff(key: string, path: string, { before, after, patch }: Given, exact = true): DiffText {
  const at = patch.startsWith('@@ ') ? 0 : patch.indexOf('\n@@ ') + 1;
  const changed = at === 0 && !patch.startsWith('@@ ') ? '' : shownSource(patch.slice(at));
  const name = safeName(path);
  const kind = before === null ? 'new file mode 100644\n' : after === null ? 'deleted file mode 100644\n' : '';
  const whole =
    exact && before !== null && after !== null && before.length + after.length <= 2 * WHOLE_CHARACTERS
      ? { oldFile: { name, contents: shownSource(before) }, newFile: { name, contents: shownSource(after) } }
      : {};
  const parsed = processFile(`diff --git a/${name} b/${name}\n${kind}--- a/${name}\n+++ b/${name}\n${changed}`, {
    cacheKey: key,
    isGitDiff: true,
    disableLineMatching: changed.length > MATCHED_CHARACTERS,
    ...whole,
  });
  if (parsed === undefined) throw new Error('the difference could not be read');
  return { parsed, hunks: parsed.hunks.map(hunkOf), notes: endings(patch.slice(at)) };
}

/** Two texts against each other, without a patch: one attempt against another. */
export function compareTexts(key: string, path: string, a: string, b: string): DiffText {
  const name = safeName(path);
  const side = (contents: string, which: string): { name: string; contents: string; cacheKey: string } => ({
    name,
    contents: shownSource(contents),
    cacheKey: `${key}:${which}`,
  });
  const parsed = parseDiffFromFile(side(a, 'a'), side(b, 'b'), { context: 3, disableLineMatching: true });
  return { parsed, hunks: parsed.hunks.map(hunkOf), notes: [] };
}

function hunkOf(
  { hunkContent, additionLines, deletionLines, ...hunk }: FileDiffMetadata['hunks'][number],
  n: number,
): DiffHunk {
  let [old, added] = [hunk.deletionStart, hunk.additionStart];
  for (const part of hunkContent) {
    if (part.type === 'change')
      return {
        n,
        above: added - 1,
        first: part.additions > 0 ? { side: 'new', line: added } : { side: 'old', line: old },
        added: additionLines,
        removed: deletionLines,
      };
    old += part.lines;
    added += part.lines;
  }
  return { n, above: 0, first: { side: 'new', line: added }, added: 0, removed: 0 };
}

/** Every line of the hunks. */
export function linesOf({ parsed }: DiffText): DiffLine[] {
  const lines: DiffLine[] = [];
  const text = (of: readonly string[], index: number): string => (of[index] ?? '').replace(/\n$/, '');
  for (const [hunk, { hunkContent, additionStart, deletionStart }] of parsed.hunks.entries()) {
    let [old, added] = [deletionStart, additionStart];
    for (const part of hunkContent) {
      if (part.type === 'context') {
        for (let i = 0; i < part.lines; i += 1)
          lines.push({
            side: 'new',
            line: added + i,
            kind: 'same',
            hunk,
            text: text(parsed.additionLines, part.additionLineIndex + i),
          });
        old += part.lines;
        added += part.lines;
        continue;
      }
      for (let i = 0; i < part.deletions; i += 1)
        lines.push({
          side: 'old',
          line: old + i,
          kind: 'removed',
          hunk,
          text: text(parsed.deletionLines, part.deletionLineIndex + i),
        });
      for (let i = 0; i < part.additions; i += 1)
        lines.push({
          side: 'new',
          line: added + i,
          kind: 'added',
          hunk,
          text: text(parsed.additionLines, part.additionLineIndex + i),
        });
      old += part.deletions;
      added += part.additions;
    }
  }
  return lines;
}

/** Plain letters need no closer look; most files are nothing else. */
const PLAIN = /^[\n\t -~]*$/;

export function shownSource(text: string): string {
  if (PLAIN.test(text) && !longLine(text)) return text;
  const sanitizer = createSanitizer({ maxLine: LONGEST_LINE });
  return sanitizer.push(text) + sanitizer.end();
}

function longLine(text: string): boolean {
  for (let at = 0; at < text.length;) {
    const end = text.indexOf('\n', at);
    if ((end < 0 ? text.length : end) - at > LONGEST_LINE) return true;
    if (end < 0) return false;
    at = end + 1;
  }
  return false;
}

/** For the choice of a language alone; the path itself is shown by us. */
function safeName(path: string): string {
  const base = path.slice(path.lastIndexOf('/') + 1).replaceAll(/[^\w.-]/g, '_');
  return base.slice(-80) || 'file';
}

function endings(changed: string): string[] {
  const ends = (sign: string): boolean => new RegExp(`^\\${sign}.*\\r$`, 'm').test(changed);
  const [removed, added] = [ends('-'), ends('+')];
  if (removed === added) return [];
  return [
    added ? 'Lines now end the way Windows ends them (CRLF).' : 'Lines no longer end the way Windows ends them (CRLF).',
  ];
}
