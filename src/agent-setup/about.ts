// agent-setup/about.ts: reports what this machine offers: agents with their programs and sign-ins, and whether sandboxes work.
import { availableParallelism } from 'node:os';
import { AgsError, inOneLine } from '../protocol/errors.ts';
import type { Goal } from '../protocol/task.ts';
import type { Agent } from '../agents/agent.ts';
import { AGENTS, agentNamed } from '../agents/agents.ts';
import { usualParallel } from '../config/tasks.ts';
import type { TaskDefaults } from '../config/effective.ts';
import { findProgram, userView } from './programs.ts';
import type { AgentProgram } from './agent-program.ts';
import { endpointFor } from './own-endpoint.ts';
import { signInStatus, type SignInStatus } from './credentials.ts';
import { workspaceKind } from '../run/readiness.ts';
import { inspectMachine, type HostContext } from '../run/host-context.ts';

export interface AgentFacts {
  readonly agent: Agent;
  readonly program: AgentProgram | null;
  readonly signIn: SignInStatus;
}

export async function listAgents(context: HostContext): Promise<AgentFacts[]> {
  const view = await userView(context);
  const { config } = view;
  const facts: AgentFacts[] = [];
  for (const agent of AGENTS)
    facts.push({
      agent,
      program: await findProgram(context, agent, view),
      signIn: await signInStatus(context, agent, endpointFor(agent, config)),
    });
  return facts;
}

/** The display name of a goal's agent. */
export function agentTitle(goal: Pick<Goal, 'agent' | 'command'>): string {
  return goal.command?.[0] ?? agentNamed(goal.agent)?.title ?? goal.agent;
}

/** Whether the agent can resume an ended conversation. */
export function agentResumes(goal: Pick<Goal, 'agent' | 'command'>): boolean {
  return goal.command === undefined && agentNamed(goal.agent)?.resumes === true;
}

/** If sandboxes do not work, the text is the one that `ags doctor` prints. */
export async function sandboxWorks(context: HostContext): Promise<{ ok: boolean; text: string }> {
  try {
    const { backend } = (await userView(context)).config;
    const { kind } = await workspaceKind(context, await inspectMachine(context, {}, backend), 'auto');
    return { ok: true, text: kind === 'overlay' ? 'Sandboxes work here.' : 'Sandboxes work here, on full copies.' };
  } catch (error) {
    if (!(error instanceof AgsError)) throw error;
    return { ok: false, text: inOneLine(error) };
  }
}

/** Reads the user's own configuration only. */
export async function taskDefaults(context: HostContext): Promise<TaskDefaults & { readonly parallel: number }> {
  const { tasks } = (await userView(context)).config;
  return { ...tasks, parallel: tasks.parallel ?? usualParallel(availableParallelism()) };
}
