// config/compose.ts: merges the `compose` section of all layers. Pure.
import { parseDuration } from '../lib/units.ts';
import { COMPOSE_OVERRIDE, COMPOSE_TIMEOUT } from './defaults.ts';
import type { ComposeConfig } from './effective.ts';
import type { Layer } from './file/layer.ts';

type Values = Layer['values'];

/** null: compose is off. The last layer with the section decides; any key in it turns compose on. */
export function mergeCompose(
  layers: readonly Layer[],
  last: (key: string, builtIn: string, pick: (values: Values) => string | undefined) => string,
  all: (
    key: string,
    builtIn: readonly string[],
    pick: (values: Values) => readonly string[] | undefined,
  ) => readonly string[],
): ComposeConfig | null {
  const said = layers.findLast(({ values }) => values.compose !== undefined)?.values.compose;
  if (said === undefined || said.enabled === false) return null;
  return {
    files: all('compose.files', [], (v) => v.compose?.files),
    override: last('compose.override', COMPOSE_OVERRIDE, (v) => v.compose?.override),
    profiles: all('compose.profiles', [], (v) => v.compose?.profiles),
    services: all('compose.services', [], (v) => v.compose?.services),
    env: Object.assign({}, ...layers.map(({ values }) => values.compose?.env ?? {})) as Record<string, string>,
    timeoutSeconds: parseDuration(last('compose.timeout', COMPOSE_TIMEOUT, (v) => v.compose?.timeout)) ?? null,
  };
}
