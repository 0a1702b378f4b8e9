// lib/stream/follow-file.ts: reads a file that other processes append to. The file may be created later.
import { closeSync, existsSync, openSync, readSync } from 'node:fs';

export interface FileFollower {
  /** Reads everything new, in pieces whose memory is reused. */
  readOn(): void;
  close(): void;
}

export function followFile(file: string, onChunk: (chunk: Buffer) => void): FileFollower {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  let fd = -1;
  return {
    readOn() {
      if (fd < 0 && existsSync(file)) fd = openSync(file, 'r');
      if (fd < 0) return;
      for (;;) {
        const length = readSync(fd, chunk, 0, CHUNK_BYTES, null);
        if (length === 0) return;
        onChunk(chunk.subarray(0, length));
      }
    },
    close() {
      if (fd >= 0) closeSync(fd);
    },
  };
}

const CHUNK_BYTES = 64 * 1024;
