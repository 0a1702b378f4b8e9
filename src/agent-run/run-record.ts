// agent-run/run-record.ts: the state of a run. Its runner changes it here; each change is written to run.json, and each move is an event.
import { advance, type RunState } from '../protocol/run-state.ts';
import { flat } from '../protocol/errors.ts';
import { phaseOf, sumsAt, timeOf } from '../protocol/run-time.ts';
import type { RunFile } from '../protocol/task.ts';
import type { EventLog } from '../store/events.ts';
import { writeRun, type StoredTask } from '../store/tasks.ts';

export interface RunRecord {
  readonly now: RunFile;
  set(changes: Partial<RunFile>): void;
  /** Clears the reason why the run waited, or why the user was needed. */
  forgetReason(): void;
  move(to: RunState): void;
  end(to: RunState, more: { reason?: string; exitCode: number | null; limit?: boolean }): void;
}

/** Writes run.json as a whole, and syncs it to disk when the run ends. */
export function createRunRecord({ paths, run }: StoredTask, events: EventLog): RunRecord {
  let now = run;
  const write = (next: RunFile, durable = false): void => {
    const nowMs = Date.now();
    now = phaseOf(next) === phaseOf(now) ? next : { ...next, time: { ...sumsAt(timeOf(now), nowMs), sinceMs: nowMs } };
    writeRun(paths, now, { durable });
  };
  return {
    get now() {
      return now;
    },
    set: (changes) => write({ ...now, ...changes }),
    forgetReason() {
      const { reason: _reason, needs: _needs, waitsUntilMs: _until, ...rest } = now;
      write(rest);
    },
    move(to) {
      write({ ...now, state: advance(now.state, to) });
      events.append({ type: 'run.moved', state: to });
    },
    end(to, { reason: given, exitCode, limit }) {
      const reason = given === undefined ? undefined : flat(given);
      const { reason: _old, needs: _needs, waitsUntilMs: _until, ...rest } = now;
      write(
        {
          ...rest,
          state: advance(now.state, to),
          exitCode,
          endedAtMs: Date.now(),
          ...(reason === undefined ? {} : { reason }),
        },
        true,
      );
      events.append({
        type: 'run.ended',
        state: to,
        ...(reason === undefined ? {} : { reason }),
        ...(limit === true ? { limit } : {}),
        exitCode,
        result: now.result ?? null,
      });
      events.sync();
    },
  };
}
