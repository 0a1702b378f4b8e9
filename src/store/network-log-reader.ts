// store/network-log-reader.ts: reads the network log (network-log.ts), at once or while it grows.
// Invariant: everything after a line that breaks the chain is left out, and the damage is reported.
import { hash } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import type { Decision } from '../protocol/network.ts';
import { followFile } from '../lib/stream/follow-file.ts';
import { pause } from '../lib/process/pause.ts';
import type { NetworkRun } from './network-log.ts';

export interface NetworkRecord {
  readonly run: NetworkRun | null;
  readonly decisions: readonly Decision[];
  /** Number of decisions that were not written. */
  readonly lost: number;
  /** The number of the first line that breaks the chain; later lines are left out. */
  readonly brokenAt: number | null;
}

export function readNetworkLog(file: string): NetworkRecord {
  const reader = createReader();
  const bytes = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
  reader.push(bytes);
  return reader.end();
}

/** The run of a log, without reading the rest. */
export function readNetworkRun(file: string): NetworkRun | null {
  const reader = createReader();
  const chunk = Buffer.alloc(MAX_HEAD);
  const fd = openSync(file, 'r');
  try {
    reader.push(chunk.subarray(0, readSync(fd, chunk, 0, chunk.length, 0)));
  } finally {
    closeSync(fd);
  }
  return reader.run();
}

/** Longer than the longest escaped path. */
const MAX_HEAD = 64 * 1024;

/**
 * Calls for every decision from the first on, until the signal; the file may appear later. Returns the number of the first line
 * that breaks the chain: nothing after it can be trusted, so following ends there.
 */
export async function followNetworkLog(
  file: string,
  onDecision: (decision: Decision) => void,
  signal: AbortSignal,
): Promise<number | null> {
  const reader = createReader(onDecision);
  const follower = followFile(file, (chunk) => reader.push(chunk));
  try {
    while (!signal.aborted && reader.brokenAt() === null) {
      follower.readOn();
      await pause(FOLLOW_MS, signal);
    }
    // Lines written between the last read and the end.
    follower.readOn();
    return reader.brokenAt();
  } finally {
    follower.close();
  }
}

const FOLLOW_MS = 100;

export interface NetworkFollower {
  /** Reports every decision since the last call. */
  readOn(): void;
  close(): void;
}

/** The same, for a caller that polls. */
export function createNetworkReader(file: string, onDecision: (decision: Decision) => void): NetworkFollower {
  const reader = createReader(onDecision);
  return followFile(file, (chunk) => reader.push(chunk));
}

/** Accepts the bytes of a log in arbitrary pieces. */
function createReader(onDecision?: (decision: Decision) => void): {
  push(bytes: Buffer): void;
  run(): NetworkRun | null;
  brokenAt(): number | null;
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
      // Either this line or the one before it was altered, so neither counts.
      if (line?.seq === seq) decisions.pop();
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

  // A last line that a power cut has truncated is neither a line nor damage.
  function end(): NetworkRecord {
    const text = held.toString('utf8');
    if (parse(text) !== null) take(text);
    return { run, decisions, lost, brokenAt };
  }

  return { push, run: () => run, brokenAt: () => brokenAt, end };
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
