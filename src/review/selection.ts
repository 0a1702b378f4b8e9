// review/selection.ts: turns a user's flags into the changes to take, to drop and to leave for later.
// Invariant: a change that runs on the user's machine or in CI is taken only if its exact path was given as risky, and a
// conflicting change is never taken. After an error, the caller must carry out nothing of the selection.
import type { Change } from '../protocol/changes.ts';

export interface SelectionFlags {
  /** A path, a directory ending in "/", or a pattern: `*` within a name, `**` as a name for any number of names. */
  readonly accept: readonly string[];
  readonly acceptAll: boolean;
  readonly discard: readonly string[];
  readonly discardAll: boolean;
  /** Exact paths only. Naming one here accepts it. */
  readonly risky: readonly string[];
}

export interface SelectionError {
  /** The path or pattern as the user gave it. */
  readonly path: string;
  /** "contradiction": the flags both accept and discard it. "conflict": it also changed on the host, in another way. */
  readonly problem: 'not-found' | 'risky' | 'conflict' | 'contradiction';
}

export interface Selection {
  readonly take: Change[];
  readonly drop: Change[];
  readonly left: Change[];
  readonly errors: SelectionError[];
}

/** A path or pattern overrides "all": `--discard-all --accept a` takes a and drops the rest. Both "all" flags together decide nothing. */
export function select(changes: readonly Change[], flags: SelectionFlags): Selection {
  const selection: Selection = { take: [], drop: [], left: [], errors: findErrors(changes, flags) };
  for (const change of changes) {
    const named = flags.risky.includes(change.path);
    const accepted = named || flags.accept.some((pattern) => covers(pattern, change));
    const discarded = flags.discard.some((pattern) => covers(pattern, change));
    if (accepted && discarded) selection.left.push(change);
    else if (discarded) selection.drop.push(change);
    else if ((accepted || (flags.acceptAll && !flags.discardAll)) && mayTake(change, named))
      selection.take.push(change);
    else if (!accepted && flags.discardAll && !flags.acceptAll) selection.drop.push(change);
    else selection.left.push(change);
  }
  return selection;
}

function mayTake(change: Change, named: boolean): boolean {
  return change.conflict !== 'conflicts' && (change.lane === 'inert' || named);
}

function findErrors(changes: readonly Change[], flags: SelectionFlags): SelectionError[] {
  const errors: SelectionError[] = [];
  for (const pattern of [...flags.accept, ...flags.discard]) {
    if (!changes.some((change) => covers(pattern, change))) errors.push({ path: pattern, problem: 'not-found' });
  }
  for (const path of flags.risky) {
    if (!changes.some((change) => change.path === path)) errors.push({ path, problem: 'not-found' });
  }
  for (const change of changes) {
    const { path } = change;
    const risky = flags.risky.includes(path);
    const exact = flags.accept.some((pattern) => isExact(pattern, change));
    const accepted = risky || flags.accept.some((pattern) => covers(pattern, change));
    if (accepted && flags.discard.some((pattern) => covers(pattern, change)))
      errors.push({ path, problem: 'contradiction' });
    if ((exact || risky) && change.conflict === 'conflicts') errors.push({ path, problem: 'conflict' });
    if (exact && !risky && change.lane !== 'inert') errors.push({ path, problem: 'risky' });
  }
  return errors;
}

// A rename is one change with two names. Either name selects it; a directory or a pattern must cover the new one.
export function covers(pattern: string, change: Change): boolean {
  if (isExact(pattern, change)) return true;
  if (pattern.includes('*')) return matches(pattern.replace(/\/(\*\*)?$/, '/**/*'), change.path);
  return pattern.endsWith('/') && change.path.startsWith(pattern);
}

function isExact(pattern: string, change: Change): boolean {
  return change.path === pattern || change.from === pattern;
}

/** Patterns are anchored at the project. An exact name wins, so a file with "*" in its name can be selected. */
function matches(pattern: string, path: string): boolean {
  return matchAll(
    pattern.split('/'),
    path.split('/'),
    (part, name) => matchAll(Array.from(part), Array.from(name), (a, b) => a === b, '*'),
    '**',
  );
}

// Greedy, backtracking only to the last wildcard: it finds every match in time pattern × text. An agent chooses the paths
// and could make a regular expression with many stars run forever.
function matchAll(
  pattern: readonly string[],
  text: readonly string[],
  one: (a: string, b: string) => boolean,
  any: string,
): boolean {
  let p = 0;
  let retry: { pattern: number; text: number } | null = null;
  for (let t = 0; t < text.length;) {
    if (pattern[p] === any) {
      p++;
      retry = { pattern: p, text: t };
    } else if (p < pattern.length && one(pattern[p] ?? '', text[t] ?? '')) {
      p++;
      t++;
    } else if (retry) {
      retry.text++;
      p = retry.pattern;
      t = retry.text;
    } else {
      return false;
    }
  }
  return pattern.slice(p).every((part) => part === any);
}
