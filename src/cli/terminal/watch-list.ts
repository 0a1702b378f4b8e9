// cli/terminal/watch-list.ts: `ags list --watch`: the list, redrawn in place when it changes.
import { EXIT } from '../../protocol/errors.ts';
import { pause } from '../../lib/process/pause.ts';
import { recoverMerges } from '../../merge/recover-merges.ts';
import { listTasks } from '../../queries/list.ts';
import { createPaint } from './colour.ts';
import type { Context } from '../verb.ts';
import { taskTable } from './task-table.ts';

const LOOK_MS = 500;

/** Without a terminal, prints the whole list for each change. */
export async function watchList(all: boolean, ctx: Context): Promise<number> {
  const over = new AbortController();
  process.once('SIGINT', () => over.abort());
  const keys = listenForEnd(ctx, over);
  try {
    await draw(all, ctx, over.signal, keys === null ? '' : 'q quits');
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
    await recoverMerges(ctx.host);
    const { tasks, project } = await listTasks(ctx.host, { all, size: false });
    const text = tasks.length === 0 ? 'No tasks.\n' : taskTable(tasks, all || project === null, paint, ctx);
    if (text !== shown) {
      const rows = ctx.stdout.isTTY ? ctx.stdout.rows - 1 : Number.POSITIVE_INFINITY;
      const list = text.split('\n').slice(0, -1);
      const fitting = foot === '' ? list.slice(0, rows) : [...list.slice(0, rows - 1), paint('dim', foot)];
      // Moves up to the first line of the last list and clears everything below.
      const back = ctx.stdout.isTTY && lines > 0 ? `\x1b[${lines}A\x1b[J` : lines > 0 ? '\n' : '';
      ctx.stdout.write(`${back}${fitting.map((line) => `${line}\n`).join('')}`);
      lines = fitting.length;
      shown = text;
    }
    await pause(LOOK_MS, over);
  }
}

const QUIT_KEYS = ['q', 'Q', '\x03', '\x04', '\x1b'];

/** Raw mode keeps typed characters out of the list. */
function listenForEnd({ stdin, stdout }: Context, over: AbortController): { close(): void } | null {
  if (!stdin.isTTY || !stdout.isTTY) return null;
  const onData = (data: Buffer): void => {
    if (QUIT_KEYS.includes(data.toString('utf8'))) over.abort();
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
