// store/network-log.ts: what was decided about each connection of a run, in order. One file per run, append only; each line
// has a number and the hash of the line before it, so that a line changed or removed later shows.
// Invariant: one decision is one line, whatever an agent put into a name: JSON leaves no line break in it. What could not be
// written is counted, and the count is a line too.
// Loads node:crypto, so import this file only when the first decision is made.
import { hash } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Decision } from '../protocol/network.ts';

export interface NetworkRun {
  readonly task: string;
  /** Absolute path. */
  readonly project: string;
  readonly startedAt: string;
}

export interface NetworkLog {
  append(decision: Decision): void;
  flush(): void;
  /** What is still to be written is written. Nothing may be appended afterwards. */
  close(): void;
  /** Why the log could not be written the last time it was tried: "ENOSPC"; null: all is well. */
  trouble(): string | null;
}

/** Nothing is made before the first decision. */
export function openNetworkLog(file: string, run: NetworkRun): NetworkLog {
  let waiting: unknown[] = [];
  let unwritten = Buffer.alloc(0);
  let timer: NodeJS.Timeout | null = null;
  let fd = -1;
  let seq = 0;
  let previous = '';
  let writtenBytes = 0;
  let lost = 0;
  let trouble: string | null = null;

  function append(decision: Decision): void {
    waiting.push({ ...decision, type: 'decision' });
    if (waiting.length >= MAX_WAITING) flush();
    // It does not keep the process alive: whoever ends the run closes the log.
    else timer ??= setTimeout(flush, COLLECT_MS).unref();
  }

  function flush(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (waiting.length > 0) unwritten = Buffer.concat([unwritten, ...takeWaiting()]);
    if (unwritten.length > 0) write();
  }

  function takeWaiting(): Buffer[] {
    const items = seq === 0 ? [{ type: 'run', ...run }, ...waiting] : waiting;
    waiting = [];
    const lines: Buffer[] = [];
    let bytes = 0;
    for (const item of items) {
      if (writtenBytes + unwritten.length + bytes >= MAX_BYTES || unwritten.length + bytes >= MAX_UNWRITTEN) lost += 1;
      else {
        const line = lineOf(item);
        lines.push(line);
        bytes += line.length;
      }
    }
    return lines;
  }

  function lineOf(item: unknown): Buffer {
    seq += 1;
    const line = JSON.stringify({ ...(item as object), seq, prev: previous });
    previous = hash('sha256', line, 'hex');
    return Buffer.from(`${line}\n`);
  }

  // A full disk must not end the run that is being logged: what is left is tried again with the next lines.
  function write(): void {
    try {
      if (fd < 0) fd = create(file);
      while (unwritten.length > 0) {
        const length = writeSync(fd, unwritten);
        unwritten = unwritten.subarray(length);
        writtenBytes += length;
      }
      trouble = null;
    } catch (error) {
      trouble = (error as NodeJS.ErrnoException).code ?? String(error);
    }
  }

  function close(): void {
    flush();
    if (lost > 0) {
      unwritten = Buffer.concat([unwritten, lineOf({ type: 'lost', count: lost })]);
      write();
    }
    if (fd >= 0) closeSync(fd);
    fd = -1;
  }

  return { append, flush, close, trouble: () => trouble };
}

const COLLECT_MS = 50;
const MAX_WAITING = 4096;
/** An agent can try to connect for as long as it runs; its tries must not fill the disk, nor our memory. */
const MAX_BYTES = 64 * 2 ** 20;
const MAX_UNWRITTEN = 4 * 2 ** 20;

function create(file: string): number {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const { O_WRONLY, O_APPEND, O_CREAT, O_EXCL } = constants;
  return openSync(file, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, 0o600);
}

export interface NetworkRecord {
  readonly run: NetworkRun | null;
  readonly decisions: readonly Decision[];
  /** Decisions that were not written down. */
  readonly lost: number;
  /** The number of the first line that does not fit the chain; what follows it is left out. */
  readonly brokenAt: number | null;
}

export function readNetworkLog(file: string): NetworkRecord {
  const reader = createReader();
  const bytes = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
  reader.push(bytes);
  return reader.end();
}

/** Calls for every decision, from the first one on, until the signal; the file may come into being later. */
export async function followNetworkLog(
  file: string,
  onDecision: (decision: Decision) => void,
  signal: AbortSignal,
): Promise<void> {
  const reader = createReader(onDecision);
  const chunk = Buffer.alloc(64 * 1024);
  let fd = -1;
  const readOn = (): void => {
    if (fd < 0 && existsSync(file)) fd = openSync(file, 'r');
    for (let length = -1; fd >= 0 && length !== 0; reader.push(chunk.subarray(0, length)))
      length = readSync(fd, chunk, 0, chunk.length, null);
  };
  try {
    while (!signal.aborted) {
      readOn();
      await pause(FOLLOW_MS, signal);
    }
    // What was written between the last look and the end.
    readOn();
  } finally {
    if (fd >= 0) closeSync(fd);
  }
}

const FOLLOW_MS = 100;

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}

/** Takes the bytes of a log in pieces, cut anywhere. */
function createReader(onDecision?: (decision: Decision) => void): {
  push(bytes: Buffer): void;
  end(): NetworkRecord;
} {
  const decisions: Decision[] = [];
  let held = Buffer.alloc(0);
  let run: NetworkRun | null = null;
  let lost = 0;
  let seq = 0;
  let previous = '';
  let brokenAt: number | null = null;

  function push(bytes: Buffer): void {
    held = held.length === 0 ? Buffer.from(bytes) : Buffer.concat([held, bytes]);
    let start = 0;
    for (let end = held.indexOf(LF); end >= 0; end = held.indexOf(LF, start)) {
      take(held.toString('utf8', start, end));
      start = end + 1;
    }
    held = held.subarray(start);
  }

  function take(text: string): void {
    if (brokenAt !== null) return;
    const line = parse(text);
    seq += 1;
    if (line === null || line.seq !== seq || line.prev !== previous) {
      brokenAt = seq;
      return;
    }
    previous = hash('sha256', text, 'hex');
    const { seq: _seq, prev: _prev, type, ...rest } = line;
    if (type === 'run') run = rest as unknown as NetworkRun;
    else if (type === 'lost') lost += Number(rest['count']);
    else if (type === 'decision') {
      const decision = rest as unknown as Decision;
      if (onDecision === undefined) decisions.push(decision);
      else onDecision(decision);
    }
  }

  // A last line that a power cut has cut short is no line, and no damage.
  function end(): NetworkRecord {
    const text = held.toString('utf8');
    if (parse(text) !== null) take(text);
    return { run, decisions, lost, brokenAt };
  }

  return { push, end };
}

const LF = 0x0a;

interface Line {
  readonly seq: number;
  readonly prev: string;
  readonly type?: string;
  readonly [field: string]: unknown;
}

function parse(text: string): Line | null {
  try {
    const line = JSON.parse(text) as Partial<Line> | null;
    return typeof line?.seq === 'number' && typeof line.prev === 'string' ? (line as Line) : null;
  } catch {
    return null;
  }
}

export interface NetworkLogFile {
  readonly file: string;
  readonly task: string;
  readonly startedAtMs: number;
}

export function networkLogFile(stateDir: string, task: string, startedAtMs: number): string {
  return join(networkDir(stateDir), `${task}-${startedAtMs}.jsonl`);
}

/** The latest first. */
export function listNetworkLogs(stateDir: string): NetworkLogFile[] {
  const dir = networkDir(stateDir);
  return (existsSync(dir) ? readdirSync(dir) : [])
    .flatMap((name) => {
      const match = /^([a-z0-9][a-z0-9-]{0,62})-(\d{1,15})\.jsonl$/.exec(name);
      return match === null ? [] : [{ file: join(dir, name), task: match[1] ?? '', startedAtMs: Number(match[2]) }];
    })
    .toSorted((a, b) => b.startedAtMs - a.startedAtMs);
}

const KEPT_MS = 30 * 86_400_000;
const KEPT = 200;

/** Those of them that nobody is expected to ask for again. */
export function oldNetworkLogs(stateDir: string, nowMs: number): NetworkLogFile[] {
  return listNetworkLogs(stateDir).filter(({ startedAtMs }, i) => i >= KEPT || nowMs - startedAtMs > KEPT_MS);
}

function networkDir(stateDir: string): string {
  return join(stateDir, 'network');
}
