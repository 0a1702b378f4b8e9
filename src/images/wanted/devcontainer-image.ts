// images/wanted/devcontainer-image.ts: the image that a project's .devcontainer/devcontainer.json names. The rest of the file is ignored.
// Invariant: the file comes from the project, so an unexpected form is refused, never guessed.
import { posix } from 'node:path';
import { IMAGE } from '../../protocol/config/words.ts';
import { AgsError } from '../../protocol/errors.ts';

export const DEVCONTAINER = '.devcontainer/devcontainer.json';

export type DevcontainerImage =
  | { readonly kind: 'reference'; readonly reference: string }
  /** Relative to the project. */
  | { readonly kind: 'dockerfile'; readonly path: string; readonly context: string };

export function readDevcontainer(text: string): DevcontainerImage {
  let found: unknown;
  try {
    found = JSON.parse(withoutComments(text));
  } catch (cause) {
    throw wrong(`it is not JSON with comments: ${(cause as Error).message.split('\n')[0] ?? ''}`);
  }
  const file = asObject(found, 'the file');
  if (file['dockerComposeFile'] !== undefined)
    throw wrong('it uses services (dockerComposeFile), which ags does not start');
  const build = file['build'] === undefined ? {} : asObject(file['build'], 'build');
  const dockerfile = build['dockerfile'] ?? file['dockerFile'];
  if (dockerfile !== undefined) {
    const context = build['context'] ?? file['context'] ?? '.';
    return {
      kind: 'dockerfile',
      path: inProject(dockerfile, 'build.dockerfile'),
      context: inProject(context, 'build.context'),
    };
  }
  const { image } = file;
  if (typeof image === 'string' && IMAGE.test(image)) return { kind: 'reference', reference: image };
  throw wrong(
    image === undefined ? 'it names neither an image nor a Dockerfile' : '"image" is not the name of an image',
  );
}

/** Turns a path relative to the file into one relative to the project. */
function inProject(path: unknown, key: string): string {
  if (typeof path !== 'string' || path === '' || path.startsWith('/') || /[\\$\0]/.test(path))
    throw wrong(`"${key}" is not a path in the project`);
  const at = posix.normalize(posix.join('.devcontainer', path)).replace(/\/$/, '');
  if (at === '..' || at.startsWith('../')) throw wrong(`"${key}" leads out of the project`);
  return at;
}

function asObject(value: unknown, key: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw wrong(`${key} has no keys`);
}

function wrong(why: string): AgsError {
  return new AgsError('config.invalid', `${DEVCONTAINER}: ${why}.`, {
    hint: 'Name an image in ags.yaml instead, for example: image: debian:12',
  });
}

/** Removes comments, and commas before closing brackets, except in strings. */
function withoutComments(text: string): string {
  return text
    .replaceAll(/("(?:[^"\\\n]|\\.)*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (_, quoted?: string) => quoted ?? ' ')
    .replaceAll(/("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])/g, (_, quoted?: string) => quoted ?? '');
}
