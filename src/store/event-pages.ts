// store/event-pages.ts: parts of an event log by their sequence numbers, and what has come since the last look, without an index
// and without reading the rest.
// Invariant: every event that is asked for comes once and in order; no more than one piece is in memory, however long the log.
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import type { EventLine } from '../protocol/event.ts';

export interface EventPage {
  readonly events: readonly EventLine[];
  readonly first: number;
  readonly last: number;
}

/** Those after `after` (or the last ones before `before`), in order: at most `limit`, and about `maxBytes` of them. */
export function readEventPage(
  file: string,
  wanted: { after?: number | null; before?: number | null; limit: number; maxBytes?: number },
): EventPage {
  const fd = tryOpen(file);
  if (fd === null) return { events: [], first: 0, last: 0 };
  try {
    const { size } = fstatSync(fd);
    const last = lastSeq(fd, size);
    const first = last === 0 ? 0 : 1;
    const after = wanted.after ?? Math.max(0, (wanted.before ?? last + 1) - 1 - wanted.limit);
    const until = wanted.before ?? Number.POSITIVE_INFINITY;
    const events: EventLine[] = [];
    let bytes = 0;
    eachLine(fd, startOf(fd, size, after), size, (line) => {
      const event = parseEvent(line);
      if (event === null || event.seq <= after) return true;
      if (event.seq >= until || events.length >= wanted.limit || bytes > (wanted.maxBytes ?? MAX_PAGE)) return false;
      events.push(event);
      bytes += line.length;
      return true;
    });
    return { events, first, last };
  } finally {
    closeSync(fd);
  }
}

export interface EventTail {
  /** Everything since the last time. `onReplaced`: another run has begun, whose log begins anew. */
  readOn(): void;
  /** Of the last event that was handed on. */
  readonly seq: number;
}

/**
 * Begins at most `fromEnd` bytes before the end. Holds no descriptor between two looks. Of what was there before the first look,
 * the last piece is handed on, and of the rest only what `matters`: taking long logs apart is most of the work of a start.
 */
export function createEventTail(
  file: string,
  fromEnd: number,
  on: { event(event: EventLine): void; replaced(): void; matters?(line: string): boolean },
): EventTail {
  let place: { ino: number; at: number } | null = null;
  let seq = 0;
  function readOn(): void {
    const now = statSync(file, { throwIfNoEntry: false });
    if (now === undefined) return;
    if (place !== null && (place.ino !== now.ino || now.size < place.at)) {
      place = { ino: now.ino, at: 0 };
      seq = 0;
      on.replaced();
    }
    if (place?.at === now.size) return;
    const fd = tryOpen(file);
    if (fd === null) return;
    try {
      const { size, ino } = fstatSync(fd);
      if (place !== null && ino !== place.ino) return;
      const near = place === null ? size - PIECE : 0;
      place ??= { ino, at: lineAfter(fd, size, size - fromEnd) };
      place.at = eachLine(fd, place.at, size, (line, end) => {
        if (end < near && on.matters?.(line) === false) return true;
        const event = parseEvent(line);
        if (event !== null && event.seq > seq) {
          seq = event.seq;
          on.event(event);
        }
        return true;
      });
    } finally {
      closeSync(fd);
    }
  }
  return {
    readOn,
    get seq() {
      return seq;
    },
  };
}

const MAX_PAGE = 4 * 2 ** 20;
const PIECE = 64 * 1024;
const LF = 0x0a;

/** Whole lines from `start` on with where each ends, until one says no. Returns where the first line begins that was not read. */
function eachLine(fd: number, start: number, end: number, onLine: (line: string, end: number) => boolean): number {
  let at = start;
  let held = Buffer.alloc(0);
  for (let read = start; read < end;) {
    const piece = Buffer.alloc(Math.min(PIECE, end - read));
    const length = readSync(fd, piece, 0, piece.length, read);
    if (length === 0) break;
    read += length;
    held = held.length === 0 ? piece.subarray(0, length) : Buffer.concat([held, piece.subarray(0, length)]);
    let from = 0;
    for (let line = held.indexOf(LF); line >= 0; line = held.indexOf(LF, from)) {
      const next = at + line + 1 - from;
      if (!onLine(held.toString('utf8', from, line), next)) return at;
      at = next;
      from = line + 1;
    }
    held = held.subarray(from);
  }
  return at;
}

/** Where to begin so that nothing after `after` is missed: halving the file, because numbers grow with it. */
function startOf(fd: number, size: number, after: number): number {
  if (after <= 0) return 0;
  let low = 0;
  let high = size;
  while (high - low > PIECE) {
    const middle = lineAfter(fd, size, Math.floor((low + high) / 2));
    if (middle >= high) break;
    const seq = seqAt(fd, middle);
    if (seq === null || seq > after) high = middle;
    else low = middle;
  }
  return low;
}

/** The beginning of the first line that begins at or after this place. */
function lineAfter(fd: number, size: number, place: number): number {
  if (place <= 0) return 0;
  const piece = Buffer.alloc(PIECE);
  for (let at = place - 1; at < size;) {
    const length = readSync(fd, piece, 0, PIECE, at);
    if (length === 0) break;
    const end = piece.subarray(0, length).indexOf(LF);
    if (end >= 0) return at + end + 1;
    at += length;
  }
  return size;
}

/** A line begins with its number. */
function seqAt(fd: number, at: number): number | null {
  const head = Buffer.alloc(40);
  const length = readSync(fd, head, 0, head.length, at);
  const seq = /^\{"seq":(\d+),/.exec(head.toString('latin1', 0, length))?.[1];
  return seq === undefined ? null : Number(seq);
}

function lastSeq(fd: number, size: number): number {
  for (let length = PIECE; ; length *= 8) {
    let last = 0;
    const start = lineAfter(fd, size, Math.max(0, size - length));
    eachLine(fd, start, size, (line) => {
      last = parseEvent(line)?.seq ?? last;
      return true;
    });
    if (last > 0 || size <= length) return last;
  }
}

function tryOpen(file: string): number | null {
  try {
    return openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** null: a power cut has cut it short. */
function parseEvent(line: string): EventLine | null {
  try {
    return JSON.parse(line) as EventLine;
  } catch {
    return null;
  }
}
