// config/patterns.ts: matches file names and paths against patterns.
// The language: `*` is any part of a name, `?` one character of it, `**` any number of directories. Letters match in either case.
//   name       no slash: any file or directory of that name, wherever it is       .env   *.pem   id_rsa
//   a/b, /a    a slash inside or in front: a path from the project's root         config/secrets.json   /.env
//   name/      a slash at the end: directories only                               .ssh/
//   !pattern   cancels an earlier match; the last pattern that matches decides
// Invariant: no regular expression is built from a pattern, so no pattern can make matching slow. A project's file may
// hold any pattern, and the matcher sees every name of a tree of 100,000 files.

export type Matcher = (path: string, isDirectory: boolean) => boolean;

/** `path` is relative to the project, with "/" between names and none at its ends. */
export function compilePatterns(list: readonly string[]): Matcher {
  const groups = inGroups(list).map((group) => ({ negated: group.negated, fits: compileGroup(group.patterns) }));
  return (path, isDirectory) => {
    const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
    // Almost no name matches any pattern, so negations are tried only for names that match one.
    for (let i = groups.length - 1; i >= 0; i--) {
      const group = groups[i];
      if (!group || group.negated || !group.fits(path, name, isDirectory)) continue;
      return !groups.some((later, j) => j > i && later.negated && later.fits(path, name, isDirectory));
    }
    return false;
  };
}

/**
 * Matches hidden paths, given that some are revealed. Revealing a directory reveals everything below it. Revealing a path
 * inside a hidden directory opens that directory for this path only and the rest stays hidden, so a walk must descend into
 * a directory that is not hidden and ask again for each name.
 */
export function compileHidden(hide: readonly string[], reveal: readonly string[]): Matcher {
  const hides = compilePatterns(hide);
  if (reveal.length === 0) return hides;
  const reveals = compilePatterns(reveal);
  const inside = reveal.filter((pattern) => !pattern.startsWith('!') && parts(pattern).length > 1);
  return (path, isDirectory) => {
    // Only a revealed path can lie below a hidden directory; without one, the walk never gets there.
    const hidden = hides(path, isDirectory) || (inside.length > 0 && anyParent(path, hides));
    if (!hidden || reveals(path, isDirectory) || anyParent(path, reveals)) return false;
    return !(isDirectory && inside.some((pattern) => leadsThrough(parts(pattern), path.toLowerCase().split('/'))));
  };
}

/** Why a pattern would not do what its author expects, or undefined if it is valid. */
export function patternProblem(pattern: string): string | undefined {
  if (pattern.trim() !== pattern || pattern === '' || pattern === '/')
    return 'a pattern must be a name or a path, without spaces around it';
  if (/[[\]{}\\]/.test(pattern)) return 'in a pattern only *, ** and ? are special; use ? in place of a bracket';
  const names = parts(pattern);
  if (names.includes('..') || names.includes('.') || names.includes(''))
    return 'a pattern may not contain "..", "." or empty names';
  if (names.some((name) => name.includes('**') && name !== '**')) return '** must stand alone between slashes';
  return undefined;
}

type Fits = (path: string, name: string, isDirectory: boolean) => boolean;

interface Entry {
  /** The last name of the pattern, in lower case. */
  readonly name: string;
  /** The longest part of the name without a star; a name without this text cannot match. */
  readonly literal: string;
  /** All its names, if it is a path from the project's root. */
  readonly path: readonly string[] | undefined;
  readonly directory: boolean;
}

interface Group {
  readonly negated: boolean;
  readonly patterns: string[];
}

function inGroups(list: readonly string[]): Group[] {
  const groups: Group[] = [];
  for (const raw of list) {
    const negated = raw.startsWith('!');
    const pattern = negated ? raw.slice(1) : raw;
    const current = groups.at(-1);
    if (current?.negated === negated) current.patterns.push(pattern);
    else groups.push({ negated, patterns: [pattern] });
  }
  return groups;
}

// Entries are indexed by whole name, by ending (*.pem), and by first or last character, so most names meet no entry at all.
function compileGroup(patterns: readonly string[]): Fits {
  const byName = new Map<string, Entry[]>();
  const byEnding = new Map<string, Entry[]>();
  const byFirst = new Map<number, Entry[]>();
  const byLast = new Map<number, Entry[]>();
  const others: Entry[] = [];

  for (const pattern of patterns) {
    const names = parts(pattern);
    const name = names.at(-1) ?? '';
    const path = names.length > 1 || pattern.startsWith('/') ? names : undefined;
    const literal = name
      .split(/[*?]/)
      .reduce((longest, piece) => (piece.length > longest.length ? piece : longest), '');
    const entry = { name, literal, path, directory: pattern.endsWith('/') };
    if (!isGlob(name)) add(byName, name, entry);
    else if (/^\*\.[^.*?]+$/.test(name)) add(byEnding, name.slice(1), entry);
    else if (!isGlob(name.charAt(0))) add(byFirst, name.charCodeAt(0), entry);
    else if (!isGlob(name.charAt(name.length - 1))) add(byLast, name.charCodeAt(name.length - 1), entry);
    else others.push(entry);
  }

  return (path, name, isDirectory) => {
    const whole = byName.get(name);
    if (whole && anyFits(whole, path, name, isDirectory)) return true;
    const dot = name.lastIndexOf('.');
    const ending = dot < 0 ? undefined : byEnding.get(name.slice(dot));
    if (ending && anyFits(ending, path, name, isDirectory)) return true;
    const first = byFirst.get(name.charCodeAt(0));
    if (first && anyFits(first, path, name, isDirectory)) return true;
    const last = byLast.get(name.charCodeAt(name.length - 1));
    if (last && anyFits(last, path, name, isDirectory)) return true;
    return others.length > 0 && anyFits(others, path, name, isDirectory);
  };
}

function add<K>(map: Map<K, Entry[]>, key: K, entry: Entry): void {
  const entries = map.get(key);
  if (entries) entries.push(entry);
  else map.set(key, [entry]);
}

function anyFits(entries: readonly Entry[], path: string, name: string, isDirectory: boolean): boolean {
  for (const entry of entries) {
    if (entry.directory && !isDirectory) continue;
    if (!name.includes(entry.literal) || !fitsName(entry.name, name)) continue;
    if (entry.path === undefined || fitsPath(entry.path, path.toLowerCase().split('/'))) return true;
  }
  return false;
}

/** The names of a pattern, in lower case, without slashes at its ends. A leading `**` before a single name is dropped. */
function parts(pattern: string): string[] {
  const names = pattern.toLowerCase().replace(/^!/, '').replace(/^\//, '').replace(/\/$/, '').split('/');
  return names.length === 2 && names[0] === '**' && !pattern.startsWith('/') ? names.slice(1) : names;
}

function isGlob(name: string): boolean {
  return name.includes('*') || name.includes('?');
}

/** Matches one name against a pattern with stars and question marks. */
export function fitsName(glob: string, name: string): boolean {
  if (glob === name || glob === '*') return true;
  return fits(
    glob,
    name,
    (g) => g === '*',
    (g, n) => g === '?' || g === n,
  );
}

function fitsPath(pattern: readonly string[], path: readonly string[]): boolean {
  return fits(
    pattern,
    path,
    (g) => g === '**',
    (g, n) => fitsName(g, n),
  );
}

/** One matcher for characters of a name and names of a path. It backtracks only to the latest star, so the cost is at most a product. */
function fits(
  pattern: ArrayLike<string>,
  text: ArrayLike<string>,
  isStar: (g: string) => boolean,
  isSame: (g: string, n: string) => boolean,
): boolean {
  let g = 0;
  let n = 0;
  let star = -1;
  let resume = 0;
  while (n < text.length) {
    const want = pattern[g];
    if (want !== undefined && isStar(want)) {
      star = g++;
      resume = n;
    } else if (want !== undefined && isSame(want, text[n] ?? '')) {
      g++;
      n++;
    } else if (star >= 0) {
      g = star + 1;
      n = ++resume;
    } else return false;
  }
  while (g < pattern.length && isStar(pattern[g] ?? '')) g++;
  return g === pattern.length;
}

/** Whether a path below this directory may match the pattern. */
function leadsThrough(pattern: readonly string[], directory: readonly string[]): boolean {
  const stars = pattern.indexOf('**');
  if (stars >= 0 && stars < directory.length) return fitsPath(pattern.slice(0, stars), directory.slice(0, stars));
  return pattern.length > directory.length && fitsPath(pattern.slice(0, directory.length), directory);
}

function anyParent(path: string, fitsDirectory: Matcher): boolean {
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
    if (fitsDirectory(path.slice(0, at), true)) return true;
  }
  return false;
}
