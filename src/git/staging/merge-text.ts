// git/staging/merge-text.ts: merges three versions of a file with git's own text merge, on copies in a directory of ours.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../lib/process/process.ts';
import { ISOLATED_ENV } from '../host-git.ts';

export interface Merge {
  readonly text: Buffer;
  /** False if both changed the same lines; the text then has both, with git's conflict markers. */
  readonly clean: boolean;
}

/** Returns null if they are not text. */
export async function mergeText(
  scratch: string,
  versions: { base: Buffer; host: Buffer; sandbox: Buffer },
): Promise<Merge | null> {
  if (Object.values(versions).some((bytes) => bytes.includes(0) || bytes.length > 8 * 1024 * 1024)) return null;
  const dir = mkdtempSync(join(scratch, 'merge-'));
  try {
    const file = (name: keyof typeof versions): string => join(dir, name);
    for (const name of ['base', 'host', 'sandbox'] as const) writeFileSync(file(name), versions[name]);
    const labels = ['-L', 'yours', '-L', 'before', '-L', 'sandbox'];
    const merged = await run(
      ['git', 'merge-file', '-p', '-q', ...labels, file('host'), file('base'), file('sandbox')],
      {
        cwd: dir,
        env: ISOLATED_ENV,
        maxBytes: 64 * 1024 * 1024,
      },
    );
    // The exit code counts conflicts up to 127; a higher code is a failure.
    return merged.exitCode <= 127 ? { text: merged.stdout, clean: merged.exitCode === 0 } : null;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
