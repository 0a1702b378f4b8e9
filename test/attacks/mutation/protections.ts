// test/attacks/mutation/protections.ts: whether a list of what is taken out of the source is complete: every line that refuses something, or bounds it, is
// in the list, or is known with what else proves it.
import { findTests } from '../../../scripts/anchors.mjs';
import { SOURCE, type Found, type Piece } from './mutated-source.ts';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

export interface Watched {
  readonly files: readonly string[];
  /** What is taken out. */
  readonly pieces: readonly Piece[];
  /** A line that refuses something, or bounds it, is like one of these. */
  readonly like: readonly RegExp[];
  /** Identifiers in `like`: one that was renamed would find nothing any more. */
  readonly names: readonly string[];
  /** By the file and the beginning of a line: what shows that it is missed, or why nobody could miss it. */
  readonly notHere: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export interface Place {
  readonly file: string;
  readonly line: string;
  /** Where the line begins, without white space. */
  readonly start: number;
  readonly taken: boolean;
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
      // A condition may stand in the line above its consequence.
      const taken = here || above;
      above = here && /[{)]$/.test(line);
      return { line: line.trim(), start: from + line.search(/\S|$/), taken };
    });
    const constants = [...text.matchAll(/^(?:export )?const ([A-Z_]{4,})\b/gm)]
      .map(([, name = '']) => new RegExp(`\\b${name}\\b`))
      .filter((name) => lines.some(({ line, taken }) => taken && name.test(line)));
    return lines
      .filter(({ line }) => !/^(?:\/\/|\*|\/\*)/.test(line) && like.some((one) => one.test(line)))
      .map(({ line, start, taken }) => ({
        file,
        line,
        start,
        taken: taken || constants.some((name) => name.test(line)),
      }));
  });
}

/** Neither taken out nor known. */
export function unknownIn(watched: Watched): string[] {
  const known = begins(watched).flatMap(({ places }) => places);
  return placesIn(watched)
    .filter((one) => !one.taken && !known.some((place) => isAt(one, place)))
    .map(({ file, line }) => `${file}: ${line}`);
}

/** Known, and not there any more, or taken out meanwhile. */
export function staleIn(watched: Watched): string[] {
  const left = placesIn(watched).filter(({ taken }) => !taken);
  const gone = begins(watched).filter(({ places }) => !places.some((place) => left.some((one) => isAt(one, place))));
  return gone.map(({ begin }) => begin);
}

/** Identifiers that the source does not have any more. */
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

/** Tests that are named and do not exist. */
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
