// cli/terminal/text-editor.ts: the user's own text editor, on this terminal, for a file that only the user writes.
import { spawnSync } from 'node:child_process';
import { commandWords } from '../../lib/command-words.ts';
import type { Context } from '../verb.ts';

/** null: it ended well. Otherwise why not, as a sentence. VISUAL and EDITOR may have arguments; no shell reads them. */
export function editFile(ctx: Pick<Context, 'env'>, file: string): string | null {
  const [program = 'vi', ...args] = commandWords(ctx.env['VISUAL'] || ctx.env['EDITOR'] || 'vi');
  const { error, status, signal } = spawnSync(program, [...args, file], { stdio: 'inherit' });
  if (error !== undefined) return `The editor ${program} could not be started; set VISUAL or EDITOR.`;
  if (status === 0) return null;
  return `The editor ${program} ended with ${signal ?? `exit code ${status}`}.`;
}
