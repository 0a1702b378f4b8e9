// agent-run/fork.ts: starts a task from the result of another one, for the same branch.
import type { StoredTask } from '../store/tasks.ts';
import { requireAgent } from './control.ts';
import { startTasks } from './start.ts';
import type { HostContext } from '../run/host-context.ts';

export function forkTask(
  context: HostContext,
  from: StoredTask,
  wish: { text: string; name: string | null; agent: string | null; model: string | null },
): Promise<StoredTask[]> {
  const goal = requireAgent(from);
  return startTasks(
    { ...context, cwd: from.task.project },
    {
      goals: [{ text: wish.text, name: wish.name }],
      agents: [wish.agent ?? agentText(goal)],
      attempts: 1,
      interactive: false,
      base: null,
      model: wish.model ?? (wish.agent === null ? (goal.model ?? null) : null),
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

/** As a user would type it. */
export function agentText({ agent, command }: { agent: string; command?: string[] | undefined }): string {
  return command === undefined ? agent : command.map((word) => (/[\s"']/.test(word) ? `"${word}"` : word)).join(' ');
}
