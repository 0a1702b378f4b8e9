// git/staging/snapshot.ts: writes the files of a commit into a directory of ours: all of them, or only the difference from another commit.
// Invariant: the written index has the times of exactly the written files, so that git need not read them again.
// Paths are latin1 strings here, one character per byte.
import { closeSync, copyFileSync, linkSync, mkdirSync, openSync, readSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import type { Finished } from '../../lib/process/process.ts';
import { checkoutGit, stagingGit } from '../host-git.ts';
import type { LayerGit } from './layer-git.ts';

export interface Place {
  /** The directory for the files; must be empty. */
  readonly files: string;
  readonly index: string;
}

export async function writeWhole(git: LayerGit, commit: string, place: Place): Promise<void> {
  const at = { gitDir: git.directory, workTree: place.files, index: place.index, settings: git.settings };
  must(await checkoutGit(at, ['read-tree', commit]), commit);
  await writeFiles(at, commit, ['-a', '-u', '-f', '-q']);
}

export interface Delta {
  /** Lines for update-index: removed entries, then added ones. */
  readonly gone: readonly string[];
  readonly come: readonly { readonly mode: string; readonly oid: string; readonly path: string }[];
  /** Removed paths; a directory stands for everything below it. */
  readonly whiteouts: readonly string[];
}

/** Takes time proportional to the changes. Returns null if more than `most` paths changed, or if the way files are stored changed. */
export async function findDelta(git: LayerGit, from: string, to: string, most: number): Promise<Delta | null> {
  const listing = await stagingGit(git.directory, ['diff-tree', '-r', '-t', '--raw', '-z', '--no-renames', from, to], {
    maxBytes: 1024 ** 3,
  });
  // The start commit may be gone after a rebase and garbage collection.
  if (listing.exitCode !== 0) return null;
  const words = listing.stdout.toString('latin1').split('\0');
  const gone: { path: string; mode: string }[] = [];
  const come = new Map<string, { mode: string; oid: string; path: string }>();
  for (let i = 0; i + 1 < words.length; i += 2) {
    const [before = '', mode = '', , oid = ''] = (words[i] ?? '').slice(1).split(' ');
    const path = words[i + 1] ?? '';
    // Changed attributes can alter how even unchanged files are written.
    if (path === '.gitattributes' || path.endsWith('/.gitattributes')) return null;
    if (mode === NOTHING) gone.push({ path, mode: before });
    else if (mode !== TREE || before === NOTHING) come.set(path, { mode, oid, path });
    if (gone.length + come.size > most) return null;
  }
  return {
    gone: gone.filter(({ mode }) => mode !== TREE).map(({ path }) => path),
    come: [...come.values()].filter(({ mode }) => mode !== TREE),
    whiteouts: findWhiteouts(gone, come),
  };
}

const NOTHING = '000000';
const TREE = '040000';
const SUBMODULE = '160000';

/** A path that replaces another hides it by itself, except a submodule's empty directory in place of a full one. */
function findWhiteouts(
  gone: readonly { path: string; mode: string }[],
  come: ReadonlyMap<string, { mode: string }>,
): string[] {
  const covered = new Set<string>();
  const whiteouts: string[] = [];
  for (const { path, mode } of gone) {
    if (ancestors(path).some((dir) => covered.has(dir))) continue;
    const instead = come.get(path)?.mode;
    if (instead === undefined) whiteouts.push(path);
    if (instead !== SUBMODULE || mode !== TREE) covered.add(path);
  }
  return whiteouts;
}

function ancestors(path: string): string[] {
  const found: string[] = [];
  for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) found.push(path.slice(0, at));
  return found;
}

/** `before` is the index of the commit that the delta starts from. */
export async function writeDelta(
  git: LayerGit,
  commit: string,
  delta: Delta,
  place: Place,
  before: { index: string; whiteout: string },
): Promise<void> {
  const at = { gitDir: git.directory, workTree: place.files, index: place.index, settings: git.settings };
  copyFileSync(before.index, place.index);
  const zero = '0'.repeat(delta.come[0]?.oid.length ?? 40);
  const lines = [
    ...delta.gone.map((path) => `0 ${zero}\t${path}\0`),
    ...delta.come.map(({ mode, oid, path }) => `${mode} ${oid} 0\t${path}\0`),
  ];
  const text = (parts: readonly string[]): Buffer => Buffer.from(parts.join(''), 'latin1');
  must(await checkoutGit(at, ['update-index', '-z', '--index-info'], { input: text(lines) }), commit);
  if (delta.come.length > 0)
    await writeFiles(at, commit, ['-f', '-u', '-q', '-z', '--stdin'], text(delta.come.map(({ path }) => `${path}\0`)));
  for (const path of delta.whiteouts) {
    mkdirSync(below(place.files, dirname(path)), { recursive: true });
    linkSync(before.whiteout, below(place.files, path));
  }
}

function below(directory: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(path, 'latin1')]);
}

/** The number of entries of an index, from its header. */
export function countEntries(index: string): number {
  const head = Buffer.alloc(12);
  const file = openSync(index, 'r');
  try {
    readSync(file, head, 0, 12, 0);
  } finally {
    closeSync(file);
  }
  return head.readUInt32BE(8);
}

export interface IndexEntry {
  readonly mode: string;
  readonly oid: string;
  readonly path: string;
}

/** Takes time proportional to the size of the repository. */
export async function listIndex(git: LayerGit, index: string): Promise<IndexEntry[]> {
  const place = { gitDir: git.directory, workTree: '/', index, settings: git.settings };
  const listing = await checkoutGit(place, ['ls-files', '-s', '-z'], { maxBytes: 1024 ** 3 });
  must(listing, index);
  return listing.stdout
    .toString('utf8')
    .split('\0')
    .filter((row) => row !== '')
    .map((row) => {
      const tab = row.indexOf('\t');
      const [mode = '', oid = ''] = row.slice(0, tab).split(' ');
      return { mode, oid, path: row.slice(tab + 1) };
    });
}

/** The types of these paths in a commit; omits paths that the commit lacks. */
export async function commitHas(
  git: LayerGit,
  commit: string,
  paths: readonly string[],
): Promise<Map<string, 'blob' | 'tree' | 'commit'>> {
  const found = new Map<string, 'blob' | 'tree' | 'commit'>();
  for (let i = 0; i < paths.length; i += 500) {
    const listing = await stagingGit(git.directory, [
      '--literal-pathspecs',
      'ls-tree',
      '-z',
      '--full-tree',
      commit,
      '--',
      ...paths.slice(i, i + 500),
    ]);
    must(listing, commit);
    for (const row of listing.stdout.toString('utf8').split('\0')) {
      const [, kind, path] = /^\d+ (blob|tree|commit) [0-9a-f]+\t([\s\S]+)$/.exec(row) ?? [];
      if (kind !== undefined && path !== undefined) found.set(path, kind as 'blob' | 'tree' | 'commit');
    }
  }
  return found;
}

function must(done: Finished, commit: string, full = false): void {
  if (done.exitCode === 0) return;
  const said = done.stderr.trim().split('\n').at(-1) ?? '';
  if (full || /No space left|Disk quota/.test(done.stderr))
    throw new AgsError('disk.full', 'There is no room left on the disk for a snapshot of the project.', {
      hint: 'Free some space, for example with: ags cleanup',
    });
  const missing = /(unable to|cannot|could not) read|missing|bad object|not a tree/i.test(done.stderr);
  throw new AgsError('project.unsuitable', `The files of ${commit.slice(0, 12)} cannot be written: ${said}`, {
    hint: missing
      ? 'Are all objects here? See: git fsck --connectivity-only; for a partial clone: git fetch --refetch'
      : 'Can git itself check it out? Try: git worktree add --detach ../try',
  });
}

type CheckoutPlace = Parameters<typeof checkoutGit>[0];

/** Git does not say why it could not write a file, so this checks whether the disk is too full. */
async function writeFiles(at: CheckoutPlace, commit: string, args: readonly string[], input?: Buffer): Promise<void> {
  const done = await checkoutGit(
    at,
    ['-c', 'checkout.workers=0', 'checkout-index', ...args],
    input === undefined ? {} : { input },
  );
  must(done, commit, /unable to write file/.test(done.stderr) && (await isTooLarge(at, commit)));
}

async function isTooLarge(at: CheckoutPlace, commit: string): Promise<boolean> {
  const { bavail, bsize, files, ffree } = statfsSync(at.workTree);
  if (files > 0 && ffree === 0) return true;
  const listing = await checkoutGit(at, ['ls-tree', '-r', '-l', '-z', commit], { maxBytes: 1024 ** 3 });
  const sizes = [...listing.stdout.toString('latin1').matchAll(/ (\d+)\t/g)];
  return sizes.some(([, size]) => Number(size) > bavail * bsize);
}
