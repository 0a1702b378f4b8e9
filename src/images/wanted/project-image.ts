// images/wanted/project-image.ts: the image that a project's files ask for: by name, or built from a Dockerfile. The name of a built image
// contains a hash of all its inputs, so an outdated image is simply a missing one.
// Invariant: only files of the project are used, and none that a sandbox could not see.
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { join, posix, relative } from 'node:path';
import { isWithin } from '../../lib/files.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { EffectiveConfig, ImageChoice } from '../../config/effective.ts';
import { compileHidden } from '../../config/patterns.ts';
import { isTaken, readDockerfile } from './dockerfile.ts';
import { IMAGE } from '../../protocol/config/words.ts';

export type WantedImage = { readonly kind: 'named'; readonly reference: string } | BuiltImage;

export interface BuiltImage {
  readonly kind: 'built';
  readonly reference: string;
  readonly key: string;
  /** Relative to the project. */
  readonly dockerfile: string;
  readonly text: string;
  readonly from: readonly string[];
  /** The absolute directory of the build context, and the files used from it. */
  readonly context: string;
  readonly files: readonly string[];
}

type Hiding = Pick<EffectiveConfig, 'hide' | 'reveal'>;

export function wantedImage(project: string, choice: ImageChoice, hiding: Hiding): WantedImage {
  switch (choice.kind) {
    case 'reference':
      return { kind: 'named', reference: choice.reference };
    case 'dockerfile':
      return fromDockerfile(project, choice.path, '', hiding);
    case 'devcontainer': {
      const named = readDevcontainer(readOwn(project, DEVCONTAINER));
      return named.kind === 'reference'
        ? { kind: 'named', reference: named.reference }
        : fromDockerfile(project, named.path, named.context, hiding);
    }
  }
}

function fromDockerfile(project: string, dockerfile: string, context: string, hiding: Hiding): BuiltImage {
  const text = readOwn(project, dockerfile);
  const { from, sources } = readDockerfile(text);
  const base = ownPath(project, context === '' ? '.' : context);
  // The real path counts: a hidden file stays hidden through any link.
  const inside = relative(realpathSync(project), base);
  const hidden = compileHidden(hiding.hide, hiding.reveal);
  const isShown = (path: string, isDirectory: boolean): boolean => !hidden(posix.join(inside, path), isDirectory);
  if (withParents(inside).some((path) => hidden(path, true))) throw wrong(context, 'is hidden from sandboxes');
  const files = sources?.length === 0 ? [] : filesBelow(base, isShown).filter((path) => isTaken(path, sources));
  const hash = createHash('sha256');
  const part = (data: string | Buffer): void => void hash.update(`${data.length}:`).update(data);
  part(text);
  for (const path of files) {
    const stat = lstatSync(join(base, path));
    part(path);
    part(stat.isSymbolicLink() ? `link ${readlinkSync(join(base, path))}` : `file ${stat.mode & 0o111}`);
    if (stat.isFile()) part(readFileSync(join(base, path)));
  }
  const key = hash.digest('hex').slice(0, 32);
  return { kind: 'built', reference: `ags-project:${key}`, key, dockerfile, text, from, context: base, files };
}

/** "a/b": "a" and "a/b". */
function withParents(path: string): string[] {
  const names = path.split('/').filter((name) => name !== '');
  return names.map((_, at) => names.slice(0, at + 1).join('/'));
}

const MOST_BYTES = 256 * 1024;

function readOwn(project: string, path: string): string {
  const at = ownPath(project, path);
  const stat = statSync(at);
  if (!stat.isFile() || stat.size > MOST_BYTES) throw wrong(path, 'is not a file of at most 256 kB');
  return readFileSync(at, 'utf8');
}

/** Follows links only inside the project. */
function ownPath(project: string, path: string): string {
  const root = realpathSync(project);
  try {
    const at = realpathSync(join(root, path));
    if (isWithin(at, root)) return at;
  } catch {
    throw wrong(path, 'does not exist');
  }
  throw wrong(path, 'is not in the project');
}

function wrong(path: string, why: string): AgsError {
  return new AgsError('config.invalid', `${path} ${why}.`, { hint: 'See which image is configured: ags config image' });
}

const MOST_FILES = 50_000;
/** Directories that no image is built from; they are created again inside. */
const LEFT_OUT = new Set(['.git', 'node_modules']);

function filesBelow(base: string, isShown: (path: string, isDirectory: boolean) => boolean): string[] {
  const found: string[] = [];
  const visit = (dir: string): void => {
    for (const entry of readdirSync(join(base, dir), { withFileTypes: true })) {
      const path = posix.join(dir, entry.name);
      if (LEFT_OUT.has(entry.name) || !isShown(path, entry.isDirectory())) continue;
      if (entry.isDirectory()) visit(path);
      else if (entry.isFile() || entry.isSymbolicLink()) found.push(path);
      if (found.length > MOST_FILES)
        throw new AgsError('image.failed', `There are more than ${MOST_FILES} files below ${base}.`, {
          hint: 'Copy only what the Dockerfile needs: COPY package.json ./',
        });
    }
  };
  visit('');
  return found.toSorted();
}

const DEVCONTAINER = '.devcontainer/devcontainer.json';

type DevcontainerImage =
  | { readonly kind: 'reference'; readonly reference: string }
  /** Relative to the project. */
  | { readonly kind: 'dockerfile'; readonly path: string; readonly context: string };

/**
 * The image that a project's .devcontainer/devcontainer.json names. The rest of the file is ignored. It comes from the project, so an
 * unexpected form is refused, never guessed.
 */
export function readDevcontainer(text: string): DevcontainerImage {
  let found: unknown;
  try {
    found = JSON.parse(withoutComments(text));
  } catch (cause) {
    throw badDevcontainer(`it is not JSON with comments: ${(cause as Error).message.split('\n')[0] ?? ''}`);
  }
  const file = asObject(found, 'the file');
  if (file['dockerComposeFile'] !== undefined)
    throw badDevcontainer('it uses services (dockerComposeFile), which ags does not start');
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
  throw badDevcontainer(
    image === undefined ? 'it names neither an image nor a Dockerfile' : '"image" is not the name of an image',
  );
}

/** Turns a path relative to the file into one relative to the project. */
function inProject(path: unknown, key: string): string {
  if (typeof path !== 'string' || path === '' || path.startsWith('/') || /[\\$\0]/.test(path))
    throw badDevcontainer(`"${key}" is not a path in the project`);
  const at = posix.normalize(posix.join('.devcontainer', path)).replace(/\/$/, '');
  if (at === '..' || at.startsWith('../')) throw badDevcontainer(`"${key}" leads out of the project`);
  return at;
}

function asObject(value: unknown, key: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw badDevcontainer(`${key} has no keys`);
}

function badDevcontainer(why: string): AgsError {
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
