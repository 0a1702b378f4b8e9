// sandbox/container/leftovers.ts: what a runner that was killed has left in the engine, and, for root, mounted for it.
// Containers end by themselves when their runner does; one that was made but never started is what can stay.
// Invariant: nothing is touched that does not carry our label with our mark and our name, or whose owner is alive. Labels alone prove nothing: an image
// brings its own to whatever anybody runs of it. What a container is called, no image can say.
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

/** As JSON: a label may have line breaks in it, behind which anything could follow. */
export function readLabel(text: string): string {
  const value: unknown = text === '' ? '' : JSON.parse(text);
  return typeof value === 'string' ? value : '';
}

/** So that a crash leaves nothing beyond the next command. */
export async function removeStaleContainers(engine: Engine): Promise<void> {
  for (const { id } of await staleContainers(engine)) await removeContainer(engine, id);
}

/** Volumes without a name go with it. */
export async function removeContainer(engine: Engine, id: string): Promise<boolean> {
  return (await askEngine(engine, ['rm', '--force', '--volumes', id])).exitCode === 0;
}

/** Where it is mounted, in a directory that is closed to others. */
export function stageIn(closed: string): string {
  return `${closed}/d`;
}

/** Mounted for the moment in which a container starts. */
export function staleStages(dir = '/run'): string[] {
  return ofTheDead(dir).map((name) => `${dir}/${name}`);
}

/** The name of a container, and of what is made for it, says by which process. */
export function ofTheDead(dir: string): string[] {
  return readdirSync(dir).filter((name) => {
    const pid = /^ags-.*-(\d+)-[0-9a-z]+$/.exec(name)?.[1];
    return pid !== undefined && !readsAsAlive(Number(pid));
  });
}

function readsAsAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Never removed with what is below: it may still be mounted. */
export async function removeStage(path: string): Promise<boolean> {
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
  // Earlier builds mounted it on the directory itself; where that is so, there is none below.
  const below = stageIn(path);
  await run(['umount', '--lazy', existsSync(below) ? below : path], { env });
  return (await run(['rmdir', ...(existsSync(below) ? [below] : []), path], { env })).exitCode === 0;
}
