// store/bounded-log.ts: a log of a program's output that stays small, however much the program prints.
import { closeSync, existsSync, fstatSync, openSync, readSync, renameSync, writeSync } from 'node:fs';

const LOG_BYTES = 2 * 2 ** 20;

export interface BoundedLog extends Disposable {
  append(text: string): void;
}

/** Keeps the end of the output: the latest megabytes, and at most as many before them. */
export function openBoundedLog(path: string): BoundedLog {
  let fd = openSync(path, 'w', 0o600);
  let bytes = 0;
  // After a close, the descriptor's number may belong to another file.
  const close = (): void => {
    if (fd >= 0) closeSync(fd);
    fd = -1;
  };
  return {
    append(text) {
      if (fd < 0) return;
      const content = Buffer.from(text);
      if (bytes + content.length > LOG_BYTES && bytes > 0) {
        close();
        renameSync(path, `${path}.before`);
        fd = openSync(path, 'w', 0o600);
        bytes = 0;
      }
      writeSync(fd, content);
      bytes += content.length;
    },
    [Symbol.dispose]: close,
  };
}

/** The last part of the output. `cut`: there was more. */
export function readBoundedLog(path: string, maxBytes: number): { text: string; cut: boolean } {
  const now = readEnd(path, maxBytes);
  const rest = maxBytes - now.bytes.length;
  const before =
    rest > 0 ? readEnd(`${path}.before`, rest) : { bytes: Buffer.alloc(0), cut: existsSync(`${path}.before`) };
  return { text: Buffer.concat([before.bytes, now.bytes]).toString('utf8'), cut: now.cut || before.cut };
}

function readEnd(path: string, maxBytes: number): { bytes: Buffer; cut: boolean } {
  if (!existsSync(path)) return { bytes: Buffer.alloc(0), cut: false };
  const fd = openSync(path, 'r');
  try {
    const { size } = fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(size, maxBytes));
    const read = readSync(fd, bytes, 0, bytes.length, size - bytes.length);
    return { bytes: bytes.subarray(0, read), cut: size > maxBytes };
  } finally {
    closeSync(fd);
  }
}
