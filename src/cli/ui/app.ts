// cli/ui/app.ts: `ags ui`: the list of tasks, views on top of it, and questions before anything changes.
// Invariant: a letter opens a view or a question, and never changes anything by itself. One change at a time.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Context } from '../verb.ts';
import { type Line, span } from './cells.ts';
import { askChoice, type Dialog } from './dialog.ts';
import type { Feed } from './feed.ts';
import { footerLine, sheet } from './frame.ts';
import type { Key } from './keys.ts';
import { openScreen } from './screen.ts';
import { actOn, type Stage } from './task-keys.ts';
import { createHelpView } from './view-help.ts';
import { createListView } from './view-list.ts';
import type { LogView } from './view-log.ts';
import type { View } from './view.ts';

/** Ages in the list grow by themselves. */
const TICK_MS = 1000;

export async function runUi(ctx: Context): Promise<number> {
  const state: {
    feed: Feed | null;
    log: LogView | null;
    dialog: Dialog | null;
    message: Line | null;
    busy: string | null;
  } = { feed: null, log: null, dialog: null, message: null, busy: null };
  let drawing = false;
  let leave = (): void => undefined;
  let fail: (error: unknown) => void = leave;
  const over = new Promise<void>((resolve, reject) => ([leave, fail] = [resolve, reject]));
  const list = createListView(
    () => state.feed,
    () => ctx.now().getTime(),
  );
  const views: View[] = [list];
  const top = (): View => views.at(-1) ?? list;
  const screen = openScreen(ctx, { key: pressed, redraw });
  const stage: Stage = {
    ctx,
    screen,
    row: (id) => state.feed?.row(id) ?? null,
    show(view) {
      views.push(view);
      redraw();
    },
    showLog(view) {
      state.log = view;
      stage.show(view);
    },
    close: (view) => void (views.includes(view) ? views.splice(views.indexOf(view)) : undefined),
    ask(dialog) {
      state.dialog = dialog;
      redraw();
    },
    attempt,
    redraw,
  };
  const tick = setInterval(redraw, TICK_MS);
  try {
    draw();
    // The first screen is there before the rest of the code is loaded.
    const { openFeed } = await import('./feed.ts');
    state.feed = await openFeed(ctx, {
      changed: redraw,
      event(id, event) {
        if (state.log?.task === id) state.log.event(event);
        redraw();
      },
      replaced(id) {
        if (state.log?.task === id) state.log.reload();
        redraw();
      },
    });
    redraw();
    // As every list does: completes or reverts a merge that was killed.
    void import('../../merge/recover-merges.ts').then(({ recoverMerges }) =>
      attempt(null, null, () => recoverMerges(ctx.host)),
    );
    await over;
  } finally {
    clearInterval(tick);
    state.feed?.close();
    screen.close();
  }
  return EXIT.done;

  /** Many changes at once are drawn once. */
  function redraw(): void {
    if (drawing) return;
    drawing = true;
    setImmediate(() => {
      drawing = false;
      draw();
    });
  }

  function draw(): void {
    const { columns, rows } = screen;
    const { dialog } = state;
    const below = dialog === null ? null : sheet(dialog, { columns, rows });
    const size = { columns, rows: Math.max(1, rows - 2 - (below?.lines.length ?? 0)) };
    const body = top().body(size);
    const filled = Array.from({ length: size.rows }, (_, y) => body[y] ?? []);
    const foot = footerLine({ ...state, view: top(), nested: views.length > 1, columns });
    screen.show(
      [top().title(size), ...filled, ...(below?.lines ?? []), foot],
      below?.cursor == null ? null : { x: below.cursor.x, y: 1 + size.rows + below.cursor.y },
    );
  }

  function pressed(key: Key): void {
    state.message = null;
    if (key.name === 'ctrl-c') leave();
    else if (key.name === 'ctrl-z') screen.suspend();
    else if (key.name === 'ctrl-l') screen.forget();
    else if (state.busy !== null) return;
    else if (state.dialog !== null) state.dialog.key(key);
    else onView(key);
    redraw();
  }

  function onView(key: Key): void {
    const text = key.name === 'char' ? key.text : key.name;
    if (text === 'escape' || text === 'q') {
      if (views.length > 1) {
        if (views.pop() === state.log) state.log = null;
      } else if (text === 'q') leave();
      return;
    }
    if (top().key(key)) return;
    if (text === '?') return void views.push(createHelpView());
    const task = top().task;
    const row = task === undefined ? (top() === list ? list.selected() : null) : stage.row(task);
    if (row !== null && actOn(stage, row, text)) return;
    if (key.name === 'char') state.message = [span('This key does nothing here; ? lists the keys.', 'dim')];
  }

  /** Runs one change and says how it ended. `doing` null: in the background, and only errors are told. */
  async function attempt(doing: string | null, id: string | null, act: () => Promise<string | void>): Promise<void> {
    if (doing !== null && state.busy !== null) {
      state.message = [span(`Wait: ${state.busy}.`, 'yellow')];
      return redraw();
    }
    if (doing !== null) state.busy = doing;
    redraw();
    try {
      const said = await act();
      if (typeof said === 'string') state.message = [span(said, 'green')];
    } catch (error) {
      const { inWords } = await import('../../run/disk-errors.ts');
      const told = inWords(ctx.host, error);
      if (!(told instanceof AgsError)) return fail(error);
      state.dialog = askChoice({
        title: 'That did not work',
        text: [told.message, ...(told.hint?.split('\n') ?? [])]
          .flatMap((text) => text.split('\n'))
          .map((text) => [span(text)]),
        cancel: { label: 'Close', act: () => void (state.dialog = null) },
        choices: [],
      });
    } finally {
      // A question that the action has asked takes keys from here on.
      if (doing !== null) state.busy = null;
      redraw();
      // If the task cannot be read now, the feed reads it later.
      if (id !== null) void state.feed?.touch(id).catch(() => undefined);
    }
  }
}
