// cli/terminal/guest-terminal.ts: the user's terminal at a program inside a sandbox that is running.
import { AgsError } from '../../protocol/errors.ts';
import { openStream } from '../../lib/process/control.ts';
import { createScreenFilter } from '../../lib/screen-filter.ts';
import { createFrameReader, frame, windowFrame } from '../../lib/stream/frames.ts';
import type { StoredTask } from '../../store/tasks.ts';
import type { Context } from '../verb.ts';

const LEAVE = 0x1d;

/**
 * What a program may have switched on, and nobody switches off when it is left: colours, scroll region, keys of an application,
 * hidden cursor, no wrapping, mouse, focus, marked pastes, other codes for keys, another screen. Then a line of our own, and nothing below it.
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
  // It also puts the cursor where it was saved last: here, if there is no other screen.
  '7\x1b[?1049l',
]
  .map((code) => `\x1b${code}`)
  .join('')
  .concat('\r\n\x1b[J');

/** The exit code of the program; null: the user has left it running. */
export async function openGuest(
  ctx: Context,
  task: StoredTask,
  request: Readonly<Record<string, unknown>>,
): Promise<number | null> {
  const { stdin, stdout } = ctx;
  if (!stdin.isTTY || !stdout.isTTY)
    throw new AgsError('usage.no-terminal', 'This needs a terminal.', {
      hint: 'In a script follow it with: ags logs -f',
    });
  const window = { columns: stdout.columns, rows: stdout.rows, term: ctx.env['TERM'] };
  const socket = await openStream(task.paths.root, { ...request, ...window }, 10_000);
  if (socket === null)
    throw new AgsError('task.not-found', `${task.task.name} is not running.`, {
      hint: `How it stands: ags show ${task.task.name}`,
    });
  ctx.stderr.write('ags: Ctrl-] leaves it running.\r\n');
  const end: { code: number | null } = { code: null };
  const draw = createScreenFilter();
  const read = createFrameReader((kind, payload) => {
    if (kind === 'd') stdout.write(draw(payload));
    if (kind === 'x') end.code = payload[0] ?? 0;
  });
  const resize = (): void => void socket.write(windowFrame(stdout.columns, stdout.rows));
  const type = (data: Buffer): void => {
    const leave = data.indexOf(LEAVE);
    if (leave !== 0) socket.write(frame('d', leave < 0 ? data : data.subarray(0, leave)));
    if (leave >= 0) socket.destroy();
  };
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    if (!read(chunk)) socket.destroy();
  });
  socket.resume();
  stdin.setRawMode(true);
  stdin.on('data', type).resume();
  stdout.on('resize', resize);
  // What is on the screen was drawn for another window.
  resize();
  await new Promise<void>((resolve) => socket.once('close', () => resolve()));
  stdout.off('resize', resize);
  stdin.off('data', type).pause();
  stdin.setRawMode(false);
  stdout.write(AS_BEFORE);
  ctx.stderr.write(`ags: ${end.code === null ? 'left' : `it has ended with ${end.code}`}.\n`);
  return end.code;
}
