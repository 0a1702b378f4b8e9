// agent-run/stop-checks.ts: stops the checks of a task, whichever process runs them.
import { setTimeout as sleep } from 'node:timers/promises';
import { callControl } from '../lib/process/control.ts';
import { lockHolder } from '../lib/process/lock.ts';
import type { TaskPaths } from '../store/layout.ts';

const ANSWER_MS = 3000;
const PATIENCE_MS = 10_000;

/** Returns false if none were running. Waits up to about 10 s until their directory is removed. */
export async function stopChecks(paths: Pick<TaskPaths, 'checksDir' | 'checksLock'>): Promise<boolean> {
  if (lockHolder(paths.checksLock) === null) return false;
  let heard = false;
  for (let waitMs = 5; waitMs < PATIENCE_MS && lockHolder(paths.checksLock) !== null; waitMs *= 2) {
    // Checks that just started may not listen yet.
    if (!heard) heard = (await callControl(paths.checksDir, { do: 'stop' }, ANSWER_MS)) !== null;
    await sleep(waitMs);
  }
  return heard;
}
