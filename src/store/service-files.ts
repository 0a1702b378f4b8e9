// store/service-files.ts: the public state of a run's services: one file with their states, one log each.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServiceStatus } from '../protocol/service.ts';
import { replaceFile } from '../lib/files.ts';
import { taskPaths, type TaskPaths } from './layout.ts';

type Paths = Pick<TaskPaths, 'services'>;

export function writeServices(paths: Paths, services: readonly ServiceStatus[]): void {
  mkdirSync(paths.services, { recursive: true, mode: 0o700 });
  replaceFile(stateFile(paths), JSON.stringify({ version: 1, services }));
}

/** Empty: the run has no services, or has not started them yet. */
export function readServices(paths: Paths): readonly ServiceStatus[] {
  const file = stateFile(paths);
  if (!existsSync(file)) return [];
  return (JSON.parse(readFileSync(file, 'utf8')) as { services: readonly ServiceStatus[] }).services;
}

export function stateFile({ services }: Paths): string {
  return join(services, 'state.json');
}

/** The runner sanitizes the log before writing it. */
export function serviceLog(paths: Paths, name: string): string {
  return join(servicePlace(paths, name).root, 'service.log');
}

/** The directories of a service's sandbox; its data is in `upper` or in `copy`. */
export function servicePlace({ services }: Paths, name: string): TaskPaths {
  return taskPaths(services, name);
}
