// lib/process/flock.ts: a lock that outlives its process while a program it started still runs.
// The kernel ties the lock to the open file, which programs inherit. So its new holder knows that no program of the previous one is left.
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';

export interface HeldFile extends Disposable {
  /** Inherited by every program that must end before the lock is free. */
  readonly fd: number;
}

/** null: another process still holds it after this time. */
export async function holdFile(path: string, waitSeconds: number): Promise<HeldFile | null> {
  const fd = openSync(path, 'a', 0o600);
  const code = await new Promise<number | null>((resolve) =>
    spawn('flock', ['-x', '-w', String(waitSeconds), '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] })
      .on('error', () => resolve(127))
      .on('close', resolve),
  );
  if (code === 0) return { fd, [Symbol.dispose]: () => closeSync(fd) };
  closeSync(fd);
  if (code === 127) throw new Error('the program flock (util-linux) cannot be started');
  return null;
}
