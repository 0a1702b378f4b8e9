// lib/stream/watch-files.ts: notice that a file has changed, also one that editors replace, and one on a file system that other machines
// or containers write to, where the kernel tells nothing: by looking.
import { statSync } from 'node:fs';

const EVERY_MS = 500;

export interface FileWatch {
  /** What has changed since the watch was made counts. */
  start(onChange: () => void): Disposable;
}

export function watchFiles(paths: readonly string[]): FileWatch {
  const look = (): string => paths.map(stampOf).join(' ');
  let before = look();
  return {
    start(onChange) {
      const timer = setInterval(() => {
        const now = look();
        if (now === before) return;
        before = now;
        onChange();
      }, EVERY_MS).unref();
      return { [Symbol.dispose]: () => clearInterval(timer) };
    },
  };
}

function stampOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(',');
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}
