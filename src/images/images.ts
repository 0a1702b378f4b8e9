// images/images.ts: the operations of `ags image`.
import type { Agent } from '../agents/agent.ts';
import { loadConfig } from '../config/load.ts';
import { AgsError } from '../protocol/errors.ts';
import { inspectImage, IMAGE_LABEL, ownImages, removeImage, type OwnImage } from '../sandbox/engine/images.ts';
import { needEngine } from '../sandbox/engine/find-engine.ts';
import { shortId, type Image } from '../sandbox/spec/image.ts';
import { buildBase, buildProject, pullImage, type BuildOptions, type Built } from './build.ts';
import { findProject } from '../run/project.ts';
import { wantedImage } from './wanted/project-image.ts';
import { configInput, type HostContext } from '../run/host-context.ts';

export interface ListedImage extends OwnImage {
  readonly project: string | null;
  readonly agents: string | null;
}

export interface Images {
  /** `either`: the project's image if it has one, otherwise the base. */
  build(
    what: 'base' | 'project' | 'either',
    wish: { readonly agents: readonly Agent[]; readonly from: string | null },
    options: BuildOptions,
  ): Promise<Built>;
  pull(reference: string, say: (text: string) => void): Promise<Image>;
  list(): Promise<readonly ListedImage[]>;
  /** Removes only images that ags built. */
  remove(name: string): Promise<void>;
}

/** `backend`: the requested engine. */
export async function openImages(context: HostContext, backend: string | null): Promise<Images> {
  const project = await findProject({ ...context, configHome: context.env['XDG_CONFIG_HOME'] });
  const config = await loadConfig(configInput(context, project.root, backend === null ? {} : { backend }));
  const engine = needEngine(config.backend, context);
  return {
    async build(what, wish, options) {
      if (engine.far !== null) throw builtElsewhere(engine.far);
      const wanted = config.image === null ? null : wantedImage(project.root, config.image, config);
      if (what === 'base' || (what === 'either' && wanted?.kind !== 'built'))
        return buildBase(context, engine, config, wish, options);
      if (wanted?.kind === 'built') {
        options.say(`Building ${wanted.dockerfile} ...`);
        return buildProject(context, engine, config, wanted, project.root, options);
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
        throw new AgsError('usage.invalid', `${name} was not built by ags.`, {
          hint: `To remove it anyway: ${engine.name} image rm ${name}`,
        });
      if (await removeImage(engine, image.id)) return;
      throw new AgsError('task.busy', `${name} (${shortId(image.id)}) is in use.`, { hint: 'See: ags list' });
    },
  };
}

/** Builds use the network of a sandbox with this machine's programs, so a remote engine cannot build. */
function builtElsewhere(address: string): AgsError {
  return new AgsError('backend.unavailable', `Images are built on this machine, but the engine is at ${address}.`, {
    hint: 'Build it with a local engine, then send it: docker --context default save <image> | docker load',
  });
}
