// cli/goal-editor.ts: a goal that the user writes in an editor.
// Invariant: text that was typed is deleted only after it has become a task.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { replaceFile } from '../lib/files.ts';
import { shellQuote } from './terminal/format.ts';
import { editFile } from './terminal/text-editor.ts';
import type { Context } from './verb.ts';

export interface WrittenGoal {
  readonly text: string;
  /** The goal has become a task. */
  drop(): void;
  /** Says where the text is. */
  keep(): void;
}

/** null: the goal is empty, and nothing is kept. */
export function writeGoal(ctx: Context, begin: string): WrittenGoal | null {
  if (!ctx.terminal.stdin || !ctx.terminal.stdout)
    throw new AgsError('usage.no-terminal', 'An editor needs a terminal.', {
      hint: 'Give the goal as an argument, or in a file: ags start --file goals.md',
    });
  const drafts = join(ctx.stateDir, 'drafts');
  mkdirSync(drafts, { recursive: true, mode: 0o700 });
  const dir = mkdtempSync(join(drafts, 'goal-'));
  const file = join(dir, 'goal.md');
  const drop = (): void => rmSync(dir, { recursive: true, force: true });
  writeFileSync(file, `${begin}\n\n${BELOW.join('\n')}\n`, { mode: 0o600 });
  const problem = editFile(ctx, file);
  const text = goalIn(readFileSync(file, 'utf8'));
  const keep = (): void => {
    replaceFile(file, `${text}\n`);
    ctx.stderr.write(`ags: Your goal is kept in ${file}. To use it: ags start "$(cat ${shellQuote(file)})"\n`);
  };
  if (problem !== null) {
    if (text === '' || text === begin.trim()) drop();
    else keep();
    throw new AgsError('usage.invalid', `${problem} Nothing was started.`);
  }
  if (text !== '') return { text, drop, keep };
  drop();
  return null;
}

/** A line that no goal has by accident, as in "git commit --verbose". Markdown headings above it belong to the goal. */
const BELOW = [
  '# ------------------------ >8 ------------------------',
  '# Write the goal for the agent above this line, then save and close the editor.',
  '# An empty goal starts nothing. This line and those around it are left out.',
];

/** Without the line, whatever is left of the template is still not part of the goal. */
export function goalIn(text: string): string {
  const lines = text.split(/\r?\n/);
  const end = lines.indexOf(BELOW[0] ?? '');
  return (end < 0 ? lines : lines.slice(0, end))
    .filter((line) => !BELOW.includes(line))
    .join('\n')
    .trim();
}
