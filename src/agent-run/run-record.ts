// agent-run/run-record.ts: the state of a run, in the hands of its runner: what is set here is in run.json, and each move is an event.
import { advance, type RunState } from '../protocol/run-state.ts';
import type { RunFile } from '../protocol/task.ts';
import type { EventLog } from '../store/events.ts';
import { writeRun, type StoredTask } from '../store/tasks.ts';

export interface RunKeeper {
  readonly now: RunFile;
  set(changes: Partial<RunFile>): void;
  /** What somebody was needed for. */
  forgetNeed(): void;
  move(to: RunState): void;
  end(to: RunState, more: { reason?: string; exitCode: number | null }): void;
}

/** run.json is written whole, and made to last when the run is over. */
export function createRunKeeper({ paths, run }: StoredTask, events: EventLog): RunKeeper {
  let now = run;
  const write = (next: RunFile, durable = false): void => writeRun(paths, (now = next), { durable });
  return {
    get now() {
      return now;
    },
    set: (changes) => write({ ...now, ...changes }),
    forgetNeed() {
      const { reason: _reason, needs: _needs, ...rest } = now;
      write(rest);
    },
    move(to) {
      write({ ...now, state: advance(now.state, to) });
      events.append({ type: 'run.moved', state: to });
    },
    end(to, { reason, exitCode }) {
      const { reason: _old, needs: _needs, ...rest } = now;
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
        exitCode,
        result: now.result ?? null,
      });
      events.sync();
    },
  };
}
