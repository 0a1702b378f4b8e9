// merge/check-run.ts: runs the command of one check in a fresh sandbox over the merged tree; its output is sanitized and bounded.
import type { Sandbox } from '../sandbox/backend.ts';
import { taskPaths } from '../store/layout.ts';
import { runClean } from '../exec/clean-run.ts';
import type { PreparedLayers } from '../workspace/prepare-snapshot.ts';
import type { RunPlan } from '../run/run-plan.ts';
import type { Printed } from '../run/output-reader.ts';
import type { HostContext } from '../run/host-context.ts';

// One stream for both outputs keeps the order of the lines.
const SCRIPT = 'exec sh -c "$1" 2>&1';

export interface CheckEnd {
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
