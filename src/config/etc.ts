// config/etc.ts: lists which of the configured names exist below /etc. It only reads.
import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { compilePatterns } from './patterns.ts';

/** In list order, with every `*` expanded. Missing names are left out. */
export function listEtc(names: readonly string[], etcDir = '/etc'): string[] {
  const found = names.flatMap((name) => {
    let paths = [''];
    for (const part of name.replace(/\/$/, '').split('/')) paths = paths.flatMap((path) => step(etcDir, path, part));
    return paths;
  });
  return [...new Set(found)];
}

function step(etcDir: string, path: string, part: string): string[] {
  if (!part.includes('*')) {
    const next = join(path, part);
    return lstatSync(join(etcDir, next), { throwIfNoEntry: false }) ? [next] : [];
  }
  const fits = compilePatterns([part]);
  const directory = lstatSync(join(etcDir, path), { throwIfNoEntry: false })?.isDirectory();
  const entries = directory ? readdirSync(join(etcDir, path)) : [];
  return entries
    .filter((entry) => fits(entry, false))
    .toSorted()
    .map((entry) => join(path, entry));
}
