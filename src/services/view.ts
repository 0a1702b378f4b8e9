// services/view.ts: the services of tasks and of a project, for display.
import { existsSync } from 'node:fs';
import { AgsError } from '../protocol/errors.ts';
import { isUnderWay } from '../protocol/run-state.ts';
import type { CarriedService } from '../protocol/export.ts';
import type { ServicePresetName, ServiceStatus } from '../protocol/service.ts';
import { loadConfig } from '../config/load.ts';
import { readServices, serviceLog, servicePlace } from '../store/service-files.ts';
import type { StoredTask } from '../store/tasks.ts';
import { currentProject } from '../queries/entries.ts';
import { sizeOf } from '../queries/list.ts';
import { kindOf } from '../run/planned-services.ts';
import { planService, serviceProblem } from '../run/plan-services.ts';
import { configInput, type HostContext } from '../run/host-context.ts';
import { findPrograms } from './presets/find-programs.ts';
import { PRESETS } from './presets/presets.ts';

/** As the run recorded them; if the task is not running, none of them is. */
export function servicesOf({ paths, run, live }: StoredTask): readonly ServiceStatus[] {
  const all = readServices(paths);
  if (live && isUnderWay(run.state)) return all;
  return all.map((one) => (one.state === 'failed' ? one : { ...one, state: 'stopped' }));
}

/** Disk usage of the service's data, without parts shared with other tasks. */
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
        ? 'Configure services in ags.yaml: services: { db: postgres }'
        : `It has ${all.map((one) => one.name).join(', ')}.`,
  });
}

/** Describes the data of an imported task, and whether this project has a service for it. */
export async function tellCarried(
  context: HostContext,
  { task: { project, name: task } }: StoredTask,
  services: readonly CarriedService[],
): Promise<readonly string[]> {
  if (services.length === 0) return [];
  const here = await configuredServices(context, project);
  const list = services.map(({ name, kind, version }) => `${name} (${kind}${version === null ? '' : ` ${version}`})`);
  return [
    `With data of ${list.join(', ')}, which needs the same versions here. The task continues with this data; to seed it again: ags restart ${task}`,
    ...services.flatMap(({ name, kind }) => {
      const found = here.find((one) => one.name === name);
      if (found?.kind === kind) return [];
      return [
        found === undefined
          ? `No service ${name} is configured here to use its data (ags.yaml: services).`
          : `The service ${name} is ${found.kind} here, but its data comes from ${kind}.`,
      ];
    }),
  ];
}

export interface ConfiguredService {
  readonly name: string;
  /** The preset's name, or "command". */
  readonly kind: string;
  readonly url: string;
  readonly origin: string;
  /** Why the service cannot run here, with the fix; null: it can. */
  readonly problem: string | null;
  readonly hint: string | null;
}

/** The services of the project in the current directory. */
export async function configuredServices(
  context: HostContext,
  project?: string,
): Promise<readonly ConfiguredService[]> {
  const root = project ?? (await currentProject(context));
  if (root === null) return [];
  const { services } = await loadConfig(configInput(context, root));
  return services.map((service, i) => {
    const one = planService(context, service, i);
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

/** Whether the project in the current directory starts its compose files. */
export async function bringsUpCompose(context: HostContext): Promise<boolean> {
  const root = await currentProject(context);
  return root !== null && (await loadConfig(configInput(context, root))).compose !== null;
}

/** The programs of a preset that are not on this machine; empty: it can run here. */
export function missingPrograms(
  { env }: Pick<HostContext, 'env'>,
  preset: ServicePresetName,
  version: string | null,
): readonly string[] {
  const found = findPrograms(PRESETS[preset], env['PATH'] ?? '', version);
  return 'missing' in found ? found.missing : [];
}

/** Those of these programs that are not on this machine. */
export function missingOf({ env }: Pick<HostContext, 'env'>, names: readonly string[]): readonly string[] {
  const found = findPrograms({ programs: names.map((name) => [name]), places: [] }, env['PATH'] ?? '', null);
  return 'missing' in found ? found.missing : [];
}
