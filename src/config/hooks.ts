// config/hooks.ts: merges the `hooks` of all layers. Pure: programs are looked for only when they are to run.
// Invariant: a layer adds hooks and never removes any, so a project cannot disable a hook of its user.
import { HOOK_POINTS, type HookCommand, type HookPoint, type HookPolicy, type ReadyHook } from '../protocol/hook.ts';
import { WORDS } from '../protocol/config/words.ts';
import { parseDuration } from '../lib/units.ts';
import { HOOK_TIMEOUT } from './defaults.ts';
import { collect, quote, wrongValue, type Item, type Layer } from './file/layer.ts';

type Written = NonNullable<NonNullable<Layer['values']['hooks']>[HookPoint]>[number];

export function mergeHooks(
  layers: readonly Layer[],
  home: string,
  last: (key: string, builtIn: string, pick: (values: Layer['values']) => string | undefined) => string,
  origins: Record<string, string>,
): HookPolicy {
  // Most commands start no agent, and each starts a sandbox within a few milliseconds.
  if (layers.every(({ values }) => values.hooks === undefined)) return UNTOUCHED;
  for (const layer of layers) {
    const written = layer.values.hooks?.timeout;
    if (written !== undefined) readTime(written, layer, 'hooks.timeout');
  }
  const use = new Map<ReadyHook, string>();
  for (const { value, origin } of collect(layers, 'hooks.use', (v) => v.hooks?.use))
    if (!use.has(value)) use.set(value, origin);
  for (const [i, origin] of [...use.values()].entries()) origins[`hooks.use[${i}]`] = origin;
  const timeout = last('hooks.timeout', HOOK_TIMEOUT, (v) => v.hooks?.timeout);
  return {
    use: [...use.keys()],
    commands: HOOK_POINTS.flatMap((point) =>
      collect(layers, `hooks.${point}`, (v) => v.hooks?.[point]).map((item) => commandOf(point, item, home)),
    ),
    timeoutSeconds: parseDuration(timeout) ?? LONGEST_SECONDS,
  };
}

const UNTOUCHED: HookPolicy = { use: [], commands: [], timeoutSeconds: parseDuration(HOOK_TIMEOUT) ?? 0 };
const LONGEST_SECONDS = 600;

function commandOf(point: HookPoint, { value, layer, key, origin }: Item<Written>, home: string): HookCommand {
  return {
    point,
    run: typeof value.run === 'string' ? value.run : programOf(value, layer, key, home),
    timeoutSeconds: value.timeout === undefined ? null : readTime(value.timeout, layer, `${key}.timeout`),
    inside: value.inside ?? false,
    origin,
  };
}

/** A path into the project would run any later content. Approvals cover content, and only hook files have a digest. */
function programOf(value: Written, layer: Layer, key: string, home: string): string[] {
  const [program = '', ...args] = value.run;
  if (program.startsWith('~/')) return [`${home}/${program.slice(2)}`, ...args];
  if (program === '' || (program.includes('/') && !program.startsWith('/') && value.inside !== true))
    throw wrongValue(
      layer,
      `${key}.run`,
      `${quote(program)} is neither the name of a program nor an absolute path`,
      'Put programs of the project into .ags/hooks/. See: ags help hooks',
    );
  return [program, ...args];
}

function readTime(written: string, layer: Layer, key: string): number {
  const seconds = parseDuration(written);
  if (seconds === undefined || seconds < 1 || seconds > LONGEST_SECONDS)
    throw wrongValue(layer, key, `expected ${WORDS.hookTime}, found ${quote(written)}`);
  return seconds;
}
