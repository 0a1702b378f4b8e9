// server/check-runs.ts: the checks that this server started on request.
// Invariant: the checks and everything they created end with the server.
import { AgsError } from '../protocol/errors.ts';
import type { StoredTask } from '../store/tasks.ts';
import { openChecks, type ChecksRequest } from '../merge/checks.ts';
import type { HostContext } from '../run/host-context.ts';

export interface CheckRuns {
  /** Resolves once the checks have started; rejects if they cannot start. */
  start(stored: StoredTask, request: ChecksRequest): Promise<void>;
  close(): Promise<void>;
}

export function createCheckRuns(
  context: HostContext,
  on: { changed(task: string): void; bug(error: unknown): void },
): CheckRuns {
  const closing = new AbortController();
  const going = new Set<Promise<void>>();
  return {
    async start(stored, request) {
      const { id } = stored.task;
      const checks = await openChecks(context, stored, request);
      const listener = { step: () => undefined, changed: () => on.changed(id), printed: () => undefined };
      const run = checks.run(listener, closing.signal).then(
        () => undefined,
        // The checks' own record holds the reason of an expected failure.
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
