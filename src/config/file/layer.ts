// config/file/layer.ts: one source of configuration, checked key by key, with the position of each value.
// It is plain JSON because the cache stores it.
import type { ConfigFile } from '../../protocol/config/config.ts';
import { AgsError } from '../../protocol/errors.ts';

export interface Layer {
  readonly kind: 'user' | 'project' | 'flags';
  readonly values: ConfigFile;
  /** By key path: "ags.yaml:7:11" in a file, "--limit memory" for a flag. */
  readonly at: Readonly<Record<string, string>>;
}

/** The origin of a value, without the column. */
export function originOf(layer: Layer, key: string): string {
  const place = layer.at[key] ?? layer.kind;
  return layer.kind === 'flags' ? place : place.replace(/:\d+$/, '');
}

/** One entry of a list, with its position. */
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

export const KEYS_HINT = 'Every key with its meaning: ags init --full --print';

/** A value in a message, on one line. Values of files have passed the search for invisible characters; flags are the user's own. */
export function quote(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 76)}..."` : text;
}
