// results/changes.ts: compares a capture with the user's current files.
// Invariant: computed anew for every review from the captured tree and the host's current files. A file that was taken is
// therefore no longer a change, and a file that the user edited meanwhile is never overwritten unseen.
import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Change, ChangeKind, ChangeSet, FileState } from '../protocol/changes.ts';
import { readBaseFile } from '../git/base-files.ts';
import { mergeText } from '../git/staging/merge-trees.ts';
import { diffTrees, listTree, readBlobs, writeTree, type RawChange, type TreeEntry } from '../git/staging/staging.ts';
import type { HostState } from '../review/apply.ts';
import { classify, type Content } from '../review/lanes.ts';
import { caseCollisions, foldPath, inspectName } from '../review/names.ts';
import { ancestors } from '../review/order.ts';
import { compilePatterns } from '../config/patterns.ts';
import type { StoredTask } from '../store/tasks.ts';
import type { Capture } from './capture.ts';
import { stageHostFiles, TOO_LARGE } from './host-files.ts';
import { findTouched, UNTOUCHED, type Touched } from './user-edits.ts';
import type { HostContext } from '../run/host-context.ts';

export interface Compared {
  readonly changeSet: ChangeSet;
  /** The state of each path on the host at the comparison: a change is applied only while that state is the same. */
  readonly host: ReadonlyMap<string, HostState | null>;
  /** The merged text of both sides, for changes whose conflict is 'merges'. */
  readonly merged: ReadonlyMap<string, Buffer>;
  /** The text of both sides with conflict markers, to be resolved by hand; only some conflicts have one. */
  readonly marked: ReadonlyMap<string, Buffer>;
  /** Directories that the sandbox removed. */
  readonly removedDirs: readonly string[];
}

const TEXT_LIMIT = 1024 * 1024;
const PORTION_BYTES = 64 * 1024 * 1024;

export async function compareWithHost(
  context: HostContext,
  task: StoredTask,
  capture: Capture,
  risky: readonly string[] = [],
): Promise<Compared> {
  const { staging } = task.paths;
  const after = new Map((await listTree(staging, capture.tree)).map((entry) => [entry.path, entry]));
  const deleted = capture.deleted.filter((path) => !after.has(path));
  // This tree holds the host's version of every path that the sandbox touched.
  const { tree, states, unread } = await stageHostFiles({
    project: task.task.project,
    staging,
    objectFormat: task.run.objectFormat,
    paths: [...after.keys(), ...deleted],
    captured: after.values(),
  });
  return compare(context, task, capture, { risky, after, tree, host: states, unread, settled: task.run.settled });
}

/** Compares an agent's task with the commit it started from, whatever the user's files are now. */
export async function compareWithBase(
  context: HostContext,
  task: StoredTask,
  capture: Capture,
  risky: readonly string[] = [],
): Promise<Compared> {
  const { staging } = task.paths;
  const after = new Map((await listTree(staging, capture.tree)).map((entry) => [entry.path, entry]));
  const named = new Set([...after.keys(), ...capture.deleted]);
  const base = (await listTree(staging, capture.agent?.base ?? '')).filter((entry) => named.has(entry.path));
  const tree = await writeTree(staging, base);
  return compare(context, task, capture, { risky, after, tree, host: new Map(), unread: new Map(), settled: null });
}

async function compare(
  context: HostContext,
  task: StoredTask,
  capture: Capture,
  view: {
    risky: readonly string[];
    after: ReadonlyMap<string, TreeEntry>;
    /** The tree in staging to compare with. */
    tree: string;
    host: ReadonlyMap<string, HostState | null>;
    unread: ReadonlyMap<string, string>;
    /** Paths already decided; null if the user's files do not matter and everything is shown. */
    settled: readonly string[] | null;
  },
): Promise<Compared> {
  const { staging } = task.paths;
  const { after, tree, host, unread, risky } = view;
  const settled = new Set(view.settled);
  // A placeholder line stands for an unread file: a sandbox that writes the same line has renamed nothing.
  const raw = (await diffTrees(staging, tree, capture.tree)).flatMap((one): RawChange[] =>
    one.from !== null && unread.has(one.from)
      ? [
          { status: 'A', path: one.path, from: null },
          { status: 'D', path: one.from, from: null },
        ]
      : [one],
  );
  const before = new Map((await listTree(staging, tree)).map((entry) => [entry.path, entry]));
  const collisions = await findCollisions(task, capture, [...after.keys()]);
  const ignored = new Set([...capture.ignored.written, ...capture.ignored.deleted]);
  const touched =
    view.settled === null ? UNTOUCHED : await findTouched(context, task, raw, host, before, capture.agent?.base);
  const merged = new Map<string, Buffer>();
  const marked = new Map<string, Buffer>();
  const changes: Change[] = [];
  const isRisky = compilePatterns(risky);
  const sides = (one: RawChange): (TreeEntry | undefined)[] => [after.get(one.path), before.get(one.from ?? one.path)];
  // Read in portions: all texts together may not fit in memory.
  for (const some of portions(
    raw.filter((one) => !settled.has(one.path)),
    (one) => sides(one).reduce((sum, entry) => sum + (entry?.bytes ?? 0), 0),
  )) {
    const texts = await readBlobs(
      staging,
      some.flatMap(sides).flatMap((entry) => (entry === undefined ? [] : [entry.oid])),
      TEXT_LIMIT,
    );
    for (const one of some) {
      const old = one.from ?? one.path;
      const was = sized(state(before.get(old)), unread.has(old), host.get(old));
      const now = one.status === 'D' ? null : state(after.get(one.path));
      const mine = before.get(one.path);
      const conflict = await conflictOf(context, task, one, {
        touched,
        mine,
        now,
        texts,
        unread: unread.get(old) ?? null,
      });
      if (conflict.text !== undefined) (conflict.kind === 'merges' ? merged : marked).set(one.path, conflict.text);
      const verdict = classify({
        path: one.path,
        ...(one.from === null ? {} : { from: one.from }),
        before: content(was, texts),
        after: content(now, texts),
      });
      const extra = isRisky(one.path, false) ? ['The configuration names it as risky (review.risky).'] : [];
      changes.push({
        path: one.path,
        ...(one.from === null ? {} : { from: one.from }),
        kind: kindOf(one, was, now),
        before: was,
        after: now,
        lane: extra.length > 0 ? 'host' : verdict.lane,
        reasons: [
          ...conflict.reasons,
          ...extra,
          ...verdict.reasons,
          ...inspectName(one.path).warnings,
          ...(collisions.has(one.path) ? ['Another new name differs from it in case only.'] : []),
        ],
        conflict: conflict.kind,
        ignored: ignored.has(one.path),
      });
    }
  }
  const id = createHash('sha256')
    .update(JSON.stringify([capture.tree, capture.deleted]))
    .digest('hex');
  return {
    changeSet: {
      id,
      changes: sortByLane(changes),
      refused: capture.refused,
      ignored: { files: ignored.size, bytes: capture.ignored.bytes, reviewed: capture.withIgnored },
    },
    host,
    merged,
    marked,
    removedDirs: capture.removedDirs,
  };
}

/** New names that a case-insensitive file system would confuse with each other or with a name of the base. */
async function findCollisions(task: StoredTask, capture: Capture, after: readonly string[]): Promise<Set<string>> {
  const all = capture.agent === undefined ? [] : await listTree(task.paths.staging, capture.agent.tree);
  const spelled = new Map(after.flatMap((path) => [...ancestors(path), path].map((one) => [foldPath(one), one])));
  const near = all.filter(({ path }) =>
    [...ancestors(path), path].some((one) => (spelled.get(foldPath(one)) ?? one) !== one),
  );
  const mine = new Set(after);
  const groups = caseCollisions([...after, ...near.map(({ path }) => path)]);
  return new Set(groups.flat().filter((path) => mine.has(path)));
}

function* portions(changes: readonly RawChange[], bytesOf: (one: RawChange) => number): Generator<RawChange[]> {
  let some: RawChange[] = [];
  let bytes = 0;
  for (const one of changes) {
    // Texts above the limit are not read, so they cost no more than the limit.
    const more = Math.min(bytesOf(one), 2 * TEXT_LIMIT);
    if (some.length > 0 && bytes + more > PORTION_BYTES) {
      yield some;
      some = [];
      bytes = 0;
    }
    some.push(one);
    bytes += more;
  }
  if (some.length > 0) yield some;
}

interface Conflict {
  readonly kind: Change['conflict'];
  readonly reasons: readonly string[];
  /** Both sides in one text, with conflict markers. */
  readonly text?: Buffer;
}

async function conflictOf(
  context: HostContext,
  task: StoredTask,
  one: RawChange,
  sides: {
    touched: Touched;
    mine: TreeEntry | undefined;
    now: FileState | null;
    texts: ReadonlyMap<string, Buffer | null>;
    unread: string | null;
  },
): Promise<Conflict> {
  const { touched, mine, now, texts, unread } = sides;
  if (touched === UNTOUCHED) return { kind: 'none', reasons: [] };
  const conflict = (reason: string): Conflict => ({ kind: 'conflicts', reasons: [reason] });
  if (task.run.hidden.includes(one.path))
    return conflict('You have a file of this name that was hidden from the sandbox.');
  if (one.from !== null && touched.paths.has(one.from))
    return conflict(`You changed ${one.from} while the sandbox ran, and the sandbox renamed it.`);
  if (unread !== null)
    return unread === TOO_LARGE && !touched.paths.has(one.path)
      ? { kind: 'none', reasons: [unread] }
      : conflict(unread);
  if (!touched.paths.has(one.path)) return { kind: 'none', reasons: [] };
  if (now === null) return conflict('You changed it while the sandbox ran, and the sandbox deleted it.');
  if (mine === undefined) return conflict('You deleted it while the sandbox ran, and the sandbox changed it.');
  const base = touched.base.get(one.path);
  const host = texts.get(mine.oid) ?? null;
  const sandbox = texts.get(now.oid) ?? null;
  const old =
    base === undefined || base.bytes > TEXT_LIMIT
      ? null
      : await readBaseFile({ project: task.task.project, home: context.home, oid: base.oid });
  if (old === null || host === null || sandbox === null || mine.mode === '120000' || now.mode === '120000')
    return conflict('It changed on both sides while the sandbox ran, and there is no common version to merge from.');
  const scratch = dirname(task.paths.staging);
  mkdirSync(scratch, { recursive: true });
  const merge = await mergeText(scratch, { base: old, host, sandbox });
  if (merge === null) return conflict('It changed on both sides while the sandbox ran, and is not text.');
  if (!merge.clean)
    return { ...conflict('It changed on both sides while the sandbox ran, in the same lines.'), text: merge.text };
  return {
    kind: 'merges',
    reasons: [
      'It changed on both sides while the sandbox ran; the two merge cleanly, and the merged text is what is taken.',
    ],
    text: merge.text,
  };
}

/** Gives an unread file its real size instead of the length of its placeholder line. */
function sized(file: FileState | null, unread: boolean, host: HostState | null | undefined): FileState | null {
  return file !== null && unread ? { ...file, bytes: host?.size ?? file.bytes } : file;
}

function state(entry: { mode: string; oid: string; bytes: number } | undefined): FileState | null {
  return entry === undefined ? null : { mode: entry.mode as FileState['mode'], oid: entry.oid, bytes: entry.bytes };
}

function content(file: FileState | null, texts: ReadonlyMap<string, Buffer | null>): Content | null {
  if (file === null) return null;
  const bytes = file.bytes > TEXT_LIMIT ? null : (texts.get(file.oid) ?? null);
  if (bytes === null) return { mode: file.mode, bytes: file.bytes, text: null };
  const binary = bytes.subarray(0, 8000).includes(0);
  return binary
    ? { mode: file.mode, bytes: file.bytes, text: null, head: bytes.subarray(0, 16) }
    : { mode: file.mode, bytes: file.bytes, text: bytes.toString('utf8') };
}

function kindOf(one: RawChange, before: FileState | null, now: FileState | null): ChangeKind {
  if (one.status === 'A') return now?.mode === '120000' ? 'symlink' : 'new';
  if (one.status === 'D') return 'deleted';
  if (one.status === 'R') return 'renamed';
  if (before?.mode === '120000' && now?.mode === '120000') return 'symlink';
  if (one.status === 'T') return 'type';
  return before?.oid === now?.oid ? 'mode' : 'modified';
}

const LANE_ORDER = { host: 0, ci: 1, inert: 2 } as const;

function sortByLane(changes: Change[]): Change[] {
  return changes.toSorted((a, b) => LANE_ORDER[a.lane] - LANE_ORDER[b.lane] || (a.path < b.path ? -1 : 1));
}
