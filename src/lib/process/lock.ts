// lib/process/lock.ts: one process at a time. The lock is a file that names its holder; a dead holder's lock is taken over.
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isAlive, ownIdentity, type ProcessIdentity } from './liveness.ts';

/** null: another live process holds it. */
export function tryLock(path: string): Disposable | null {
  const mine = `${path}.${process.pid}`;
  try {
    writeFileSync(mine, JSON.stringify(ownIdentity()), { mode: 0o600 });
    const held = { [Symbol.dispose]: () => rmSync(path, { force: true }) };
    // Another round is needed when the lock was released between two checks.
    for (let round = 0; round < 3; round++) {
      if (tryLink(mine, path)) return held;
      const holder = readHolder(path);
      if (holder === null) continue;
      if (isAlive(holder)) return null;
      if (takeOver(path, mine, holder)) return held;
    }
    return null;
  } finally {
    rmSync(mine, { force: true });
  }
}

/** The dead holder's lock may have been replaced meanwhile, so taking it over needs its own lock and a second check. */
function takeOver(path: string, mine: string, dead: ProcessIdentity): boolean {
  using takeOverLock = tryLock(`${path}.${dead.pid}-${dead.startTicks.split(':').at(-1)}`);
  if (takeOverLock === null) return false;
  const now = readHolder(path);
  if (now?.pid !== dead.pid || now.startTicks !== dead.startTicks) return false;
  renameSync(mine, path);
  return true;
}

export function lockHolder(path: string): ProcessIdentity | null {
  const holder = readHolder(path);
  return holder !== null && isAlive(holder) ? holder : null;
}

// link(2) either creates the complete file or fails: no process ever sees a lock without its holder.
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** null: there is no lock. An unreadable lock, after a power cut perhaps, counts as one of a dead holder. */
function readHolder(path: string): ProcessIdentity | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ProcessIdentity;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? null : { pid: 0, startTicks: '' };
  }
}
