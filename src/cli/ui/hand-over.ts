// cli/ui/hand-over.ts: runs another command of ags on the whole terminal, and waits for it.
import { spawn } from 'node:child_process';
import type { Context } from '../verb.ts';
import type { Screen } from './screen.ts';

/** With `stay`, or after an error, the user reads its last words before the screen comes back. */
export function handOver(
  ctx: Context,
  screen: Screen,
  args: readonly string[],
  options: { readonly stay: boolean },
): Promise<void> {
  return screen.lend(async () => {
    const [program = process.execPath, ...before] = ctx.host.self;
    const code = await new Promise<number | null>((resolve) => {
      const child = spawn(program, [...before, ...args], { stdio: 'inherit', env: ctx.env, cwd: ctx.cwd });
      child.once('error', () => resolve(null));
      child.once('close', resolve);
    });
    if (code === 0 && !options.stay) return;
    ctx.stdout.write('\nPress Enter to go back to the list. ');
    await new Promise<void>((resolve) => {
      ctx.stdin.once('data', () => resolve());
      ctx.stdin.once('end', () => resolve());
      ctx.stdin.resume();
    });
    ctx.stdin.pause();
  });
}
