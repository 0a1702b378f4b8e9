// test/attacks/mutation/protections.ts: whether a table of mutants is complete: every line of the source that refuses or bounds something is
// removed by a mutant, or listed with the test that proves it.
import { findTests } from '../../../scripts/anchors.mjs';
import { SOURCE, type Found, type Piece } from './mutated-source.ts';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

export interface Watched {
  readonly files: readonly string[];
  /** The fragments that mutants replace. */
  readonly pieces: readonly Piece[];
  /** Patterns of lines that refuse or bound something. */
  readonly like: readonly RegExp[];
  /** Identifiers in `like`: after a rename the patterns would match nothing. */
  readonly names: readonly string[];
  /** By file and the beginning of a line: the test that misses it, or why none can. */
  readonly notHere: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export interface Place {
  readonly file: string;
  readonly line: string;
  /** The offset of the line's first character that is not white space. */
  readonly start: number;
  readonly removed: boolean;
}

export function placesIn({ files, pieces, like }: Watched): Place[] {
  const found = pieces.map(([name, from]) => SOURCE.find(name, from));
  return files.flatMap((name) => {
    const file = SOURCE.file(name);
    const text = SOURCE.read(file);
    const edited = found.filter(({ path }) => path === file);
    let [at, above] = [0, false];
    const lines = text.split('\n').map((line): Omit<Place, 'file'> => {
      const from = at;
      at += line.length + 1;
      const here = edited.some(({ start, end }) => start < at - 1 && end > from);
      // A condition may be on the line above its consequence.
      const removed = here || above;
      above = here && /[{)]$/.test(line);
      return { line: line.trim(), start: from + line.search(/\S|$/), removed };
    });
    const constants = [...text.matchAll(/^(?:export )?const ([A-Z_]{4,})\b/gm)]
      .map(([, name = '']) => new RegExp(`\\b${name}\\b`))
      .filter((name) => lines.some(({ line, removed }) => removed && name.test(line)));
    return lines
      .filter(({ line }) => !/^(?:\/\/|\*|\/\*)/.test(line) && like.some((one) => one.test(line)))
      .map(({ line, start, removed }) => ({
        file,
        line,
        start,
        removed: removed || constants.some((name) => name.test(line)),
      }));
  });
}

/** Lines that no mutant removes and no list names. */
export function unknownIn(watched: Watched): string[] {
  const known = begins(watched).flatMap(({ places }) => places);
  return placesIn(watched)
    .filter((one) => !one.removed && !known.some((place) => isAt(one, place)))
    .map(({ file, line }) => `${file}: ${line}`);
}

/** Listed lines that are gone, or that a mutant removes meanwhile. */
export function staleIn(watched: Watched): string[] {
  const left = placesIn(watched).filter(({ removed }) => !removed);
  const gone = begins(watched).filter(({ places }) => !places.some((place) => left.some((one) => isAt(one, place))));
  return gone.map(({ begin }) => begin);
}

/** Identifiers that the source no longer has. */
export function goneNames({ files, names }: Watched): string[] {
  const text = files.map((name) => SOURCE.read(SOURCE.file(name))).join('\n');
  return names.filter((name) => !new RegExp(`\\b${name}\\b`).test(text));
}

function begins({ notHere }: Watched): { begin: string; places: readonly Found[] }[] {
  return Object.entries(notHere).flatMap(([file, lines]) =>
    Object.keys(lines).map((begin) => ({ begin, places: SOURCE.findAll(file, begin) })),
  );
}

const isAt = ({ file, start }: Place, found: Found): boolean => found.path === file && found.start === start;

/** Named tests that do not exist. */
export function missingProofs(reasons: readonly string[]): string[] {
  const named = reasons.flatMap((why) => why.match(/(?<=test\/)\S+?(?=(?:\.full|\.proof)?\.test\.ts)/g) ?? []);
  return named.filter((name) => {
    try {
      return findTests(ROOT, name).length === 0;
    } catch {
      return true;
    }
  });
}
