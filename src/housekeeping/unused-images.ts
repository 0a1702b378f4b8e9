// housekeeping/unused-images.ts: finds unused images of ags for `ags cleanup`.
// Invariant: cleanup removes an image only if it has the label of ags, no name but one of ags, and was made by this user on this
// machine. A user's image that is based on one of ours inherits our labels and may have no name; an image without a name
// therefore counts only if its last build step is one of ours. Images without a maker stay until `ags image rm`.
// The base image, the newest image of each existing project and every image that a task uses stay. On a remote engine, projects
// of other machines cannot be checked, so only images of the file sync are removed there.
import { existsSync } from 'node:fs';
import type { OwnImage } from '../sandbox/engine/images.ts';
import { shortId } from '../sandbox/spec/image.ts';
import type { TaskEntry } from '../queries/entries.ts';
import type { CleanupItem } from './leftovers.ts';
import type { HostContext } from '../run/host-context.ts';

/** Root images are made again on demand. One that a process is about to use is younger than this. */
const DAY_MS = 24 * 3600 * 1000;

/** Podman puts "localhost/" before the names of local images. */
const OUR_NAMES = /^(localhost\/)?ags-(skeleton|project|base|debian)[:@]/;

export async function imageItems(context: HostContext, entries: readonly TaskEntry[]): Promise<CleanupItem[]> {
  const { findAnyEngine } = await import('../sandbox/engine/find-engine.ts');
  const { ENGINE_NAMES } = await import('../sandbox/engine/engine-kinds.ts');
  const { imageSteps, MAKER_LABEL, ownImages, removeImage } = await import('../sandbox/engine/images.ts');
  const { REMOTE_IMAGES } = await import('../sandbox/remote/volume.ts');
  const maker = (await import('../sandbox/engine/owner.ts')).userMark();
  const used = new Set(entries.flatMap((entry) => (entry.kind === 'whole' ? (entry.stored.run.image?.id ?? []) : [])));
  const engines = ENGINE_NAMES.flatMap((name) => findAnyEngine(name, context, false) ?? []);
  const items = engines.map(async (engine) => {
    // An engine that does not answer keeps its images; cleanup goes on with the others.
    const all = (await ownImages(engine).catch(() => [])).filter(({ labels }) => labels[MAKER_LABEL] === maker);
    const mine: OwnImage[] = [];
    for (const image of all) {
      const ours =
        engine.far === null
          ? (hasOurNames(image) ?? isOurWork(image, await imageSteps(engine, image.id)))
          : image.names.some((name) => name.startsWith(REMOTE_IMAGES));
      if (ours) mine.push(image);
    }
    return unusedImages(mine, used, context.now().getTime(), existsSync).map(({ image, why }): CleanupItem => ({
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

/** True if all names are names of ags; null: the image has no name. */
export function hasOurNames({ names, digests }: Pick<OwnImage, 'names' | 'digests'>): boolean | null {
  const all = [...names, ...digests];
  return all.length === 0 ? null : all.every((name) => OUR_NAMES.test(name));
}

/**
 * Tells an image of ags that lost its name to a newer one from a user's image that is based on it. Builds of ags end with its labels,
 * "ags.user" last, and imported images have one step. A user's build adds steps.
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
    if (image.what === 'skeleton')
      return nowMs - image.createdAtMs > DAY_MS ? 'root image; made again on demand' : null;
    if (image.what !== 'project') return image.names.length === 0 ? 'replaced by a newer image' : null;
    if (!exists(project)) return 'its project no longer exists';
    return newest.get(project) === image ? null : 'replaced by a newer image';
  }
}
