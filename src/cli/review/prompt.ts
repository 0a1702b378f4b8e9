// cli/review/prompt.ts: the prompts of a review: one file and one key at a time.
// Invariant: nothing is written before the last answer; Ctrl-C at any point leaves everything as it was.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import type { Change } from '../../protocol/changes.ts';
import { visible } from '../../lib/sanitize.ts';
import { readableSize } from '../../lib/units.ts';
import { readBlob } from '../../git/staging/staging.ts';
import type { Review } from '../../results/review.ts';
import type { Paint } from '../terminal/colour.ts';
import type { Answers, Asking, Decision, Key, Purpose } from './answers.ts';
import { chooseHunks, readParts, type Parts } from './choose-hunks.ts';
import { createPages, type Pages } from './pages.ts';
import { changeLine, paintDiff, readDiff, reasonLines } from './show-change.ts';
import { editFile } from '../terminal/text-editor.ts';
import type { Context } from '../verb.ts';

const HELP = `  y  take it          Y  take this and all that remain (never what can run code)
  n  not now          N  not now, for all that remain
  r  throw it away    R  throw this and all that remain away
  s  choose parts of it, one by one                p  go back to the file before
  d  show the diff, a screen at a time             D  show all of it, in your pager if you have one
  t  show it in your diff tool (git config diff.tool)
  e  edit it, then take it; for a conflict, edit both sides in one text
  q  quit and apply your answers so far            Ctrl-C  quit and change nothing`;

const MERGE_HELP = `  y  merge it         Y  merge this and all that remain (never what can run code)
  n  leave it out     N  leave this and all that remain out
  s  choose parts of it, one by one                p  go back to the file before
  d  show the diff, a screen at a time             D  show all of it, in your pager if you have one
  t  show it in your diff tool (git config diff.tool)
  q  leave the rest out                            Ctrl-C  quit and change nothing`;

/**
 * null: cancelled. With `earlier` answers to the same changes, it begins at the last of them, so that they can be changed.
 */
export async function askAboutChanges(
  review: Pick<Review, 'task' | 'compared'>,
  changes: readonly Change[],
  asking: Asking,
  earlier: readonly (Decision | undefined)[] = [],
): Promise<Answers | null> {
  const { paint } = asking;
  const out = (text: string): void => void asking.ctx.stderr.write(`${text}\n`);
  const decisions = [...earlier];
  for (let i = Math.max(0, earlier.length - 1); i < changes.length;) {
    const change = changes[i];
    if (change === undefined) break;
    const parts = await readParts(review, change);
    const diff = await readDiff(review, change);
    const size = diff.size === '' ? '' : `  ${paint('dim', diff.size)}`;
    const before =
      decisions[i] === undefined ? '' : `  ${paint('dim', `(so far: ${WORDS[decisions[i]?.kind ?? 'later']})`)}`;
    out(`\n${paint('dim', `[${i + 1}/${changes.length}]`)} ${changeLine(change, paint)}${size}${before}`);
    for (const line of reasonLines(change, paint)) out(line);
    const pages = createPages(paintDiff(diff.lines, paint), asking.ctx);
    // The prompt for a file that can run code comes after its diff.
    if (change.lane !== 'inert') pages.next(out, paint);
    const answer = await askAboutOne(review, change, { ...asking, pages, parts, first: i === 0 });
    if (answer === 'cancelled') return null;
    if (answer === 'left') return { decisions: decisions.slice(0, i), left: true };
    if (answer === 'back') i--;
    else if ('rest' in answer) {
      const { rest } = answer;
      for (const one of changes.slice(i)) decisions[i++] = { kind: rest === 'take' && !takable(one) ? 'later' : rest };
    } else decisions[i++] = answer;
  }
  return { decisions, left: false };
}

const WORDS: Readonly<Record<Decision['kind'], string>> = {
  take: 'yes',
  drop: 'throw away',
  later: 'no',
  edited: 'yes, edited',
  part: 'in part',
};

type Answer = Decision | { readonly rest: 'take' | 'drop' | 'later' } | 'back' | 'left' | 'cancelled';

async function askAboutOne(
  review: Pick<Review, 'task' | 'compared'>,
  change: Change,
  one: Asking & { readonly pages: Pages; readonly parts: Parts; readonly first: boolean },
): Promise<Answer> {
  const { ctx, paint, key, purpose, pages, parts } = one;
  const out = (text: string): void => void ctx.stderr.write(`${text}\n`);
  const conflicts = change.conflict === 'conflicts';
  const mayEdit = purpose === 'review' && review.compared.marked.has(change.path);
  const question = conflicts ? 'Conflict:' : purpose === 'merge' ? 'Merge it?' : 'Take it?';
  const keys = keysFor({ conflicts, mayEdit, purpose, several: parts.hunks.length > 1, first: one.first });
  for (;;) {
    ctx.stderr.write(`${paint('bold', question)} ${paint('dim', keys)} `);
    const answer = await key();
    out(answer === '\x03' ? '^C' : answer === '\r' || answer === '\n' ? '' : visible(answer));
    if (answer === '\x03') return 'cancelled';
    if (answer === 'q') return 'left';
    if (answer === 'n') return { kind: 'later' };
    if (answer === 'N') return { rest: 'later' };
    if (answer === 'p' && !one.first) return 'back';
    if (answer === 'Y') return { rest: 'take' };
    if (answer === 'r' && purpose === 'review') return { kind: 'drop' };
    if (answer === 'R' && purpose === 'review') return { rest: 'drop' };
    if (answer === 'p') out('  This is the first file.');
    else if (answer === 'd') pages.next(out, paint);
    else if (answer === 'D') await pages.all(out);
    else if (answer === 't') await showInOwnTool(ctx, review, change, out);
    else if (answer === '?') out(purpose === 'merge' ? MERGE_HELP : HELP);
    else if (conflicts && (answer === 'y' || answer === 's'))
      out(`  It changed on both sides. ${mayEdit ? 'Press e to combine them, or leave' : 'Leave'} it for later.`);
    else if (answer === 'y') return { kind: 'take' };
    else if (answer === 's') {
      const chosen = parts.why === null ? await chooseHunks(parts.hunks, one) : parts.why;
      if (chosen === 'cancelled') return chosen;
      if (typeof chosen === 'string') out(`  ${chosen}`);
      else if (chosen !== null) return chosen;
    } else if (answer === 'e' && purpose === 'review') {
      const text = await editChange(review, change, ctx);
      if (text !== null) return { kind: 'edited', text };
    } else out('  Unknown key; ? lists the keys.');
  }
}

/** They fit with the question on one line of 80 columns. */
function keysFor(which: {
  conflicts: boolean;
  mayEdit: boolean;
  purpose: Purpose;
  several: boolean;
  first: boolean;
}): string {
  const { conflicts, mayEdit, purpose, several, first } = which;
  if (conflicts && purpose === 'review')
    return `${mayEdit ? 'e edit both sides, ' : ''}n later, r throw away, d diff, q leave, ? more >`;
  const decide = conflicts ? ['n no'] : purpose === 'merge' ? ['y yes', 'n no'] : ['y yes', 'n later', 'r throw away'];
  const more = several && !conflicts ? ['s parts'] : purpose === 'review' ? ['e edit'] : [];
  return `${[...decide, ...more, 'd diff', ...(first ? ['q leave'] : ['p back'])].join(', ')}, ? more >`;
}

async function showInOwnTool(
  ctx: Context,
  review: Pick<Review, 'task' | 'compared'>,
  change: Change,
  out: (text: string) => void,
): Promise<void> {
  try {
    const { findDiffTool, showInTool } = await import('./diff-tool.ts');
    await showInTool(ctx, await findDiffTool(ctx), review, [change]);
  } catch (error) {
    if (!(error instanceof AgsError)) throw error;
    out(`  ${error.message}${error.hint === undefined ? '' : ` ${error.hint}`}`);
  }
}

/** One prompt for all git-ignored files. null: cancelled. */
export async function askAboutIgnored(
  review: Review,
  ctx: Context,
  paint: Paint,
  key: Key,
): Promise<'discard' | 'review' | 'later' | 'back' | null> {
  const { files, bytes } = review.compared.changeSet.ignored;
  ctx.stderr.write(
    `\n${files} file${files === 1 ? '' : 's'} that git ignores (${readableSize(bytes)}): ${paint('bold', 'r throw all away, i review each, n not now?')} `,
  );
  for (;;) {
    const answer = await key();
    if (['r', 'R', 'i', 'n', 'p', 'q', '\x03'].includes(answer)) {
      ctx.stderr.write(`${answer === '\x03' ? '^C' : answer}\n`);
      if (answer === '\x03') return null;
      if (answer === 'p') return 'back';
      return answer === 'i' ? 'review' : answer === 'r' || answer === 'R' ? 'discard' : 'later';
    }
  }
}

function takable(change: Change): boolean {
  return change.lane === 'inert' && change.conflict !== 'conflicts';
}

/** null: nothing to take, and the user has seen the reason. */
async function editChange(
  review: Pick<Review, 'task' | 'compared'>,
  change: Change,
  ctx: Context,
): Promise<Buffer | null> {
  const tell = (text: string): null => {
    ctx.stderr.write(`  ${text}\n`);
    return null;
  };
  if (change.after === null || change.after.mode === '120000') return tell('There is no text to edit.');
  const { marked, merged } = review.compared;
  const text =
    change.conflict === 'conflicts'
      ? marked.get(change.path)
      : (merged.get(change.path) ?? (await readBlob(review.task.paths.staging, change.after.oid)));
  if (text === undefined) return tell('The two sides cannot be combined into one text. Leave it, or throw it away.');
  if (text.includes(0)) return tell('There is no text to edit.');
  const dir = mkdtempSync(join(review.task.paths.root, 'edit-'));
  try {
    const file = join(dir, basename(change.path));
    writeFileSync(file, text, { mode: 0o600 });
    const problem = editFile(ctx, file);
    if (problem !== null) return tell(`${problem} Nothing was taken.`);
    const edited = readFileSync(file);
    if (edited.equals(text)) return tell('Nothing was edited, so nothing was taken.');
    if (change.conflict === 'conflicts' && /^(<{7} yours|>{7} sandbox)$/m.test(edited.toString('latin1')))
      return tell('The text still has conflict markers, so nothing was taken.');
    return edited;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Reads one key at a time from the terminal. */
export function openKeys(ctx: Context): { key: Key; close(): void } {
  if (!ctx.stdin.isTTY)
    throw new AgsError('usage.no-terminal', 'ags cannot ask: there is no terminal.', {
      hint: 'Use --accept <path>, --accept-all, --discard-all or --json.',
    });
  const waiting: ((key: string) => void)[] = [];
  const typed: string[] = [];
  const onData = (data: Buffer): void => {
    // An arrow or function key arrives as several characters and counts as one key.
    const text = data.toString('utf8');
    for (const typedChar of text.startsWith('\x1b') ? ['\x1b'] : text) {
      // Ctrl-D cancels as Ctrl-C does.
      const char = typedChar === '\x04' ? '\x03' : typedChar;
      const next = waiting.shift();
      if (next === undefined) typed.push(char);
      else next(char);
    }
  };
  ctx.stdin.on('data', onData);
  const raw = (on: boolean): void => void ctx.stdin.setRawMode(on);
  return {
    key: () =>
      new Promise((resolve) => {
        const ready = typed.shift();
        if (ready !== undefined) return resolve(ready);
        raw(true);
        ctx.stdin.resume();
        waiting.push((char) => {
          raw(false);
          ctx.stdin.pause();
          resolve(char);
        });
      }),
    close() {
      ctx.stdin.off('data', onData);
      raw(false);
      ctx.stdin.pause();
    },
  };
}
