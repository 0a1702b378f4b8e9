// sandbox/spec/etc-copy.ts: the /etc of sandboxes: a copy of the settings that are allowed, with accounts and names of its own.
// Mounting each of some sixty settings by itself costs more time than the rest of the sandbox; one directory costs nothing.
// Invariant: the copy holds only what the list names. It is made again whenever anything it was made from has changed,
// and is never changed in place: a running sandbox keeps the one it started with.
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { replaceFile } from '../../lib/files.ts';

export interface EtcInput {
  readonly cacheDir: string;
  /** As configured; a part of one may have `*` in it. */
  readonly patterns: readonly string[];
  /** Finds what the patterns stand for. */
  readonly list: (patterns: readonly string[]) => readonly string[];
  /** Files that are made, by name. */
  readonly made: Readonly<Record<string, string>>;
  /** /etc, unless somebody wants to see what becomes of another one. */
  readonly etcDir?: string;
}

interface Memory {
  readonly key: string;
  readonly directory: string;
  readonly seen: readonly (readonly [path: string, ctimeMs: number])[];
}

// Different configurations may take turns; more than a few are not worth remembering.
const REMEMBERED = 4;

export function ensureEtcCopy(input: EtcInput): string {
  const { etcDir = '/etc' } = input;
  const key = JSON.stringify([input.patterns, input.made]);
  const file = join(input.cacheDir, 'etc.json');
  const copies = recall(file);
  const found = copies.find((one) => one.key === key);
  if (found?.seen.every(([path, ctimeMs]) => changedAt(path) === ctimeMs) === true && existsSync(found.directory))
    return found.directory;
  mkdirSync(input.cacheDir, { recursive: true, mode: 0o700 });
  const directory = mkdtempSync(join(input.cacheDir, 'etc-'));
  chmodSync(directory, 0o755);
  const seen: [string, number][] = [[etcDir, changedAt(etcDir)]];
  // What is made comes first: whatever else is there, a link of the machine would lead us to its own files.
  for (const [name, content] of Object.entries(input.made)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true, mode: 0o755 });
    writeFileSync(join(directory, name), content, { mode: 0o644 });
  }
  for (const name of input.list(input.patterns)) copy(join(etcDir, name), join(directory, name), seen);
  // Earlier copies stay: a running sandbox may have one. `ags cleanup` knows which.
  replaceFile(
    file,
    JSON.stringify([{ key, directory, seen }, ...copies.filter((one) => one.key !== key)].slice(0, REMEMBERED)),
  );
  return directory;
}

// Links are made again as they are: they lead into /usr, which is visible, or nowhere. Nothing that is there already is replaced.
function copy(from: string, to: string, seen: [string, number][]): void {
  const stat = lstatSync(from, { throwIfNoEntry: false });
  const there = lstatSync(to, { throwIfNoEntry: false });
  if (stat === undefined || (there !== undefined && !(there.isDirectory() && stat.isDirectory()))) return;
  mkdirSync(dirname(to), { recursive: true, mode: 0o755 });
  if (stat.isSymbolicLink()) return symlinkSync(readlinkSync(from), to);
  try {
    if (stat.isDirectory()) {
      const names = readdirSync(from);
      mkdirSync(to, { recursive: true, mode: 0o755 });
      for (const name of names) copy(join(from, name), join(to, name), seen);
    } else if (stat.isFile()) copyFileSync(from, to);
    else return;
  } catch (error) {
    // What the caller may not read the sandbox may not read either.
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
  }
  seen.push([from, stat.ctimeMs]);
}

function changedAt(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.ctimeMs ?? -1;
}

function recall(file: string): readonly Memory[] {
  try {
    const copies = JSON.parse(readFileSync(file, 'utf8')) as unknown;
    return Array.isArray(copies) ? (copies as Memory[]) : [];
  } catch {
    return [];
  }
}
