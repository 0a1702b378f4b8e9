// store/events.ts: what happened, in order. Append only; each line carries a sequence number and the hash of the line
// before it, so that a line changed or removed later shows.
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

export interface EventLine {
  readonly seq: number;
  readonly at: string;
  readonly task: string;
  readonly type: string;
  readonly prev: string;
  readonly [field: string]: unknown;
}

export function appendEvent(
  file: string,
  event: { task: string; type: string; at: Date; [field: string]: unknown },
): EventLine {
  const last = lastLine(file);
  const { at, task, type, ...fields } = event;
  const line = {
    seq: last === null ? 1 : (JSON.parse(last) as EventLine).seq + 1,
    at: at.toISOString(),
    task,
    type,
    ...fields,
    prev: last === null ? '' : digest(last),
  };
  appendFileSync(file, `${JSON.stringify(line)}\n`, { mode: 0o600 });
  return line;
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

function lastLine(file: string): string | null {
  if (!existsSync(file)) return null;
  // A line cut short by a power cut is not a line: the chain goes on from the last whole one.
  return (
    readFileSync(file, 'utf8')
      .split('\n')
      .slice(0, -1)
      .findLast((line) => parse(line) !== null) ?? null
  );
}

function digest(line: string): string {
  return createHash('sha256').update(line).digest('hex');
}
