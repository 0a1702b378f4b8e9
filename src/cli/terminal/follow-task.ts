// cli/terminal/follow-task.ts: follows one task until its run ends. Ctrl-C detaches; a second Ctrl-C stops the task.
import { EXIT } from '../../protocol/errors.ts';
import { isUnderWay } from '../../protocol/run-state.ts';
import { eachEvent, followEvents } from '../../store/follow-events.ts';
import type { EventLine } from '../../protocol/event.ts';
import { readTask, type StoredTask } from '../../store/tasks.ts';
import { createPaint } from './colour.ts';
import { lineWidth } from './format.ts';
import { showEvent, type EventStyle } from './show-event.ts';
import type { Context } from '../verb.ts';

export interface FollowOptions {
  /** Only events after this one. */
  readonly after: number;
  readonly verbose: boolean;
  readonly json: boolean;
  /** Put before each line if several tasks are followed. */
  readonly prefix?: string;
  /** Ends the following, for a caller that handles Ctrl-C itself. */
  readonly leave?: AbortSignal;
}

export function eventStyle(ctx: Context, verbose: boolean): EventStyle {
  return { paint: createPaint(ctx.colour), width: lineWidth(ctx.stdout, 160), verbose };
}

export function printEvents(task: StoredTask, options: FollowOptions, ctx: Context): void {
  const style = eventStyle(ctx, options.verbose);
  eachEvent(task.paths.events, (event) => print(event, options, style, ctx), options.after);
}

/** Returns 0 for ready and no changes, 8 if it reached a limit, 1 if it failed in another way, 130 if a user stopped or left it. */
export async function followTask(task: StoredTask, options: FollowOptions, ctx: Context): Promise<number> {
  const over = new AbortController();
  const style = eventStyle(ctx, options.verbose);
  let end: Extract<EventLine, { type: 'run.ended' }> | null = null;
  const left = options.leave === undefined ? watchKeys(task, over, ctx) : leftBy(options.leave, over);
  // A killed runner writes no last event, so its process is checked regularly.
  const look = setInterval(() => void isOver(ctx, task).then((gone) => gone && over.abort()), 500);
  try {
    await followEvents(task.paths.events, {
      after: options.after,
      signal: over.signal,
      onEvent(event) {
        print(event, options, style, ctx);
        // A message may have started another turn after the run ended.
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
  const last = end as Extract<EventLine, { type: 'run.ended' }> | null;
  // A runner killed before its last event may still have written its last state.
  const state = last === null ? ((await taskNow(ctx, task))?.run.state ?? 'stopped') : last.state;
  if (isUnderWay(state) && !options.json)
    ctx.stderr.write(
      `ags: the runner of ${task.task.name} was killed. Its changes so far: ags diff ${task.task.name}\n`,
    );
  if (state === 'ready' || state === 'no-changes' || state === 'merged') return EXIT.done;
  if (state === 'stopped') return EXIT.cancelled;
  return last?.limit === true ? EXIT.limit : EXIT.failed;
}

function print(event: EventLine, options: FollowOptions, style: EventStyle, ctx: Context): void {
  if (options.json) return void ctx.stdout.write(`${JSON.stringify(event)}\n`);
  const lines = showEvent(event, style);
  ctx.stdout.write(options.prefix === undefined ? lines : lines.replaceAll(/^(?=.)/gm, options.prefix));
}

/** null: the task was removed or cannot be read. */
function taskNow(ctx: Context, task: StoredTask): Promise<StoredTask | null> {
  return readTask(ctx.stateDir, task.task.id).catch(() => null);
}

/** The last event comes while the runner lives, even if the state is already final. */
async function isOver(ctx: Context, task: StoredTask): Promise<boolean> {
  return (await taskNow(ctx, task))?.live !== true;
}

const SECOND_MS = 2000;

interface Left {
  byUser(): boolean;
  release(): void;
}

function leftBy(signal: AbortSignal, over: AbortController): Left {
  const abort = (): void => over.abort();
  signal.addEventListener('abort', abort);
  return { byUser: () => signal.aborted, release: () => signal.removeEventListener('abort', abort) };
}

function watchKeys(task: StoredTask, over: AbortController, ctx: Context): Left {
  let presses = 0;
  const name = task.task.name;
  const press = (): void => {
    presses += 1;
    if (presses === 1) {
      ctx.stderr.write(
        `\nags: Detached; ${name} keeps running. Ctrl-C again stops it. Follow it again: ags logs -f ${name}\n`,
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
