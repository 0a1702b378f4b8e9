// run/disk-errors.ts: a disk that is full or may not be written is nothing that ags did wrong, and the user can put it right.
import { AgsError } from '../protocol/errors.ts';
import { errorCode, isDiskFull } from '../lib/error-code.ts';
import type { World } from './host-context.ts';

/** Runs it; what the disk refuses is told in words. */
export async function tellDiskTrouble<T>(
  world: Pick<World, 'stateDir' | 'cacheDir'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw inWords(world, error);
  }
}

/** The error itself, if no disk is to blame. */
export function inWords(world: Pick<World, 'stateDir' | 'cacheDir'>, error: unknown): unknown {
  for (const cause of causesOf(error)) {
    const told = explain(world, cause);
    if (told !== null) return told;
  }
  return error;
}

/** What went wrong first, and then what did while that was tidied up: a full disk refuses both. */
function causesOf(error: unknown): unknown[] {
  if (!(error instanceof Error) || error.name !== 'SuppressedError') return [error];
  const { error: later, suppressed: first } = error as SuppressedError;
  return [...causesOf(first), ...causesOf(later)];
}

/** What it meets is only in its words; git/ has put them into the error. */
function isSaidByGit(cause: unknown): boolean {
  return (
    !(cause instanceof AgsError) &&
    /^git .*(Out of diskspace|No space left on device)/s.test(String((cause as Error).message))
  );
}

function explain({ stateDir, cacheDir }: Pick<World, 'stateDir' | 'cacheDir'>, cause: unknown): AgsError | null {
  const code = errorCode(cause) ?? '';
  const path = String((cause as NodeJS.ErrnoException).path ?? stateDir);
  if (isDiskFull(cause) || isSaidByGit(cause)) {
    return new AgsError('disk.full', `There is no room left on the disk of ${path}.`, {
      hint: 'Free some space, for example with: ags cleanup',
      cause,
    });
  }
  const near = (dir: string): boolean => path === dir || path.startsWith(`${dir}/`) || dir.startsWith(`${path}/`);
  const dir = [stateDir, cacheDir].find(near);
  if (dir === undefined || !['EROFS', 'EACCES', 'EPERM'].includes(code)) return null;
  const why = code === 'EROFS' ? 'the file system is read-only' : 'permission is denied';
  return new AgsError('backend.unavailable', `ags cannot write to ${dir}: ${why}.`, {
    hint: `Have its files kept elsewhere: set ${dir === stateDir ? 'XDG_STATE_HOME' : 'XDG_CACHE_HOME'}`,
    cause,
  });
}
