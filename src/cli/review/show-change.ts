// cli/review/show-change.ts: changes as text: a line, the reasons, the diff, the line counts.
// Invariant: all text from an agent is sanitized first; colours are added after that.
import type { Change } from '../../protocol/changes.ts';
import { createSanitizer, visible } from '../../lib/sanitize.ts';
import { readableSize, count } from '../../lib/units.ts';
import { diffBlobs, readBlob, storeBlob } from '../../git/staging/staging.ts';
import { countShown, shownOf } from '../../results/change-set.ts';
import type { Review } from '../../results/review.ts';
import type { Paint } from '../terminal/colour.ts';

const WORDS: Readonly<Record<Change['kind'], string>> = {
  new: 'NEW',
  modified: 'MODIFIED',
  deleted: 'DELETED',
  renamed: 'RENAMED',
  mode: 'MODE',
  symlink: 'SYMLINK',
  type: 'TYPE',
};
const LANES: Readonly<Record<Change['lane'], string>> = { host: 'runs on your machine', ci: 'runs in CI', inert: '' };

export function changeLine(change: Change, paint: Paint): string {
  const word = WORDS[change.kind].padEnd(8);
  const tinted =
    change.kind === 'deleted' ? paint('red', word) : change.kind === 'new' ? paint('green', word) : paint('cyan', word);
  const name = change.from === undefined ? visible(change.path) : `${visible(change.from)} -> ${visible(change.path)}`;
  const lane = LANES[change.lane] === '' ? '' : `  ${paint('yellow', `! ${LANES[change.lane]}`)}`;
  const conflict =
    change.conflict === 'conflicts'
      ? `  ${paint('red', 'CONFLICT')}`
      : change.conflict === 'merges'
        ? `  ${paint('yellow', 'merged')}`
        : '';
  return `${tinted}  ${name}${modeNote(change)}${lane}${conflict}`;
}

const MODES = { '100644': 'a file', '100755': 'an executable file', '120000': 'a link' } as const;

function modeNote({ before, after, kind }: Change): string {
  if (before === null || after === null || before.mode === after.mode)
    return kind === 'new' && after?.mode === '100755' ? '  (executable)' : '';
  if (before.mode === '120000' || after.mode === '120000')
    return `  (from ${MODES[before.mode]} to ${MODES[after.mode]})`;
  return after.mode === '100755' ? '  (now executable)' : '  (no longer executable)';
}

export function reasonLines(change: Change, paint: Paint): string[] {
  return change.reasons.map((reason) =>
    paint(change.lane === 'inert' && change.conflict === 'none' ? 'dim' : 'yellow', `          ${visible(reason)}`),
  );
}

const DIFF_LIMIT = 2 * 1024 * 1024;

export interface Diff {
  /** Safe to show, without colour. */
  readonly lines: readonly string[];
  /** "+3 -1", or why there is no line count. */
  readonly size: string;
}

/** Compares the user's current file with the text that would be taken; for a merge, with the merged text. */
export async function readDiff(review: Pick<Review, 'task' | 'compared'>, change: Change): Promise<Diff> {
  const { before, after } = change;
  const link = async (side: Change['after'], sign: '-' | '+'): Promise<string[]> =>
    side?.mode === '120000' ? [`${sign} link to ${visible(await blobText(review, side.oid))}`] : [];
  const links = [...(await link(before, '-')), ...(await link(after, '+'))];
  if (after === null ? links.length > 0 : after.mode === '120000') return { lines: links, size: '' };
  const sizes = `${readableSize(before?.bytes ?? 0)} before, ${readableSize(after?.bytes ?? 0)} after`;
  if ((before?.bytes ?? 0) > DIFF_LIMIT || (after?.bytes ?? 0) > DIFF_LIMIT)
    return { lines: [`  too large to show: ${sizes}`], size: 'large' };
  const { staging } = review.task.paths;
  const merged = review.compared.merged.get(change.path);
  const text = await diffBlobs(
    staging,
    before?.mode === '120000' ? null : (before?.oid ?? null),
    merged === undefined ? (after?.oid ?? null) : await storeBlob(staging, merged),
  );
  if (text.includes('\0')) return { lines: [`  binary: ${sizes}`], size: 'binary' };
  if (text === '') return { lines: [...links, sameContent(change)], size: '' };
  const sanitizer = createSanitizer({ maxLine: 2000 });
  const clean = sanitizer.push(text) + sanitizer.end();
  const lines = clean.replace(/\n$/, '').split('\n');
  const count = (sign: string): string => {
    const some = lines.filter((line) => line.startsWith(sign)).length;
    return some === 0 ? '' : `${sign}${some}`;
  };
  return { lines: [...links, ...lines], size: `${count('+')} ${count('-')}`.trim() };
}

export function paintDiff(lines: readonly string[], paint: Paint): string[] {
  return lines.map((line) => tint(line, paint));
}

function sameContent({ kind, after }: Change): string {
  if (kind === 'renamed') return '  only the name changed';
  if (kind === 'mode') return '  only the permission changed';
  return after === null ? '  it was empty' : '  it is empty';
}

async function blobText(review: Pick<Review, 'task'>, oid: string): Promise<string> {
  return (await readBlob(review.task.paths.staging, oid)).toString('utf8');
}

function tint(line: string, paint: Paint): string {
  if (line.startsWith('@@')) return paint('cyan', line);
  if (line.startsWith('+')) return paint('green', line);
  if (line.startsWith('-')) return paint('red', line);
  return line;
}

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
