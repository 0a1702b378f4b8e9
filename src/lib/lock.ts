// lib/lock.ts: one process at a time. The lock is a file that names its holder; a dead holder's lock is taken over.
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isAlive, ownIdentity, type ProcessIdentity } from './liveness.ts';

/** null: another living process holds it. */
export function tryLock(path: string): Disposable | null {
  const mine = `${path}.${process.pid}`;
  writeFileSync(mine, JSON.stringify(ownIdentity()), { mode: 0o600 });
  try {
    // A second round is needed when the holder has died: its file is removed and the race starts again.
    for (let round = 0; round < 3; round++) {
      if (tryLink(mine, path)) return { [Symbol.dispose]: () => rmSync(path, { force: true }) };
      const holder = readHolder(path);
      if (holder !== null && isAlive(holder)) return null;
      rmSync(path, { force: true });
    }
    return null;
  } finally {
    rmSync(mine, { force: true });
  }
}

export function lockHolder(path: string): ProcessIdentity | null {
  const holder = readHolder(path);
  return holder !== null && isAlive(holder) ? holder : null;
}

// link(2) either makes the complete file or fails: nobody ever sees a lock without its holder's name.
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function readHolder(path: string): ProcessIdentity | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ProcessIdentity;
  } catch {
    return null;
  }
}
