// agent-run/plan-agent.ts: everything that stands ready before an agent is started: its program, how it is signed in, what it may
// reach, and the layers that its workspace stands on.
import type { Agent } from '../agents/agent.ts';
import { agentNamed, AGENTS } from '../agents/agents.ts';
import { commandAgent } from '../agents/command.ts';
import { AgsError } from '../protocol/errors.ts';
import { parseRule } from '../protocol/network-rule.ts';
import type { NetworkRule, SecretRule } from '../protocol/network.ts';
import type { Goal, RunFile } from '../protocol/task.ts';
import type { ConfigFlags, EffectiveConfig } from '../config/effective.ts';
import type { StoredTask } from '../store/tasks.ts';
import { findProgram, type AgentProgram } from '../agent-setup/programs.ts';
import type { BringOutDetails } from '../results/bring-out.ts';
import { findSignIn, signInNeeded, type FoundSignIn } from '../agent-setup/credentials.ts';
import { prepareLayers, type LayersWish, type PreparedLayers } from '../workspace/prepare-snapshot.ts';
import { ENDPOINT_PORT } from '../run/network/plan-network.ts';
import { planRun, type RunPlan } from '../run/plan-run.ts';
import type { World } from '../run/host-context.ts';

export interface AgentStage {
  readonly agent: Agent;
  readonly plan: RunPlan;
  readonly program: AgentProgram;
  readonly signIn: FoundSignIn | null;
}

export function agentOf(goal: Pick<Goal, 'agent' | 'command'>): Agent {
  if (goal.command !== undefined) return commandAgent(goal.command);
  const agent = agentNamed(goal.agent);
  if (agent !== undefined) return agent;
  throw new AgsError('usage.invalid', `There is no agent called "${goal.agent}".`, {
    hint: `There are ${AGENTS.map(({ name }) => name).join(', ')}; any other program is given as a command: --agent "./my-agent --fast"`,
  });
}

/** As whom its work is brought out, and what of it is none. */
export function authorOf(agent: Agent): BringOutDetails {
  return { agentTitle: agent.title, agentEmail: `${agent.name}@ags.invalid`, scratch: agent.scratch };
}

/** Refuses what cannot work before anything is made: an agent that is not installed, not signed in, or whose sign-in has run out. */
export async function setStage(
  world: World,
  project: string,
  goal: Goal,
  pinned?: RunFile['image'],
): Promise<AgentStage> {
  const agent = agentOf(goal);
  const signIn = await findSignIn(world, agent);
  if (signIn === null && agent.signIns.length > 0) throw signInNeeded(agent);
  const plan = await planRun({ ...world, cwd: project }, flagsOf(goal), {
    live: false,
    pinned,
    adjust: (config) => withAgent(config, agent, signIn?.secret ?? null),
  });
  const program = await findProgram(world, agent, plan);
  if (program === null)
    throw new AgsError(
      'agent.missing',
      `${agent.title} is not ${plan.image === null ? 'installed' : 'in the image'}.`,
      {
        hint:
          plan.image === null
            ? `Install it for ags, in a directory of its own: ags agents install ${agent.name}`
            : `Build an image that has it (ags image build base --agent ${agent.name}), or install it for ags: ags agents install ${agent.name}`,
      },
    );
  if (signIn !== null) {
    const { checkSecret } = await import('../run/network/open-gateway.ts');
    await checkSecret(world, plan.config.network, signIn.secret);
  }
  return { agent, plan, program, signIn };
}

export function layersFor(
  world: World,
  { plan }: AgentStage,
  task: StoredTask,
  wish: Omit<LayersWish, 'commit' | 'task'>,
): Promise<PreparedLayers> {
  const commit = task.run.begins ?? task.task.goal?.base ?? '';
  return prepareLayers(world, plan, { ...wish, commit, task: task.task.id });
}

/** Where the gateway's endpoint for the model is, inside; null: the agent goes to its host itself. */
export function endpointOf(signIn: FoundSignIn | null): string | null {
  return signIn === null || signIn.secret.endpoint === null
    ? null
    : `http://127.0.0.1:${ENDPOINT_PORT}/${signIn.secret.name}`;
}

function flagsOf(goal: Goal): ConfigFlags {
  const flags = goal.flags as ConfigFlags;
  if (goal.maxSeconds === null) return flags;
  return { ...flags, limits: { ...flags.limits, time: `${goal.maxSeconds}s` } };
}

/** What the user has configured wins: a secret of theirs for the same variable stays. */
function withAgent(config: EffectiveConfig, agent: Agent, secret: SecretRule | null): EffectiveConfig {
  const origin = `agent ${agent.name}`;
  const wanted = [
    ...agent.hosts,
    ...(secret === null ? [] : [secret.port === 443 ? secret.host : `${secret.host}:${secret.port}`]),
  ];
  const rules = wanted.map((text): NetworkRule => {
    const rule = parseRule(text);
    if ('problem' in rule) throw new Error(`a rule of ${agent.name} is wrong: ${text}: ${rule.problem}`);
    return { ...rule, action: 'allow', origin };
  });
  const variables = (rule: SecretRule): string[] => [rule.env, rule.endpoint].filter((name) => name !== null);
  const taken = new Set(config.secrets.flatMap(variables));
  const own = secret === null || variables(secret).some((name) => taken.has(name)) ? [] : [secret];
  return {
    ...config,
    network: { ...config.network, rules: [...config.network.rules, ...rules] },
    secrets: [...config.secrets, ...own],
  };
}
