// test/attacks/mutation/protections.ts: whether a list of what is taken out of the source is complete: every line that refuses something, or bounds it, is
// in the list, or is known with what else proves it.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = new URL('../../..', import.meta.url).pathname;

export interface Watched {
  /** Below src/. */
  readonly files: readonly string[];
  /** What is taken out: file, what it says, and what it says instead. */
  readonly edits: readonly (readonly [file: string, from: string, to: string])[];
  /** A line that refuses something, or bounds it, is like one of these. */
  readonly like: readonly RegExp[];
  /** By the file and the beginning of a line: what shows that it is missed, or why nobody could miss it. */
  readonly notHere: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export interface Place {
  readonly file: string;
  readonly line: string;
  readonly taken: boolean;
}

export function placesIn({ files, edits, like }: Watched): Place[] {
  return files.flatMap((file) => {
    const text = readFileSync(join(ROOT, 'src', file), 'utf8');
    const edited = edits
      .filter(([path]) => path === file)
      .map(([, from]) => [text.indexOf(from), text.indexOf(from) + from.length] as const);
    let [at, above] = [0, false];
    const lines = text.split('\n').map((line): Omit<Place, 'file'> => {
      const from = at;
      at += line.length + 1;
      const here = edited.some(([begin, end]) => begin < at - 1 && end > from);
      // A condition may stand in the line above its consequence.
      const taken = here || above;
      above = here && /[{)]$/.test(line);
      return { line: line.trim(), taken };
    });
    const constants = [...text.matchAll(/^(?:export )?const ([A-Z_]{4,})\b/gm)]
      .map(([, name = '']) => new RegExp(`\\b${name}\\b`))
      .filter((name) => lines.some(({ line, taken }) => taken && name.test(line)));
    return lines
      .filter(({ line }) => !/^(?:\/\/|\*|\/\*)/.test(line) && like.some((one) => one.test(line)))
      .map(({ line, taken }) => ({ file, line, taken: taken || constants.some((name) => name.test(line)) }));
  });
}

/** Neither taken out nor known. */
export function unknownIn(watched: Watched): string[] {
  return placesIn(watched)
    .filter(({ file, line, taken }) => !taken && !begins(watched, file).some((begin) => line.startsWith(begin)))
    .map(({ file, line }) => `${file}: ${line}`);
}

/** Known, and not there any more, or taken out meanwhile. */
export function staleIn(watched: Watched): string[] {
  const left = placesIn(watched).filter(({ taken }) => !taken);
  return Object.keys(watched.notHere).flatMap((file) =>
    begins(watched, file).filter((begin) => !left.some((one) => one.file === file && one.line.startsWith(begin))),
  );
}

function begins({ notHere }: Watched, file: string): string[] {
  return Object.keys(notHere[file] ?? {});
}

/** Tests that are named and do not exist. */
export function missingProofs(reasons: readonly string[]): string[] {
  const named = reasons.flatMap((why) => why.match(/test\/\S+\.ts/g) ?? []);
  return named.filter((path) => !existsSync(join(ROOT, path)));
}
