// sandbox/engine/images.ts: inspects images of an engine, lists those of ags, and removes them.
import { AgsError } from '../../protocol/errors.ts';
import { askEngine, callEngine, type Engine } from './engine.ts';
import { readImage, type Image } from '../spec/image.ts';
import { userMark } from './owner.ts';

/** null: the engine does not have it. */
export async function inspectImage(engine: Engine, reference: string): Promise<Image | null> {
  const { exitCode, stdout, stderr } = await askEngine(engine, ['image', 'inspect', '--', reference]);
  if (exitCode === 0) return readImage(reference, readList(stdout)[0]);
  if (/no such (image|object)|image not known/i.test(stderr)) return null;
  throw new AgsError('backend.failed', `${engine.name} did not answer: ${stderr.trim().split('\n')[0] ?? ''}`, {
    hint: 'See what works here: ags doctor',
  });
}

function readList(answer: Buffer): unknown[] {
  const list: unknown = JSON.parse(answer.toString('utf8'));
  return Array.isArray(list) ? list : [];
}

/** Every image made by ags has this label, which names its kind. */
export const IMAGE_LABEL = 'ags.image';

/** The user and machine that made the image: only they know whether it is still needed (owner.ts). */
export const MAKER_LABEL = 'ags.maker';

/** Arguments that import an image with both labels. */
export function importArgs(what: string): string[] {
  // One --change per label: Podman takes the rest of a line as the value of one label.
  const labels = [`${IMAGE_LABEL}=${what}`, `${MAKER_LABEL}=${userMark()}`];
  return ['import', ...labels.flatMap((label) => ['--change', `LABEL ${label}`]), '-'];
}

export interface OwnImage extends Image {
  readonly what: string;
  /** Empty: another image has taken its name. */
  readonly names: readonly string[];
  /** Digests with the repositories it was pulled from or pushed to; such an image may have no other name. */
  readonly digests: readonly string[];
  readonly createdAtMs: number;
}

/** Images made by ags. */
export async function ownImages(engine: Engine): Promise<readonly OwnImage[]> {
  const list = ['image', 'ls', '--quiet', '--no-trunc', '--filter', `label=${IMAGE_LABEL}`];
  const ids = [...new Set((await callEngine(engine, list)).split('\n').filter((id) => id !== ''))];
  if (ids.length === 0) return [];
  // One of them may be gone by now; the others are listed all the same.
  const { stdout } = await askEngine(engine, ['image', 'inspect', ...ids]);
  return readList(stdout).map((one): OwnImage => {
    const found = one as { RepoTags?: unknown; RepoDigests?: unknown; Created?: unknown };
    const texts = (list: unknown): string[] =>
      Array.isArray(list) ? list.filter((name) => typeof name === 'string') : [];
    const names = texts(found.RepoTags);
    const image = readImage(names[0] ?? '', found);
    return {
      ...image,
      reference: names[0] ?? image.id,
      names,
      digests: texts(found.RepoDigests),
      what: image.labels[IMAGE_LABEL] ?? '',
      createdAtMs: Date.parse(String(found.Created)) || 0,
    };
  });
}

/** The build steps, last one first. Empty: the image is gone. */
export async function imageSteps(engine: Engine, id: string): Promise<readonly string[]> {
  // A step may be empty; the dash keeps its line.
  const { exitCode, stdout } = await askEngine(engine, ['history', '--no-trunc', '--format', '-{{.CreatedBy}}', id]);
  const lines = exitCode === 0 ? stdout.toString('utf8').trim().split('\n') : [];
  return lines.filter((line) => line !== '').map((line) => line.slice(1));
}

/** False: it is in use, or does not exist. Removing by ID removes all its names. */
export async function removeImage(engine: Engine, id: string): Promise<boolean> {
  return (await askEngine(engine, ['image', 'rm', '--force', id])).exitCode === 0;
}
