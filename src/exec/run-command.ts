// exec/run-command.ts: the road. A command over a project, in a fresh sandbox, from start to what it changed.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { RunFile, TaskFile } from '../protocol/task.ts';
import { advance } from '../protocol/run-state.ts';
import type { ConfigFlags } from '../config/effective.ts';
import { serveControl } from '../lib/process/control.ts';
import { ownIdentity } from '../lib/process/liveness.ts';
import { FAR_MEMO, type Sandbox, type Stdio } from '../sandbox/backend.ts';
import type { TaskPaths } from '../store/layout.ts';
import { createTask, removeTask, slug, writeRun } from '../store/tasks.ts';
import { innerDockerFor } from '../nested-docker/nested-docker.ts';
import { hasServices } from '../run/planned-services.ts';
import { builderOf, commandOf, createRun, imageOf, planRun, type PlanOptions, type RunPlan } from '../run/plan-run.ts';
import { openRunNetwork, type DeniedHost } from '../run/network/run-network.ts';
import { catchSignals, supervise } from '../run/supervise.ts';
import { tellDiskTrouble } from '../run/disk-errors.ts';
import { sandboxKey } from '../run/sandbox-key.ts';
import { describeStrength } from '../run/strength-label.ts';
import type { World } from '../run/host-context.ts';

export interface RunRequest {
  readonly kind: 'exec' | 'shell';
  readonly command: readonly string[];
  readonly flags: ConfigFlags;
  readonly name: string | undefined;
  readonly plan?: PlanOptions;
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

async function runTask(world: World, asked: RunRequest): Promise<RunResult> {
  const planned = await planRun(world, asked.flags, asked.plan);
  const request = { ...asked, command: commandOf(planned, asked) };
  for (const notice of planned.notices) request.notice(notice);
  using signals = catchSignals();
  const { id, paths, run } = createTask(
    world.stateDir,
    () =>
      `${slug(request.name ?? request.command.slice(0, 2).join('-').split('/').at(-1) ?? request.kind)}-${randomWord()}`,
    (id) => ({ task: firstTask(world, planned, request, id), run: firstRun(world, planned) }),
  );
  let keep = false;
  try {
    const plan = planned.config.compose === null ? planned : await composed(world, planned, id, paths);
    const spec = await createRun(world, plan, paths, id);
    const trouble: { sandbox: Sandbox | null; why: string | null } = { sandbox: null, why: null };
    await using docker = innerDockerFor({
      world,
      id,
      config: plan.config,
      secrets: plan.network.secrets,
      notice: request.notice,
    });
    await using services = !hasServices(plan.services)
      ? null
      : await import('./command-services.ts').then(({ openCommandServices }) =>
          openCommandServices(world, plan, id, paths, docker, request.notice, (why) => {
            trouble.why ??= why;
            trouble.sandbox?.kill();
          }),
        );
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
      services,
      docker,
    });
    await services?.awaitUp(() => signals.early !== null || trouble.why !== null);
    if (trouble.why !== null) return { exitCode: 1, taskId: id, changed: false, ended: trouble.why, denied: [] };
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
      onStart(sandbox) {
        writeRun(paths, { ...run, state: advance(run.state, 'running') });
        trouble.sandbox = sandbox;
        if (trouble.why !== null) sandbox.kill();
      },
    }).finally(() => control?.close());
    const ended = trouble.why ?? outcome.ended;
    const exitCode = trouble.why === null ? outcome.exitCode : 1;
    const changed = await import('./has-changes.ts').then(({ hasChanges }) => hasChanges(paths, plan));
    keep = changed;
    if (changed)
      writeRun(
        paths,
        {
          ...run,
          state: advance('running', ended === null ? 'ready' : 'stopped'),
          exitCode,
          endedAtMs: world.now().getTime(),
          ...(ended === null ? {} : { reason: ended }),
        },
        { durable: true },
      );
    return {
      exitCode,
      taskId: id,
      changed,
      ended,
      denied: request.quiet === true ? [] : network.denied(),
    };
  } finally {
    // What is still on another machine is found by what is written here.
    if (!keep && !existsSync(join(paths.runDir, FAR_MEMO))) removeTask(paths);
  }
}

/** A command stands beside what the user's own compose files say. */
async function composed(world: World, plan: RunPlan, task: string, paths: TaskPaths): Promise<RunPlan> {
  const { withCompose } = await import('../nested-docker/compose-plan.ts');
  return withCompose(world, plan, 'live', { task, paths, signal: new AbortController().signal });
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
    sandboxKey: sandboxKey(world, plan),
    workspace: plan.workspace,
    ...builderOf(plan),
    ...imageOf(plan),
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
