// agents/settings.ts: the user's own settings that an agent takes (`agents.<name>.settings`), as data. Pure.
// Invariant: of a file that holds more than settings, only the named part is taken.

export interface SettingsPlace {
  /** Relative to the home; a final slash: a directory, with everything below it. */
  readonly path: string;
  /** The part of the file's text that is taken; throws if there is none. Default: all of it. */
  readonly part?: (text: string) => string;
}

export interface SettingsFile {
  /** Relative to the home. */
  readonly path: string;
  readonly content: string;
}

/** Where files are that belong to no place of the agent's own. */
export const SETTINGS = '/run/ags/settings';

/** The places below one directory of the home: names, and directories with a final slash. */
export function placesIn(directory: string, names: string): SettingsPlace[] {
  return names.split(' ').map((name) => ({ path: `${directory}/${name}` }));
}

/** Of a JSON file: these keys alone. */
export function jsonKeys(...keys: readonly string[]): (text: string) => string {
  return (text) => {
    const read: unknown = JSON.parse(text);
    const kept = Object.entries(typeof read === 'object' && read !== null ? read : {}).filter(([key]) =>
      keys.includes(key),
    );
    if (kept.length === 0) throw new Error(`it has none of: ${keys.join(', ')}`);
    return JSON.stringify(Object.fromEntries(kept), null, 2);
  };
}

/** The value of a JSON file that `jsonKeys` has made; empty if the file was not given. */
export function jsonOf(settings: readonly SettingsFile[], path: string): Readonly<Record<string, unknown>> {
  const file = settings.find((one) => one.path === path);
  return file === undefined ? {} : (JSON.parse(file.content) as Record<string, unknown>);
}

/** Files at or below these paths, moved from `from` to `to`. */
export function moved(
  settings: readonly SettingsFile[],
  paths: readonly string[],
  from: string,
  to: string,
): { to: string; content: string }[] {
  return settings
    .filter(({ path }) => paths.some((one) => path === one || (one.endsWith('/') && path.startsWith(one))))
    .map(({ path, content }) => ({ to: to + path.slice(from.length), content }));
}
