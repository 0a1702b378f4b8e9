// cli/watch-list.ts: `ags list --watch`: the list, drawn anew in place while it changes.
import { EXIT } from '../protocol/errors.ts';
import { pause } from '../lib/pause.ts';
import { listTasks } from '../tasks/list.ts';
import { createPaint } from './colour.ts';
import type { Context } from './verb.ts';
import { taskTable } from './verbs/list.ts';

const LOOK_MS = 500;

/** Without a terminal one list for each change. */
export async function watchList(all: boolean, ctx: Context): Promise<number> {
  const paint = createPaint(ctx.colour);
  const over = new AbortController();
  process.once('SIGINT', () => over.abort());
  let shown = '';
  let lines = 0;
  while (!over.signal.aborted) {
    const { tasks, project } = await listTasks(ctx.world, { all, size: false });
    const text = tasks.length === 0 ? 'No tasks.\n' : taskTable(tasks, all || project === null, paint, ctx);
    if (text !== shown) {
      const rows = ctx.stdout.isTTY ? ctx.stdout.rows - 1 : Number.POSITIVE_INFINITY;
      const fitting = text.split('\n').slice(0, -1).slice(0, rows);
      // Up to where the last one began, and everything from there on is cleared.
      const back = ctx.stdout.isTTY && lines > 0 ? `\x1b[${lines}A\x1b[J` : lines > 0 ? '\n' : '';
      ctx.stdout.write(`${back}${fitting.map((line) => `${line}\n`).join('')}`);
      lines = fitting.length;
      shown = text;
    }
    await pause(LOOK_MS, over.signal);
  }
  return EXIT.done;
}
