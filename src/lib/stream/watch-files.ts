// lib/stream/watch-files.ts: notices changed files by polling. Polling also works for files that editors replace, and on file systems
// that other machines or containers write to, where the kernel sends no events.
import { statSync } from 'node:fs';

const EVERY_MS = 500;

export interface FileWatch {
  /** Changes since the watch was created count. */
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
