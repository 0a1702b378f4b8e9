// images/images.ts: what `ags image` does.
import type { Agent } from '../agents/agent.ts';
import { loadConfig } from '../config/load.ts';
import { AgsError } from '../protocol/errors.ts';
import { inspectImage, IMAGE_LABEL, ownImages, removeImage, type OwnImage } from '../sandbox/engine/images.ts';
import { needEngine } from '../sandbox/engine/find-engine.ts';
import { shortId, type Image } from '../sandbox/spec/image.ts';
import { buildBase, buildProject, pullImage, type BuildOptions, type Built } from './build.ts';
import { findProject } from '../run/project.ts';
import { wantedImage } from './wanted/project-image.ts';
import { configInput, type World } from '../run/host-context.ts';

export interface ListedImage extends OwnImage {
  readonly project: string | null;
  readonly agents: string | null;
}

export interface Images {
  /** `either`: the project's own, if it has one. */
  build(
    what: 'base' | 'project' | 'either',
    wish: { readonly agents: readonly Agent[]; readonly from: string | null },
    options: BuildOptions,
  ): Promise<Built>;
  pull(reference: string, say: (text: string) => void): Promise<Image>;
  list(): Promise<readonly ListedImage[]>;
  /** Only what ags has made. */
  remove(name: string): Promise<void>;
}

/** `backend`: the engine that was asked for. */
export async function openImages(world: World, backend: string | null): Promise<Images> {
  const project = await findProject({ ...world, configHome: world.env['XDG_CONFIG_HOME'] });
  const config = await loadConfig(configInput(world, project.root, backend === null ? {} : { backend }));
  const engine = needEngine(config.backend, world);
  return {
    async build(what, wish, options) {
      if (engine.far !== null) throw builtElsewhere(engine.far);
      const wanted = config.image === null ? null : wantedImage(project.root, config.image, config);
      if (what === 'base' || (what === 'either' && wanted?.kind !== 'built'))
        return buildBase(world, engine, config, wish, options);
      if (wanted?.kind === 'built') {
        options.say(`Building ${wanted.dockerfile} ...`);
        return buildProject(world, engine, config, wanted, project.root, options);
      }
      throw new AgsError('config.invalid', 'This project has no Dockerfile for its sandboxes.', {
        hint: 'Name one in ags.yaml: dockerfile: .ags/Dockerfile',
      });
    },
    pull: (reference, say) => pullImage(engine, reference, say),
    async list() {
      const images = await ownImages(engine);
      return images
        .filter(({ what }) => what !== 'skeleton')
        .toSorted((a, b) => b.createdAtMs - a.createdAtMs)
        .map((image) => ({
          ...image,
          project: image.labels['ags.project'] ?? null,
          agents: image.labels['ags.agents'] ?? null,
        }));
    },
    async remove(name) {
      const image = await inspectImage(engine, name);
      if (image === null)
        throw new AgsError('image.missing', `There is no image ${name}.`, { hint: 'See: ags image list' });
      if (image.labels[IMAGE_LABEL] === undefined)
        throw new AgsError('usage.invalid', `${name} was not made by ags.`, {
          hint: `To remove it all the same: ${engine.name} image rm ${name}`,
        });
      if (await removeImage(engine, image.id)) return;
      throw new AgsError('task.busy', `${name} (${shortId(image.id)}) is in use.`, { hint: 'See: ags list' });
    },
  };
}

/** The steps of a build have the network of a sandbox with the programs of this machine. */
function builtElsewhere(address: string): AgsError {
  return new AgsError('backend.unavailable', `Images are built on this machine, and the engine is at ${address}.`, {
    hint: 'Build it with an engine here, then send it: docker --context default save <image> | docker load',
  });
}
