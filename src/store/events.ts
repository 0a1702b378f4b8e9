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

export interface EventLine {
  readonly seq: number;
  readonly at: string;
  readonly task: string;
  readonly type: string;
  readonly prev: string;
  readonly [field: string]: unknown;
}

export interface EventLog extends Disposable {
  append(event: { type: string; [field: string]: unknown }): EventLine | null;
  /** Everything appended so far survives a power cut. */
  sync(): void;
}

/** One process at a time: whoever holds the task. */
export function openEvents(file: string, task: string, now: () => Date): EventLog {
  const fd = openSync(file, 'a+', 0o600);
  const last = lastWhole(fd);
  let seq = last === null ? 0 : (JSON.parse(last.line) as EventLine).seq;
  let previous = last === null ? '' : digest(last.line);
  let size = last?.end ?? 0;
  let lost = 0;
  // A line cut short by a power cut is not a line: the chain goes on from the last whole one.
  if (fstatSync(fd).size > size) ftruncateSync(fd, size);

  function write(event: { type: string; [field: string]: unknown }): EventLine {
    const { type, ...fields } = event;
    const line = { seq: ++seq, at: now().toISOString(), task, type, ...fields, prev: previous };
    const text = JSON.stringify(line);
    const bytes = Buffer.from(`${text}\n`);
    for (let done = 0; done < bytes.length;) done += writeSync(fd, bytes, done);
    size += bytes.length;
    previous = digest(text);
    return line;
  }

  return {
    append(event) {
      // The last word on a run must fit in, however much was said before.
      if (size > MAX_BYTES && !event.type.startsWith('run.') && !event.type.startsWith('changes.')) {
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

export function appendEvent(
  file: string,
  event: { task: string; type: string; at: Date; [field: string]: unknown },
): EventLine {
  const { at, task, ...rest } = event;
  using log = openEvents(file, task, () => at);
  return log.append(rest) as EventLine;
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
