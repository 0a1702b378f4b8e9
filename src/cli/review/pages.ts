// cli/review/pages.ts: a long diff on the terminal: a screen at a time, or whole in the user's pager.
import type { Paint } from '../terminal/colour.ts';
import { widthOf } from '../terminal/format.ts';
import type { Context } from '../verb.ts';

export interface Pages {
  /** Shows one screen; after the last screen it starts again. */
  next(out: (text: string) => void, paint: Paint): void;
  /** In the user's pager if there is one. */
  all(out: (text: string) => void): Promise<void>;
}

export function createPages(lines: readonly string[], ctx: Context): Pages {
  let from = 0;
  return {
    next(out, paint) {
      const to = endOfPage(lines, from, { columns: ctx.stderr.columns || 80, rows: (ctx.stderr.rows || 24) - 4 });
      for (const line of lines.slice(from, to)) out(line);
      if (to < lines.length) out(paint('dim', `  ... ${lines.length - to} more lines: d shows the next, D shows all`));
      from = to < lines.length ? to : 0;
    },
    async all(out) {
      from = 0;
      const { openPager } = await import('../terminal/pager.ts');
      const pager = await openPager(ctx);
      if (pager === null) for (const line of lines) out(line);
      for (const line of pager === null ? [] : lines) await pager?.write(`${line}\n`);
      await pager?.end();
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
