// merge/check-record.ts: runs each check and keeps the record; every change is written to checks.json.
import { runClean } from '../exec/clean-run.ts';
import type { CheckRecord, ChecksFile } from '../protocol/checks.ts';
import { ownIdentity } from '../lib/process/liveness.ts';
import type { ChecksConfig } from '../config/effective.ts';
import type { RunPlan } from '../run/run-plan.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { checkLogPath, dropChecks, makeChecksDir, writeChecks } from '../store/checks.ts';
import { taskPaths } from '../store/layout.ts';
import type { StoredTask } from '../store/tasks.ts';
import { openOutput, type Printed } from '../run/output-reader.ts';
import type { PreparedLayers } from '../workspace/prepare-snapshot.ts';
import type { MergedBranch } from './merge-tree.ts';
import type { HostContext } from '../run/host-context.ts';

export interface ChecksListener {
  /** Reports the current preparation step. */
  step(text: string): void;
  /** Reports the record after a change. */
  changed(file: ChecksFile): void;
  /** Output of check number `n`, made safe for a terminal. */
  printed(n: number, text: string): void;
}

export interface CheckRecorder {
  readonly now: ChecksFile;
  /** Aborted when the task is removed. */
  readonly gone: AbortSignal;
  listen(listener: ChecksListener): void;
  set(changes: Partial<ChecksFile>): void;
  addFirst(check: { readonly name: string; readonly run: string }): void;
  /** Records one check from its start to its end. */
  during(n: number, act: (printed: Printed) => Promise<CheckEnd>): Promise<void>;
  skip(n: number, state: 'failed' | 'ended', why: string): void;
  skipRest(why: string): void;
  /** `reason`: why there is no result; null if there is one. */
  end(reason: string | null): ChecksFile;
}

const MOST_HOSTS = 20;

export function createRecorder(
  context: HostContext,
  { paths, task }: StoredTask,
  merged: MergedBranch,
  config: ChecksConfig,
): CheckRecorder {
  const gone = new AbortController();
  let listener: ChecksListener | null = null;
  const nowMs = (): number => context.now().getTime();
  let now: ChecksFile = {
    version: 1,
    state: 'running',
    reason: null,
    tree: merged.tree,
    ref: merged.ref,
    from: merged.from,
    result: merged.agent.commit,
    files: merged.take.length,
    setup: null,
    checks: config.run.map(waiting),
    denied: [],
    startedAtMs: nowMs(),
    endedAtMs: null,
    runner: ownIdentity(),
    layers: [],
  };
  const set = (changes: Partial<ChecksFile>): void => {
    now = { ...now, ...changes };
    if (!writeChecks(paths, now)) gone.abort();
    listener?.changed(now);
  };
  const change = (n: number, changes: Partial<CheckRecord>, more: Partial<ChecksFile> = {}): void =>
    set({ ...more, checks: now.checks.map((one, i) => (i === n ? { ...one, ...changes } : one)) });
  makeChecksDir(paths);
  set({});
  if (gone.signal.aborted) throw new Error(`the directory of ${task.id} is gone`);

  return {
    get now() {
      return now;
    },
    gone: gone.signal,
    listen: (one) => void (listener = one),
    set,
    addFirst: (check) => set({ checks: [waiting(check), ...now.checks] }),
    async during(n, act) {
      change(n, { state: 'running', startedAtMs: nowMs() });
      using printed = openOutput(checkLogPath(paths, n), (text) => listener?.printed(n, text));
      try {
        const end = await act(printed);
        printed.end();
        const failed = end.exitCode !== 0 || end.why !== null;
        change(
          n,
          {
            state: failed ? 'failed' : 'passed',
            exitCode: end.exitCode,
            endedAtMs: nowMs(),
            why: end.why,
            line: failed ? (end.why ?? printed.line()) : null,
            tail: printed.tail(),
          },
          { denied: [...new Set([...now.denied, ...end.denied])].slice(0, MOST_HOSTS) },
        );
      } catch (error) {
        change(n, { state: 'ended', endedAtMs: nowMs(), why: 'It was stopped.', tail: printed.tail() });
        throw error;
      }
    },
    skip: (n, state, why) => change(n, { state, why, line: why }),
    skipRest: (why) =>
      set({ checks: now.checks.map((one) => (one.state === 'waiting' ? { ...one, state: 'ended', why } : one)) }),
    end(reason) {
      const checks = now.checks.map((one): CheckRecord => {
        if (one.state === 'waiting' || one.state === 'running') return { ...one, state: 'ended', why: reason };
        // A check that was interrupted did not fail by itself.
        return reason !== null &&
          one.state === 'failed' &&
          one === now.checks.findLast(({ startedAtMs }) => startedAtMs !== null)
          ? { ...one, state: 'ended', why: reason, line: null }
          : one;
      });
      const passed = checks.every(({ state }) => state === 'passed');
      const state = reason !== null ? 'ended' : passed ? 'passed' : 'failed';
      try {
        set({ state, reason, checks, endedAtMs: nowMs(), layers: [] });
      } catch (error) {
        dropChecks(paths);
        throw error;
      }
      return now;
    },
  };
}

function waiting({ name, run }: { readonly name: string; readonly run: string }): CheckRecord {
  return {
    name,
    run,
    state: 'waiting',
    exitCode: null,
    startedAtMs: null,
    endedAtMs: null,
    why: null,
    line: null,
    tail: [],
  };
}

// One stream for both outputs keeps the order of the lines.
const SCRIPT = 'exec sh -c "$1" 2>&1';

interface CheckEnd {
  readonly exitCode: number;
  /** Why it was stopped, as a sentence. */
  readonly why: string | null;
  readonly denied: readonly string[];
}

export async function runCheck(
  context: HostContext,
  plan: RunPlan,
  over: PreparedLayers,
  directory: string,
  check: {
    readonly n: number;
    readonly run: string;
    readonly task: string;
    readonly seconds: number | null;
    readonly printed: Printed;
    /** The commit whose files seed the services: the branch's, never the agent's. */
    readonly seeds: string;
    readonly signal: AbortSignal;
  },
): Promise<CheckEnd> {
  const reading: Promise<void>[] = [];
  const outcome = await runClean(context, plan, over, taskPaths(directory, `check-${check.n}`), {
    task: check.task,
    command: ['sh', '-c', SCRIPT, 'sh', check.run],
    seconds: check.seconds,
    onStart(sandbox) {
      for (const stream of [sandbox.stdout, sandbox.stderr])
        if (stream !== null) reading.push(read(stream, check.printed));
      for (const one of reading) one.catch(() => sandbox.kill());
    },
    notice: (text) => check.printed.text(`${text}\n`),
    services: { commit: check.seeds },
    signal: check.signal,
  });
  await Promise.all(reading);
  return {
    exitCode: outcome.exitCode,
    why: outcome.ended?.replace('limits.time', 'checks.timeout') ?? null,
    denied: outcome.denied.map(({ host, port }) => `${host}:${port}`),
  };
}

async function read(stream: NonNullable<Sandbox['stdout']>, printed: Printed): Promise<void> {
  for await (const chunk of stream) printed.bytes(chunk as Buffer);
}
