// images/devcontainer-engine-images.ts: `ags image` in a dev container, as command lines of the Docker client.
import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import type { HostContext } from '../run/host-context.ts';

/** null: this dev container has no Docker. */
export function planImageInside(
  context: Pick<HostContext, 'cwd' | 'env'>,
  word: string,
  names: readonly string[],
): readonly string[] | null {
  if (context.env['DOCKER_HOST'] === undefined) return null;
  switch (word) {
    case 'list':
      return ['docker', 'image', 'ls'];
    case 'build':
      return build(context, names);
    case 'pull':
    case 'rm':
      if (names.length > 0) return ['docker', 'image', word, '--', ...names];
      throw new AgsError('usage.invalid', `Which image? For example: ags image ${word} debian:12`);
    default:
      throw new AgsError('usage.invalid', `ags image has no "${visible(word)}".`, { hint: 'See: ags image --help' });
  }
}

/** Builds from the project, because a dev container has nothing else. */
function build({ cwd }: Pick<HostContext, 'cwd'>, [named, ...more]: readonly string[]): readonly string[] {
  const file = named === undefined || named === 'project' ? 'Dockerfile' : named;
  if (more.length === 0 && existsSync(resolve(cwd, file)))
    return ['docker', 'build', '--tag', tagOf(cwd), '--file', resolve(cwd, file), cwd];
  throw new AgsError(
    'path.not-found',
    `There is no ${visible(more.length > 0 ? [named, ...more].join(' ') : file)} here to build an image from.`,
    {
      hint: 'In a dev container, images are built from a Dockerfile of the project: ags image build docker/Dockerfile',
    },
  );
}

function tagOf(cwd: string): string {
  const name = basename(cwd)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  return `ags-${name === '' ? 'project' : name}`;
}
