// test/attacks/mutation/mutated-source.ts: modules of ags as they are, or from a copy of their source in which pieces are replaced.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const SRC = new URL('../../../src', import.meta.url).pathname;

/** A module of src. */
export type Use = <T>(module: string) => Promise<T>;

/** In a file below src/, a text that stands there once, and what stands there instead. */
export type Piece = readonly [file: string, from: string, to: string];

/** Copied into `scratch`: what the pieces are in, and whatever leads to them. The rest is the real one. */
export function sourceWith(pieces: readonly Piece[], scratch: string): Use {
  if (pieces.length === 0) return <T>(module: string) => import(/* @vite-ignore */ join(SRC, module)) as Promise<T>;
  const packages = join(scratch, 'node_modules');
  if (!existsSync(packages)) symlinkSync(join(SRC, '../node_modules'), packages);
  const copy = mkdtempSync(join(scratch, 'src-'));
  const edited = new Set(pieces.map(([file]) => file));
  return <T>(module: string) => {
    const copied = new Set(reachable(module).filter((file) => reachable(file).some((one) => edited.has(one))));
    for (const file of copied) {
      const at = join(copy, file);
      mkdirSync(dirname(at), { recursive: true });
      writeFileSync(at, leadBack(changed(pieces, file), file, copied));
    }
    return import(/* @vite-ignore */ join(copied.has(module) ? copy : SRC, module)) as Promise<T>;
  };
}

function changed(pieces: readonly Piece[], file: string): string {
  let source = readFileSync(join(SRC, file), 'utf8');
  for (const [, from, to] of pieces.filter(([where]) => where === file)) {
    if (source.split(from).length !== 2) throw new Error(`${file} is not as it was: ${from}`);
    source = source.replace(from, () => to);
  }
  return source;
}

/** What is not copied is found where it is. */
function leadBack(source: string, file: string, copied: ReadonlySet<string>): string {
  return source.replaceAll(IMPORTED, (text, now?: string, later?: string) => {
    const [path, to] = [now ?? later ?? '', join(dirname(file), now ?? later ?? '')];
    return copied.has(to) ? text : text.replace(`'${path}'`, `'${join(SRC, to)}'`);
  });
}

/** At once, or when it is called for. */
const IMPORTED = /^(?:import|export) (?!type).*? from '(\.[^']+)';$|\bimport\('(\.[^']+)'\)/gms;
const known = new Map<string, readonly string[]>();

/** Itself, and all that it leads to. */
function reachable(file: string): readonly string[] {
  const found = known.get(file) ?? [...walk(file, new Set())];
  known.set(file, found);
  return found;
}

function walk(file: string, seen: Set<string>): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, now, later] of readFileSync(join(SRC, file), 'utf8').matchAll(IMPORTED))
    walk(join(dirname(file), now ?? later ?? ''), seen);
  return seen;
}
