// cli/review/prompt.ts: the prompts of a review: one file and one key at a time.
// Invariant: nothing is written before the last answer; Ctrl-C at any point leaves everything as it was.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import type { Change } from '../../protocol/changes.ts';
import { visible } from '../../lib/sanitize.ts';
import { formatSize } from '../../lib/units.ts';
import { readBlob } from '../../git/staging/staging.ts';
import type { Review } from '../../results/review.ts';
import type { Paint } from '../terminal/colour.ts';
import { widthOf } from '../terminal/format.ts';
import { changeLine, paintDiff, readDiff, reasonLines } from './show-change.ts';
import { editFile } from '../terminal/text-editor.ts';
import type { Context } from '../verb.ts';

export interface Answers {
  readonly take: readonly Change[];
  readonly drop: readonly Change[];
  readonly edited: ReadonlyMap<string, Buffer>;
  /** The user left the review early. */
  readonly left: boolean;
}

export type Key = () => Promise<string>;

// Both fit on one line of 80 columns.
const KEYS = 'y yes, n later, r throw away, d diff, e edit, q leave, ? more >';
const CONFLICT_KEYS = 'n later, r throw away, d diff, q leave, ? more >';

const HELP = `  y  take it          Y  take this and all that remain (never what can run code)
  n  not now          N  not now, for all that remain
  r  throw it away    R  throw this and all that remain away
  d  show the diff, a screen at a time             D  show all of it
  e  edit it, then take it; for a conflict, edit both sides in one text
  q  quit and apply your answers so far            Ctrl-C  quit and change nothing`;

/** null: cancelled. */
export async function askAboutChanges(
  review: Review,
  changes: readonly Change[],
  ctx: Context,
  paint: Paint,
  key: Key,
): Promise<Answers | null> {
  const out = (text: string): void => void ctx.stderr.write(`${text}\n`);
  const take: Change[] = [];
  const drop: Change[] = [];
  const edited = new Map<string, Buffer>();
  let rest: 'Y' | 'R' | 'N' | null = null;
  for (const [i, change] of changes.entries()) {
    if (rest !== null) {
      if (rest === 'Y' && takable(change)) take.push(change);
      if (rest === 'R') drop.push(change);
      continue;
    }
    const diff = await readDiff(review, change);
    const size = diff.size === '' ? '' : `  ${paint('dim', diff.size)}`;
    out(`\n${paint('dim', `[${i + 1}/${changes.length}]`)} ${changeLine(change, paint)}${size}`);
    for (const line of reasonLines(change, paint)) out(line);
    const pages = createPages(paintDiff(diff.lines, paint), ctx);
    // The prompt for a file that can run code comes after its diff.
    if (change.lane !== 'inert') pages.next(out, paint);
    const conflicts = change.conflict === 'conflicts';
    const mayEdit = review.compared.marked.has(change.path);
    const keys = conflicts ? `${mayEdit ? 'e edit both sides, ' : ''}${CONFLICT_KEYS}` : KEYS;
    for (;;) {
      ctx.stderr.write(`${paint('bold', conflicts ? 'Conflict:' : 'Take it?')} ${paint('dim', keys)} `);
      const answer = await key();
      out(answer === '\x03' ? '^C' : answer === '\r' || answer === '\n' ? '' : visible(answer));
      if (answer === '\x03') return null;
      if (answer === 'q') return { take, drop, edited, left: true };
      if (answer === 'd') pages.next(out, paint);
      else if (answer === 'D') pages.all(out);
      else if (answer === '?') out(HELP);
      else if (answer === 'y' && conflicts)
        out(`  It changed on both sides. ${mayEdit ? 'Press e to combine them, or leave' : 'Leave'} it for later.`);
      else if (answer === 'e') {
        const text = await editChange(review, change, ctx);
        if (text === null) continue;
        edited.set(change.path, text);
        take.push(change);
        break;
      } else if (answer === 'y' || answer === 'r' || answer === 'n') {
        if (answer === 'y') take.push(change);
        if (answer === 'r') drop.push(change);
        break;
      } else if (answer === 'Y' || answer === 'R' || answer === 'N') {
        rest = answer;
        if (answer === 'Y' && takable(change)) take.push(change);
        if (answer === 'R') drop.push(change);
        break;
      } else out('  Unknown key; ? lists the keys.');
    }
  }
  return { take, drop, edited, left: false };
}

/** One prompt for all git-ignored files. null: cancelled. */
export async function askAboutIgnored(
  review: Review,
  ctx: Context,
  paint: Paint,
  key: Key,
): Promise<'discard' | 'review' | 'later' | null> {
  const { files, bytes } = review.compared.changeSet.ignored;
  ctx.stderr.write(
    `\n${files} file${files === 1 ? '' : 's'} that git ignores (${formatSize(bytes)}): ${paint('bold', 'r throw all away, i review each, n not now?')} `,
  );
  for (;;) {
    const answer = await key();
    if (answer === 'r' || answer === 'R' || answer === 'i' || answer === 'n' || answer === 'q' || answer === '\x03') {
      ctx.stderr.write(`${answer === '\x03' ? '^C' : answer}\n`);
      if (answer === '\x03') return null;
      return answer === 'i' ? 'review' : answer === 'r' || answer === 'R' ? 'discard' : 'later';
    }
  }
}

function takable(change: Change): boolean {
  return change.lane === 'inert' && change.conflict !== 'conflicts';
}

interface Pages {
  /** Shows one screen; after the last screen it starts again. */
  next(out: (text: string) => void, paint: Paint): void;
  all(out: (text: string) => void): void;
}

function createPages(lines: readonly string[], ctx: Context): Pages {
  let from = 0;
  return {
    next(out, paint) {
      const to = endOfPage(lines, from, { columns: ctx.stderr.columns || 80, rows: (ctx.stderr.rows || 24) - 4 });
      for (const line of lines.slice(from, to)) out(line);
      if (to < lines.length) out(paint('dim', `  ... ${lines.length - to} more lines: d shows the next, D shows all`));
      from = to < lines.length ? to : 0;
    },
    all(out) {
      for (const line of lines) out(line);
      from = 0;
    },
  };
}

/** At least one line, then as many as fit on the screen; a long line takes several rows. */
function endOfPage(lines: readonly string[], from: number, screen: { columns: number; rows: number }): number {
  let rows = 0;
  for (let at = from; at < lines.length; at++) {
    rows += Math.max(1, Math.ceil(widthOf((lines[at] ?? '').replaceAll(/\x1b\[\d+m/g, '')) / screen.columns));
    if (rows > screen.rows && at > from) return at;
  }
  return lines.length;
}

/** null: nothing to take, and the user has seen the reason. */
async function editChange(review: Review, change: Change, ctx: Context): Promise<Buffer | null> {
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
