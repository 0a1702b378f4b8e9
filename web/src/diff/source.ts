// web/src/diff/source.ts: turns a file's patch and texts into diff lines to display.
// Invariant: an agent wrote these texts. Invisible characters are made visible and long lines are cut before anything else reads
// them. The number of lines never changes, so line numbers stay correct.
import { parseDiffFromFile, processFile } from '@pierre/diffs';
import type { FileDiffMetadata } from '@pierre/diffs';
import { createSanitizer } from '../../../src/lib/sanitize.ts';

export type Side = 'old' | 'new';

/** One line of the diff, in the order of the unified layout. */
export interface DiffLine {
  readonly side: Side;
  readonly line: number;
  readonly kind: 'same' | 'added' | 'removed';
  readonly hunk: number;
  readonly text: string;
}

export interface DiffHunk {
  readonly n: number;
  /** The line above the first change; 0 if the file starts with the change. */
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
/** Up to this size the whole file is highlighted; above it, only the changed hunks. */
const WHOLE_CHARACTERS = 200_000;
/** Matching similar lines is too slow above this size. */
const MATCHED_CHARACTERS = 100_000;

/** `exact`: the patch turns `before` into `after`, so the full texts can be highlighted and expanded. */
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
  if (parsed === undefined) throw new Error('the diff could not be parsed');
  return { parsed, hunks: parsed.hunks.map(hunkOf), notes: endings(patch.slice(at)) };
}

/** Compares two texts without a patch, for one attempt against another. */
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

export function linesOf({ parsed }: DiffText): DiffLine[] {
  const lines: DiffLine[] = [];
  for (const [hunk, { hunkContent, additionStart, deletionStart }] of parsed.hunks.entries()) {
    let [old, added] = [deletionStart, additionStart];
    const push = (side: Side, kind: DiffLine['kind'], count: number, index: number): void => {
      const [first, texts] = side === 'old' ? [old, parsed.deletionLines] : [added, parsed.additionLines];
      for (let i = 0; i < count; i += 1)
        lines.push({ side, line: first + i, kind, hunk, text: (texts[index + i] ?? '').replace(/\n$/, '') });
    };
    for (const part of hunkContent) {
      if (part.type === 'context') push('new', 'same', part.lines, part.additionLineIndex);
      else {
        push('old', 'removed', part.deletions, part.deletionLineIndex);
        push('new', 'added', part.additions, part.additionLineIndex);
      }
      old += part.type === 'context' ? part.lines : part.deletions;
      added += part.type === 'context' ? part.lines : part.additions;
    }
  }
  return lines;
}

/** Most files are plain ASCII and need no sanitizing. */
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

/** The library uses this name only to pick a language; the page displays the path itself. */
function safeName(path: string): string {
  const base = path.slice(path.lastIndexOf('/') + 1).replaceAll(/[^\w.-]/g, '_');
  return base.slice(-80) || 'file';
}

function endings(changed: string): string[] {
  const ends = (sign: string): boolean => new RegExp(`^\\${sign}.*\\r$`, 'm').test(changed);
  const [removed, added] = [ends('-'), ends('+')];
  if (removed === added) return [];
  return [added ? 'Line endings are now CRLF (Windows).' : 'Line endings are no longer CRLF (Windows).'];
}
