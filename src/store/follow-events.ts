// store/follow-events.ts: the events of a task as they come, from any point on, without holding more than a line in memory.
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { followFile, type FileFollower } from '../lib/stream/follow-file.ts';
import { createLines } from '../lib/stream/lines.ts';
import { pause } from '../lib/process/pause.ts';
import type { EventLine } from '../protocol/event.ts';

/** Calls for every event after `after`, until the signal, or until `isOver` when all that is there was read. The file may come into being later. */
export async function followEvents(
  file: string,
  options: { after: number; signal: AbortSignal; onEvent(event: EventLine): void; isOver?: () => boolean },
): Promise<void> {
  const reader = openReader(file, options.onEvent, options.after);
  try {
    while (!options.signal.aborted) {
      reader.readOn();
      if (options.isOver?.() === true) return;
      await pause(FOLLOW_MS, options.signal);
    }
    reader.readOn();
  } finally {
    reader.close();
  }
}

/** Those that are there now. */
export function eachEvent(file: string, onEvent: (event: EventLine) => void, after = 0): void {
  const reader = openReader(file, onEvent, after);
  reader.readOn();
  reader.close();
}

/** As many of the last ones as fit into one piece. */
export function lastEvents(file: string): EventLine[] {
  if (!existsSync(file)) return [];
  const fd = openSync(file, 'r');
  try {
    const { size } = fstatSync(fd);
    const start = Math.max(0, size - CHUNK);
    const piece = Buffer.alloc(size - start);
    readSync(fd, piece, 0, piece.length, start);
    const lines = piece.toString('utf8').split('\n');
    return (start === 0 ? lines : lines.slice(1)).flatMap((line) => parseEvent(line) ?? []);
  } finally {
    closeSync(fd);
  }
}

const FOLLOW_MS = 60;
const CHUNK = 64 * 1024;
/** Longer than any line that is written. */
const MAX_LINE = 16 * 2 ** 20;

function openReader(file: string, onEvent: (event: EventLine) => void, after: number): FileFollower {
  const lines = createLines(MAX_LINE, (line) => {
    const event = parseEvent(line);
    if (event !== null && event.seq > after) onEvent(event);
  });
  return followFile(file, (chunk) => lines.push(chunk));
}

/** null: a power cut has cut it short. */
function parseEvent(line: string): EventLine | null {
  try {
    return JSON.parse(line) as EventLine;
  } catch {
    return null;
  }
}
