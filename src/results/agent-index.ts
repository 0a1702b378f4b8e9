// results/agent-index.ts: decides which files of an agent's workspace are part of its work. Pure.
// Names are latin1 strings here, one character per byte, because a name that is not UTF-8 must still be named to be left out.
import { isUtf8 } from 'node:buffer';
import type { Refusal } from '../protocol/changes.ts';
import { inspectName } from '../review/names.ts';
import { ancestors } from '../review/order.ts';
import type { UpperEntry, UpperListing } from '../review/upper.ts';

export interface Entry {
  readonly mode: string;
  readonly oid: string;
}

export interface Facts {
  readonly head: string | null;
  readonly headTree: string | null;
  /** Entries of the agent's last commit by path, or of the base if that commit cannot be read. */
  readonly tip: ReadonlyMap<string, Entry>;
  readonly base: ReadonlyMap<string, Entry>;
  /** Paths that the workspace no longer has. */
  readonly gone: ReadonlySet<string>;
  /** Paths that are in the workspace and in no commit; filled only for a copy. */
  readonly others: readonly string[];
}

export interface IndexPlan {
  /** Entries to set, or to remove (null), before anything is read from the workspace. */
  readonly set: ReadonlyMap<string, Entry | null>;
  /** Paths to read from the workspace; missing ones are removed from the index. */
  readonly add: readonly string[];
  readonly refused: readonly Refusal[];
}

/** Plans how the index gets from the agent's last commit to its workspace, path by path. */
export function planIndex(given: {
  /** Paths that the sandbox did not have. */
  hidden: readonly string[];
  workspace: 'overlay' | 'copy';
  listing: UpperListing;
  facts: Facts;
  isScratch: (path: string) => boolean;
}): IndexPlan {
  const { listing, facts, isScratch } = given;
  const { base, tip, gone } = facts;
  const set = new Map<string, Entry | null>();
  const refused = new Refused();
  for (const { path, reason } of listing.refused) refused.add(path, reason);
  const written = new Map<string, UpperEntry>(listing.entries.map((entry) => [bytesOf(entry.path), entry]));
  const hidden = new Set(given.hidden.map(bytesOf));
  const submodules = new Set([...base].filter(([, { mode }]) => mode === GITLINK).map(([path]) => path));
  const inSubmodule = (path: string): string | undefined => ancestors(path).find((dir) => submodules.has(dir));
  // Paths that the agent's own commits changed are read again: the workspace may have moved on, or back.
  const changed = new Set([...tip.keys(), ...base.keys()].filter((path) => !same(tip.get(path), base.get(path))));
  for (const path of changed) {
    const now = tip.get(path);
    const was = base.get(path) ?? null;
    if (now?.mode === GITLINK || was?.mode === GITLINK) {
      set.set(path, was?.mode === GITLINK ? was : null);
      refused.add(textOf(path), was?.mode === GITLINK ? SUBMODULE : REPOSITORY);
    } else if (now !== undefined) {
      const problem = problemOf(path, isScratch);
      if (problem === null) continue;
      set.set(path, was);
      refused.add(textOf(path), problem);
    }
  }
  // Git cannot read a pipe or a closed directory, so such a path keeps its committed state.
  const closed = new Set(listing.refused.map(({ path }) => bytesOf(path)).filter((path) => !written.has(path)));
  const isClosed = (path: string): boolean => closed.has(path) || ancestors(path).some((dir) => closed.has(dir));
  for (const path of gone)
    if (!isClosed(path) && !hidden.has(path) && tip.get(path)?.mode !== GITLINK && !set.has(path)) set.set(path, null);
  for (const directory of listing.directories.map(bytesOf))
    if (tip.has(directory) && tip.get(directory)?.mode !== GITLINK) set.set(directory, null);
  // A copy has no listing of directories. A path that git knows as a file or link is a directory now if other files lie below it.
  for (const directory of new Set(facts.others.flatMap((path) => ancestors(path))))
    if (tip.has(directory) && tip.get(directory)?.mode !== GITLINK && !set.has(directory)) set.set(directory, null);
  const add: string[] = [];
  const candidates = new Set([
    ...written.keys(),
    ...[...changed].filter((path) => !ancestors(path).some((dir) => written.has(dir))),
    ...(given.workspace === 'copy' ? [...facts.others, ...tip.keys()] : []),
  ]);
  for (const path of candidates) {
    if (set.has(path) && !written.has(path)) continue;
    if (submodules.has(path) || path.endsWith('/') || isClosed(path)) continue;
    const submodule = inSubmodule(path);
    const problem = submodule === undefined ? problemOf(path, isScratch) : SUBMODULE;
    if (problem === null) add.push(path);
    else if (written.has(path)) refused.add(submodule ?? textOf(path), problem);
  }
  return { set, add, refused: refused.list() };
}

const GITLINK = '160000';
const SUBMODULE = 'a submodule: what changed in it is never taken';
const REPOSITORY = 'a repository of its own: never taken as one, its files are';
const SCRATCH = "the agent's own settings or notes: never taken";

function problemOf(path: string, isScratch: (path: string) => boolean): string | null {
  if (!isUtf8(Buffer.from(path, 'latin1'))) return 'a name that is not UTF-8: never taken';
  const text = textOf(path);
  return inspectName(text).refuse ?? (isScratch(text) ? SCRATCH : null);
}

/** Bounded, so that a hostile workspace cannot make the list endless. */
class Refused {
  readonly #found = new Map<string, string>();
  add(path: string, reason: string): void {
    if (this.#found.size < 10_000) this.#found.set(path, reason);
  }
  list(): Refusal[] {
    return [...this.#found].map(([path, reason]) => ({ path, reason }));
  }
}

function same(a: Entry | undefined, b: Entry | undefined): boolean {
  return a?.mode === b?.mode && a?.oid === b?.oid;
}

export function bytesOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** Escapes bytes that are not text; a path with such bytes is always refused. */
export function textOf(bytes: string): string {
  const name = Buffer.from(bytes, 'latin1');
  return isUtf8(name)
    ? name.toString('utf8')
    : bytes.replace(/[\x80-\xff]/g, (char) => `\\x${char.charCodeAt(0).toString(16)}`);
}
