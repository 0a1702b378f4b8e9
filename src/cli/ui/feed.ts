// cli/ui/feed.ts: the tasks and their new events, from the same index as the page's live list: it reads only files that changed.
import { compareRows, type TaskRow } from '../../queries/list.ts';
import { currentProject } from '../../queries/entries.ts';
import type { EventLine } from '../../protocol/event.ts';
import { createTaskIndex } from '../../server/live/task-index.ts';
import type { LiveRow } from '../../server/live/task-row.ts';
import type { RunFile } from '../../protocol/task.ts';
import type { TaskPaths } from '../../store/layout.ts';
import type { Context } from '../verb.ts';

export interface FeedRow {
  readonly id: string;
  readonly row: TaskRow;
  /** What a live task needs from the user. */
  readonly needs: NonNullable<RunFile['needs']> | null;
  readonly refusedHosts: readonly string[];
  readonly paths: TaskPaths;
  /** Changes with every event. */
  readonly seq: number;
  /** It runs an agent on a terminal of its own. */
  readonly interactive: boolean;
}

export interface Feed {
  /** null: not in a project. */
  readonly project: string | null;
  /** In the order of `ags list`. */
  rows(all: boolean): FeedRow[];
  /** null: it is gone. */
  row(id: string): FeedRow | null;
  /** Reads one task at once, after it was changed here. */
  touch(id: string): Promise<void>;
  close(): void;
}

const BEAT_MS = 200;

export interface FeedListener {
  changed(): void;
  event(id: string, event: EventLine): void;
  /** The task has a new run, so its events start again. */
  replaced(id: string): void;
}

export async function openFeed(ctx: Context, on: FeedListener): Promise<Feed> {
  const index = createTaskIndex(ctx.stateDir, () => ctx.now().getTime(), {
    task: () => on.changed(),
    gone: () => on.changed(),
    event: (id, event) => on.event(id, event),
    replaced: (id) => on.replaced(id),
  });
  const [project] = await Promise.all([currentProject(ctx.host), index.look('all')]);
  let closed = false;
  let timer: NodeJS.Timeout | null = null;
  const beat = (): void => {
    timer = setTimeout(() => {
      void index
        .look('some')
        // A directory that cannot be read now is read again at the next beat.
        .catch(() => undefined)
        .finally(() => {
          if (!closed) beat();
        });
    }, BEAT_MS);
  };
  beat();
  return {
    project,
    rows: (all) =>
      index
        .liveRows()
        .filter(({ row }) => all || project === null || row.project === project)
        .toSorted((a, b) => compareRows(a.row, b.row))
        .map(feedRow),
    row(id) {
      const live = index.liveRow(id);
      return live === undefined ? null : feedRow(live);
    },
    touch: (id) => index.touch(id),
    close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}

/** From the row's files and events as they are now: what subscribers of the index get is held back a little. */
function feedRow({ id, row, entry, facts, tail }: LiveRow): FeedRow {
  const stored = entry.kind === 'whole' ? entry.stored : null;
  return {
    id,
    row,
    needs: row.state === 'needs-you' ? (stored?.run.needs ?? 'look') : null,
    refusedHosts: [...facts.blocked],
    paths: entry.paths,
    seq: tail.seq,
    interactive: stored?.task.goal?.interactive === true,
  };
}
