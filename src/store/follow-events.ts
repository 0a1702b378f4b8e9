// store/follow-events.ts: the events of a task as they come, from any point on, without holding more than a line in memory.
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import type { EventLine } from './events.ts';

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
      await pause(options.signal);
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
    return (start === 0 ? lines : lines.slice(1)).flatMap((line) => {
      try {
        return [JSON.parse(line) as EventLine];
      } catch {
        return [];
      }
    });
  } finally {
    closeSync(fd);
  }
}

const FOLLOW_MS = 60;
const CHUNK = 64 * 1024;

function openReader(
  file: string,
  onEvent: (event: EventLine) => void,
  after: number,
): { readOn(): void; close(): void } {
  const chunk = Buffer.alloc(CHUNK);
  let held: Buffer[] = [];
  let fd = -1;
  const take = (line: string): void => {
    try {
      const event = JSON.parse(line) as EventLine;
      if (event.seq > after) onEvent(event);
    } catch (error) {
      // A line that a power cut has cut short.
      if (!(error instanceof SyntaxError)) throw error;
    }
  };
  return {
    readOn() {
      if (fd < 0 && existsSync(file)) fd = openSync(file, 'r');
      if (fd < 0) return;
      for (;;) {
        const length = readSync(fd, chunk, 0, CHUNK, null);
        if (length === 0) return;
        let start = 0;
        for (let end = chunk.indexOf(LF); end >= 0 && end < length; end = chunk.indexOf(LF, start)) {
          const piece = chunk.subarray(start, end);
          take(held.length === 0 ? piece.toString('utf8') : Buffer.concat([...held, piece]).toString('utf8'));
          held = [];
          start = end + 1;
        }
        if (start < length) held.push(Buffer.from(chunk.subarray(start, length)));
      }
    },
    close() {
      if (fd >= 0) closeSync(fd);
    },
  };
}

const LF = 0x0a;

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, FOLLOW_MS);
    signal.addEventListener('abort', done);
  });
}
