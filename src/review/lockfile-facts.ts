// review/lockfile-facts.ts: finds new origins of code in a lock file.
// Compares origins (scheme, host, port), so a package that moves to another host, or from https to http, is reported.
import type { Inspected } from './added-lines.ts';
import { type Fact, quote } from './fact.ts';

export function lockfileFacts({ before, after, added }: Inspected): Fact[] {
  const known = before === null ? new Set<string>() : origins(before);
  const facts = [...origins(after)]
    .filter((origin) => !known.has(origin))
    .map((origin): Fact => ({ level: 'host', say: `Takes packages from ${quote(origin)}, which it did not before.` }));
  // YAML and TOML escapes can hide an address from a text search. Tools that write lock files never use them.
  if (parseJson(after) === undefined && added.some(({ text }) => /\\[xu][0-9a-f]{2}/i.test(text))) {
    facts.push({ level: 'host', say: 'Contains escaped characters, which can hide an address.' });
  }
  return facts;
}

function origins(text: string): Set<string> {
  const found = new Set<string>();
  for (const address of addresses(text)) {
    for (const [, scheme = '', host = '', local = ''] of address.matchAll(ORIGIN)) {
      found.add(local === '' ? `${scheme}://${host}`.toLowerCase() : `${local}:`.toLowerCase());
    }
  }
  return found;
}

function addresses(text: string): string[] {
  const value = parseJson(text);
  // Lock files of yarn, pnpm, cargo, poetry and others are not JSON. Every address counts, except on lines for readers.
  if (value === undefined) return text.split('\n').filter((line) => !LINE_FOR_READERS.test(line));
  const found: string[] = [];
  const open: unknown[] = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next === 'string') found.push(next);
    if (typeof next !== 'object' || next === null) continue;
    for (const [key, entry] of Object.entries(next)) {
      // Deno writes the address as the key.
      found.push(key);
      if (!FOR_READERS.has(key) || isPackage(entry)) open.push(entry);
    }
  }
  return found;
}

// A package may have the name "license".
function isPackage(entry: unknown): boolean {
  return typeof entry === 'object' && entry !== null && ('version' in entry || 'resolved' in entry);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Most lock files are not JSON.
    return undefined;
  }
}

const FOR_READERS = new Set([
  'funding',
  'homepage',
  'support',
  'deprecated',
  'license',
  'authors',
  'description',
  'bugs',
  'repository',
]);
const LINE_FOR_READERS = /^\s*["']?(?:homepage|funding|deprecated|description|license)["']?\s*[:=][^{]*$/i;
// As lenient as URL parsers: any number of slashes or backslashes, and the host follows the last "@".
const ORIGIN =
  /\b(?:((?:\w{1,10}\+)?(?:https?|git|ssh|ftps?|s3|svn|hg|bzr)):(?=[^\s])[\\/]{0,4}(?:[^\s/\\?#"']{1,200}@)?([^\s/\\?#"'@,;)\]}<>]{1,253})|(file|portal|exec):(?=[^\s"']))/gi;
