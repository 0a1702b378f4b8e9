// cli/show-change.ts: a change as a person reads it: one line, the reasons, the diff. Everything an agent may have written
// goes through the sanitiser first; colours are added afterwards, by us.
import type { Change } from '../protocol/changes.ts';
import { createSanitizer, visible } from '../lib/sanitize.ts';
import { formatSize } from '../lib/units.ts';
import { diffBlobs } from '../git/staging.ts';
import type { Review } from '../tasks/review.ts';
import type { Paint } from './colour.ts';

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

function modeNote({ before, after, kind }: Change): string {
  if (before !== null && after !== null && before.mode !== after.mode) return `  (${before.mode} -> ${after.mode})`;
  return kind === 'new' && after?.mode === '100755' ? '  (executable)' : '';
}

export function reasonLines(change: Change, paint: Paint): string[] {
  return change.reasons.map((reason) =>
    paint(change.lane === 'inert' && change.conflict === 'none' ? 'dim' : 'yellow', `          ${visible(reason)}`),
  );
}

const DIFF_LIMIT = 2 * 1024 * 1024;

export async function diffLines(
  review: Pick<Review, 'task' | 'compared'>,
  change: Change,
  paint: Paint,
): Promise<string[]> {
  const { before, after } = change;
  const link = async (side: Change['after'], sign: '-' | '+'): Promise<string[]> =>
    side?.mode === '120000' ? [tint(`${sign} link to ${visible(await blobText(review, side.oid))}`, paint)] : [];
  const links = [...(await link(before, '-')), ...(await link(after, '+'))];
  if (after === null ? links.length > 0 : after.mode === '120000') return links;
  if ((before?.bytes ?? 0) > DIFF_LIMIT || (after?.bytes ?? 0) > DIFF_LIMIT)
    return [`  too large to show: ${formatSize(before?.bytes ?? 0)} before, ${formatSize(after?.bytes ?? 0)} after`];
  const text = await diffBlobs(
    review.task.paths.staging,
    before?.mode === '120000' ? null : (before?.oid ?? null),
    after?.oid ?? null,
  );
  if (text.includes('\0'))
    return [`  binary: ${formatSize(before?.bytes ?? 0)} before, ${formatSize(after?.bytes ?? 0)} after`];
  const sanitizer = createSanitizer({ maxLine: 2000 });
  const clean = sanitizer.push(text) + sanitizer.end();
  const lines = clean.replace(/\n$/, '').split('\n');
  return [...links, ...lines.map((line) => tint(line, paint))];
}

async function blobText(review: Pick<Review, 'task'>, oid: string): Promise<string> {
  const { readBlob } = await import('../git/staging.ts');
  return (await readBlob(review.task.paths.staging, oid)).toString('utf8');
}

function tint(line: string, paint: Paint): string {
  if (line.startsWith('@@')) return paint('cyan', line);
  if (line.startsWith('+')) return paint('green', line);
  if (line.startsWith('-')) return paint('red', line);
  return line;
}
