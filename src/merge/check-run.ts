// merge/check-run.ts: one check: its command in a fresh sandbox over the merged tree, and what it prints, made harmless and kept within bounds.
import type { Sandbox } from '../sandbox/backend.ts';
import { taskPaths } from '../store/layout.ts';
import { runClean } from '../exec/clean-run.ts';
import type { PreparedLayers } from '../workspace/prepare-snapshot.ts';
import type { RunPlan } from '../run/plan-run.ts';
import type { Printed } from '../run/output-reader.ts';
import type { World } from '../run/host-context.ts';

// Both streams are one, so that lines come in the order in which they were written.
const SCRIPT = 'exec sh -c "$1" 2>&1';

export interface CheckEnd {
  readonly exitCode: number;
  /** Why it was ended, in words. */
  readonly why: string | null;
  readonly denied: readonly string[];
}

export async function runCheck(
  world: World,
  plan: RunPlan,
  over: PreparedLayers,
  directory: string,
  check: {
    readonly n: number;
    readonly run: string;
    readonly task: string;
    readonly seconds: number | null;
    readonly printed: Printed;
    /** The commit whose files fill the services: of the branch, not of the agent. */
    readonly seeds: string;
    readonly signal: AbortSignal;
  },
): Promise<CheckEnd> {
  const reading: Promise<void>[] = [];
  const outcome = await runClean(world, plan, over, taskPaths(directory, `check-${check.n}`), {
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
