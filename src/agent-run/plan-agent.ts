// agent-run/plan-agent.ts: plans an agent's run: its program, its sign-in, the hosts it may reach, and the layers of its workspace.
import type { Agent } from '../agents/agent.ts';
import { agentNamed, AGENTS } from '../agents/agents.ts';
import type { SettingsFile } from '../agents/settings.ts';
import { commandAgent } from '../agents/command.ts';
import { AgsError } from '../protocol/errors.ts';
import type { Goal, RunFile } from '../protocol/task.ts';
import type { ConfigFlags, EffectiveConfig } from '../config/effective.ts';
import type { StoredTask } from '../store/tasks.ts';
import { findProgram } from '../agent-setup/programs.ts';
import type { AgentProgram } from '../agent-setup/agent-program.ts';
import type { BringOutDetails } from '../results/bring-out.ts';
import { readSettings } from '../agent-setup/read-settings.ts';
import { withAgent } from '../agent-setup/agent-network.ts';
import { endpointFor, unfollowedUrl } from '../agent-setup/own-endpoint.ts';
import { findSignIn, signInNeeded, type FoundSignIn } from '../agent-setup/credentials.ts';
import { prepareLayers } from '../setup/layers.ts';
import type { LayersWish, PreparedLayers } from '../workspace/prepare-snapshot.ts';
import { planRun } from '../run/plan-run.ts';
import type { RunPlan } from '../run/run-plan.ts';
import type { HostContext } from '../run/host-context.ts';

export interface PlannedAgent {
  readonly agent: Agent;
  readonly plan: RunPlan;
  readonly program: AgentProgram;
  readonly signIn: FoundSignIn | null;
  /** null: the agent's own choice. */
  readonly model: string | null;
  readonly settings: readonly SettingsFile[];
}

export function agentOf(goal: Pick<Goal, 'agent' | 'command'>): Agent {
  if (goal.command !== undefined) return commandAgent(goal.command);
  const agent = agentNamed(goal.agent);
  if (agent !== undefined) return agent;
  throw new AgsError('usage.invalid', `There is no agent called "${goal.agent}".`, {
    hint: `Known agents: ${AGENTS.map(({ name }) => name).join(', ')}. Give any other program as a command: --agent "./my-agent --fast"`,
  });
}

/** The author of the agent's work, and the agent's scratch files, which are not part of it. */
export function authorOf(agent: Agent): BringOutDetails {
  return { agentTitle: agent.title, agentEmail: `${agent.name}@ags.invalid`, scratch: agent.scratch };
}

/** Creates nothing. Throws if the agent is not installed, not signed in, or its sign-in has expired. */
export async function planAgentRun(
  context: HostContext,
  project: string,
  goal: Goal,
  pinned?: RunFile['image'],
): Promise<PlannedAgent> {
  const agent = agentOf(goal);
  let signIn: FoundSignIn | null = null;
  const plan = await planRun({ ...context, cwd: project }, flagsOf(goal), {
    live: false,
    pinned,
    async adjust(config) {
      signIn = await findSignIn(context, agent, endpointFor(agent, config));
      if (signIn === null && agent.signIns.length > 0) throw signInNeeded(agent);
      return withAgent(config, agent, signIn?.secret ?? null);
    },
  });
  const unfollowed = unfollowedUrl(agent, endpointFor(agent, plan.config), context.env);
  const model = modelFor(agent, goal, plan.config);
  const settings = readSettings(context.home, agent, plan.config);
  const program = await findProgram(context, agent, plan);
  if (program === null)
    throw new AgsError(
      'agent.missing',
      `${agent.title} is not ${plan.image === null ? 'installed' : 'in the image'}.`,
      {
        hint:
          plan.image === null
            ? `Install it for ags: ags agents install ${agent.name}`
            : `Build an image with it (ags image build base --agent ${agent.name}), or install it for ags: ags agents install ${agent.name}`,
      },
    );
  const found = signIn as FoundSignIn | null;
  if (found !== null) {
    const { checkSecret } = await import('../run/network/open-gateway.ts');
    await checkSecret(context, plan.config.network, found.secret);
  }
  const notices = unfollowed === null ? plan.notices : [...plan.notices, unfollowed];
  return { agent, plan: { ...plan, notices }, program, signIn: found, model, settings };
}

/** The model of the goal, else the one that the configuration gives this agent. */
function modelFor(agent: Agent, goal: Goal, config: EffectiveConfig): string | null {
  const model = goal.model ?? config.agents[agent.name]?.model ?? null;
  const endpoint = config.agents[agent.name]?.endpoint ?? null;
  if (model !== null || endpoint === null || agent.own?.needsModel !== true) return model;
  throw new AgsError('config.invalid', `${agent.title} must be told which model of ${endpoint.url} to use.`, {
    hint: `Name it in the configuration (agents: { ${agent.name}: { model: ... } }), or with --model.`,
  });
}

export function layersFor(
  context: HostContext,
  { plan }: PlannedAgent,
  task: StoredTask,
  wish: Omit<LayersWish, 'commit' | 'task'>,
): Promise<PreparedLayers> {
  const commit = task.run.begins ?? task.task.goal?.base ?? '';
  return prepareLayers(context, plan, { ...wish, commit, task: task.task.id });
}

function flagsOf(goal: Goal): ConfigFlags {
  const flags = goal.flags as ConfigFlags;
  if (goal.maxSeconds === null) return flags;
  return { ...flags, limits: { ...flags.limits, time: `${goal.maxSeconds}s` } };
}
