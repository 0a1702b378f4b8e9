// server/live/task-detail.ts: one task in full, with the actions that are possible now.
import type { ApiTaskDetail } from '../../protocol/api/api.ts';
import { hasBegun } from '../../protocol/run-state.ts';
import type { StoredTask } from '../../store/tasks.ts';
import { budgetsNow } from '../../queries/budgets.ts';
import { ask } from '../../queries/running.ts';
import { agentResumes } from '../../agent-setup/about.ts';
import { waitingFor } from '../../agent-run/control.ts';
import { hasMerge } from '../../merge/undo.ts';
import type { HostContext } from '../../run/host-context.ts';
import type { LiveRow } from './task-row.ts';

export async function taskDetail(context: HostContext, liveRow: LiveRow, stored: StoredTask): Promise<ApiTaskDetail> {
  const { task, run } = stored;
  const { goal } = task;
  const asks = liveRow.row.live ? ((await ask(stored, { do: 'asks' }).catch(() => null))?.asks ?? []) : [];
  return {
    ...liveRow.shown,
    goal: goal?.text ?? null,
    command: task.command,
    base: goal?.origin ?? goal?.base ?? run.base,
    baseRef: goal?.baseRef?.replace('refs/heads/', '') ?? null,
    branch: run.result == null ? null : `ags/${task.name}`,
    commit: run.result?.commit ?? null,
    model: goal?.model ?? null,
    interactive: goal?.interactive ?? false,
    run: run.number ?? 1,
    turns: run.turns ?? 0,
    sandbox: run.label,
    backend: run.backend ?? 'native',
    image: run.image?.reference ?? null,
    hidden: run.hidden,
    limits: {
      maxSeconds: goal?.maxSeconds ?? null,
      maxCostMicros: goal?.maxCostMicros ?? null,
      maxTurns: goal?.maxTurns ?? null,
      maxTokens: goal?.maxTokens ?? null,
    },
    budgets: goal === undefined ? [] : await budgetsNow(context, stored.task.project),
    inputTokens: run.used?.inputTokens ?? null,
    outputTokens: run.used?.outputTokens ?? null,
    touched: [...liveRow.facts.touched].map(([path, change]) => ({ path, change })),
    waiting: waitingFor(stored),
    asks: asks.map(({ host, port, untilMs, program }) => ({ host, port, untilMs, program: program ?? null })),
    can: await possible(context, liveRow, stored),
  };
}

async function possible(
  context: HostContext,
  { row }: LiveRow,
  { task, run }: StoredTask,
): Promise<ApiTaskDetail['can']> {
  const { goal } = task;
  const up = row.live && ['running', 'needs-you'].includes(run.state);
  const over = !row.live;
  const fresh = goal !== undefined && !hasBegun(run);
  const says = goal !== undefined && !goal.interactive && (row.live || fresh || agentResumes(goal));
  const can: [ApiTaskDetail['can'][number], boolean][] = [
    ['send', says],
    ['stop', row.live && goal !== undefined],
    ['continue', over && (fresh || says)],
    ['restart', over && goal !== undefined],
    ['fork', over && run.result != null],
    ['review', over && (run.result != null || row.changed)],
    ['merge', over && run.result != null],
    ['terminal', up && goal !== undefined],
    ['attach', up && goal?.interactive === true],
    ['remove', true],
    ['undo', over && goal !== undefined && (await hasMerge(context, task.project, task.id))],
  ];
  return can.filter(([, is]) => is).map(([what]) => what);
}
