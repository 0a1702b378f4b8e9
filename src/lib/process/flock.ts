// lib/process/flock.ts: a lock that outlives its process for as long as a program it started still runs.
// The kernel ties it to the open file, which programs inherit: who gets the lock knows that nobody of before is still at work.
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';

export interface HeldFile extends Disposable {
  /** To be inherited by every program that must have ended before somebody else may begin. */
  readonly fd: number;
}

/** null: others have it, and still had it after this long. */
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
