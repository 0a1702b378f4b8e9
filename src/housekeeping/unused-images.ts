// housekeeping/unused-images.ts: for `ags cleanup`: images that ags has made and that nothing names any more.
// Invariant: only what carries our label, has no name but ours and was made by this user of this machine is touched: an image that stands on one of ours has its labels too, and may
// have no name at all; then the last step that made it has to be one of ours. Whether the project of another machine is there cannot be seen from here, whatever way its engine is reached by.
// Images of builds that did not say who made them stay until "ags image rm". The base image and the newest image of a project that is there stay, and so does
// whatever a task stands on. On another machine others have images too, of projects that are not here: nothing but what carried our files there is touched.
import { existsSync } from 'node:fs';
import type { OwnImage } from '../sandbox/engine/images.ts';
import { shortId } from '../sandbox/spec/image.ts';
import type { TaskEntry } from '../queries/entries.ts';
import type { CleanupItem } from './leftovers.ts';
import type { World } from '../run/host-context.ts';

/** Skeletons are made again when they are needed; one that somebody is about to use is younger than this. */
const DAY_MS = 24 * 3600 * 1000;

/** Podman says whose an image is that is from nowhere. */
const OUR_NAMES = /^(localhost\/)?ags-(skeleton|project|base|debian)[:@]/;

export async function imageItems(world: World, entries: readonly TaskEntry[]): Promise<CleanupItem[]> {
  const { findAnyEngine } = await import('../sandbox/engine/find-engine.ts');
  const { ENGINE_NAMES } = await import('../sandbox/engine/engine-kinds.ts');
  const { imageSteps, MAKER_LABEL, ownImages, removeImage } = await import('../sandbox/engine/images.ts');
  const { FAR_IMAGES } = await import('../sandbox/remote/volume.ts');
  const maker = (await import('../sandbox/engine/owner.ts')).userMark();
  const used = new Set(entries.flatMap((entry) => (entry.kind === 'whole' ? (entry.stored.run.image?.id ?? []) : [])));
  const engines = ENGINE_NAMES.flatMap((name) => findAnyEngine(name, world, false) ?? []);
  const items = engines.map(async (engine) => {
    // One that does not answer keeps what it has: that is no reason to clean nothing up.
    const all = (await ownImages(engine).catch(() => [])).filter(({ labels }) => labels[MAKER_LABEL] === maker);
    const mine: OwnImage[] = [];
    for (const image of all) {
      const ours =
        engine.far === null
          ? (hasOurNames(image) ?? isOurWork(image, await imageSteps(engine, image.id)))
          : image.names.some((name) => name.startsWith(FAR_IMAGES));
      if (ours) mine.push(image);
    }
    return unusedImages(mine, used, world.now().getTime(), existsSync).map(({ image, why }): CleanupItem => ({
      kind: 'image',
      name: `${image.names[0] ?? shortId(image.id)}${engine.far === null ? '' : ` at ${engine.far}`}`,
      why,
      bytes: image.bytes,
      losesWork: false,
      remove: () => removeImage(engine, image.id),
    }));
  });
  return (await Promise.all(items)).flat();
}

/** And none of anybody else's; null: it has no name. */
export function hasOurNames({ names, digests }: Pick<OwnImage, 'names' | 'digests'>): boolean | null {
  const all = [...names, ...digests];
  return all.length === 0 ? null : all.every((name) => OUR_NAMES.test(name));
}

/**
 * An image that has lost its name to a newer one: is it of ours, or does it stand on one? Our builds end with our labels, of which this is the last, and what
 * is imported is made in one step. Whoever goes on from there adds steps.
 */
export function isOurWork({ what, labels }: Pick<OwnImage, 'what' | 'labels'>, steps: readonly string[]): boolean {
  if (what === 'skeleton' || what === 'debian') return steps.length === 1;
  const [, user] = /^\/bin\/sh -c #\(nop\) +LABEL "?ags\.user"?="?(\d+)"?$/.exec(steps[0]?.trim() ?? '') ?? [];
  return user !== undefined && user === labels['ags.user'];
}

export function unusedImages(
  images: readonly OwnImage[],
  used: ReadonlySet<string>,
  nowMs: number,
  exists: (path: string) => boolean,
): { readonly image: OwnImage; readonly why: string }[] {
  const newest = new Map<string, OwnImage>();
  for (const image of images) {
    const project = image.labels['ags.project'];
    if (project !== undefined && image.createdAtMs >= (newest.get(project)?.createdAtMs ?? 0))
      newest.set(project, image);
  }
  return images.flatMap((image) => {
    if (used.has(image.id)) return [];
    const why = whyUnused(image);
    return why === null ? [] : [{ image, why }];
  });

  function whyUnused(image: OwnImage): string | null {
    const project = image.labels['ags.project'] ?? '';
    if (image.what === 'skeleton') return nowMs - image.createdAtMs > DAY_MS ? 'made again when it is needed' : null;
    if (image.what !== 'project') return image.names.length === 0 ? 'another one has taken its place' : null;
    if (!exists(project)) return 'its project is gone';
    return newest.get(project) === image ? null : 'another one has taken its place';
  }
}
