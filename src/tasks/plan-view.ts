// tasks/plan-view.ts: what `ags exec` would start, without starting it.
// Invariant: made by the very functions that a run is made by, so what is shown is what would be started; only the name of
// the task, which nobody has yet, is a placeholder. Nothing is written but caches.
import { join } from 'node:path';
import type { Limits, SandboxSpec } from '../protocol/spec.ts';
import { ENV_PASS } from '../config/defaults.ts';
import type { ConfigFlags, EffectiveConfig } from '../config/effective.ts';
import { scopeArgv, type CgroupPlan } from '../sandbox/cgroup-plan.ts';
import { limitsInForce, type LimitInForce } from '../sandbox/limits.ts';
import { planNative, type NativeOptions } from '../sandbox/native.ts';
import type { Launch } from '../sandbox/native-launch.ts';
import { taskPaths } from '../store/layout.ts';
import { borrowedObjectsOf, describeRun, planRun } from './prepare.ts';
import type { Project } from './project.ts';
import { nativeOptions } from './native-options.ts';
import { describeStrength } from './strength.ts';
import type { World } from './world.ts';

export const NEW_TASK = '<new>';

export interface PlanView {
  readonly label: string;
  readonly project: Project;
  readonly taskDir: string;
  readonly workspace: 'overlay' | 'copy';
  readonly command: readonly string[];
  readonly spec: SandboxSpec;
  readonly launch: Launch;
  readonly limits: readonly LimitInForce[];
  /** Files of the project that do not exist inside. */
  readonly hidden: readonly string[];
  /** Files that do, because git tracks them, although their names look like secrets. */
  readonly trackedSecrets: readonly string[];
  readonly notices: readonly string[];
  /** Variables that are there only because the user asked for them: their values are nobody else's business. */
  readonly privateNames: readonly string[];
}

export interface PlanRequest {
  readonly command: readonly string[];
  readonly flags: ConfigFlags;
  /** Would the command have a terminal, and would its input be that terminal? */
  readonly terminal: { readonly any: boolean; readonly stdin: boolean };
}

export async function viewPlan(world: World, request: PlanRequest): Promise<PlanView> {
  const plan = await planRun(world, request.flags);
  const paths = taskPaths(world.stateDir, NEW_TASK);
  const spec = describeRun(world, plan, paths, NEW_TASK, borrowedObjectsOf(plan));
  const options = await nativeOptions(
    world,
    plan,
    spec,
    paths.runDir,
    NEW_TASK,
    plannedCgroup(plan.host.cgroupPlan, spec.limits),
  );
  const terminal = request.terminal.any ? TERMINAL : null;
  return {
    label: describeStrength(plan),
    project: plan.project,
    taskDir: paths.root,
    workspace: plan.workspace,
    command: request.command,
    spec,
    launch: planNative(options, spec, request.command, { terminal, stdin: request.terminal.stdin ? TERMINAL : 0 }),
    limits: limitsInForce(spec.limits, plan.host.limitHost),
    hidden: plan.hidden.paths,
    trackedSecrets: plan.hidden.trackedSecrets,
    notices: plan.notices,
    privateNames: Object.keys(spec.env).filter((name) => isPrivate(name, plan.config)),
  };
}

// Any number that is not a standard stream: the launch depends only on which descriptors are the same.
const TERMINAL = 3;

// As openCgroup would make it, but for its name, which says which process owns it.
const GROUP = `ags-${NEW_TASK}`;
const HELPERS = 16;

export function plannedCgroup(plan: CgroupPlan, limits: Limits): NativeOptions['cgroup'] {
  const nothing = { files: [], prefix: [], env: {} };
  switch (plan.kind) {
    case 'none':
      return nothing;
    case 'v1':
      return { ...nothing, files: Object.values(plan.parents).map((parent) => join(parent, GROUP, 'tasks')) };
    case 'v2':
      return { ...nothing, files: [join(plan.parent, GROUP, 'cgroup.procs')] };
    case 'scope':
      return {
        ...nothing,
        prefix: scopeArgv(plan.systemdRun, GROUP, {
          memoryBytes: limits.memoryBytes,
          processes: limits.processes + HELPERS,
        }),
        env: { XDG_RUNTIME_DIR: plan.runtimeDir },
      };
  }
}

function isPrivate(name: string, config: EffectiveConfig): boolean {
  const covers = (patterns: readonly string[]): boolean =>
    patterns.some((p) => (p.endsWith('*') ? name.startsWith(p.slice(0, -1)) : p === name));
  return (
    covers(config.envPass) && !covers(ENV_PASS) && !config.pathEnv.includes(name) && !Object.hasOwn(config.envSet, name)
  );
}
