// server/check-runs.ts: the checks that this server runs for those who asked for them.
// Invariant: they end with the server, and so does all that they made.
import { AgsError } from '../protocol/errors.ts';
import type { StoredTask } from '../store/tasks.ts';
import { openChecks, type ChecksRequest } from '../merge/checks.ts';
import type { World } from '../run/host-context.ts';

export interface CheckRuns {
  /** Returns when they have begun; what keeps them from beginning is thrown. */
  start(stored: StoredTask, request: ChecksRequest): Promise<void>;
  close(): Promise<void>;
}

export function createCheckRuns(
  world: World,
  on: { changed(task: string): void; bug(error: unknown): void },
): CheckRuns {
  const closing = new AbortController();
  const going = new Set<Promise<void>>();
  return {
    async start(stored, request) {
      const { id } = stored.task;
      const checks = await openChecks(world, stored, request);
      const listener = { step: () => undefined, changed: () => on.changed(id), printed: () => undefined };
      const run = checks.run(listener, closing.signal).then(
        () => undefined,
        // Why they could not be run is in their record.
        (error: unknown) => (error instanceof AgsError ? undefined : on.bug(error)),
      );
      const kept = run.finally(() => {
        going.delete(kept);
        on.changed(id);
      });
      going.add(kept);
    },
    async close() {
      closing.abort();
      await Promise.all(going);
    },
  };
}
