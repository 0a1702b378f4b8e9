// images/devcontainer/mark.ts: a random name that separates one dev container's containers and volumes from all others.
// Invariant: the mark is generated here and stored outside the project. Directory names and project files are under the control of the
// project's author: a clone must not get the volumes of another project by having its name or its files.
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../../lib/files.ts';

/** Stays the same as long as the directory exists, so that rewriting the files keeps the volumes. */
export function devContainerMark(stateDir: string, root: string): string {
  const { dev, ino, birthtimeNs } = statSync(root, { bigint: true });
  const key = createHash('sha256').update([root, dev, ino, birthtimeNs].join('\0')).digest('hex').slice(0, 32);
  const directory = join(stateDir, 'devcontainers');
  const kept = readKept(join(directory, key));
  if (kept !== null) return kept;
  const mark = randomBytes(6).toString('hex');
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  replaceFile(join(directory, key), mark);
  return mark;
}

function readKept(file: string): string | null {
  try {
    const text = readFileSync(file, 'utf8');
    return /^[0-9a-f]{12}$/.test(text) ? text : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
