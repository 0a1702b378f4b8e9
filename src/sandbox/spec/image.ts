// sandbox/spec/image.ts: facts about a container image. Pure.
// Invariant: an image is untrusted. Only well-formed metadata is used.
import { AgsError } from '../../protocol/errors.ts';
import { ENV_NAME } from '../../protocol/config/words.ts';
import type { SandboxRoot } from '../../protocol/spec.ts';

export interface Image {
  /** As the user named it. */
  readonly reference: string;
  readonly id: string;
  /** The environment that the image sets for its programs. */
  readonly env: Readonly<Record<string, string>>;
  /** The names of all variables that it sets, well-formed or not. */
  readonly variables: readonly string[];
  readonly volumes: readonly string[];
  /** Its default command and working directory. */
  readonly command: readonly string[];
  readonly workdir: string;
  /** ONBUILD instructions, which run first in a build based on this image. */
  readonly onBuild: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly bytes: number;
}

export function rootOf({ reference, id, variables, volumes }: Image): SandboxRoot {
  return { kind: 'image', reference, id, variables, volumes };
}

export function shortId(id: string): string {
  return id.replace(/^sha256:/, '').slice(0, 12);
}

export function readImage(reference: string, found: unknown): Image {
  const { Id: id, Config: config, Size: size } = asObject(found);
  const {
    Env: env,
    Volumes: volumes,
    Labels: labels,
    Entrypoint: entry,
    Cmd: command,
    WorkingDir: workdir,
    OnBuild: onBuild,
  } = asObject(config);
  if (typeof id !== 'string' || !/^(sha256:)?[0-9a-f]{64}$/.test(id))
    throw new AgsError('backend.failed', `The engine reports no ID for the image ${reference}.`);
  const pairs = (Array.isArray(env) ? env : [])
    .filter((entry) => typeof entry === 'string')
    .map((entry): [string, string] => {
      const at = entry.indexOf('=');
      return at < 0 ? [entry, ''] : [entry.slice(0, at), entry.slice(at + 1)];
    });
  return {
    reference,
    id: id.startsWith('sha256:') ? id : `sha256:${id}`,
    env: Object.fromEntries(pairs.filter(([name, value]) => ENV_NAME.test(name) && !value.includes('\0'))),
    variables: pairs.map(([name]) => name).filter((name) => name !== ''),
    volumes: Object.keys(asObject(volumes)),
    command: [...textsOf(entry), ...textsOf(command)],
    workdir: typeof workdir === 'string' && workdir.startsWith('/') ? workdir : '/',
    onBuild: textsOf(onBuild),
    labels: Object.fromEntries(
      Object.entries(asObject(labels)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    ),
    bytes: typeof size === 'number' ? size : 0,
  };
}

function textsOf(value: unknown): string[] {
  return (Array.isArray(value) ? value : []).filter((word) => typeof word === 'string' && !word.includes('\0'));
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
