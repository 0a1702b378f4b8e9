// cli/terminal/meanwhile.ts: a progress line on the terminal, with the seconds passed, for work of more than a second.
import type { Context } from '../verb.ts';

export const LOOKING = 'Looking at what changed';

export async function meanwhile<T>(
  ctx: Pick<Context, 'stderr' | 'terminal'>,
  doing: string,
  work: Promise<T>,
): Promise<T> {
  if (!ctx.terminal.stderr) return work;
  let seconds = 0;
  const timer = setInterval(() => ctx.stderr.write(`\r\x1b[K${doing} … ${++seconds} s`), 1000);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    if (seconds > 0) ctx.stderr.write('\r\x1b[K');
  }
}
