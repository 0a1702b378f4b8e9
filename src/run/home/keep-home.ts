// run/home/keep-home.ts: gives a run the home that stays, if the configuration asks for one. Apart from kept-home.ts, because most runs have
// none and must not load it.
import { AgsError } from '../../protocol/errors.ts';
import type { RunFile } from '../../protocol/task.ts';
import type { HostContext } from '../host-context.ts';
import type { RunPlan } from '../run-plan.ts';

export interface RunHome extends Disposable {
  readonly plan: Pick<RunPlan, 'keptHome'>;
  readonly notices: readonly string[];
  usedBy(task: string): void;
}

const OWN: RunHome = { plan: {}, notices: [], usedBy: () => undefined, [Symbol.dispose]: () => undefined };

/** `run`: of an agent. It keeps the home that it began with, because its conversation is there. */
export async function keepHome(
  context: HostContext,
  plan: Pick<RunPlan, 'config' | 'project' | 'user'>,
  run?: Pick<RunFile, 'home' | 'turns'>,
): Promise<RunHome> {
  if (plan.config.home.keep === 'task') return OWN;
  const { holdHome, keptHomeOf } = await import('./kept-home.ts');
  const goesOn = run?.turns !== undefined;
  if (goesOn && run.home !== keptHomeOf(context, plan.config.home, plan.project.root)) return OWN;
  const home = holdHome(context, plan);
  if (home === null) return OWN;
  if (!('busy' in home)) return { ...OWN, ...home, plan: { keptHome: home.directory } };
  if (goesOn)
    throw new AgsError('task.busy', `Its conversation is in the kept home, which ${home.busy} is using.`, {
      hint: `Continue it when ${home.busy} has ended. Where the home is: ags home`,
    });
  return {
    ...OWN,
    notices: [
      `Home: an empty one, because ${home.busy} is using the kept home. What this task leaves there is removed with it.`,
    ],
  };
}

/** For a plan that is only shown. */
export async function shownHome(
  context: HostContext,
  plan: Pick<RunPlan, 'config' | 'project'>,
): Promise<Pick<RunPlan, 'keptHome'>> {
  if (plan.config.home.keep === 'task') return {};
  const { keptHomeOf } = await import('./kept-home.ts');
  const keptHome = keptHomeOf(context, plan.config.home, plan.project.root);
  return keptHome === null ? {} : { keptHome };
}
