// review/manifest-facts.ts: finds facts about the changes of a package manifest (package.json, composer.json, deno.json).
// Install hooks come first, because package managers run them unasked.
import type { Inspected } from './added-lines.ts';
import { type Fact, quote } from './fact.ts';

export function manifestFacts({ before, after }: Inspected): Fact[] {
  const now = parse(after);
  if (now === null) return [{ level: 'host', say: 'It is not valid JSON, so its scripts could not be compared.' }];
  const then = (before === null ? null : parse(before)) ?? {};
  const scripts = SCRIPTS.flatMap((field) => compare(then[field], now[field], 'script'));
  const packages = PACKAGES.flatMap((field) => compare(then[field], now[field], 'dependency'));
  const others = RUNNING.filter((key) => JSON.stringify(then[key]) !== JSON.stringify(now[key]));
  return [
    ...scripts.toSorted((a, b) => Number(b.hook) - Number(a.hook)).map((change) => change.fact),
    ...packages.map((change) => change.fact),
    ...others.map((key): Fact => ({
      level: 'host',
      say: `Changes ${key}: ${quote(JSON.stringify(now[key]) ?? 'removed')}`,
    })),
  ];
}

function compare(before: unknown, after: unknown, noun: string): { hook: boolean; fact: Fact }[] {
  const then = entries(before);
  const now = entries(after);
  const changed = [...now].filter(([name, value]) => then.get(name) !== value);
  const removed = [...then.keys()].filter((name) => !now.has(name));
  const of = (name: string, say: string): { hook: boolean; fact: Fact } => ({
    hook: noun === 'script' && HOOKS.test(name),
    fact: { level: 'host', say },
  });
  return [
    ...changed.map(([name, value]) =>
      of(name, `${then.has(name) ? 'Changes' : 'Adds'} ${noun} ${quote(name)}: ${quote(value)}`),
    ),
    ...removed.map((name) => of(name, `Removes ${noun} ${quote(name)}.`)),
  ];
}

function entries(value: unknown): Map<string, string> {
  if (!isRecord(value)) return new Map();
  return new Map(
    Object.entries(value).map(([name, entry]) => [name, typeof entry === 'string' ? entry : JSON.stringify(entry)]),
  );
}

function parse(text: string): Record<string, unknown> | null {
  try {
    // Package managers skip a byte order mark, so this parser must too.
    const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ''));
    return isRecord(value) ? value : null;
  } catch {
    // The caller reports broken JSON to the reviewer; it is not an error of ags.
    return null;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const HOOKS =
  /^(?:(?:pre|post)?(?:install|prepare|pack|uninstall|publish)|prepublishOnly|dependencies|(?:pre|post)-(?:install|update|autoload-dump)(?:-cmd)?)$/;
const SCRIPTS = ['scripts', 'tasks'];
const PACKAGES =
  'dependencies devDependencies optionalDependencies peerDependencies overrides resolutions imports require require-dev'.split(
    ' ',
  );
/** Keys that choose code to run, or where to find it. */
const RUNNING =
  `bin main exports type workspaces packageManager bundleDependencies bundledDependencies trustedDependencies gypfile binary
  config husky simple-git-hooks pre-commit gitHooks lint-staged eslintConfig prettier babel jest ava mocha nyc c8 stylelint commitlint
  postcss release np nodemonConfig wireit nx volta devEngines pnpm yarn publishConfig repositories plugins importMap lock
  patchedDependencies catalog catalogs installConfig contributes activationEvents lavamoat tsd tap xo size-limit unpkg`.split(
    /\s+/,
  );
