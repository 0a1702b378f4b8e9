// sandbox/spec/etc-copy.ts: the /etc of sandboxes: a copy of the allowed settings, with its own accounts and names.
// Mounting some sixty settings one by one takes longer than the rest of the sandbox; one directory costs nothing.
// Invariant: the copy contains only what the list names. It is made again whenever a source has changed, and never changed in place: a
// running sandbox keeps the copy it started with.
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
  /** As configured; a pattern may contain `*`. */
  readonly patterns: readonly string[];
  /** Expands the patterns. */
  readonly list: (patterns: readonly string[]) => readonly string[];
  /** Generated files, by name. */
  readonly made: Readonly<Record<string, string>>;
  /** Defaults to /etc; tests pass another directory. */
  readonly etcDir?: string;
}

interface KnownCopy {
  readonly key: string;
  readonly directory: string;
  readonly seen: readonly (readonly [path: string, ctimeMs: number])[];
}

// Different configurations may alternate; more than a few are not worth keeping.
const REMEMBERED = 4;

export function ensureEtcCopy(input: EtcInput): string {
  const { etcDir = '/etc' } = input;
  const key = JSON.stringify([input.patterns, input.made]);
  const file = join(input.cacheDir, 'etc.json');
  const copies = readCopies(file);
  const found = copies.find((one) => one.key === key);
  if (found?.seen.every(([path, ctimeMs]) => changedAt(path) === ctimeMs) === true && existsSync(found.directory))
    return found.directory;
  mkdirSync(input.cacheDir, { recursive: true, mode: 0o700 });
  const directory = mkdtempSync(join(input.cacheDir, 'etc-'));
  chmodSync(directory, 0o755);
  const seen: [string, number][] = [[etcDir, changedAt(etcDir)]];
  // Generated files come first: a link of the machine would otherwise lead to the machine's own files.
  for (const [name, content] of Object.entries(input.made)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true, mode: 0o755 });
    writeFileSync(join(directory, name), content, { mode: 0o644 });
  }
  for (const name of input.list(input.patterns)) copy(join(etcDir, name), join(directory, name), seen);
  // Earlier copies stay, because a running sandbox may use one. `ags cleanup` removes unused copies.
  replaceFile(
    file,
    JSON.stringify([{ key, directory, seen }, ...copies.filter((one) => one.key !== key)].slice(0, REMEMBERED)),
  );
  return directory;
}

// Links are copied as links: they lead into /usr, which is visible, or nowhere. Existing entries are never replaced.
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
    // The sandbox may not read a file that the caller may not read.
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
  }
  seen.push([from, stat.ctimeMs]);
}

function changedAt(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.ctimeMs ?? -1;
}

function readCopies(file: string): readonly KnownCopy[] {
  try {
    const copies = JSON.parse(readFileSync(file, 'utf8')) as unknown;
    return Array.isArray(copies) ? (copies as KnownCopy[]) : [];
  } catch {
    return [];
  }
}
