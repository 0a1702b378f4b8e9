// config/layer.ts: one source of configuration, checked key by key, with the place where each of its values stands.
// Plain JSON: this is what the cache keeps.
import type { ConfigFile } from '../protocol/config.ts';
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';

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

export function wrongValue(layer: Layer, key: string, problem: string, hint?: string): AgsError {
  const place = layer.at[key] ?? layer.kind;
  return layer.kind === 'flags'
    ? new AgsError('usage.invalid', `${place}: ${problem}`, { hint })
    : new AgsError('config.invalid', `${place}: ${key}: ${problem}`, { hint: hint ?? KEYS_HINT, details: { problems: [`${place}: ${key}: ${problem}`] } });
}

export const KEYS_HINT = 'Every key with its meaning: ags init --print';

/** A value as an error message shows it: in quotes, on one line, with nothing in it that a terminal would act on. */
export function quote(value: unknown): string {
  const text = typeof value === 'string' ? `"${value}"` : String(value);
  const safe = visible(text);
  return safe.length > 80 ? `${safe.slice(0, 76)}..."` : safe;
}
