// tasks/changes.ts: what was captured, compared with the user's files as they are now.
// Invariant: computed afresh for every review from the captured tree and the host's present files, so a file that was taken
// is no longer a change, and a file the user has edited meanwhile is never overwritten unseen.
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync } from 'node:fs';
import { dirname, basename } from 'node:path';
import type { Change, ChangeKind, ChangeSet, FileState } from '../protocol/changes.ts';
import { openDirectory } from '../lib/descend.ts';
import { errorCode } from '../lib/error-code.ts';
import { baseContents } from '../git/base-files.ts';
import { mergeText } from '../git/merge-text.ts';
import {
  diffTrees,
  listTree,
  readBlobs,
  writeTree,
  type BaseFile,
  type RawChange,
  type TreeEntry,
} from '../git/staging.ts';
import { hostState, type HostState } from '../review/apply.ts';
import { classify, type Content } from '../review/lanes.ts';
import { caseCollisions, inspectName } from '../review/names.ts';
import { compilePatterns } from '../config/patterns.ts';
import type { StoredTask } from '../store/tasks.ts';
import type { Capture } from './capture.ts';
import type { World } from './world.ts';

export interface Compared {
  readonly changeSet: ChangeSet;
  /** What each path was on the host when it was compared: a change is applied only while this still holds. */
  readonly host: ReadonlyMap<string, HostState | null>;
  /** Both sides merged, for changes whose conflict is 'merges'. */
  readonly merged: ReadonlyMap<string, Buffer>;
  /** Directories that no longer exist inside. */
  readonly removedDirs: readonly string[];
}

const TEXT_LIMIT = 1024 * 1024;
const HOST_FILE_LIMIT = 256 * 1024 * 1024;
const PORTION_BYTES = 64 * 1024 * 1024;

export async function compareWithHost(
  world: World,
  task: StoredTask,
  capture: Capture,
  risky: readonly string[] = [],
): Promise<Compared> {
  const { project } = task.task;
  const { staging } = task.paths;
  const settled = new Set(task.run.settled);
  const after = new Map((await listTree(staging, capture.tree)).map((entry) => [entry.path, entry]));
  const deleted = capture.deleted.filter((path) => !after.has(path));
  const host = new Map<string, HostState | null>();
  const contents = new Map<string, BaseFile>();
  const unread = new Map<string, string>();
  for (const path of [...after.keys(), ...deleted]) {
    const file = readHostFile(project, path);
    host.set(path, file.state);
    if (file.content !== null) contents.set(path, file.content);
    if (file.unread !== null) unread.set(path, file.unread);
  }
  // The tree to compare with holds the host's version of every path that the sandbox touched.
  const base = await writeTree(staging, contents.values());
  const raw = await diffTrees(staging, base, capture.tree);
  const baseEntries = new Map((await listTree(staging, base)).map((entry) => [entry.path, entry]));
  const collisions = new Set(caseCollisions([...after.keys()]).flat());
  const ignored = new Set([...capture.ignored.written, ...capture.ignored.deleted]);
  const touched = await findTouched(world, task, raw, host, contents);
  const merged = new Map<string, Buffer>();
  const changes: Change[] = [];
  const isRisky = compilePatterns(risky);
  const sides = (one: RawChange): (TreeEntry | undefined)[] => [
    after.get(one.path),
    baseEntries.get(one.from ?? one.path),
  ];
  // A few at a time: all texts together may be more than fits in memory.
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
      const before = sized(state(baseEntries.get(one.from ?? one.path)), unread.has(one.path), host.get(one.path));
      const now = one.status === 'D' ? null : state(after.get(one.path));
      const conflict = await conflictOf(task, one, touched, contents, texts, now, merged, unread.get(one.path) ?? null);
      const verdict = classify({
        path: one.path,
        ...(one.from === null ? {} : { from: one.from }),
        before: content(before, texts),
        after: content(now, texts),
      });
      const extra = isRisky(one.path, false) ? ['The configuration names it as risky (review.risky).'] : [];
      changes.push({
        path: one.path,
        ...(one.from === null ? {} : { from: one.from }),
        kind: kindOf(one, before, now),
        before,
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
    removedDirs: capture.removedDirs,
  };
}

function* portions(changes: readonly RawChange[], bytesOf: (one: RawChange) => number): Generator<RawChange[]> {
  let some: RawChange[] = [];
  let bytes = 0;
  for (const one of changes) {
    // What is above the limit for texts is not read.
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

interface HostFile {
  readonly state: HostState | null;
  /** What stands for it in the comparison: its bytes or, where they cannot be had, a line that says so. */
  readonly content: BaseFile | null;
  /** Why its bytes could not be had. */
  readonly unread: string | null;
}

function readHostFile(project: string, path: string): HostFile {
  const found = hostState(project, path);
  if (found === null || (found.type !== 'file' && found.type !== 'symlink'))
    return { state: found, content: null, unread: null };
  const mode = found.type === 'symlink' ? '120000' : (found.mode & 0o100) === 0 ? '100644' : '100755';
  try {
    // hostState has walked down by descriptor and met no link; a link that appears now would be the user's own.
    using parent = openDirectory(dirname(`${project}/${path}`));
    const name = basename(path);
    const bytes = mode === '120000' ? Buffer.from(parent.readlink(name)) : parent.readFile(name, HOST_FILE_LIMIT);
    return { state: found, content: { path, mode, bytes }, unread: null };
  } catch (error) {
    const code = errorCode(error);
    if (code === undefined) throw error;
    const why = code === 'EFBIG' ? TOO_LARGE : `Your own file cannot be read (${code}).`;
    return { state: found, content: { path, mode, bytes: Buffer.from(`${why}\n`) }, unread: why };
  }
}

const TOO_LARGE = 'Your own file is too large to be compared.';

interface Touched {
  /** Paths that changed on the host after the sandbox had started. */
  readonly paths: ReadonlySet<string>;
  readonly base: ReadonlyMap<string, Buffer>;
}

// A file replaced, edited or chmod-ed has a newer change time; nothing short of setting the clock back avoids that.
async function findTouched(
  world: World,
  task: StoredTask,
  raw: readonly RawChange[],
  host: ReadonlyMap<string, HostState | null>,
  contents: ReadonlyMap<string, BaseFile>,
): Promise<Touched> {
  const startNs = BigInt(Math.floor(task.run.startedAtMs)) * 1_000_000n;
  const names = raw.flatMap((one) => (one.from === null ? [one.path] : [one.path, one.from]));
  // A directory is newer for every file made or deleted in it; it gives way to a file only when it is empty.
  const newer = names.filter((path) => {
    const file = host.get(path);
    return file != null && file.type !== 'directory' && BigInt(file.ctimeNs) >= startNs;
  });
  // Its directory tells whether it was deleted since the start, or had been before.
  const gone = raw
    .filter(
      (one) =>
        one.status === 'A' &&
        host.get(one.path) === null &&
        BigInt(directoryState(task.task.project, one.path)?.ctimeNs ?? 0) >= startNs,
    )
    .map((one) => one.path);
  const base = task.task.git
    ? await baseContents({
        project: task.task.project,
        home: world.home,
        commit: task.run.base,
        paths: [...newer, ...gone],
      })
    : new Map<string, Buffer>();
  const unchanged = (path: string): boolean =>
    contents.get(path) !== undefined && base.get(path)?.equals(contents.get(path)?.bytes ?? Buffer.alloc(0)) === true;
  return {
    paths: new Set([...newer.filter((path) => !unchanged(path)), ...gone.filter((path) => base.has(path))]),
    base,
  };
}

function directoryState(project: string, path: string): { ctimeNs: bigint } | undefined {
  return lstatSync(dirname(`${project}/${path}`), { bigint: true, throwIfNoEntry: false });
}

async function conflictOf(
  task: StoredTask,
  one: RawChange,
  touched: Touched,
  contents: ReadonlyMap<string, BaseFile>,
  texts: ReadonlyMap<string, Buffer | null>,
  now: FileState | null,
  merged: Map<string, Buffer>,
  unread: string | null,
): Promise<{ kind: Change['conflict']; reasons: string[] }> {
  if (task.run.hidden.includes(one.path))
    return { kind: 'conflicts', reasons: ['You have a file of this name that was hidden from the sandbox.'] };
  if (one.from !== null && touched.paths.has(one.from))
    return {
      kind: 'conflicts',
      reasons: [`You changed ${one.from} while the sandbox ran, and the sandbox renamed it.`],
    };
  if (unread !== null)
    return { kind: unread === TOO_LARGE && !touched.paths.has(one.path) ? 'none' : 'conflicts', reasons: [unread] };
  if (!touched.paths.has(one.path)) return { kind: 'none', reasons: [] };
  const mine = contents.get(one.path);
  const theirs = now === null ? undefined : texts.get(now.oid);
  const base = touched.base.get(one.path);
  if (now === null)
    return { kind: 'conflicts', reasons: ['You changed it while the sandbox ran, and the sandbox deleted it.'] };
  if (mine === undefined)
    return { kind: 'conflicts', reasons: ['You deleted it while the sandbox ran, and the sandbox changed it.'] };
  if (base === undefined || theirs === undefined || theirs === null || mine.mode === '120000' || now.mode === '120000')
    return {
      kind: 'conflicts',
      reasons: ['It changed on both sides while the sandbox ran, and there is no common version to merge from.'],
    };
  const scratch = dirname(task.paths.staging);
  mkdirSync(scratch, { recursive: true });
  const result = await mergeText(scratch, { base, host: mine.bytes, sandbox: theirs });
  if (result === null)
    return { kind: 'conflicts', reasons: ['It changed on both sides while the sandbox ran, in the same lines.'] };
  merged.set(one.path, result);
  return {
    kind: 'merges',
    reasons: [
      'It changed on both sides while the sandbox ran; the two merge cleanly, and the merged text is what is taken.',
    ],
  };
}

/** A line that stands for a file that was not read is not as long as that file. */
function sized(file: FileState | null, unread: boolean, host: HostState | null | undefined): FileState | null {
  return file !== null && unread ? { ...file, bytes: host?.size ?? file.bytes } : file;
}

function state(entry: { mode: string; oid: string; bytes: number } | undefined): FileState | null {
  return entry === undefined ? null : { mode: entry.mode as FileState['mode'], oid: entry.oid, bytes: entry.bytes };
}

function content(file: FileState | null, texts: ReadonlyMap<string, Buffer | null>): Content | null {
  if (file === null) return null;
  const bytes = texts.get(file.oid) ?? null;
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
