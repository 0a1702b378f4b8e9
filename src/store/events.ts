// store/events.ts: what happened, in order. Append only; each line carries a sequence number and the hash of the line
// before it, so that a line changed or removed later shows.
// Invariant: what is appended costs the same however long the log is, and a log that may not grow any further counts what it
// leaves out.
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  writeSync,
} from 'node:fs';
import type { EventLine, TaskEvent } from '../protocol/event.ts';

export interface EventLog extends Disposable {
  append(event: TaskEvent): EventLine | null;
  /** Everything appended so far survives a power cut. */
  sync(): void;
}

/**
 * Whoever holds the task writes; a merge that is settled while a runner waits or works adds a line of its own, so each looks first whether
 * the log has grown.
 */
export function openEvents(file: string, task: string, now: () => Date): EventLog {
  const fd = openSync(file, 'a+', 0o600);
  let end = findEnd(fd);
  let lost = 0;
  // A line cut short by a power cut is not a line: the chain goes on from the last whole one.
  if (fstatSync(fd).size > end.bytes) ftruncateSync(fd, end.bytes);

  function write(event: TaskEvent): EventLine {
    if (fstatSync(fd).size !== end.bytes) end = findEnd(fd);
    const { type, ...fields } = event;
    const line = { seq: end.seq + 1, at: now().toISOString(), task, type, ...fields, prev: end.digest } as EventLine;
    const text = JSON.stringify(line);
    const bytes = Buffer.from(`${text}\n`);
    try {
      for (let done = 0; done < bytes.length;) done += writeSync(fd, bytes, done);
    } catch (error) {
      // The disk is full: half a line must not stand before the next one.
      ftruncateSync(fd, end.bytes);
      throw error;
    }
    end = { seq: line.seq, digest: digest(text), bytes: end.bytes + bytes.length };
    return line;
  }

  return {
    append(event) {
      // The last word on a run must fit in, however much was said before.
      if (end.bytes > MAX_BYTES && !event.type.startsWith('run.') && !event.type.startsWith('changes.')) {
        lost += 1;
        return null;
      }
      if (lost > 0 && event.type.startsWith('run.')) {
        write({ type: 'events.lost', count: lost });
        lost = 0;
      }
      return write(event);
    },
    sync: () => fsyncSync(fd),
    [Symbol.dispose]: () => closeSync(fd),
  };
}

/** An agent can talk for as long as it runs; its own words are in its own log (agent.log), whole. */
const MAX_BYTES = 256 * 2 ** 20;

export function appendEvent(file: string, { task, at }: { task: string; at: Date }, event: TaskEvent): void {
  using log = openEvents(file, task, () => at);
  log.append(event);
}

/** The events, and the sequence number of the first one that does not fit the chain. */
export function readEvents(file: string): { events: EventLine[]; brokenAt: number | null } {
  const lines = existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    : [];
  const events: EventLine[] = [];
  let previous = '';
  for (const line of lines) {
    const event = parse(line);
    if (event === null || event.seq !== events.length + 1 || event.prev !== previous)
      return { events, brokenAt: events.length + 1 };
    events.push(event);
    previous = digest(line);
  }
  return { events, brokenAt: null };
}

function parse(line: string): EventLine | null {
  try {
    return JSON.parse(line) as EventLine;
  } catch {
    return null;
  }
}

interface End {
  readonly seq: number;
  readonly digest: string;
  readonly bytes: number;
}

function findEnd(fd: number): End {
  const last = lastWhole(fd);
  if (last === null) return { seq: 0, digest: '', bytes: 0 };
  return { seq: (JSON.parse(last.line) as EventLine).seq, digest: digest(last.line), bytes: last.end };
}

/** Read from the end, in growing pieces: the last line that is whole, and where it ends. */
function lastWhole(fd: number): { line: string; end: number } | null {
  const { size } = fstatSync(fd);
  for (let length = 64 * 1024; ; length *= 8) {
    const start = Math.max(0, size - length);
    const piece = Buffer.alloc(size - start);
    readSync(fd, piece, 0, piece.length, start);
    for (let end = piece.lastIndexOf(LF); end >= 0;) {
      const before = end === 0 ? -1 : piece.lastIndexOf(LF, end - 1);
      if (before < 0 && start > 0) break;
      const line = piece.toString('utf8', before + 1, end);
      if (parse(line) !== null) return { line, end: start + end + 1 };
      end = before;
    }
    if (start === 0) return null;
  }
}

const LF = 0x0a;

function digest(line: string): string {
  return createHash('sha256').update(line).digest('hex');
}
