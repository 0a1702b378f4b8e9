// images/wanted/find-image.ts: finds the image of a sandbox once; from then on its ID identifies it.
import { AgsError } from '../../protocol/errors.ts';
import type { EffectiveConfig, ImageChoice } from '../../config/effective.ts';
import type { NativeHost } from '../../sandbox/checks/host.ts';
import { BASE_IMAGE } from './base-image.ts';
import { inspectImage } from '../../sandbox/engine/images.ts';
import type { Image } from '../../sandbox/spec/image.ts';

/** `pinned`: the image that a continued task used before. */
export async function findImage(
  host: Pick<NativeHost, 'engine'>,
  config: Pick<EffectiveConfig, 'hide' | 'reveal'>,
  choice: ImageChoice,
  project: string,
  pinned: { readonly reference: string; readonly id: string } | null,
): Promise<Image> {
  const { engine } = host;
  if (engine === null)
    throw new AgsError(
      'backend.unavailable',
      'Images need a container backend: native sandboxes use the programs of this machine.',
      {
        hint: 'Use --backend docker, or start without an image: --image none',
      },
    );
  if (pinned !== null) {
    const image = await inspectImage(engine, pinned.id);
    if (image !== null) return { ...image, reference: pinned.reference };
    throw new AgsError(
      'image.missing',
      `The image that this task started with is not ${engine.far === null ? 'here' : `at ${engine.far}`}: ${pinned.reference}, ${pinned.id}.`,
      {
        hint: 'Point Docker at the engine that has it (DOCKER_HOST), then: ags continue <task>. Or start over: ags restart <task>',
      },
    );
  }
  const { wantedImage } = await import('./project-image.ts');
  const wanted = wantedImage(project, choice, config);
  const image = await inspectImage(engine, wanted.reference);
  if (image !== null) return { ...image, reference: wanted.kind === 'built' ? wanted.dockerfile : wanted.reference };
  if (wanted.kind === 'built')
    throw new AgsError('image.missing', `The image of ${wanted.dockerfile} is not built, or out of date.`, {
      hint: 'Build it: ags image build',
    });
  const base = wanted.reference === 'ags-base' || wanted.reference === BASE_IMAGE;
  throw new AgsError('image.missing', `The engine does not have the image ${wanted.reference}.`, {
    hint: base ? 'Build it: ags image build' : `Pull it: ags image pull ${wanted.reference}`,
  });
}
