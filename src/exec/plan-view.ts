// exec/plan-view.ts: shows what `ags exec` would start, without starting it.
// Invariant: the functions that plan a run also make this view, so it shows what a run would start. Only the task's name is a
// placeholder. Nothing is written but caches.
import { join } from 'node:path';
import type { Limits, SandboxSpec } from '../protocol/spec.ts';
import { ENV_PASS } from '../config/defaults.ts';
import type { ConfigFlags, EffectiveConfig } from '../config/effective.ts';
import { scopeArgv, type CgroupPlan } from '../sandbox/watch/cgroup-plan.ts';
import { limitsInForce, type LimitInForce } from '../sandbox/watch/limits.ts';
import { planNative, type NativeOptions } from '../sandbox/native/native.ts';
import type { Launch } from '../sandbox/native/launch.ts';
import { budgetsNow, type BudgetNow } from '../queries/budgets.ts';
import { taskPaths } from '../store/layout.ts';
import { containerOptions } from '../run/open-backend.ts';
import { borrowedObjectsOf, commandOf, type RunPlan } from '../run/run-plan.ts';
import { describeRun } from '../run/create-run.ts';
import { shownHome } from '../run/home/keep-home.ts';
import { kindOf, type PlannedServices } from '../run/planned-services.ts';
import type { Project } from '../run/project.ts';
import { nativeOptions } from '../run/native-options.ts';
import { describeStrength } from '../run/strength-label.ts';
import type { HostContext } from '../run/host-context.ts';
import { planCommand } from './plan-command.ts';

export const NEW_TASK = '<new>';

export interface PlanView {
  readonly label: string;
  readonly project: Project;
  readonly config: EffectiveConfig;
  /** null: the task's own home. */
  readonly keptHome: string | null;
  readonly taskDir: string;
  readonly workspace: 'overlay' | 'copy';
  readonly command: readonly string[];
  readonly spec: SandboxSpec;
  readonly launch: Launch;
  /** Further programs that are started for a container. */
  readonly beside: readonly { readonly what: string; readonly argv: readonly string[] }[];
  /** The isolation of nested Docker; null: the task has none. */
  readonly docker: string | null;
  /** The compose files and the client that starts them; null: none. */
  readonly compose: string | null;
  readonly limits: readonly LimitInForce[];
  /** Files of the project that do not exist inside. */
  readonly hidden: readonly string[];
  /** Files that exist inside because git tracks them, although their names look like secrets. */
  readonly trackedSecrets: readonly string[];
  readonly notices: readonly string[];
  readonly services: readonly PlannedServiceView[];
  /** Model endpoints of the user's own, for agents: "claude: https://llm.corp (config.yaml:3)". */
  readonly models: readonly string[];
  /** Over all tasks of agents, and what is used of each. */
  readonly budgets: readonly BudgetNow[];
  /** Variables that the user passes explicitly; their values are not printed. */
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
  /** Agents that the user named. */
  readonly agents: readonly string[];
  /** any: the command would have a terminal. stdin: its input would be that terminal. */
  readonly terminal: { readonly any: boolean; readonly stdin: boolean };
}

export async function viewPlan(context: HostContext, request: PlanRequest): Promise<PlanView> {
  const kind = request.command.length === 0 ? 'shell' : 'exec';
  const { plan: planned, offer } = await planCommand(context, { ...request, kind });
  const plan = { ...planned, ...(await shownHome(context, planned)) };
  const paths = taskPaths(context.stateDir, NEW_TASK);
  const { more } = await offer(plan, paths.runDir);
  const spec = describeRun(context, plan, paths, NEW_TASK, borrowedObjectsOf(plan), more);
  const options = await nativeOptions(
    context,
    plan,
    spec,
    paths.runDir,
    NEW_TASK,
    plannedCgroup(plan.host.cgroupPlan, spec.limits),
  );
  const nested = plan.config.docker.enabled ? await planNestedDocker(context, plan) : null;
  const command = commandOf(plan, request);
  const terminal = request.terminal.any ? TERMINAL : null;
  const launches = await planLaunches(context, plan, options, spec, command, {
    terminal,
    stdin: request.terminal.stdin ? TERMINAL : 0,
  });
  return {
    label: describeStrength(plan),
    project: plan.project,
    config: plan.config,
    keptHome: plan.keptHome ?? null,
    taskDir: paths.root,
    workspace: plan.workspace,
    command,
    spec,
    launch: launches.launch,
    beside: [...launches.beside, ...(nested?.beside ?? [])],
    docker: nested?.isolation ?? null,
    compose: await viewCompose(plan.config),
    limits: limitsInForce(spec.limits, plan.host.limitHost),
    hidden: plan.hidden.paths,
    trackedSecrets: plan.hidden.trackedSecrets,
    notices: plan.notices,
    services: await viewServices(plan.services),
    models: Object.entries(plan.config.agents).flatMap(([name, { endpoint }]) =>
      endpoint === null ? [] : [`${name}: ${endpoint.url} (${endpoint.origin})`],
    ),
    budgets: await budgetsNow(context, plan.project.root),
    privateNames: Object.keys(spec.env).filter((name) => isPrivate(name, plan.config)),
  };
}

async function viewCompose({ compose }: EffectiveConfig): Promise<string | null> {
  if (compose === null) return null;
  const { describeCompose } = await import('../nested-docker/compose-client.ts');
  return describeCompose(compose);
}

async function planNestedDocker(
  context: HostContext,
  { config }: RunPlan,
): Promise<{ beside: PlanView['beside']; isolation: string }> {
  const { describeNested } = await import('../nested-docker/open-nested-docker.ts');
  const { nestedOptions } = await import('../run/nested-docker-options.ts');
  const { planNested } = await import('../sandbox/nested/nested-engine.ts');
  const options = nestedOptions(context, config, NEW_TASK);
  const { argv, broker } = planNested({ ...options, name: `ags-${NEW_TASK}-docker` });
  return {
    isolation: describeNested(config),
    beside: [
      { what: 'Nested Docker, started on first use', argv: [options.engine.program, ...argv] },
      { what: 'Its stream broker, which passes its listeners to ags and stops it', argv: broker },
    ],
  };
}

async function planLaunches(
  context: HostContext,
  { host }: RunPlan,
  options: NativeOptions,
  spec: SandboxSpec,
  command: readonly string[],
  stdio: { readonly terminal: number | null; readonly stdin: number },
): Promise<Pick<PlanView, 'launch' | 'beside'>> {
  if (host.engine === null) return { launch: planNative(options, spec, command, stdio), beside: [] };
  const { planContainer } = await import('../sandbox/container/container.ts');
  const { engineArgv } = await import('../sandbox/engine/engine.ts');
  const { engine } = host;
  const container = await containerOptions(context, options, engine, host.programs.perl, spec, `ags-${NEW_TASK}`);
  if (engine.far !== null) {
    const remote = (await import('../sandbox/remote/plan-remote.ts')).planRemote(container, spec);
    return {
      launch: { argv: engineArgv(engine, remote.agent), bwrapArgs: [], staged: [], files: [] },
      beside: [
        { what: 'The file sync, which copies files there and back', argv: engineArgv(engine, remote.fileSync) },
        { what: 'The relay, which carries everything else', argv: engineArgv(engine, remote.relay) },
        ...(remote.pause === null
          ? []
          : [{ what: 'The pause container, which holds its network', argv: engineArgv(engine, remote.pause) }]),
      ],
    };
  }
  const { agent, before, pause, stage, broker, files } = planContainer(container, spec, command, stdio);
  return {
    launch: { argv: [...before, ...engineArgv(engine, agent)], bwrapArgs: [], staged: [], files },
    beside: [
      ...(pause === null
        ? []
        : [{ what: 'The pause container, which holds its network', argv: engineArgv(engine, pause) }]),
      ...(stage === null ? [] : [{ what: 'Temporary mounts that the engine reads while it starts', argv: stage }]),
      { what: 'The stream broker, which passes in the streams and the command', argv: broker },
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

// Any descriptor that is not a standard stream: the launch depends only on which descriptors are equal.
const TERMINAL = 3;

// The group that openCgroup would create, except that a real name also contains the owning process.
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
