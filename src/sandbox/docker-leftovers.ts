// sandbox/docker-leftovers.ts: what a runner that was killed has left in the engine, and, for root, mounted for it.
// Containers end by themselves when their runner does; one that was made but never started is what can stay.
// Invariant: nothing is touched that does not carry our label and our name, or whose owner is alive. Labels alone prove nothing: an image
// brings its own to whatever anybody runs of it. What a container is called, no image can say.
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { isAlive, ownIdentity, type ProcessIdentity } from '../lib/liveness.ts';
import { run } from '../lib/process.ts';
import { LABEL, OWNER_LABEL } from './docker-args.ts';
import { askEngine, type Engine } from './engine.ts';
import { ENGINE_KINDS } from './engine-kinds.ts';

/** A process, the boot it belongs to, and where its number is its own: containers that share an engine count their processes apart. */
export function ownerText({ pid, startTicks }: ProcessIdentity, namespace = pidNamespace()): string {
  return `${pid}:${startTicks}:${namespace}`;
}

/** Only who counts processes as the owner did can tell; what others have made is left to them. */
export function isOwnerGone(text: string): boolean {
  const [pid = '', boot = '', ticks = '', namespace = ''] = text.split(':');
  const own = ownIdentity().startTicks.split(':')[0];
  if (boot === own && namespace !== pidNamespace()) return false;
  return !isAlive({ pid: Number(pid), startTicks: `${boot}:${ticks}` });
}

function pidNamespace(): string {
  return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '';
}

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
      const who = readLabel(owner);
      return isNameOf(name, who) && isOwnerGone(who) ? [{ id, run: readLabel(run) }] : [];
    });
}

/** Whoever made it put the same process into both. */
export function isNameOf(name: string, owner: string): boolean {
  const pid = /^\d+(?=:)/.exec(owner)?.[0];
  return pid !== undefined && name.startsWith('ags-') && name.includes(`-${pid}-`);
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
