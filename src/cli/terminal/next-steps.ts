// cli/terminal/next-steps.ts: the commands that a user most likely wants next for a task. Only commands that work in its state.
import { agentResumes } from '../../agent-setup/about.ts';
import { hasBegun, isUnderWay } from '../../protocol/run-state.ts';
import type { StoredTask } from '../../store/tasks.ts';

/** One line; empty if nothing is left to do. */
export function nextSteps(stored: StoredTask): string {
  const steps = stepsFor(stored);
  return steps.length === 0 ? '' : `ags: next: ${steps.join(' · ')}\n`;
}

function stepsFor({ task, run, live }: StoredTask): string[] {
  const { name, goal } = task;
  const underWay = isUnderWay(run.state);
  if (run.state === 'merged' || run.state === 'discarded') return [];
  if (goal === undefined) return live && underWay ? [] : [`ags diff ${name}`, `ags review ${name}`];
  const attach = goal.interactive ? [`ags attach ${name}`] : [];
  if (live && underWay) {
    const answer = run.state === 'needs-you' && run.needs === 'answer' && !goal.interactive;
    return [...(answer ? [`ags send ${name} "<answer>"`] : attach), `ags logs -f ${name}`, `ags stop ${name}`];
  }
  const begun = hasBegun(run);
  const talks = begun && !goal.interactive && agentResumes(goal);
  // The work of a killed run comes onto its branch with the first command that asks for it.
  const diff = run.result != null || (begun && run.fetched === false) ? [`ags diff ${name}`] : [];
  const message = talks ? [`ags send ${name} "<message>"`] : [];
  if (run.state === 'ready') return [...diff, `ags merge ${name}`, ...message];
  if (run.state === 'no-changes') return [...message, `ags restart ${name}`];
  const logs = run.state === 'failed' && begun ? [`ags logs ${name}`] : [];
  return [...diff, ...logs, ...(talks || !begun ? [`ags continue ${name}`] : []), `ags restart ${name}`];
}
