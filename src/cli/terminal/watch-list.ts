// cli/terminal/watch-list.ts: `ags list --watch`: the list, drawn anew in place while it changes.
import { EXIT } from '../../protocol/errors.ts';
import { pause } from '../../lib/process/pause.ts';
import { listTasks } from '../../queries/list.ts';
import { createPaint } from './colour.ts';
import type { Context } from '../verb.ts';
import { taskTable } from '../verbs/list.ts';

const LOOK_MS = 500;

/** Without a terminal one list for each change. */
export async function watchList(all: boolean, ctx: Context): Promise<number> {
  const over = new AbortController();
  process.once('SIGINT', () => over.abort());
  const keys = listenForEnd(ctx, over);
  try {
    await draw(all, ctx, over.signal, keys === null ? '' : 'q leaves');
  } finally {
    keys?.close();
  }
  return EXIT.done;
}

async function draw(all: boolean, ctx: Context, over: AbortSignal, foot: string): Promise<void> {
  const paint = createPaint(ctx.colour);
  let shown = '';
  let lines = 0;
  while (!over.aborted) {
    const { tasks, project } = await listTasks(ctx.world, { all, size: false });
    const text = tasks.length === 0 ? 'No tasks.\n' : taskTable(tasks, all || project === null, paint, ctx);
    if (text !== shown) {
      const rows = ctx.stdout.isTTY ? ctx.stdout.rows - 1 : Number.POSITIVE_INFINITY;
      const list = text.split('\n').slice(0, -1);
      const fitting = foot === '' ? list.slice(0, rows) : [...list.slice(0, rows - 1), paint('dim', foot)];
      // Up to where the last one began, and everything from there on is cleared.
      const back = ctx.stdout.isTTY && lines > 0 ? `\x1b[${lines}A\x1b[J` : lines > 0 ? '\n' : '';
      ctx.stdout.write(`${back}${fitting.map((line) => `${line}\n`).join('')}`);
      lines = fitting.length;
      shown = text;
    }
    await pause(LOOK_MS, over);
  }
}

const LEAVING = ['q', 'Q', '\x03', '\x04', '\x1b'];

/** What is typed is not shown in the middle of the list. */
function listenForEnd({ stdin, stdout }: Context, over: AbortController): { close(): void } | null {
  if (!stdin.isTTY || !stdout.isTTY) return null;
  const onData = (data: Buffer): void => {
    if (LEAVING.includes(data.toString('utf8'))) over.abort();
  };
  stdin.setRawMode(true);
  stdin.on('data', onData);
  stdin.resume();
  return {
    close() {
      stdin.off('data', onData);
      stdin.setRawMode(false);
      stdin.pause();
    },
  };
}
