// exec/plan-command.ts: plans the sandbox of a command, with the agents that it finds inside.
import type { OfferedAgents } from '../agent-setup/agents-inside.ts';
import { concernsAgents } from '../agent-setup/agents-wish.ts';
import type { ConfigFlags } from '../config/effective.ts';
import { NOTHING_MORE } from '../sandbox/spec/plan-sandbox.ts';
import type { RunPlan } from '../run/run-plan.ts';
import { planRun, type PlanOptions } from '../run/plan-run.ts';
import type { HostContext } from '../run/host-context.ts';

export interface CommandWish {
  readonly kind: 'exec' | 'shell';
  readonly command: readonly string[];
  readonly flags: ConfigFlags;
  readonly plan?: PlanOptions;
  /** Agents that the user named; undefined: the sandbox has no agents. */
  readonly agents?: readonly string[];
}

export interface PlannedCommand {
  readonly plan: RunPlan;
  /** What the agents add to the sandbox. `plan` may have become more complete meanwhile. */
  offer(plan: RunPlan, runDir: string): Promise<OfferedAgents>;
}

export async function planCommand(context: HostContext, asked: CommandWish): Promise<PlannedCommand> {
  const { kind, command, flags, plan: options, agents: named } = asked;
  if (named === undefined || !concernsAgents(context, { kind, command, named }))
    return { plan: await planRun(context, flags, options), offer: async () => NO_AGENTS };
  const { agentsInside } = await import('../agent-setup/agents-inside.ts');
  const inside = agentsInside(context, { kind, command, named });
  const plan = await planRun(context, flags, { ...options, adjust: (config) => inside.adjust(config) });
  return { plan: { ...plan, signedIn: inside.signedIn(plan) }, offer: (whole, dir) => inside.offer(whole, dir) };
}

const NO_AGENTS: OfferedAgents = { more: NOTHING_MORE, write: () => undefined };
