// sandbox/engine/images.ts: images of an engine: look at them, list those of ours, remove them.
import { AgsError } from '../../protocol/errors.ts';
import { askEngine, tellEngine, type Engine } from './engine.ts';
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

/** Every image that ags has made says what it is. */
export const IMAGE_LABEL = 'ags.image';

/** Which user of which machine made it: only they know whether it is still needed (owner.ts). */
export const MAKER_LABEL = 'ags.maker';

/** For an image of ours that is imported: what it is, and who made it. */
export function importArgs(what: string): string[] {
  // Each for itself: for Podman one line has one label, whose value is all the rest.
  const labels = [`${IMAGE_LABEL}=${what}`, `${MAKER_LABEL}=${userMark()}`];
  return ['import', ...labels.flatMap((label) => ['--change', `LABEL ${label}`]), '-'];
}

export interface OwnImage extends Image {
  readonly what: string;
  /** Empty: another one has taken its name. */
  readonly names: readonly string[];
  /** Where it was fetched from or sent to, by its digest: such an image need not have any other name. */
  readonly digests: readonly string[];
  readonly createdAtMs: number;
}

/** Those that ags has made. */
export async function ownImages(engine: Engine): Promise<readonly OwnImage[]> {
  const list = ['image', 'ls', '--quiet', '--no-trunc', '--filter', `label=${IMAGE_LABEL}`];
  const ids = [...new Set((await tellEngine(engine, list)).split('\n').filter((id) => id !== ''))];
  if (ids.length === 0) return [];
  // One may be gone by now; the others are told all the same.
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

/** What it was made by, step by step, the last one first. Empty: it is gone. */
export async function imageSteps(engine: Engine, id: string): Promise<readonly string[]> {
  // A step may say nothing: the dash is there all the same.
  const { exitCode, stdout } = await askEngine(engine, ['history', '--no-trunc', '--format', '-{{.CreatedBy}}', id]);
  const lines = exitCode === 0 ? stdout.toString('utf8').trim().split('\n') : [];
  return lines.filter((line) => line !== '').map((line) => line.slice(1));
}

/** False: something uses it, or it is not there. By its id it goes with all its names. */
export async function removeImage(engine: Engine, id: string): Promise<boolean> {
  return (await askEngine(engine, ['image', 'rm', '--force', id])).exitCode === 0;
}
