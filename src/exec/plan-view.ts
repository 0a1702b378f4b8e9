// exec/plan-view.ts: what `ags exec` would start, without starting it.
// Invariant: made by the very functions that a run is made by, so what is shown is what would be started; only the name of
// the task, which nobody has yet, is a placeholder. Nothing is written but caches.
import { join } from 'node:path';
import type { Limits, SandboxSpec } from '../protocol/spec.ts';
import { ENV_PASS } from '../config/defaults.ts';
import type { ConfigFlags, EffectiveConfig } from '../config/effective.ts';
import { scopeArgv, type CgroupPlan } from '../sandbox/watch/cgroup-plan.ts';
import { limitsInForce, type LimitInForce } from '../sandbox/watch/limits.ts';
import { planNative, type NativeOptions } from '../sandbox/native/native.ts';
import type { Launch } from '../sandbox/native/launch.ts';
import { taskPaths } from '../store/layout.ts';
import { containerOptions } from '../run/open-backend.ts';
import { borrowedObjectsOf, commandOf, describeRun, planRun, type RunPlan } from '../run/plan-run.ts';
import { kindOf, type PlannedServices } from '../run/planned-services.ts';
import type { Project } from '../run/project.ts';
import { nativeOptions } from '../run/native-options.ts';
import { describeStrength } from '../run/strength-label.ts';
import type { World } from '../run/host-context.ts';

export const NEW_TASK = '<new>';

export interface PlanView {
  readonly label: string;
  readonly project: Project;
  readonly taskDir: string;
  readonly workspace: 'overlay' | 'copy';
  readonly command: readonly string[];
  readonly spec: SandboxSpec;
  readonly launch: Launch;
  /** Of a container: what else is started for it, each with what it is. */
  readonly beside: readonly { readonly what: string; readonly argv: readonly string[] }[];
  /** What the engine of its own can do and cannot; null: it has none. */
  readonly docker: string | null;
  /** Which compose files are brought up, and by what; null: none. */
  readonly compose: string | null;
  readonly limits: readonly LimitInForce[];
  /** Files of the project that do not exist inside. */
  readonly hidden: readonly string[];
  /** Files that do, because git tracks them, although their names look like secrets. */
  readonly trackedSecrets: readonly string[];
  readonly notices: readonly string[];
  /** Beside it: where each is, inside, and why it could not start. */
  readonly services: readonly PlannedServiceView[];
  /** Variables that are there only because the user asked for them: their values are nobody else's business. */
  readonly privateNames: readonly string[];
}

export interface PlannedServiceView {
  readonly name: string;
  readonly kind: string;
  readonly address: string;
  readonly ports: readonly number[];
  readonly url: string;
  readonly seed: readonly string[];
  readonly memoryBytes: number;
  readonly problem: string | null;
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
  const inner = plan.config.docker.enabled ? await planInnerDocker(world, plan) : null;
  const command = commandOf(plan, request);
  const terminal = request.terminal.any ? TERMINAL : null;
  const launches = await planLaunches(world, plan, options, spec, command, {
    terminal,
    stdin: request.terminal.stdin ? TERMINAL : 0,
  });
  return {
    label: describeStrength(plan),
    project: plan.project,
    taskDir: paths.root,
    workspace: plan.workspace,
    command,
    spec,
    launch: launches.launch,
    beside: [...launches.beside, ...(inner?.beside ?? [])],
    docker: inner?.isolation ?? null,
    compose: await viewCompose(plan.config),
    limits: limitsInForce(spec.limits, plan.host.limitHost),
    hidden: plan.hidden.paths,
    trackedSecrets: plan.hidden.trackedSecrets,
    notices: plan.notices,
    services: await viewServices(plan.services),
    privateNames: Object.keys(spec.env).filter((name) => isPrivate(name, plan.config)),
  };
}

async function viewCompose({ compose }: EffectiveConfig): Promise<string | null> {
  if (compose === null) return null;
  const { describeCompose } = await import('../nested-docker/compose-client.ts');
  return describeCompose(compose);
}

async function planInnerDocker(
  world: World,
  { config }: RunPlan,
): Promise<{ beside: PlanView['beside']; isolation: string }> {
  const { describeInner, innerOptions } = await import('../nested-docker/open-nested-docker.ts');
  const { planInner } = await import('../sandbox/nested/nested-engine.ts');
  const options = innerOptions(world, config, NEW_TASK);
  const { argv, usher } = planInner({ ...options, name: `ags-${NEW_TASK}-docker` });
  return {
    isolation: describeInner(config),
    beside: [
      { what: 'The engine inside, started when somebody first asks for it', argv: [options.engine.program, ...argv] },
      { what: 'What hands its doors over, and ends it', argv: usher },
    ],
  };
}

async function planLaunches(
  world: World,
  { host }: RunPlan,
  options: NativeOptions,
  spec: SandboxSpec,
  command: readonly string[],
  stdio: { readonly terminal: number | null; readonly stdin: number },
): Promise<Pick<PlanView, 'launch' | 'beside'>> {
  if (host.engine === null) return { launch: planNative(options, spec, command, stdio), beside: [] };
  const { planDocker } = await import('../sandbox/container/container.ts');
  const { engineArgv } = await import('../sandbox/engine/engine.ts');
  const { engine } = host;
  const container = await containerOptions(world, options, engine, host.programs.perl, spec, `ags-${NEW_TASK}`);
  if (engine.far !== null) {
    const far = (await import('../sandbox/remote/plan-remote.ts')).planFar(container, spec);
    return {
      launch: { argv: engineArgv(engine, far.agent), bwrapArgs: [], staged: [], files: [] },
      beside: [
        { what: 'What carries the files there, and back', argv: engineArgv(engine, far.ferry) },
        { what: 'What everything else goes through', argv: engineArgv(engine, far.relay) },
        ...(far.holder === null
          ? []
          : [{ what: 'The container that holds its network', argv: engineArgv(engine, far.holder) }]),
      ],
    };
  }
  const { agent, before, holder, stage, usher, files } = planDocker(container, spec, command, stdio);
  return {
    launch: { argv: [...before, ...engineArgv(engine, agent)], bwrapArgs: [], staged: [], files },
    beside: [
      ...(holder === null ? [] : [{ what: 'The container that holds its network', argv: engineArgv(engine, holder) }]),
      ...(stage === null ? [] : [{ what: 'What is mounted for the engine to find, for a moment', argv: stage }]),
      { what: 'What hands the streams and the command in', argv: usher },
    ],
  };
}

async function viewServices({ list }: PlannedServices): Promise<PlannedServiceView[]> {
  if (list.length === 0) return [];
  const { serviceProblem } = await import('../run/plan-services.ts');
  return list.map((one) => ({
    name: one.service.name,
    kind: kindOf(one),
    address: one.address,
    ports: one.to.ports,
    url: one.url,
    seed: one.service.seed,
    memoryBytes: one.service.memoryBytes,
    problem: serviceProblem(one)?.what ?? null,
  }));
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
    case 'engine':
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
          cpus: limits.cpus,
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
