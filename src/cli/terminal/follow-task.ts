// cli/terminal/follow-task.ts: watch one task until its run is over. Ctrl-C leaves it running; a second one stops it.
import { EXIT } from '../../protocol/errors.ts';
import { isUnderWay, type RunState } from '../../protocol/run-state.ts';
import { eachEvent, followEvents } from '../../store/follow-events.ts';
import type { EventLine } from '../../store/events.ts';
import { readTask, type StoredTask } from '../../store/tasks.ts';
import { createPaint } from './colour.ts';
import { showEvent, type EventStyle } from './show-event.ts';
import type { Context } from '../verb.ts';

export interface FollowOptions {
  /** Only events after this one. */
  readonly after: number;
  readonly verbose: boolean;
  readonly json: boolean;
  /** In front of each line, when several are watched. */
  readonly prefix?: string;
}

export function eventStyle(ctx: Context, verbose: boolean): EventStyle {
  return { paint: createPaint(ctx.colour), width: ctx.stdout.isTTY ? ctx.stdout.columns : 160, verbose };
}

export function printEvents(task: StoredTask, options: FollowOptions, ctx: Context): void {
  const style = eventStyle(ctx, options.verbose);
  eachEvent(task.paths.events, (event) => print(event, options, style, ctx), options.after);
}

/** How it ended: 0 for ready and no changes, 8 for failed and stopped; 130 when the user left it. */
export async function followTask(task: StoredTask, options: FollowOptions, ctx: Context): Promise<number> {
  const over = new AbortController();
  const style = eventStyle(ctx, options.verbose);
  let end: EventLine | null = null;
  const left = watchKeys(task, over, ctx);
  // A runner that is killed writes no last event: its process is looked at now and then.
  const look = setInterval(() => void isOver(ctx, task).then((gone) => gone && over.abort()), 500);
  try {
    await followEvents(task.paths.events, {
      after: options.after,
      signal: over.signal,
      onEvent(event) {
        print(event, options, style, ctx);
        // A run that has ended may have been told to go on.
        if (event.type === 'run.ended') end = event;
        if (event.type === 'run.queued') end = null;
      },
      isOver: () => end !== null,
    });
  } finally {
    clearInterval(look);
    left.release();
  }
  if (left.byUser()) return EXIT.cancelled;
  const last = end as EventLine | null;
  // A runner that was killed before its last event may have written its last state.
  const state = last === null ? ((await taskNow(ctx, task))?.run.state ?? 'stopped') : last['state'];
  if (isUnderWay(state as RunState) && !options.json)
    ctx.stderr.write(
      `ags: the runner of ${task.task.name} was killed. What it did so far: ags diff ${task.task.name}\n`,
    );
  return state === 'ready' || state === 'no-changes' ? EXIT.done : EXIT.limit;
}

function print(event: EventLine, options: FollowOptions, style: EventStyle, ctx: Context): void {
  if (options.json) return void ctx.stdout.write(`${JSON.stringify(event)}\n`);
  const lines = showEvent(event, style);
  ctx.stdout.write(options.prefix === undefined ? lines : lines.replaceAll(/^(?=.)/gm, options.prefix));
}

/** null: it is gone, or cannot be read. */
function taskNow(ctx: Context, task: StoredTask): Promise<StoredTask | null> {
  return readTask(ctx.stateDir, task.task.id).catch(() => null);
}

/** While its runner lives, the last event is still to come, whatever the state says already. */
async function isOver(ctx: Context, task: StoredTask): Promise<boolean> {
  return (await taskNow(ctx, task))?.live !== true;
}

const SECOND_MS = 2000;

function watchKeys(task: StoredTask, over: AbortController, ctx: Context): { byUser(): boolean; release(): void } {
  let presses = 0;
  const name = task.task.name;
  const press = (): void => {
    presses += 1;
    if (presses === 1) {
      ctx.stderr.write(
        `\nags: ${name} goes on without you. Ctrl-C again stops it; come back with: ags logs -f ${name}\n`,
      );
      setTimeout(() => over.abort(), SECOND_MS).unref();
    } else if (presses === 2) {
      ctx.stderr.write(`ags: stopping ${name}.\n`);
      void import('../../agent-run/control.ts')
        .then(({ stopTask }) => stopTask(task, false))
        .catch((error: unknown) => ctx.stderr.write(`ags: ${(error as Error).message}\n`))
        .finally(() => over.abort());
    }
  };
  process.on('SIGINT', press);
  return { byUser: () => presses > 0, release: () => void process.off('SIGINT', press) };
}
