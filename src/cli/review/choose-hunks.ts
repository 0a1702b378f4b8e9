// cli/review/choose-hunks.ts: asks about the parts (hunks) of one changed file, one by one.
// Invariant: a part is named by its number; results/change-set.ts builds the text from the chosen ones, never from what is shown.
import type { Change } from '../../protocol/changes.ts';
import { createSanitizer, visible } from '../../lib/sanitize.ts';
import { storeBlob } from '../../git/staging/staging.ts';
import { readFileText } from '../../results/change-set.ts';
import type { Review } from '../../results/review.ts';
import type { Hunk } from '../../review/hunks.ts';
import type { Paint } from '../terminal/colour.ts';
import type { Asking, Decision } from './answers.ts';
import { paintDiff } from './show-change.ts';

export interface Parts {
  readonly hunks: readonly Hunk[];
  /** Why the file cannot be taken in parts; null if it can. */
  readonly why: string | null;
}

const LIMIT = 2 * 1024 * 1024;

export async function readParts(review: Pick<Review, 'task' | 'compared'>, change: Change): Promise<Parts> {
  const whole = (why: string): Parts => ({ hunks: [], why: `${why} It is taken whole or not at all.` });
  if ([change.before?.mode, change.after?.mode].includes('120000')) return whole('It is a link.');
  const { staging } = review.task.paths;
  const merged = review.compared.merged.get(change.path);
  const after = merged === undefined ? (change.after?.oid ?? null) : await storeBlob(staging, merged);
  const { hunks, why } = await readFileText(review.task, { before: change.before?.oid ?? null, after }, LIMIT);
  if (hunks.length > 1) return { hunks, why: null };
  return whole(hunks.length === 1 ? 'It has one part only.' : (why ?? 'Its text has not changed.'));
}

const KEYS = 'y yes, n later, r throw away, a all that remain, p back, ? more >';
const MERGE_KEYS = 'y yes, n no, a all that remain, p back, ? more >';

const HELP = `  y  take this part         a  take this one and all that remain
  n  not now                l  not now, for this one and all that remain
  r  throw it away          p  go back to the part before, from the first one to the file
  q  forget these answers and go back to the file`;

const MERGE_HELP = `  y  merge this part        a  merge this one and all that remain
  n  leave it out           l  leave this one and all that remain out
  p  go back to the part before, from the first one to the file
  q  forget these answers and go back to the file`;

type OfHunk = 'take' | 'later' | 'drop';

/** null: back to the file, without a decision. */
export async function chooseHunks(
  hunks: readonly Hunk[],
  { ctx, paint, key, purpose }: Asking,
): Promise<Decision | 'cancelled' | null> {
  const out = (text: string): void => void ctx.stderr.write(`${text}\n`);
  const chosen: OfHunk[] = [];
  for (let i = 0; i < hunks.length;) {
    const hunk = hunks[i];
    if (hunk === undefined) break;
    out(paint('dim', `  part ${i + 1} of ${hunks.length}`));
    for (const line of hunkLines(hunk, paint)) out(line);
    for (let asking = true; asking;) {
      ctx.stderr.write(
        `${paint('bold', purpose === 'merge' ? 'Merge this part?' : 'This part?')} ${paint('dim', purpose === 'merge' ? MERGE_KEYS : KEYS)} `,
      );
      const answer = await key();
      out(answer === '\x03' ? '^C' : answer === '\r' || answer === '\n' ? '' : visible(answer));
      asking = false;
      if (answer === '\x03') return 'cancelled';
      if (answer === 'q' || (answer === 'p' && i === 0)) return null;
      if (answer === 'y') chosen[i++] = 'take';
      else if (answer === 'n') chosen[i++] = 'later';
      else if (answer === 'r' && purpose === 'review') chosen[i++] = 'drop';
      else if (answer === 'p') i--;
      else if (answer === 'a') while (i < hunks.length) chosen[i++] = 'take';
      else if (answer === 'l') while (i < hunks.length) chosen[i++] = 'later';
      else {
        asking = true;
        out(answer !== '?' ? '  Unknown key; ? lists the keys.' : purpose === 'merge' ? MERGE_HELP : HELP);
      }
    }
  }
  return decisionOf(chosen);
}

function decisionOf(chosen: readonly OfHunk[]): Decision {
  const [first = 'later'] = chosen;
  if (chosen.every((one) => one === first)) return { kind: first };
  const hunks = chosen.flatMap((one, n) => (one === 'take' ? [n] : []));
  // Some are thrown away and others left for later: nothing can be written, and the whole file stays for later.
  if (hunks.length === 0) return { kind: 'later' };
  return { kind: 'part', hunks, settled: !chosen.includes('later') };
}

function hunkLines({ header, lines }: Hunk, paint: Paint): string[] {
  const sanitizer = createSanitizer({ maxLine: 2000 });
  const text = Buffer.from([`${header}\n`, ...lines].join(''), 'latin1').toString('utf8');
  const clean = (sanitizer.push(text) + sanitizer.end()).replace(/\n$/, '').split('\n');
  return paintDiff(clean, paint);
}
