// config/checks.ts: the commands that must pass before a merge. Pure.
import { commandTitle } from '../lib/command-title.ts';
import { parseDuration } from '../lib/units.ts';
import { CHECKS_TIMEOUT } from './defaults.ts';
import type { Check, ChecksConfig } from './effective.ts';
import { originOf, type Layer } from './file/layer.ts';

type Last = <T>(key: string, builtIn: T, pick: (values: Layer['values']) => T | undefined) => T;
type Written = NonNullable<Layer['values']['checks']>;

export function mergeChecks(layers: readonly Layer[], last: Last, origins: Record<string, string>): ChecksConfig {
  const timeout = last('checks.timeout', CHECKS_TIMEOUT, ({ checks }) => partsOf(checks).timeout);
  const run: Check[] = [];
  for (const layer of layers) {
    const { checks } = layer.values;
    const at = Array.isArray(checks) ? 'checks' : 'checks.run';
    for (const [i, item] of (partsOf(checks).run ?? []).entries()) {
      origins[`checks[${run.length}]`] = originOf(layer, `${at}[${i}]`);
      run.push(
        typeof item === 'string'
          ? { name: commandTitle(item), run: item }
          : { name: item.name ?? commandTitle(item.run), run: item.run },
      );
    }
  }
  return { run, timeoutSeconds: timeout === 'none' ? null : (parseDuration(timeout) ?? null) };
}

function partsOf(checks: Written | undefined): Exclude<Written, readonly unknown[]> {
  if (checks === undefined) return {};
  return Array.isArray(checks) ? { run: checks } : checks;
}
