// config/file/layer.ts: one source of configuration, checked key by key, with the place where each of its values stands.
// Plain JSON: this is what the cache keeps.
import type { ConfigFile } from '../../protocol/config/config.ts';
import { AgsError } from '../../protocol/errors.ts';

export interface Layer {
  readonly kind: 'user' | 'project' | 'flags';
  readonly values: ConfigFile;
  /** By key path: "ags.yaml:7:11" in a file, "--limit memory" for a flag. */
  readonly at: Readonly<Record<string, string>>;
}

/** Where a value came from, without the column. */
export function originOf(layer: Layer, key: string): string {
  const place = layer.at[key] ?? layer.kind;
  return layer.kind === 'flags' ? place : place.replace(/:\d+$/, '');
}

/** One entry of a list, with the place it stands at. */
export interface Item<T> {
  readonly value: T;
  readonly origin: string;
  readonly layer: Layer;
  readonly key: string;
}

export function collect<T>(
  layers: readonly Layer[],
  key: string,
  pick: (values: Layer['values']) => readonly T[] | undefined,
): Item<T>[] {
  return layers.flatMap((layer) =>
    (pick(layer.values) ?? []).map((value, i) => ({
      value,
      origin: originOf(layer, `${key}[${i}]`),
      layer,
      key: `${key}[${i}]`,
    })),
  );
}

export function wrongValue(layer: Layer, key: string, problem: string, hint?: string): AgsError {
  const place = layer.at[key] ?? layer.kind;
  return layer.kind === 'flags'
    ? new AgsError('usage.invalid', `${place}: ${problem}`, { hint })
    : new AgsError('config.invalid', `${place}: ${key}: ${problem}`, {
        hint: hint ?? KEYS_HINT,
        details: { problems: [`${place}: ${key}: ${problem}`] },
      });
}

export const KEYS_HINT = 'Every key with its meaning: ags init --print';

/** A value in a message, on one line. What comes from a file has been searched for unseen characters before; flags are the user's own. */
export function quote(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 76)}..."` : text;
}
