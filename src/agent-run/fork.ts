// agent-run/fork.ts: starts a task from the result of another one, for the same branch.
import type { StoredTask } from '../store/tasks.ts';
import type { Goal } from '../protocol/task.ts';
import { requireAgent } from './control.ts';
import { startTasks } from './start.ts';
import type { HostContext } from '../run/host-context.ts';

export function forkTask(
  context: HostContext,
  from: StoredTask,
  wish: { text: string; name: string | null; agent: string | null; model: string | null },
): Promise<StoredTask[]> {
  const goal = requireAgent(from);
  const like = agentLike(goal, wish.agent);
  return startTasks(
    { ...context, cwd: from.task.project },
    {
      goals: [{ text: wish.text, name: wish.name }],
      ...like,
      attempts: 1,
      interactive: false,
      base: null,
      model: wish.model ?? like.model,
      maxSeconds: goal.maxSeconds,
      maxCostMicros: goal.maxCostMicros,
      maxTurns: goal.maxTurns,
      maxTokens: goal.maxTokens,
      parallel: goal.parallel,
      flags: goal.flags,
      from,
    },
  );
}

/** The agent of another task, or the wanted one. A model belongs to its agent. */
export function agentLike(
  goal: Goal,
  wanted: string | null | undefined,
): { readonly agents: readonly string[]; readonly model: string | null } {
  const own = agentText(goal);
  const same = wanted == null || wanted === own || wanted === goal.agent;
  return same ? { agents: [own], model: goal.model ?? null } : { agents: [wanted], model: null };
}

/** As a user would type it. */
function agentText({ agent, command }: { agent: string; command?: string[] | undefined }): string {
  return command === undefined ? agent : command.map((word) => (/[\s"']/.test(word) ? `"${word}"` : word)).join(' ');
}
