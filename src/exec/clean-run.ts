// exec/clean-run.ts: a command in a fresh sandbox over layers, for what belongs to a project and to no agent: its setup commands, its checks.
// They get the project's network rules and none of its secrets, a home with nothing in it, and no port of this machine: what they
// run is anybody's.
import { mkdirSync } from 'node:fs';
import { NOTHING_MORE } from '../sandbox/spec/plan-sandbox.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import type { TaskPaths } from '../store/layout.ts';
import { createAgentRun, describeAgentRun } from '../workspace/agent-workspace.ts';
import { innerDockerFor } from '../nested-docker/nested-docker.ts';
import type { PreparedLayers } from '../workspace/prepare-snapshot.ts';
import { hasServices } from '../run/planned-services.ts';
import { prepareWorldInside, type RunPlan } from '../run/plan-run.ts';
import { openRunNetwork, type DeniedHost } from '../run/network/run-network.ts';
import type { SeedSource } from '../workspace/seed-files.ts';
import { NO_SIGNALS, supervise } from '../run/supervise.ts';
import type { World } from '../run/host-context.ts';

export interface CleanRun {
  readonly task: string;
  readonly command: readonly string[];
  /** null: no limit. */
  readonly seconds: number | null;
  /** Its standard output and error are pipes. */
  onStart(sandbox: Sandbox): void;
  notice(text: string): void;
  /** What the project's services are filled from; null: there are none. */
  readonly services: SeedSource | null;
  readonly signal: AbortSignal;
}

/** All that it makes is below `paths`, which nobody has used before. */
export async function runClean(
  world: World,
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
  const inside = await prepareWorldInside(world, config, world.uid === 0 || plan.namespaces);
  const over = await withComposed(world, { ...plan, config, ...inside }, paths, want);
  const { network, services: planned } = over;
  await createAgentRun(over, paths, want.task, base);
  const made = describeAgentRun(world, over, paths, want.task, base, NOTHING_MORE);
  const spec = { ...made, limits: { ...made.limits, wallSeconds: want.seconds } };
  const [failed, done] = [new AbortController(), new AbortController()];
  let trouble: string | null = null;
  await using docker = innerDockerFor({ world, id: want.task, config, secrets: network.secrets, notice: want.notice });
  await using services =
    !hasServices(planned) || want.services === null
      ? null
      : await import('../services/run-services.ts').then(({ openRunServices }) =>
          openRunServices({
            world,
            plan: over,
            task: want.task,
            paths,
            source: want.services ?? 'live',
            docker,
            keep: false,
            onEvent(event) {
              if (event.type !== 'service.failed') return;
              trouble ??= event.why;
              want.notice([event.why, ...event.lines].join('\n'));
              failed.abort();
            },
          }),
        );
  await using running = openRunNetwork({
    world,
    id: want.task,
    startedAtMs: world.now().getTime(),
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
  if (failed.signal.aborted) return { exitCode: 1, ended: trouble, denied: [] };
  const outcome = await supervise({
    world,
    plan,
    id: want.task,
    network: running,
    request: { command: want.command, openStdio: pipes },
    spec,
    paths,
    signals: NO_SIGNALS,
    onStart(sandbox) {
      want.onStart(sandbox);
      if (ended.aborted) sandbox.kill();
      ended.addEventListener('abort', () => sandbox.kill(), { signal: done.signal });
    },
  }).finally(() => done.abort());
  return {
    exitCode: trouble === null ? outcome.exitCode : outcome.exitCode || 1,
    ended: trouble ?? outcome.ended,
    denied: running.denied(),
  };
}

const pipes = async () => ({
  stdio: { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', terminal: null } as const,
  close: async () => undefined,
});

async function withComposed(world: World, plan: RunPlan, paths: TaskPaths, want: CleanRun): Promise<RunPlan> {
  if (plan.config.compose === null) return plan;
  const { withCompose } = await import('../nested-docker/compose-plan.ts');
  return withCompose(world, plan, want.services ?? 'live', { task: want.task, paths, signal: want.signal });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
