// agent-setup/about.ts: what this machine offers: the agents with their programs and sign-ins, and whether a sandbox works.
import { availableParallelism } from 'node:os';
import { AgsError } from '../protocol/errors.ts';
import type { Goal } from '../protocol/task.ts';
import type { Agent } from '../agents/agent.ts';
import { AGENTS, agentNamed } from '../agents/agents.ts';
import { usualParallel } from '../config/tasks.ts';
import type { TaskDefaults } from '../config/effective.ts';
import { findProgram, userView, type AgentProgram } from './programs.ts';
import { signInStatus, type SignInStatus } from './credentials.ts';
import { workspaceKind } from '../run/readiness.ts';
import { inspectWorld, type World } from '../run/host-context.ts';

export interface AgentFacts {
  readonly agent: Agent;
  readonly program: AgentProgram | null;
  readonly signIn: SignInStatus;
}

export async function listAgents(world: World): Promise<AgentFacts[]> {
  const view = await userView(world);
  const facts: AgentFacts[] = [];
  for (const agent of AGENTS)
    facts.push({
      agent,
      program: await findProgram(world, agent, view),
      signIn: await signInStatus(world, agent),
    });
  return facts;
}

/** How people call the agent of a goal. */
export function agentTitle(goal: Pick<Goal, 'agent' | 'command'>): string {
  return goal.command?.[0] ?? agentNamed(goal.agent)?.title ?? goal.agent;
}

/** Whether a conversation that has ended can be taken up again. */
export function agentResumes(goal: Pick<Goal, 'agent' | 'command'>): boolean {
  return goal.command === undefined && agentNamed(goal.agent)?.resumes === true;
}

/** The sentence of `ags doctor`, if there is none. */
export async function sandboxWorks(world: World): Promise<{ ok: boolean; text: string }> {
  try {
    const { backend } = (await userView(world)).config;
    const { kind } = await workspaceKind(world, await inspectWorld(world, {}, backend), 'auto');
    return { ok: true, text: kind === 'overlay' ? 'Sandboxes work here.' : 'Sandboxes work here, on full copies.' };
  } catch (error) {
    if (!(error instanceof AgsError)) throw error;
    return { ok: false, text: error.hint === undefined ? error.message : `${error.message} ${error.hint}` };
  }
}

/** Of the user's own configuration. */
export async function taskDefaults(world: World): Promise<TaskDefaults & { readonly parallel: number }> {
  const { tasks } = (await userView(world)).config;
  return { ...tasks, parallel: tasks.parallel ?? usualParallel(availableParallelism()) };
}
