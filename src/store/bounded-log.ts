// store/bounded-log.ts: what a program prints for as long as it likes, in a file that stays small.
import { closeSync, existsSync, fstatSync, openSync, readSync, renameSync, writeSync } from 'node:fs';

const LOG_BYTES = 2 * 2 ** 20;

export interface BoundedLog extends Disposable {
  append(text: string): void;
}

/** The end of what was printed is kept: the latest megabytes, and at most as many before them. */
export function openBoundedLog(path: string): BoundedLog {
  let fd = openSync(path, 'w', 0o600);
  let bytes = 0;
  // A descriptor that was given back may be somebody else's by now.
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

/** The last part of what it printed. `cut`: there was more. */
export function readBoundedLog(path: string, maxBytes: number): { text: string; cut: boolean } {
  const now = readEnd(path, maxBytes);
  const room = maxBytes - now.bytes.length;
  const before =
    room > 0 ? readEnd(`${path}.before`, room) : { bytes: Buffer.alloc(0), cut: existsSync(`${path}.before`) };
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
