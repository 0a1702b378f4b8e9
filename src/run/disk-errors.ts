// run/disk-errors.ts: reports a full or read-only disk as an error that the user can fix, not as a bug of ags.
import { AgsError } from '../protocol/errors.ts';
import { errorCode, isDiskFull } from '../lib/error-code.ts';
import type { HostContext } from './host-context.ts';

/** Runs `work` and explains disk errors. */
export async function explainDiskErrors<T>(
  context: Pick<HostContext, 'stateDir' | 'cacheDir'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw inWords(context, error);
  }
}

/** The error itself, if the disk is not the cause. */
export function inWords(context: Pick<HostContext, 'stateDir' | 'cacheDir'>, error: unknown): unknown {
  for (const cause of causesOf(error)) {
    const told = explain(context, cause);
    if (told !== null) return told;
  }
  return error;
}

/** The first error, then errors during cleanup: a full disk causes both. */
function causesOf(error: unknown): unknown[] {
  if (!(error instanceof Error) || error.name !== 'SuppressedError') return [error];
  const { error: later, suppressed: first } = error as SuppressedError;
  return [...causesOf(first), ...causesOf(later)];
}

/** git reports a full disk only in its messages; git/ puts them into the error. */
function isSaidByGit(cause: unknown): boolean {
  return (
    !(cause instanceof AgsError) &&
    /^git .*(Out of diskspace|No space left on device)/s.test(String((cause as Error).message))
  );
}

function explain({ stateDir, cacheDir }: Pick<HostContext, 'stateDir' | 'cacheDir'>, cause: unknown): AgsError | null {
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
    hint: `Choose another directory: set ${dir === stateDir ? 'XDG_STATE_HOME' : 'XDG_CACHE_HOME'}`,
    cause,
  });
}
