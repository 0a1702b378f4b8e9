// sandbox/container/container-image.ts: options for a container over a user's image. Pure.
// Invariant: the image's own settings (user, entry point, variables, volumes, health check) never reach our programs, and nothing in the
// image is writable.
import { posix } from 'node:path';
import { isWithin } from '../../lib/files.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { Mount, SandboxSpec } from '../../protocol/spec.ts';
import { bindArgs, csv } from './mounts.ts';
import type { EngineKind } from '../engine/engine-kinds.ts';
import { EMPTY_FILE, INTERPRETER } from '../spec/interpreter.ts';

/** Lists libraries that every program of the image would load; the first process is ours. */
export const PRELOAD = '/etc/ld.so.preload';

export function rootArgs(kind: EngineKind, spec: SandboxSpec, interpreter: string | null): string[] {
  const { root, mounts } = spec;
  if (root.kind === 'host' || interpreter === null) return [];
  return [
    '--no-healthcheck',
    ...kind.withoutVariables(root.variables),
    ...(kind.withoutVolumes ?? root.volumes.map(cleaned).flatMap((path) => volumeArgs(path, root.reference, mounts))),
    ...interpreterMount(kind, interpreter),
    ...bindArgs(kind, posix.join(interpreter, EMPTY_FILE), PRELOAD, false),
  ];
}

export function interpreterMount(kind: EngineKind, interpreter: string | null): string[] {
  return interpreter === null ? [] : bindArgs(kind, interpreter, INTERPRETER, false);
}

function cleaned(path: string): string {
  return posix.join('/', path).replace(/(?<=.)\/$/, '');
}

/** An engine creates an image's volumes by itself, and they are writable: an empty directory replaces each. */
function volumeArgs(path: string, reference: string, mounts: readonly Mount[]): string[] {
  if (mounts.some((mount) => String(mount.to) === path) || TAKEN.has(path)) return [];
  const inside = mounts.find((mount) => isWithin(path, mount.to));
  if (inside !== undefined)
    throw new AgsError('backend.failed', `The image ${reference} has a volume at ${path}, which is in ${inside.to}.`, {
      hint: 'Use an image without it, or one made from it.',
    });
  return ['--mount', csv(['type=tmpfs', `dst=${path}`, 'tmpfs-size=4096', 'tmpfs-mode=0555', 'readonly'])];
}

const TAKEN: ReadonlySet<string> = new Set(['/sys', '/sys/fs/cgroup', '/dev/mqueue', INTERPRETER, PRELOAD]);
