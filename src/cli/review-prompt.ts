// cli/review-prompt.ts: the questions of a review, file by file, one key each.
// Invariant: nothing is written before the last answer; Ctrl-C at any point leaves everything as it was.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { Change } from '../protocol/changes.ts';
import { formatSize } from '../lib/units.ts';
import { readBlob } from '../git/staging.ts';
import type { Review } from '../tasks/review.ts';
import type { Paint } from './colour.ts';
import { changeLine, diffLines, reasonLines } from './show-change.ts';
import type { Context } from './verb.ts';

export interface Answers {
  readonly take: readonly Change[];
  readonly drop: readonly Change[];
  readonly edited: ReadonlyMap<string, Buffer>;
  /** Nothing more is to be asked. */
  readonly left: boolean;
}

export type Key = () => Promise<string>;

const KEYS = 'y yes, r throw away, n later, d diff, e edit, Y R N all the rest, q leave, ? >';
const CONFLICT_KEYS = 'r throw away, n later, d diff, R N all the rest, q leave, ? >';

const HELP = `  y  take it          Y  take this and all that remain (never what can run code)
  r  throw it away    R  throw this and all that remain away
  n  not now          N  not now, for all that remain
  d  show the diff    e  edit it, then take it
  q  leave; what you have answered so far is done`;

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
    out(`\n${paint('dim', `[${i + 1}/${changes.length}]`)} ${changeLine(change, paint)}`);
    for (const line of reasonLines(change, paint)) out(line);
    // What can run code is shown before it is asked about.
    if (change.lane !== 'inert') await showDiff(review, change, paint, out, 60);
    for (;;) {
      ctx.stderr.write(
        `${paint('bold', change.conflict === 'conflicts' ? 'Conflict:' : 'Take it?')} ${paint('dim', change.conflict === 'conflicts' ? CONFLICT_KEYS : KEYS)} `,
      );
      const answer = await key();
      out(answer === '\x03' ? '^C' : answer);
      if (answer === '\x03') return null;
      if (answer === 'q') return { take, drop, edited, left: true };
      if (answer === 'd') await showDiff(review, change, paint, out, Infinity);
      else if (answer === '?') out(HELP);
      else if ((answer === 'y' || answer === 'e') && change.conflict === 'conflicts')
        out('  It changed on both sides. Take it by hand (d shows it), or leave it.');
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
      }
    }
  }
  return { take, drop, edited, left: false };
}

/** Git-ignored files are asked about once. null: cancelled. */
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

export function takable(change: Change): boolean {
  return change.lane === 'inert' && change.conflict !== 'conflicts';
}

async function showDiff(
  review: Review,
  change: Change,
  paint: Paint,
  out: (text: string) => void,
  most: number,
): Promise<void> {
  const lines = await diffLines(review, change, paint);
  for (const line of lines.slice(0, most)) out(line);
  if (lines.length > most) out(paint('dim', `  ... ${lines.length - most} more lines (d shows all)`));
}

async function editChange(review: Review, change: Change, ctx: Context): Promise<Buffer | null> {
  if (change.after === null || change.after.mode === '120000') {
    ctx.stderr.write('  There is no text to edit.\n');
    return null;
  }
  const dir = mkdtempSync(join(review.task.paths.root, 'edit-'));
  try {
    const file = join(dir, basename(change.path));
    writeFileSync(
      file,
      review.compared.merged.get(change.path) ?? (await readBlob(review.task.paths.staging, change.after.oid)),
      { mode: 0o600 },
    );
    const [program = 'vi', ...args] = (ctx.env['VISUAL'] ?? ctx.env['EDITOR'] ?? 'vi').split(' ');
    const done = spawnSync(program, [...args, file], { stdio: 'inherit' });
    if (done.error !== undefined || done.status !== 0) {
      ctx.stderr.write(`  The editor ${program} ended with an error; nothing was taken.\n`);
      return null;
    }
    return readFileSync(file);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** One key at a time from the terminal. */
export function openKeys(ctx: Context): { key: Key; close(): void } {
  if (!ctx.stdin.isTTY)
    throw new AgsError('usage.no-terminal', 'There is no terminal to ask on.', {
      hint: 'Use --accept <path>, --accept-all, --discard-all or --json.',
    });
  const waiting: ((key: string) => void)[] = [];
  const typed: string[] = [];
  const onData = (data: Buffer): void => {
    for (const char of data.toString('utf8')) {
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
