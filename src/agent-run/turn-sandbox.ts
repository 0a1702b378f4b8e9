// agent-run/turn-sandbox.ts: a sandbox over the run's workspace, with the run's network rules, services and hooks: for a turn of the
// agent, and for post-stop hooks that run inside.
// Invariant: when runTurnSandbox returns, no process of the sandbox is left.
import { join } from 'node:path';
import { offerPrograms } from '../agent-setup/agents-inside.ts';
import type { AgentPlan } from '../agents/agent.ts';
import type { Decision } from '../protocol/network.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { perlInside } from '../sandbox/spec/interpreter.ts';
import { INSIDE_HOST, insideHostArgv, insideHostScript } from '../sandbox/io/inside-host.ts';
import type { EventLog } from '../store/events.ts';
import type { StoredTask } from '../store/tasks.ts';
import { describeAgentRun } from '../workspace/agent-workspace.ts';
import type { RunAccount } from './model/account.ts';
import { authorOf, type PlannedAgent } from './plan-agent.ts';
import type { PreparedLayers } from '../workspace/prepare-snapshot.ts';
import { withListeners, type RunHooks } from './run-hooks.ts';
import type { NestedDocker } from '../nested-docker/nested-docker.ts';
import type { ServiceListeners } from '../run/network/network-input.ts';
import { openRunNetwork, type RunNetwork } from '../run/network/run-network.ts';
import { runSandboxed, writtenBy, type OpenStdio, type SandboxedEnd } from '../run/run-sandboxed.ts';
import type { HostContext } from '../run/host-context.ts';

export interface TurnSandboxInput {
  readonly context: HostContext;
  readonly stored: StoredTask;
  readonly planned: PlannedAgent;
  readonly prepared: PreparedLayers;
  readonly hooks: RunHooks;
  readonly services: ServiceListeners | null;
  readonly docker: NestedDocker | null;
  readonly events: EventLog;
  readonly account: RunAccount;
  /** Connections to these hosts wait for the user's answer. */
  onNetworkAsks(hosts: readonly string[]): void;
  notice(text: string): void;
}

export interface TurnSandboxUse {
  /** Its files and variables; null: none. */
  readonly agentPlan: AgentPlan | null;
  /** Empty: the sandbox stays until it is killed; programs can join it. */
  readonly command: readonly string[];
  readonly openStdio?: OpenStdio;
  onUp(sandbox: Sandbox, network: RunNetwork): void;
}

export interface TurnSandboxEnd extends SandboxedEnd {
  /** Why the agent's command does not exist inside, as a sentence; null: it does, or nothing is known. */
  readonly notFound: string | null;
}

export async function runTurnSandbox(input: TurnSandboxInput, use: TurnSandboxUse): Promise<TurnSandboxEnd> {
  const { context, stored, planned, events } = input;
  const { agentPlan } = use;
  const { paths, task } = stored;
  const plan = {
    ...planned.plan,
    network: {
      ...planned.plan.network,
      spec: joinable(withListeners(planned.plan.network.spec, input.hooks.listeners)),
    },
  };
  const others = await offerPrograms(context, plan, paths.runDir, { agent: planned.agent, argv: planned.program.argv });
  others.write();
  const more = {
    mounts: [...planned.program.mounts, ...others.more.mounts],
    path: others.more.path,
    files: [
      ...(agentPlan?.files ?? []),
      ...input.hooks.files,
      ...(agentPlan?.homeFiles ?? []).map(({ path, content }) => ({ to: join(HOME_FILES, path), content })),
      { to: INSIDE_HOST, content: insideHostScript() },
    ],
    env: { ...committer(planned), ...agentPlan?.env },
  };
  const spec = describeAgentRun(context, plan, paths, task.name, input.prepared, more);
  const denied = createDenials(events);
  // Network events arrive outside of this function. An event that cannot be written, as on a full disk, ends the turn, not the runner.
  let unwritten: { readonly error: unknown } | null = null;
  let kill = (): void => undefined;
  const noting = (note: () => void): void => {
    try {
      note();
    } catch (error) {
      unwritten ??= { error };
      kill();
    }
  };
  await using network = openRunNetwork({
    context,
    id: task.id,
    startedAtMs: context.now().getTime(),
    project: plan.project.root,
    events: (event) =>
      noting(() => {
        events.append(event);
        if (event.type === 'network.asked') input.onNetworkAsks(network.asked());
      }),
    onDecision: (decision) =>
      noting(() => {
        if (!input.account.refused(decision.reason)) denied(decision);
        input.onNetworkAsks(network.asked());
      }),
    config: plan.config,
    grants: plan.network.grants,
    secrets: plan.network.secrets,
    account: {
      ...input.account,
      answered: (usage) => noting(() => input.account.answered(usage)),
      failed: (status, seconds) => noting(() => input.account.failed(status, seconds)),
    },
    notice: (text) => noting(() => input.notice(text)),
    services: input.services,
    docker: input.docker,
  });
  const outcome = await runSandboxed({
    context,
    plan,
    id: task.id,
    network: {
      onListener(name, handle) {
        if (name === 'hooks') input.hooks.onListener(name, handle as never);
        else network.onListener(name, handle);
      },
      started: (sandbox) => network.started(sandbox),
    },
    command: insideHostArgv(use.command, perlInside(spec.root)),
    ...(use.openStdio === undefined ? {} : { openStdio: use.openStdio }),
    spec,
    runDir: paths.runDir,
    written: writtenBy(paths, plan),
    onStart(sandbox) {
      kill = () => sandbox.kill();
      if (unwritten !== null) kill();
      use.onUp(sandbox, network);
    },
  });
  if (unwritten !== null) throw (unwritten as { readonly error: unknown }).error;
  const [program = ''] = agentPlan?.argv ?? [];
  // A path of the workspace is not looked for: it may have been made or removed inside.
  if (outcome.exitCode !== 127 || program === '' || program.includes('/')) return { ...outcome, notFound: null };
  const { whyNotFound } = await import('../exec/not-found.ts');
  return { ...outcome, notFound: whyNotFound(context, plan, spec, [program])?.replace('ags exec -- ', '') ?? null };
}

export const HOME_FILES = '/run/ags/home';

/** Commits inside use the user's name if git has one configured, otherwise the agent's. */
function committer({ plan, agent }: PlannedAgent): Record<string, string> {
  const settings = plan.project.repository?.settings;
  if (settings?.has('user.name') === true && settings.has('user.email')) return {};
  const { agentTitle: name, agentEmail: email } = authorOf(agent);
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email };
}

/** Allows connections into the sandbox, so that shells and formatters can join it. */
function joinable(network: PlannedAgent['plan']['network']['spec']): PlannedAgent['plan']['network']['spec'] {
  return network.kind === 'gateway' ? { ...network, reach: true } : { kind: 'gateway', listeners: [], reach: true };
}

/** Records the first refusal of each host as an event. The network log counts the others. */
function createDenials(events: EventLog): (decision: Decision) => void {
  const seen = new Set<string>();
  return ({ verdict, host, port, reason, program }) => {
    const key = `${host}:${port}`;
    if (verdict !== 'denied' || host === '' || seen.has(key) || seen.size > 200) return;
    seen.add(key);
    events.append({ type: 'network.denied', host, port, reason, ...(program === undefined ? {} : { program }) });
  };
}
