// cli/terminal/guest-terminal.ts: connects the user's terminal to a program inside a running sandbox.
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLive } from '../../agent-run/control.ts';
import { AgsError } from '../../protocol/errors.ts';
import { isUnderWay, STATE_WORDS, type ShownState } from '../../protocol/run-state.ts';
import { openStream } from '../../lib/process/control.ts';
import { createScreenFilter } from '../../lib/screen-filter.ts';
import { visible } from '../../lib/sanitize.ts';
import { createFrameReader, frame, windowFrame } from '../../lib/stream/frames.ts';
import { readTask, type StoredTask } from '../../store/tasks.ts';
import type { Context } from '../verb.ts';

const LEAVE = 0x1d;

/**
 * Resets terminal modes that the program may have left on: colours, scroll region, application keys, hidden cursor, no wrapping,
 * mouse, focus, bracketed paste, key encodings, alternate screen. It ends with a new line and a clear screen below it.
 */
const AS_BEFORE = [
  '[0m',
  '7\x1b[r\x1b8',
  '[?1l',
  '>',
  '[?25h',
  '[?7h',
  ...[1000, 1002, 1003, 1004, 1006, 2004].map((mode) => `[?${mode}l`),
  '[>4m',
  '[<u',
  // It also restores the saved cursor: the current position, if there is no alternate screen.
  '7\x1b[?1049l',
]
  .map((code) => `\x1b${code}`)
  .join('')
  .concat('\r\n\x1b[J');

/** The exit code of the program, or null if the user detached. */
export async function openGuest(
  ctx: Context,
  task: StoredTask,
  request: Readonly<Record<string, unknown>>,
): Promise<number | null> {
  const { stdin, stdout } = ctx;
  if (!stdin.isTTY || !stdout.isTTY)
    throw new AgsError('usage.no-terminal', 'This needs a terminal.', {
      hint: 'In a script, follow the task instead: ags logs -f',
    });
  const window = { columns: stdout.columns, rows: stdout.rows, term: ctx.env['TERM'] };
  const wish = { ...request, ...window };
  const socket =
    request['do'] === 'attach' ? await attach(ctx, task, wish) : await openStream(task.paths.root, wish, 10_000);
  if (socket === null)
    throw new AgsError('task.not-found', `${task.task.name} is not running.`, {
      hint: `Its state: ags show ${task.task.name}`,
    });
  ctx.stderr.write('ags: Ctrl-] detaches; the agent keeps running.\r\n');
  const end: { code: number | null; left: boolean } = { code: null, left: false };
  const draw = createScreenFilter();
  const read = createFrameReader((kind, payload) => {
    if (kind === 'd') stdout.write(draw(payload));
    if (kind === 'x') end.code = payload[0] ?? 0;
  });
  const resize = (): void => void socket.write(windowFrame(stdout.columns, stdout.rows));
  const type = (data: Buffer): void => {
    const leave = data.indexOf(LEAVE);
    if (leave !== 0) socket.write(frame('d', leave < 0 ? data : data.subarray(0, leave)));
    if (leave < 0) return;
    end.left = true;
    socket.destroy();
  };
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    if (!read(chunk)) socket.destroy();
  });
  socket.resume();
  stdin.setRawMode(true);
  stdin.on('data', type).resume();
  stdout.on('resize', resize);
  // The program drew its screen for another window size.
  resize();
  await new Promise<void>((resolve) => socket.once('close', () => resolve()));
  stdout.off('resize', resize);
  stdin.off('data', type).pause();
  stdin.setRawMode(false);
  stdout.write(AS_BEFORE);
  const { name } = task.task;
  if (end.code !== null) ctx.stderr.write(`ags: It exited with ${end.code}.\n`);
  else if (!end.left) ctx.stderr.write(`ags: The connection was cut. Its state: ags show ${name}\n`);
  else
    ctx.stderr.write(
      `ags: Detached; the agent keeps running.${request['do'] === 'attach' ? ` Reattach: ags attach ${name}` : ''}\n`,
    );
  return end.code;
}

/** Waits until the agent's terminal is open; null: the task is gone. */
async function attach(ctx: Context, { task: { id, name, goal } }: StoredTask, wish: object): Promise<Socket | null> {
  if (goal?.interactive !== true) throw hasNoTerminal(name);
  let told = false;
  const tell = async (state: ShownState, isOver: () => boolean): Promise<void> => {
    if (told) return;
    told = true;
    // By now it may have a reason to wait.
    const reason = (await readTask(ctx.stateDir, id).catch(() => null))?.run.reason;
    if (isOver()) return;
    ctx.stderr.write(
      `ags: ${name} is ${STATE_WORDS[state]}; its terminal opens when the agent starts. Ctrl-C leaves.\n${reason === undefined ? '' : `     ${visible(reason)}\n`}`,
    );
  };
  for (;;) {
    const now = await readTask(ctx.stateDir, id);
    if (now === null) return null;
    if (!isLive(now)) throw hasEnded(now);
    const { state } = now.run;
    // Most agents start at once.
    let over = false;
    const timer =
      state === 'queued' || state === 'preparing' ? setTimeout(() => void tell(state, () => over), SOON_MS) : undefined;
    const socket = await openStream(now.paths.root, { ...wish, wait: true }, FOR_EVER_MS).finally(() => {
      over = true;
      clearTimeout(timer);
    });
    if (socket !== null) return socket;
    // The runner is just starting or ending.
    await sleep(100);
  }
}

const SOON_MS = 700;
/** The longest time of a timer: the wait ends with the run or with Ctrl-C. */
const FOR_EVER_MS = 2 ** 31 - 1;

function hasNoTerminal(name: string): AgsError {
  return new AgsError('usage.invalid', `${name} has no terminal: it was not started with --interactive.`, {
    hint: `Follow its log: ags logs -f ${name}. Open a shell beside it: ags shell ${name}`,
  });
}

function hasEnded({ task: { name }, run }: StoredTask): AgsError {
  const why = run.reason === undefined ? '' : ` ${visible(run.reason)}`;
  const word = STATE_WORDS[isUnderWay(run.state) ? 'interrupted' : run.state];
  return new AgsError('task.not-found', `${name} has ended: ${word}.${why}`, {
    hint: `See what happened: ags logs ${name}`,
  });
}
