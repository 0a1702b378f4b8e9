// transfer/export-history.ts: exports a task's events and network decisions as lines.
import { createReadStream, existsSync } from 'node:fs';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { EXPORT_LIMITS } from '../protocol/export.ts';
import { createLines } from '../lib/stream/lines.ts';
import { readNetworkLog } from '../store/network-log-reader.ts';
import { listNetworkLogs } from '../store/network-log.ts';
import type { Rewrite } from './portable-text.ts';

/** Without the numbers and hashes of the chain: an import begins a new chain. */
export function eventsOut(file: string, portable: Rewrite): AsyncIterable<Buffer> {
  return zipped(eventLines(file, portable));
}

async function* eventLines(file: string, portable: Rewrite): AsyncGenerator<string> {
  if (!existsSync(file)) return;
  let ready: string[] = [];
  const lines = createLines(EXPORT_LIMITS.lineBytes, (line) => {
    const event = parse(line);
    if (event === null) return;
    const { seq: _seq, prev: _prev, task: _task, ...rest } = event;
    ready.push(`${JSON.stringify(portable(rest))}\n`);
  });
  for await (const chunk of createReadStream(file)) {
    lines.push(chunk as Buffer);
    if (ready.length > 0) yield ready.join('');
    ready = [];
  }
}

export function networkOut(stateDir: string, task: string, portable: Rewrite): AsyncIterable<Buffer> {
  return zipped(decisionLines(stateDir, task, portable));
}

/** Oldest first. Skips everything after the damage in a damaged log. */
function* decisionLines(stateDir: string, task: string, portable: Rewrite): Generator<string> {
  const logs = listNetworkLogs(stateDir).filter((log) => log.task === task);
  for (const { file } of logs.toReversed())
    for (const { run: _run, ...decision } of readNetworkLog(file).decisions)
      yield `${JSON.stringify(portable(decision))}\n`;
}

export function zipped(lines: AsyncIterable<string | Buffer> | Iterable<string>): AsyncIterable<Buffer> {
  const zip = createGzip();
  const source = Readable.from(lines, { objectMode: true });
  source.on('error', (error) => zip.destroy(error));
  return source.pipe(zip);
}

function parse(line: string): Record<string, unknown> | null {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    // A power cut may have truncated the line.
    return null;
  }
}
