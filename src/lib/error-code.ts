// lib/error-code.ts: which file-system error is this?

/** The code of an error that came from the file system (ENOENT and its like), and of no other error. */
export function errorCode(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /^E[A-Z0-9]+$/.test(code) ? code : undefined;
}

/** There is no room left, on the disk or for this user. */
export function isDiskFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes(errorCode(error) ?? '');
}
