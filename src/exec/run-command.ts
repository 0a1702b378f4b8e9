// exec/run-command.ts: runs a command over a project in a fresh sandbox, from planning to the record of its changes.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { RunFile, TaskFile } from '../protocol/task.ts';
import { advance } from '../protocol/run-state.ts';
import { serveControl } from '../lib/process/control.ts';
import { ownIdentity } from '../lib/process/liveness.ts';
import { REMOTE_MEMO, type Sandbox } from '../sandbox/backend.ts';
import type { TaskPaths } from '../store/layout.ts';
import { createTask, removeTask, slug, writeRun } from '../store/tasks.ts';
import { nestedDockerFor } from '../nested-docker/nested-docker.ts';
import { hasServices } from '../run/planned-services.ts';
import { builderOf, commandOf, imageOf, type RunPlan } from '../run/run-plan.ts';
import { createRun } from '../run/create-run.ts';
import { keepHome } from '../run/home/keep-home.ts';
import { openRunNetwork, type DeniedHost } from '../run/network/run-network.ts';
import { catchSignals, runSandboxed, writtenBy, type OpenStdio } from '../run/run-sandboxed.ts';
import { explainDiskErrors } from '../run/disk-errors.ts';
import { sandboxKey } from '../run/sandbox-key.ts';
import { describeStrength } from '../run/strength-label.ts';
import type { HostContext } from '../run/host-context.ts';
import type { whyNotFound } from './not-found.ts';
import { planCommand, type CommandWish } from './plan-command.ts';

export interface RunRequest extends CommandWish {
  readonly name: string | undefined;
  /** Do not report refused hosts. */
  readonly quiet?: boolean;
  readonly openStdio: OpenStdio;
  notice(text: string): void;
}

export interface RunResult {
  readonly exitCode: number;
  readonly taskId: string;
  /** False: nothing changed, and the task was removed. */
  readonly changed: boolean;
  /** Why the sandbox was ended early, as a sentence. */
  readonly ended: string | null;
  /** Why the command does not exist inside, as a sentence; null: it does, or nothing is known. */
  readonly notFound: string | null;
  /** Hosts that the gateway refused, most frequent first. */
  readonly denied: readonly DeniedHost[];
}

export function runCommand(context: HostContext, request: RunRequest): Promise<RunResult> {
  return explainDiskErrors(context, () => runTask(context, request));
}

async function runTask(context: HostContext, asked: RunRequest): Promise<RunResult> {
  const { plan: first, offer } = await planCommand(context, asked);
  using home = await keepHome(context, first);
  const planned = { ...first, ...home.plan, notices: [...first.notices, ...home.notices] };
  const request = { ...asked, command: commandOf(planned, asked) };
  for (const notice of planned.notices) request.notice(notice);
  using signals = catchSignals();
  const { id, paths, run } = createTask(
    context.stateDir,
    () =>
      `${slug(request.name ?? request.command.slice(0, 2).join('-').split('/').at(-1) ?? request.kind)}-${randomWord()}`,
    (id) => ({ task: firstTask(context, planned, request, id), run: firstRun(context, planned) }),
  );
  let keep = false;
  home.usedBy(id);
  try {
    const plan = planned.config.compose === null ? planned : await composed(context, planned, id, paths);
    const agents = await offer(plan, paths.runDir);
    const spec = await createRun(context, plan, paths, id, agents.more);
    agents.write();
    const failure: { sandbox: Sandbox | null; why: string | null } = { sandbox: null, why: null };
    await using docker = nestedDockerFor({
      context,
      id,
      config: plan.config,
      secrets: plan.network.secrets,
      notice: request.notice,
    });
    await using services = !hasServices(plan.services)
      ? null
      : await import('./command-services.ts').then(({ openCommandServices }) =>
          openCommandServices(context, plan, id, paths, docker, request.notice, (why) => {
            failure.why ??= why;
            failure.sandbox?.kill();
          }),
        );
    await using network = openRunNetwork({
      context,
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
    await services?.awaitUp(() => signals.early !== null || failure.why !== null);
    if (failure.why !== null)
      return { exitCode: 1, taskId: id, changed: false, ended: failure.why, notFound: null, denied: [] };
    const control = plan.network.spec.kind === 'gateway' ? serveControl(paths.root, network.answer) : null;
    const outcome = await runSandboxed({
      context,
      plan,
      id,
      network,
      command: request.command,
      openStdio: request.openStdio,
      spec,
      runDir: paths.runDir,
      written: writtenBy(paths, plan),
      signals,
      onStart(sandbox) {
        writeRun(paths, { ...run, state: advance(run.state, 'running') });
        failure.sandbox = sandbox;
        if (failure.why !== null) sandbox.kill();
      },
    }).finally(() => control?.close());
    const ended = failure.why ?? outcome.ended;
    const exitCode = failure.why === null ? outcome.exitCode : 1;
    const changed = await import('./has-changes.ts').then(({ hasChanges }) => hasChanges(paths, plan));
    keep = changed;
    if (changed)
      writeRun(
        paths,
        {
          ...run,
          state: advance('running', ended === null ? 'ready' : 'stopped'),
          exitCode,
          endedAtMs: context.now().getTime(),
          ...(ended === null ? {} : { reason: ended }),
        },
        { durable: true },
      );
    return {
      exitCode,
      taskId: id,
      changed,
      ended,
      notFound: exitCode === 127 ? await explain(context, plan, spec, request.command) : null,
      denied: request.quiet === true ? [] : network.denied(),
    };
  } finally {
    // The memo in the task is needed to fetch files that are still on a remote engine.
    if (!keep && !existsSync(join(paths.runDir, REMOTE_MEMO))) removeTask(paths);
  }
}

async function explain(...about: Parameters<typeof whyNotFound>): Promise<string | null> {
  return (await import('./not-found.ts')).whyNotFound(...about);
}

/** A command uses the compose files of the user's own checkout. */
async function composed(context: HostContext, plan: RunPlan, task: string, paths: TaskPaths): Promise<RunPlan> {
  const { withCompose } = await import('../nested-docker/compose-plan.ts');
  return withCompose(context, plan, 'live', { task, paths, signal: new AbortController().signal });
}

function firstTask(context: HostContext, plan: RunPlan, request: RunRequest, id: string): TaskFile {
  return {
    version: 1,
    id,
    name: id,
    kind: request.kind,
    project: plan.project.root,
    git: plan.project.repository !== null,
    command: [...request.command],
    createdAt: context.now().toISOString(),
  };
}

function firstRun(context: HostContext, plan: RunPlan): RunFile {
  const { repository } = plan.project;
  return {
    version: 1,
    state: 'preparing',
    startedAtMs: context.now().getTime(),
    exitCode: null,
    label: describeStrength(plan),
    sandboxKey: sandboxKey(context, plan),
    workspace: plan.workspace,
    ...builderOf(plan),
    ...imageOf(plan),
    ...(plan.keptHome === undefined ? {} : { home: plan.keptHome }),
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

// Makes a name, not a secret: creating the task's directory reserves it.
const LETTERS = 'bcdfghjkmnpqrstvwxz23456789';

function randomWord(): string {
  return Array.from({ length: 4 }, () => LETTERS[Math.floor(Math.random() * LETTERS.length)]).join('');
}
