// lib/perl.ts: loads our Perl programs, which are files beside the modules that start them. scripts/build.mjs copies them to the same
// places below dist/ and dist/bundle/.
// Invariant: a program is read when it is started, never when a module is loaded: most commands start none.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** `file` is relative to src/. `given` sets variables that the program declares with `our`. */
export function perlProgram(file: string, given: Readonly<Record<string, string | number>> = {}): string {
  const values = Object.entries(given).map(([name, value]) => `$main::${name} = ${quoted(value)};\n`);
  return values.join('') + joined(file);
}

/** Replaces "# include <file>" by the file, and drops comments and empty lines: command lines are limited in size. */
function joined(file: string): string {
  // In src/ and dist/ this is lib/; the bundle is one directory.
  const text = readFileSync(join(import.meta.dirname.replace(/\/lib$/, ''), file), 'utf8');
  return text.replaceAll(/^(?:# include (\S+)|[ \t]*#.*)?\n/gm, (_, part?: string) =>
    part === undefined ? '' : joined(join(dirname(file), part)),
  );
}

function quoted(value: string | number): string {
  return typeof value === 'number' ? String(value) : `'${value.replaceAll(/['\\]/g, String.raw`\$&`)}'`;
}
