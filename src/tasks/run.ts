// tasks/run.ts: the road. A command over a project, in a fresh sandbox, from start to what it changed.
import type { RunFile, TaskFile } from '../protocol/task.ts';
import { advance } from '../protocol/run-state.ts';
import type { ConfigFlags } from '../config/effective.ts';
import { serveControl } from '../lib/control.ts';
import { ownIdentity } from '../lib/liveness.ts';
import type { Stdio } from '../sandbox/backend.ts';
import { createTask, removeTask, slug, writeRun } from '../store/tasks.ts';
import { createRun, planRun, type RunPlan } from './prepare.ts';
import { openRunNetwork, type DeniedHost } from './run-network.ts';
import { catchSignals, supervise } from './supervise.ts';
import { tellDiskTrouble } from './disk-trouble.ts';
import { describeStrength } from './strength.ts';
import type { World } from './world.ts';

export interface RunRequest {
  readonly kind: 'exec' | 'shell';
  readonly command: readonly string[];
  readonly flags: ConfigFlags;
  readonly name: string | undefined;
  /** Nothing is said about hosts that were refused. */
  readonly quiet?: boolean;
  openStdio(): Promise<{ stdio: Stdio; close(): Promise<void> }>;
  notice(text: string): void;
}

export interface RunResult {
  readonly exitCode: number;
  readonly taskId: string;
  /** False: nothing changed, and nothing of the task is left. */
  readonly changed: boolean;
  /** Why the sandbox was ended early, in words. */
  readonly ended: string | null;
  /** Hosts that the gateway refused, most often asked for first. */
  readonly denied: readonly DeniedHost[];
}

export function runCommand(world: World, request: RunRequest): Promise<RunResult> {
  return tellDiskTrouble(world, () => runTask(world, request));
}

async function runTask(world: World, request: RunRequest): Promise<RunResult> {
  const plan = await planRun(world, request.flags);
  for (const notice of plan.notices) request.notice(notice);
  using signals = catchSignals();
  const { id, paths, run } = createTask(
    world.stateDir,
    () =>
      `${slug(request.name ?? request.command.slice(0, 2).join('-').split('/').at(-1) ?? request.kind)}-${randomWord()}`,
    (id) => ({ task: firstTask(world, plan, request, id), run: firstRun(world, plan) }),
  );
  let keep = false;
  try {
    const spec = await createRun(world, plan, paths, id);
    await using network = openRunNetwork({
      world,
      id,
      startedAtMs: run.startedAtMs,
      project: plan.project.root,
      events: paths.events,
      config: plan.config,
      grants: plan.network.grants,
      secrets: plan.network.secrets,
      notice: request.notice,
    });
    const control = plan.network.spec.kind === 'gateway' ? serveControl(paths.root, network.answer) : null;
    const outcome = await supervise({
      world,
      plan,
      id,
      network,
      request,
      spec,
      paths,
      signals,
      onStart: () => writeRun(paths, { ...run, state: advance(run.state, 'running') }),
    }).finally(() => control?.close());
    const changed = await import('./changed.ts').then(({ hasChanges }) => hasChanges(paths, plan));
    keep = changed;
    if (changed)
      writeRun(
        paths,
        {
          ...run,
          state: advance('running', outcome.ended === null ? 'ready' : 'stopped'),
          exitCode: outcome.exitCode,
          endedAtMs: world.now().getTime(),
          ...(outcome.ended === null ? {} : { reason: outcome.ended }),
        },
        { durable: true },
      );
    return {
      exitCode: outcome.exitCode,
      taskId: id,
      changed,
      ended: outcome.ended,
      denied: request.quiet === true ? [] : network.denied(),
    };
  } finally {
    if (!keep) removeTask(paths);
  }
}

function firstTask(world: World, plan: RunPlan, request: RunRequest, id: string): TaskFile {
  return {
    version: 1,
    id,
    name: id,
    kind: request.kind,
    project: plan.project.root,
    git: plan.project.repository !== null,
    command: [...request.command],
    createdAt: world.now().toISOString(),
  };
}

function firstRun(world: World, plan: RunPlan): RunFile {
  const { repository } = plan.project;
  return {
    version: 1,
    state: 'preparing',
    startedAtMs: world.now().getTime(),
    exitCode: null,
    label: describeStrength(plan),
    workspace: plan.workspace,
    hidden: [...plan.hidden.paths],
    revealed: [...plan.config.reveal],
    base: repository?.headCommit ?? null,
    objectFormat: repository?.objectFormat ?? 'sha1',
    runner: ownIdentity(),
    user: { uid: plan.user.uid, gid: plan.user.gid },
    settled: [],
    ignoredDiscarded: false,
  };
}

// A name, not a secret: making the directory decides who has it.
const LETTERS = 'bcdfghjkmnpqrstvwxz23456789';

function randomWord(): string {
  return Array.from({ length: 4 }, () => LETTERS[Math.floor(Math.random() * LETTERS.length)]).join('');
}
