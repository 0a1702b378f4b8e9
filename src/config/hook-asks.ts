// config/hook-asks.ts: hooks that a project wants to run on this machine (see asks.ts): commands of its ags.yaml word for word,
// files by their content.
import type { HookCommand, HookPoint } from '../protocol/hook.ts';
import type { EffectiveConfig } from './effective.ts';

export function hookAsks(base: EffectiveConfig, asked: EffectiveConfig): string[] {
  const known = new Set(base.hooks.commands.map(identity));
  return asked.hooks.commands
    .filter((command) => !command.inside && !known.has(identity(command)))
    .map(
      (command) =>
        `${command.origin}: hooks.${command.point}: run on this machine ${WHEN[command.point]}: ${formatHookCommand(command)}`,
    );
}

/** A hook file of the project; an approval covers the whole digest. */
export interface HookFileAsk {
  /** Relative to the project. */
  readonly path: string;
  readonly point: HookPoint;
  readonly sha256: string;
}

export function hookFileAsk({ path, point, sha256 }: HookFileAsk): string {
  return `${path}: run on this machine ${WHEN[point]} (sha256 ${sha256.slice(0, 12)})`;
}

export function formatHookCommand({ run, timeoutSeconds }: HookCommand): string {
  return `${JSON.stringify(run)}${timeoutSeconds === null ? '' : ` for up to ${timeoutSeconds}s`}`;
}

const WHEN = {
  'pre-any': 'before whatever an agent does',
  'pre-bash': 'before every command of an agent',
  'pre-writes': 'before an agent writes a file',
  'post-writes': 'after an agent wrote a file',
  'post-stop': 'when an agent is done',
} as const satisfies Record<HookPoint, string>;

/** Equal commands at different positions are the same. */
function identity({ point, run, timeoutSeconds, inside }: HookCommand): string {
  return JSON.stringify([point, run, timeoutSeconds, inside]);
}
