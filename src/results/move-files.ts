// results/move-files.ts: plans the writes in a work tree when the branch that is checked out there moves.
// Invariant: every file to be written matches the branch, in the index and in the work tree, or already has its new content.
// Otherwise nothing is planned, and the error names the files.
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import { convertedFiles, readIndex, type IndexEntry } from '../git/index-entries.ts';
import type { Repository } from '../git/repository.ts';
import { diffTrees, goneDirectories, listTree, type TreeEntry, readBlob, readBlobs } from '../git/staging/staging.ts';
import type { WorkTree } from '../git/work-trees.ts';
import type { PlannedChange } from '../review/journal.ts';
import type { IndexStep, MergeRecord } from '../store/merges.ts';
import { stageHostFiles } from './host-files.ts';

export async function planFiles(
  repository: Repository,
  staging: string,
  tree: WorkTree,
  { ref, from, to }: MergeRecord,
): Promise<{ index: IndexStep[]; changes: PlannedChange[] }> {
  const rows = await diffTrees(staging, from, to, { renames: false });
  const paths = rows.map((one) => one.path);
  const named = new Set(paths);
  const entriesAt = async (commit: string): Promise<Map<string, TreeEntry>> =>
    new Map((await listTree(staging, commit)).filter(({ path }) => named.has(path)).map((one) => [one.path, one]));
  const [before, after, index] = [await entriesAt(from), await entriesAt(to), await readIndex(tree.gitDir)];
  if (index.unmerged.size > 0)
    throw inTheWay(`There are conflicts in ${visible(tree.path)} that are not resolved yet.`, 'Resolve them first.');
  const special = paths.filter((path) => index.special.has(path));
  const converted = await convertedFiles(tree.gitDir, tree.path, repository.settings, paths);
  const [odd] = [
    ...special.map((path) => `${visible(path)} is not in the work tree as git has it (sparse checkout)`),
    ...[...converted].map(([path, by]) => `${visible(path)} is converted by git (${by})`),
    ...[...before, ...after].flatMap(([path, { mode }]) =>
      mode === '160000' ? [`${visible(path)} is a submodule`] : [],
    ),
  ];
  if (odd !== undefined)
    throw inTheWay(`${odd}, and ags runs none of your programs.`, advice(ref, tree, 'Merge into another branch'));
  const host = await stageHostFiles({
    project: tree.path,
    staging,
    objectFormat: repository.objectFormat,
    paths,
    captured: [...before.values(), ...after.values()],
  });
  const there = new Map((await listTree(staging, host.tree)).map((one) => [one.path, one]));
  const ignoreMode = repository.settings.get('core.filemode') === 'false';
  const equal = (path: string, entry: TreeEntry | undefined): boolean => {
    const state = host.states.get(path) ?? null;
    const file = host.unread.has(path) ? undefined : there.get(path);
    if (entry === undefined) return state === null || state.type === 'directory';
    return file?.oid === entry.oid && (ignoreMode || file.mode === entry.mode);
  };
  const staged = paths.filter((path) => !sameEntry(index.entries.get(path) ?? null, entryOf(before.get(path))));
  const edited = paths.filter((path) => !equal(path, before.get(path)) && !equal(path, after.get(path)));
  const dirty = [...new Set([...staged, ...edited])].toSorted();
  if (dirty.length > 0)
    throw new AgsError(
      'project.changed',
      `You have uncommitted changes in ${dirty.length === 1 ? 'a file' : `${dirty.length} files`} that would be written:\n${list(dirty)}`,
      {
        hint: advice(ref, tree, 'Commit or stash them (git stash), or merge into another branch'),
        details: { files: dirty },
      },
    );
  const removedDirs = await goneDirectories(
    staging,
    to,
    paths.filter((path) => !after.has(path)),
  );
  const written = paths.filter((path) => !equal(path, after.get(path)));
  const contentOf = await readContents(
    staging,
    written.flatMap((path) => after.get(path) ?? []),
  );
  const changes = written.map((path) =>
    planChange(contentOf, path, after.get(path), host.states.get(path) ?? null, removedDirs),
  );
  return {
    index: paths.map((path) => ({ path, before: entryOf(before.get(path)), after: entryOf(after.get(path)) })),
    changes: await Promise.all(changes),
  };
}

async function planChange(
  contentOf: ContentOf,
  path: string,
  entry: TreeEntry | undefined,
  expect: PlannedChange['expect'],
  prune: readonly string[],
): Promise<PlannedChange> {
  if (entry === undefined) return { op: { kind: 'delete', path, prune }, expect };
  const bytes = contentOf(entry.oid);
  if (entry.mode === '120000') {
    const target = (Buffer.isBuffer(bytes) ? bytes : await bytes()).toString('utf8');
    return { op: { kind: 'symlink', path, target }, expect };
  }
  return { op: { kind: 'write', path, mode: entry.mode === '100755' ? '100755' : '100644', bytes }, expect };
}

function entryOf(entry: TreeEntry | undefined): IndexEntry | null {
  return entry === undefined ? null : { mode: entry.mode, oid: entry.oid };
}

export function sameEntry(a: IndexEntry | null, b: IndexEntry | null): boolean {
  return a?.mode === b?.mode && a?.oid === b?.oid;
}

export function shortName(ref: string): string {
  return visible(ref.replace(/^refs\/heads\//, ''));
}

export function list(paths: readonly string[]): string {
  const shown = paths.slice(0, 20).map((path) => `  ${visible(path)}`);
  return [...shown, ...(paths.length > 20 ? [`  and ${paths.length - 20} more`] : [])].join('\n');
}

function advice(ref: string, tree: WorkTree, what: string): string {
  return `${what}: ags merge --into <branch>. ${shortName(ref)} is checked out in ${visible(tree.path)}.`;
}

export function inTheWay(message: string, hint: string): AgsError {
  return new AgsError('project.changed', message, { hint });
}

/** The bytes, or a function that loads them. */
export type ContentOf = (oid: string) => Buffer | (() => Promise<Buffer>);

const SMALL_BYTES = 1024 * 1024;
const BATCH = 200;
const KEPT_BYTES = 128 * 1024 * 1024;

/** Loads small files by the hundred, because one process per file is too slow. Large files, and those beyond the limit, load one by one later. */
export async function readContents(
  staging: string,
  files: readonly { readonly oid: string; readonly bytes: number }[],
): Promise<ContentOf> {
  const contents = new Map<string, Buffer>();
  let kept = 0;
  const small = files
    .filter((file) => file.bytes <= SMALL_BYTES)
    .filter((file) => (kept += file.bytes) <= KEPT_BYTES)
    .map((file) => file.oid);
  for (let i = 0; i < small.length; i += BATCH) {
    const read = await readBlobs(staging, small.slice(i, i + BATCH), SMALL_BYTES);
    for (const [oid, bytes] of read) if (bytes !== null) contents.set(oid, bytes);
  }
  return (oid) => contents.get(oid) ?? (() => readBlob(staging, oid));
}
