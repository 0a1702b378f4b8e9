// exec/clean-run.ts: runs a project's own commands, such as setup and checks, in a fresh sandbox over layers.
// They get the project's network rules, an empty home, and neither secrets nor ports of the host: they may run untrusted code.
import { mkdirSync } from 'node:fs';
import { NOTHING_MORE } from '../sandbox/spec/plan-sandbox.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import type { TaskPaths } from '../store/layout.ts';
import { createAgentRun, describeAgentRun } from '../workspace/agent-workspace.ts';
import { nestedDockerFor } from '../nested-docker/nested-docker.ts';
import type { PreparedLayers } from '../workspace/prepare-snapshot.ts';
import { hasServices } from '../run/planned-services.ts';
import { planNetworkAndServices } from '../run/plan-run.ts';
import type { RunPlan } from '../run/run-plan.ts';
import { openRunNetwork, type DeniedHost } from '../run/network/run-network.ts';
import type { SeedSource } from '../workspace/seed-files.ts';
import { runSandboxed, writtenBy } from '../run/run-sandboxed.ts';
import type { HostContext } from '../run/host-context.ts';

export interface CleanRun {
  readonly task: string;
  readonly command: readonly string[];
  /** null: no limit. */
  readonly seconds: number | null;
  /** The sandbox's standard output and error are pipes. */
  onStart(sandbox: Sandbox): void;
  notice(text: string): void;
  /** The source of the services' seed files; null: run without services. */
  readonly services: SeedSource | null;
  readonly signal: AbortSignal;
}

/** Creates everything below `paths`, which must be unused. */
export async function runClean(
  context: HostContext,
  plan: RunPlan,
  base: PreparedLayers,
  paths: TaskPaths,
  want: CleanRun,
): Promise<{ exitCode: number; ended: string | null; denied: readonly DeniedHost[] }> {
  const config = {
    ...plan.config,
    secrets: [],
    network: { ...plan.config.network, publish: [] },
    services: want.services === null ? [] : plan.config.services,
    compose: want.services === null ? null : plan.config.compose,
  };
  mkdirSync(paths.root, { recursive: true, mode: 0o700 });
  const inside = await planNetworkAndServices(context, config, context.uid === 0 || plan.namespaces);
  const over = await withComposed(context, { ...plan, config, ...inside }, paths, want);
  const { network, services: planned } = over;
  await createAgentRun(over, paths, want.task, base);
  const made = describeAgentRun(context, over, paths, want.task, base, NOTHING_MORE);
  const spec = { ...made, limits: { ...made.limits, wallSeconds: want.seconds } };
  const failed = new AbortController();
  let failure: string | null = null;
  await using docker = nestedDockerFor({
    context,
    id: want.task,
    config,
    secrets: network.secrets,
    notice: want.notice,
  });
  await using services =
    !hasServices(planned) || want.services === null
      ? null
      : await import('../services/run-services.ts').then(({ openRunServices }) =>
          openRunServices({
            context,
            plan: over,
            task: want.task,
            paths,
            source: want.services ?? 'live',
            docker,
            keep: false,
            onEvent(event) {
              if (event.type !== 'service.failed') return;
              failure ??= event.why;
              want.notice([event.why, ...event.lines].join('\n'));
              failed.abort();
            },
          }),
        );
  await using running = openRunNetwork({
    context,
    id: want.task,
    startedAtMs: context.now().getTime(),
    project: plan.project.root,
    events: paths.events,
    config,
    grants: network.grants,
    secrets: network.secrets,
    notice: want.notice,
    services,
    docker,
  });
  const ended = AbortSignal.any([want.signal, failed.signal]);
  await Promise.race([services?.up, aborted(ended)]);
  if (failed.signal.aborted) return { exitCode: 1, ended: failure, denied: [] };
  const outcome = await runSandboxed({
    context,
    plan,
    id: want.task,
    network: running,
    command: want.command,
    spec,
    runDir: paths.runDir,
    written: writtenBy(paths),
    signal: ended,
    onStart: (sandbox) => want.onStart(sandbox),
  });
  return {
    exitCode: failure === null ? outcome.exitCode : outcome.exitCode || 1,
    ended: failure ?? outcome.ended,
    denied: running.denied(),
  };
}

async function withComposed(context: HostContext, plan: RunPlan, paths: TaskPaths, want: CleanRun): Promise<RunPlan> {
  if (plan.config.compose === null) return plan;
  const { withCompose } = await import('../nested-docker/compose-plan.ts');
  return withCompose(context, plan, want.services ?? 'live', { task: want.task, paths, signal: want.signal });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
