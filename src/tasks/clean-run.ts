// tasks/clean-run.ts: a command in a fresh sandbox over layers, for what belongs to a project and to no agent: its setup commands, its checks.
// They get the project's network rules and none of its secrets, a home with nothing in it, and no port of this machine: what they
// run is anybody's.
import { mkdirSync } from 'node:fs';
import { NOTHING_MORE } from '../sandbox/plan.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import type { TaskPaths } from '../store/layout.ts';
import { createAgentRun, describeAgentRun } from './agent-run.ts';
import type { PreparedLayers } from './layers.ts';
import { prepareNetwork } from './network-plan.ts';
import type { RunPlan } from './prepare.ts';
import { openRunNetwork, type DeniedHost } from './run-network.ts';
import { NO_SIGNALS, supervise } from './supervise.ts';
import type { World } from './world.ts';

export interface CleanRun {
  readonly task: string;
  readonly command: readonly string[];
  /** null: no limit. */
  readonly seconds: number | null;
  /** Its standard output and error are pipes. */
  onStart(sandbox: Sandbox): void;
  notice(text: string): void;
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
  const config = { ...plan.config, secrets: [], network: { ...plan.config.network, publish: [] } };
  mkdirSync(paths.root, { recursive: true, mode: 0o700 });
  const network = await prepareNetwork(world, config, world.uid === 0 || plan.namespaces);
  const over = { ...plan, config, network };
  await createAgentRun(over, paths, want.task, base);
  const made = describeAgentRun(world, over, paths, want.task, base, NOTHING_MORE);
  const spec = { ...made, limits: { ...made.limits, wallSeconds: want.seconds } };
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
  });
  const end = new AbortController();
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
      if (want.signal.aborted) sandbox.kill();
      want.signal.addEventListener('abort', () => sandbox.kill(), { signal: end.signal });
    },
  }).finally(() => end.abort());
  return { ...outcome, denied: running.denied() };
}

const pipes = async () => ({
  stdio: { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', terminal: null } as const,
  close: async () => undefined,
});
