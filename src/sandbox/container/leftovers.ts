// sandbox/container/leftovers.ts: finds what a killed runner left in the engine and, for root, mounted for it.
// Containers end with their runner; only one that was created but never started can stay.
// Invariant: nothing is removed unless it carries our label, our mark and our name, and its owner is dead. Labels alone prove nothing: an
// image passes its own labels on to every container. An image cannot choose a container's name.
import { existsSync, readdirSync } from 'node:fs';
import { run } from '../../lib/process/process.ts';
import { LABEL, OWNER_LABEL } from './container-args.ts';
import { askEngine, type Engine } from '../engine/engine.ts';
import { ENGINE_KINDS } from '../engine/engine-kinds.ts';
import { isOurDead } from '../engine/owner.ts';

export interface StaleContainer {
  readonly id: string;
  readonly run: string;
}

export async function staleContainers(engine: Engine): Promise<readonly StaleContainer[]> {
  const { label } = ENGINE_KINDS[engine.name];
  const format = `{{.ID}}\t{{.Names}}\t${label(LABEL)}\t${label(OWNER_LABEL)}`;
  const { stdout } = await askEngine(engine, ['ps', '--all', '--filter', `label=${OWNER_LABEL}`, '--format', format]);
  return stdout
    .toString('utf8')
    .split('\n')
    .flatMap((line) => {
      const [id = '', name = '', run = '', owner = ''] = line.split('\t');
      return isOurDead(name, readLabel(owner)) ? [{ id, run: readLabel(run) }] : [];
    });
}

/** As JSON, because a label may contain line breaks and anything after them. */
export function readLabel(text: string): string {
  const value: unknown = text === '' ? '' : JSON.parse(text);
  return typeof value === 'string' ? value : '';
}

/** Removes leftovers of a crash at the next command. */
export async function removeStaleContainers(engine: Engine): Promise<void> {
  for (const { id } of await staleContainers(engine)) await removeContainer(engine, id);
}

/** Anonymous volumes are removed with it. */
export async function removeContainer(engine: Engine, id: string): Promise<boolean> {
  return (await askEngine(engine, ['rm', '--force', '--volumes', id])).exitCode === 0;
}

/** The mount point below a directory that is closed to other users. */
export function stageIn(closed: string): string {
  return `${closed}/d`;
}

/** Directories that are mounted only while a container starts. */
export function staleStages(dir = '/run'): string[] {
  return ofTheDead(dir).map((name) => `${dir}/${name}`);
}

/** Names of containers and of their directories contain the process ID of their creator. */
export function ofTheDead(dir: string): string[] {
  return readdirSync(dir).filter((name) => {
    const pid = /^ags-.*-(\d+)-[0-9a-z]+$/.exec(name)?.[1];
    return pid !== undefined && !isRunning(Number(pid));
  });
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Never removed recursively: it may still be mounted. */
export async function removeStage(path: string): Promise<boolean> {
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
  // Earlier builds mounted on the directory itself; then there is none below.
  const below = stageIn(path);
  await run(['umount', '--lazy', existsSync(below) ? below : path], { env });
  return (await run(['rmdir', ...(existsSync(below) ? [below] : []), path], { env })).exitCode === 0;
}
