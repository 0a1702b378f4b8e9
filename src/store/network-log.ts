// store/network-log.ts: the decisions about connections of a run, in order. One append-only file per run; each line has a
// number and the hash of the line before it, so that a later change or removal is detected.
// Invariant: one decision is one line, whatever an agent puts into a name, because JSON escapes line breaks. Decisions that
// could not be written are counted, and the count is a line too.
// Loads node:crypto, so import this file only when the first decision is made.
import { hash } from 'node:crypto';
import { closeSync, constants, existsSync, mkdirSync, openSync, readdirSync, writeSync } from 'node:fs';
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
  /** Writes all buffered lines. Nothing may be appended afterwards. */
  close(): void;
  /** The error of the last failed write, "ENOSPC" for example; null: none. */
  trouble(): string | null;
}

/** Creates no file before the first decision. */
export function openNetworkLog(file: string, run: NetworkRun): NetworkLog {
  let waiting: Decision[] = [];
  let unwritten = Buffer.alloc(0);
  let timer: NodeJS.Timeout | null = null;
  let fd = -1;
  let seq = 0;
  let previous = '';
  let writtenBytes = 0;
  let lost = 0;
  let trouble: string | null = null;

  function append(decision: Decision): void {
    waiting.push(decision);
    if (waiting.length >= MAX_WAITING) flush();
    // The timer does not keep the process alive: the runner closes the log.
    else timer ??= setTimeout(flush, COLLECT_MS).unref();
  }

  function flush(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (waiting.length > 0) unwritten = Buffer.concat([unwritten, ...takeWaiting()]);
    if (unwritten.length > 0) write();
  }

  function takeWaiting(): Buffer[] {
    const items = waiting;
    waiting = [];
    const lines: Buffer[] = seq === 0 ? [lineOf('run', run)] : [];
    let bytes = 0;
    for (const item of items) {
      if (writtenBytes + unwritten.length + bytes >= MAX_BYTES || unwritten.length + bytes >= MAX_UNWRITTEN) lost += 1;
      else {
        const line = lineOf('decision', item);
        lines.push(line);
        bytes += line.length;
      }
    }
    return lines;
  }

  // Our fields come last, and in JSON the last of equal keys counts.
  function lineOf(type: 'run' | 'decision' | 'lost', item: object): Buffer {
    seq += 1;
    const line = `${JSON.stringify(item).slice(0, -1)},"type":"${type}","seq":${seq},"prev":"${previous}"}`;
    previous = hash('sha256', line, 'hex');
    return Buffer.from(`${line}\n`);
  }

  // A full disk must not end the logged run: unwritten lines are tried again with the next ones.
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
      unwritten = Buffer.concat([unwritten, lineOf('lost', { count: lost })]);
      write();
    }
    if (fd >= 0) closeSync(fd);
    fd = -1;
  }

  return { append, flush, close, trouble: () => trouble };
}

const COLLECT_MS = 50;
const MAX_WAITING = 4096;
/** An agent can try to connect as long as it runs; the log must fill neither the disk nor our memory. */
const MAX_BYTES = 64 * 2 ** 20;
const MAX_UNWRITTEN = 4 * 2 ** 20;

function create(file: string): number {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const { O_WRONLY, O_APPEND, O_CREAT, O_EXCL } = constants;
  return openSync(file, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, 0o600);
}

export interface NetworkLogFile {
  readonly file: string;
  readonly task: string;
  readonly startedAtMs: number;
}

export function networkLogFile(stateDir: string, task: string, startedAtMs: number): string {
  return join(networkDir(stateDir), `${task}-${startedAtMs}.jsonl`);
}

/** Latest first. */
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

/** Logs that are old enough to remove. */
export function oldNetworkLogs(stateDir: string, nowMs: number): NetworkLogFile[] {
  return listNetworkLogs(stateDir).filter(({ startedAtMs }, i) => i >= KEPT || nowMs - startedAtMs > KEPT_MS);
}

function networkDir(stateDir: string): string {
  return join(stateDir, 'network');
}
