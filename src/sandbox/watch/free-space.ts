// sandbox/watch/free-space.ts: warns when a file system is nearly full, for programs whose writing no sandbox limit counts.
import { statfs } from 'node:fs/promises';
import { readableSize } from '../../lib/units.ts';
import { freeBreach } from './governor-rules.ts';
import { freeFloor } from './limits.ts';

const LOOK_MS = 1000;

/** The reason to stop writing there, as part of a sentence. Null: there is room, or the file system cannot be read. */
export async function nearlyFull(directory: string): Promise<string | null> {
  const space = await statfs(directory).catch(() => null);
  if (space === null) return null;
  const leastBytes = space.bavail * space.bsize;
  const free = { bytes: leastBytes, files: space.ffree, leastBytes, leastFiles: space.ffree, totalFiles: space.files };
  const breach = freeBreach(free, freeFloor(space));
  if (breach === null) return null;
  const left = breach.unit === 'bytes' ? readableSize(breach.used) : `room for ${breach.used} files`;
  return `the disk of ${directory} is nearly full (${left} left)`;
}

/** Calls `onFull` once. */
export function watchFree(directory: string, onFull: (why: string) => void): Disposable {
  const look = async (): Promise<void> => {
    const why = await nearlyFull(directory);
    if (why === null || over) return;
    end();
    onFull(why);
  };
  let over = false;
  const timer = setInterval(() => void look(), LOOK_MS).unref();
  const end = (): void => {
    over = true;
    clearInterval(timer);
  };
  return { [Symbol.dispose]: end };
}
