// agent-run/fork.ts: a task that begins with what another one did, for the same branch.
import type { StoredTask } from '../store/tasks.ts';
import { requireAgent } from './control.ts';
import { startTasks } from './start.ts';
import type { World } from '../run/host-context.ts';

export function forkTask(
  world: World,
  from: StoredTask,
  wish: { text: string; name: string | null; agent: string | null; model: string | null },
): Promise<StoredTask[]> {
  const goal = requireAgent(from);
  return startTasks(
    { ...world, cwd: from.task.project },
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
