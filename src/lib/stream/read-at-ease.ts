// lib/stream/read-at-ease.ts: reads the output of an untrusted program without blocking this process, however much it prints.
// Invariant: the clock is checked after every few lines, and a program that prints faster than it is read has to wait.
import { setImmediate } from 'node:timers/promises';

const AT_ONCE_MS = 10;
const LINES_AT_ONCE = 64;

/** `onChunk` gets the data as it arrives; `onPiece` gets it again in pieces of a few lines. */
export async function readAtEase(
  source: NodeJS.ReadableStream,
  onChunk: (chunk: Buffer) => void,
  onPiece: (piece: Buffer) => void,
): Promise<void> {
  let until = performance.now() + AT_ONCE_MS;
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      onChunk(chunk);
      for (let start = 0, end = 0; start < chunk.length; start = end) {
        end = endOfLines(chunk, start);
        onPiece(chunk.subarray(start, end));
        if (performance.now() < until) continue;
        await setImmediate();
        until = performance.now() + AT_ONCE_MS;
      }
    }
  } catch (error) {
    // The streams of a killed program may close before their end.
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE')) throw error;
  }
}

function endOfLines(chunk: Buffer, start: number): number {
  let end = start;
  for (let lines = 0; lines < LINES_AT_ONCE; lines++) {
    const at = chunk.indexOf(LF, end);
    if (at === -1) return chunk.length;
    end = at + 1;
  }
  return end;
}

const LF = 0x0a;
