// test/attacks/mutation/mutated-source.ts: loads modules of ags from their source, or from a copy with replaced pieces.
import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openSource, type Piece } from '../../../scripts/anchors.mjs';
import { fileURLToPath } from 'node:url';

export type { Found, Piece } from '../../../scripts/anchors.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
export const SOURCE = openSource(ROOT);

/** Loads a module of src, given as use(() => import('../../src/…')). */
export type Use = <T>(load: () => Promise<T>) => Promise<T>;

/** Copies the edited files and every file that imports them into `scratch`. All other modules are the real ones. */
export function sourceWith(pieces: readonly Piece[], scratch: string): Use {
  if (pieces.length === 0) return (load) => load();
  const packages = join(scratch, 'node_modules');
  if (!existsSync(packages)) symlinkSync(join(ROOT, 'node_modules'), packages);
  const copy = mkdtempSync(join(scratch, 'src-'));
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    writeFileSync(join(copy, file), text);
  };
  const edited = new Map(SOURCE.edit(pieces));
  // The module that reads the Perl programs finds them by its own path.
  if ([...edited.keys()].some((path) => path.endsWith('.pl'))) {
    const reader = SOURCE.file('lib/perl.ts');
    edited.set(reader, SOURCE.read(reader));
    for (const path of SOURCE.files.filter((one) => one.endsWith('.pl')))
      write(path, edited.get(path) ?? SOURCE.read(path));
  }
  return <T>(load: () => Promise<T>) => {
    const module = pathIn(load);
    const copied = new Set(reachable(module).filter((file) => reachable(file).some((one) => edited.has(one))));
    for (const file of copied) write(file, leadBack(edited.get(file) ?? SOURCE.read(file), file, copied));
    return import(/* @vite-ignore */ join(copied.has(module) ? copy : ROOT, module)) as Promise<T>;
  };
}

/** The path of the module that the function imports. */
export function pathIn(load: () => Promise<unknown>): string {
  const path = /["'`](?:\.\.\/)*\/?((?:src\/)[^"'`]+\.ts)["'`]/.exec(String(load))?.[1];
  if (path === undefined) throw new Error(`no module of src is imported by ${String(load)}`);
  return path;
}

/** Points imports of files that are not copied back to the real ones. */
function leadBack(text: string, file: string, copied: ReadonlySet<string>): string {
  return text.replaceAll(REFERENCE, (quoted, path?: string) => {
    if (path === undefined || copied.has(join(dirname(file), path))) return quoted;
    return `'${join(ROOT, dirname(file), path)}'`;
  });
}

/** Type imports load nothing at run time. */
const REFERENCE = /^(?:import|export) type [^;]*;$|'(\.{1,2}\/[^'\n]+\.ts)'/gm;
const known = new Map<string, readonly string[]>();

/** A file and everything that it imports. */
function reachable(file: string): readonly string[] {
  const found = known.get(file) ?? [...walk(file, new Set())];
  known.set(file, found);
  return found;
}

function walk(file: string, seen: Set<string>): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, path] of SOURCE.read(file).matchAll(REFERENCE))
    if (path !== undefined) walk(join(dirname(file), path), seen);
  return seen;
}
