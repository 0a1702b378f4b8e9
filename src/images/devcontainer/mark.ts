// images/devcontainer/mark.ts: what tells the containers and volumes of one dev container from those of every other on this machine.
// Invariant: it is drawn here, and remembered for one directory where no project can write. Names of directories, and files in a project, are
// chosen by whoever made it: a clone must not get the volumes of another project by having its name, or by having its files.
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../../lib/files.ts';

/** The same for as long as this directory is there: what is written again keeps its volumes. */
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
