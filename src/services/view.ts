// services/view.ts: the services of tasks and of a project, for whoever looks at them.
import { existsSync } from 'node:fs';
import { AgsError } from '../protocol/errors.ts';
import { isUnderWay } from '../protocol/run-state.ts';
import type { CarriedService } from '../protocol/export.ts';
import type { ServiceStatus } from '../protocol/service.ts';
import { loadConfig } from '../config/load.ts';
import { readServices, serviceLog, servicePlace } from '../store/service-files.ts';
import type { StoredTask } from '../store/tasks.ts';
import { currentProject } from '../queries/entries.ts';
import { sizeOf } from '../queries/list.ts';
import { kindOf } from '../run/planned-services.ts';
import { planService, serviceProblem } from '../run/plan-services.ts';
import { configInput, type World } from '../run/host-context.ts';

/** As the run says; whoever is not running has none that run. */
export function servicesOf({ paths, run, live }: StoredTask): readonly ServiceStatus[] {
  const all = readServices(paths);
  if (live && isUnderWay(run.state)) return all;
  return all.map((one) => (one.state === 'failed' ? one : { ...one, state: 'stopped' }));
}

/** What its data takes on the disk, besides what it shares with other tasks. */
export async function dataBytes({ paths }: StoredTask, name: string): Promise<number> {
  const { upper, copy } = servicePlace(paths, name);
  const data = [upper, copy].find((path) => existsSync(path));
  return data === undefined ? 0 : sizeOf(data);
}

export function serviceOf(task: StoredTask, name: string): ServiceStatus & { readonly log: string } {
  const all = servicesOf(task);
  const found = all.find((one) => one.name === name);
  if (found !== undefined) return { ...found, log: serviceLog(task.paths, name) };
  throw new AgsError('path.not-found', `${task.task.name} has no service "${name}".`, {
    hint:
      all.length === 0
        ? 'Which services a project has is in ags.yaml: services: { db: postgres }'
        : `It has ${all.map((one) => one.name).join(', ')}.`,
  });
}

/** What to know of data that came with a task: what it is of, and whether there is a service for it here. */
export async function tellCarried(
  world: World,
  { task: { project, name: task } }: StoredTask,
  services: readonly CarriedService[],
): Promise<readonly string[]> {
  if (services.length === 0) return [];
  const here = await configuredServices(world, project);
  const list = services.map(({ name, kind, version }) => `${name} (${kind}${version === null ? '' : ` ${version}`})`);
  return [
    `With data of ${list.join(', ')}, which needs the same versions here. It goes on with it; with the seed again: ags restart ${task}`,
    ...services.flatMap(({ name, kind }) => {
      const found = here.find((one) => one.name === name);
      if (found?.kind === kind) return [];
      return [
        found === undefined
          ? `There is no service ${name} here that would use its data (ags.yaml: services).`
          : `The service ${name} is ${found.kind} here, and its data is of ${kind}.`,
      ];
    }),
  ];
}

export interface ConfiguredService {
  readonly name: string;
  /** Its preset, or "command". */
  readonly kind: string;
  readonly url: string;
  readonly origin: string;
  /** Why it cannot run here, and what to do; null: it can. */
  readonly problem: string | null;
  readonly hint: string | null;
}

/** Of the project of the current directory. */
export async function configuredServices(world: World, project?: string): Promise<readonly ConfiguredService[]> {
  const root = project ?? (await currentProject(world));
  if (root === null) return [];
  const { services } = await loadConfig(configInput(world, root));
  return services.map((service, i) => {
    const one = planService(world, service, i);
    const problem = serviceProblem(one);
    return {
      name: service.name,
      kind: kindOf(one),
      url: one.url,
      origin: service.origin,
      problem: problem?.what ?? null,
      hint: problem?.hint ?? null,
    };
  });
}

/** Whether the project of the current directory has its compose files brought up. */
export async function bringsUpCompose(world: World): Promise<boolean> {
  const root = await currentProject(world);
  return root !== null && (await loadConfig(configInput(world, root))).compose !== null;
}
