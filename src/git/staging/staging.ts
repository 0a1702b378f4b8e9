// git/staging/staging.ts: a bare repository of ours, one per task, for the objects of a sandbox and the objects to compare them with.
// Invariant: no sandbox can write here. Objects of a sandbox enter only by `index-pack --strict`, which checks each of them.
// Everything is named by full object id, never by a ref that an agent chose.
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import { withStreams } from '../../lib/process/process.ts';
import { ISOLATED_ENV, stagingGit } from '../host-git.ts';

export interface TreeEntry {
  readonly path: string;
  readonly mode: string;
  readonly oid: string;
  readonly bytes: number;
}

export function createStaging(
  directory: string,
  objectFormat: 'sha1' | 'sha256',
  options: { bare: boolean; borrows?: readonly string[] } = { bare: true },
): void {
  // Not by `git init`, which would copy templates and read settings.
  for (const name of ['objects/info', 'objects/pack', 'refs/heads', 'info'])
    mkdirSync(join(directory, name), { recursive: true, mode: 0o700 });
  writeFileSync(join(directory, 'HEAD'), 'ref: refs/heads/none\n');
  const format =
    objectFormat === 'sha256'
      ? '\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n'
      : '\trepositoryformatversion = 0\n';
  // Git streams files above this size, and never makes deltas of them, which would need all of their content in memory.
  // A repository that is not bare lives for seconds: it need not survive a power cut, nor be small.
  const haste = options.bare ? '' : '\tfsync = none\n\tlooseCompression = 0\n[pack]\n\tcompression = 0\n[core]\n';
  writeFileSync(
    join(directory, 'config'),
    `[core]\n\tbare = ${options.bare}\n\tbigFileThreshold = 64m\n${haste}${format}`,
  );
  // Files are stored byte for byte: no line-end conversion, no filters, no keyword expansion.
  writeFileSync(join(directory, 'info/attributes'), '* -text -filter -ident -working-tree-encoding !diff !merge\n');
  if (options.borrows !== undefined)
    writeFileSync(join(directory, 'objects/info/alternates'), options.borrows.map((path) => `${path}\n`).join(''));
}

// A pack of 3 MB can hold a tree of 3 GB of zeros, which git would hold in memory.
const MEMORY_BYTES = 2 * 1024 ** 3;

/** Stores a pack after checking every object in it. The stream is hostile. */
export async function receivePack(
  directory: string,
  pack: NodeJS.ReadableStream,
  maxBytes: number,
  timeoutMs: number,
  maxObjects = 2 ** 31,
): Promise<void> {
  const packs = join(directory, 'objects/pack');
  const before = new Set(readdirSync(packs));
  const index = ['git', '--git-dir', directory, 'index-pack', '--strict', '--stdin', `--max-input-size=${maxBytes}`];
  const child = withStreams(
    spawn('prlimit', [`--data=${MEMORY_BYTES}`, '--', ...index], {
      cwd: '/',
      env: ISOLATED_ENV,
      stdio: ['pipe', 'ignore', 'pipe'],
    }),
  );
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString('utf8')).slice(-4096)));
  child.stdin.on('error', () => undefined);
  let tooMany = false;
  watchCount(pack, maxObjects, () => {
    tooMany = true;
    child.kill('SIGKILL');
  });
  pack.pipe(child.stdin);
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  const code = await new Promise<number | null>((resolve) =>
    child.on('close', resolve).on('error', () => resolve(127)),
  );
  clearTimeout(timer);
  if (code === 0) return;
  // Some checks fail only after the pack is in place.
  for (const name of readdirSync(packs)) if (!before.has(name)) rmSync(join(packs, name), { force: true });
  throw new AgsError(
    'capture.refused',
    `What came out of the sandbox was refused: ${
      tooMany
        ? `it has more than ${maxObjects} objects`
        : (stderr
            .trim()
            .split('\n')
            .findLast((line) => line.startsWith('fatal') || line.startsWith('error')) ?? 'it is not a sound pack')
    }.`,
    { hint: 'Nothing was taken. The files are still in the task; look at them with: ags list' },
  );
}

/** Reads the number of objects from the first twelve bytes of the pack. */
function watchCount(pack: NodeJS.ReadableStream, most: number, onMore: () => void): void {
  let head = Buffer.alloc(0);
  const look = (chunk: Buffer): void => {
    head = Buffer.concat([head, chunk.subarray(0, 12)]);
    if (head.length < 12) return;
    pack.off('data', look);
    if (head.readUInt32BE(8) > most) onMore();
  };
  pack.on('data', look);
}

/** Without `paths`, lists the whole tree. */
export async function listTree(directory: string, tree: string, paths: readonly string[] = []): Promise<TreeEntry[]> {
  const args = ['--literal-pathspecs', 'ls-tree', '-r', '-z', '-l', '--full-tree', tree, '--', ...paths];
  const listing = await must(directory, args);
  return listing
    .toString('utf8')
    .split('\0')
    .filter((row) => row !== '')
    .map((row) => {
      const tab = row.indexOf('\t');
      const [mode = '', , oid = '', size = '0'] = row.slice(0, tab).split(/ +/);
      return { mode, oid, bytes: Number(size), path: row.slice(tab + 1) };
    });
}

export interface RawChange {
  readonly status: 'A' | 'M' | 'D' | 'R' | 'T';
  readonly path: string;
  readonly from: string | null;
}

/** Compares trees with our own settings; the agent's attributes have no effect. */
export async function diffTrees(
  directory: string,
  base: string,
  head: string,
  options: { renames: boolean } = { renames: true },
): Promise<RawChange[]> {
  const raw = await must(directory, [
    'diff-tree',
    '-r',
    '-z',
    ...(options.renames ? ['-M', '-l5000'] : ['--no-renames']),
    '--name-status',
    '--no-ext-diff',
    '--no-textconv',
    base,
    head,
  ]);
  const words = raw.toString('utf8').split('\0');
  const changes: RawChange[] = [];
  for (let i = 0; i + 1 < words.length;) {
    const status = (words[i] ?? '').slice(0, 1) as RawChange['status'];
    if (status === 'R') {
      changes.push({ status, from: words[i + 1] ?? '', path: words[i + 2] ?? '' });
      i += 3;
    } else {
      changes.push({ status, from: null, path: words[i + 1] ?? '' });
      i += 2;
    }
  }
  return changes;
}

/** A unified diff of two blobs. null stands for "no file". Never coloured, always as text. */
export async function diffBlobs(directory: string, before: string | null, after: string | null): Promise<string> {
  return (await diffBytes(directory, before, after)).toString('utf8');
}

/** The same diff as bytes, from the first hunk on. */
export async function diffBytes(
  directory: string,
  before: string | null,
  after: string | null,
  options: { hideSpace?: boolean } = {},
): Promise<Buffer> {
  const empty = before === null || after === null ? await storeBlob(directory, Buffer.alloc(0)) : '';
  const text = await must(directory, [
    'diff',
    '--no-color',
    '--no-ext-diff',
    '--no-textconv',
    '--text',
    '--full-index',
    ...(options.hideSpace === true ? ['--ignore-all-space', '--ignore-blank-lines'] : []),
    before ?? empty,
    after ?? empty,
  ]);
  const start = text.indexOf('\n@@ ');
  return start < 0 ? Buffer.alloc(0) : text.subarray(start + 1);
}

/** Counts added and removed lines for each pair of blobs; null if they are not text. */
export async function countPairs(
  directory: string,
  pairs: readonly { readonly before: string | null; readonly after: string | null }[],
): Promise<({ added: number; removed: number } | null)[]> {
  const tree = (side: 'before' | 'after'): Promise<string> =>
    writeTree(
      directory,
      pairs.flatMap((pair, n) => {
        const oid = pair[side];
        return oid === null ? [] : [{ path: String(n), mode: '100644', oid }];
      }),
    );
  const [before, after] = [await tree('before'), await tree('after')];
  const args = ['diff-tree', '-r', '-z', '--numstat', '--no-renames', '--no-ext-diff', '--no-textconv', before, after];
  const counts = new Map(
    (await must(directory, args))
      .toString('latin1')
      .split('\0')
      .map((row) => row.split('\t'))
      .map(([added = '', removed = '', path = '']) => [path, { added, removed }]),
  );
  return pairs.map((_, n) => {
    const count = counts.get(String(n));
    if (count === undefined) return { added: 0, removed: 0 };
    return count.added === '-' ? null : { added: Number(count.added), removed: Number(count.removed) };
  });
}

export async function storeBlob(directory: string, bytes: Buffer): Promise<string> {
  return (await must(directory, ['hash-object', '-w', '--stdin'], bytes)).toString('utf8').trim();
}

/** The contents of many blobs; those above `maxBytes` come back as null. */
export async function readBlobs(
  directory: string,
  oids: readonly string[],
  maxBytes: number,
): Promise<Map<string, Buffer | null>> {
  const wanted = [...new Set(oids)];
  const found = new Map<string, Buffer | null>();
  if (wanted.length === 0) return found;
  const sizes = (
    await must(
      directory,
      ['cat-file', '--batch-check=%(objectname) %(objectsize)'],
      Buffer.from(`${wanted.join('\n')}\n`),
    )
  )
    .toString('latin1')
    .trim()
    .split('\n')
    .map((row) => row.split(' '));
  const small = sizes.filter(([, size]) => Number(size) <= maxBytes).map(([oid = '']) => oid);
  for (const [oid = ''] of sizes) found.set(oid, null);
  if (small.length === 0) return found;
  const batch = await must(directory, ['cat-file', '--batch'], Buffer.from(`${small.join('\n')}\n`));
  for (let at = 0; at < batch.length;) {
    const end = batch.indexOf(10, at);
    const [oid = '', , size = '0'] = batch.subarray(at, end).toString('latin1').split(' ');
    found.set(oid, batch.subarray(end + 1, end + 1 + Number(size)));
    at = end + 2 + Number(size);
  }
  return found;
}

/** A tree of exactly these files, over those of `on` if given; `mode` null removes one. Returns its id. */
export async function writeTree(
  directory: string,
  entries: readonly (Pick<TreeEntry, 'path' | 'oid'> & { readonly mode: string | null })[],
  on?: string,
): Promise<string> {
  // A random name, because one process may write two trees at once.
  const index = join(directory, `index-${process.pid}-${Math.random().toString(36).slice(2)}`);
  const env = { GIT_INDEX_FILE: index };
  const lines = entries.map(({ mode, oid, path }) => `${mode ?? '0'} ${oid}\t${path}\0`).join('');
  try {
    rmSync(index, { force: true });
    if (on !== undefined) await must(directory, ['read-tree', on], undefined, env);
    await must(directory, ['update-index', '-z', '--index-info'], Buffer.from(lines), env);
    return (await must(directory, ['write-tree'], undefined, env)).toString('latin1').trim();
  } finally {
    rmSync(index, { force: true });
  }
}

export async function treeOf(directory: string, commit: string): Promise<string> {
  const tree = await must(directory, ['rev-parse', '--verify', '--end-of-options', `${commit}^{tree}`]);
  return tree.toString('latin1').trim();
}

/** Directories of these deleted files that `tree` does not have, innermost first. */
export async function goneDirectories(directory: string, tree: string, deleted: readonly string[]): Promise<string[]> {
  if (deleted.length === 0) return [];
  const listing = await must(directory, ['ls-tree', '-r', '-d', '-z', '--name-only', '--full-tree', tree]);
  const there = new Set(listing.toString('utf8').split('\0'));
  const above = deleted.flatMap((path) => {
    const names = path.split('/');
    return names.slice(1).map((_, i) => names.slice(0, i + 1).join('/'));
  });
  return [...new Set(above)]
    .filter((dir) => !there.has(dir))
    .toSorted((a, b) => b.split('/').length - a.split('/').length);
}

export async function countLines(
  directory: string,
  base: string,
  tree: string,
): Promise<{ added: number; removed: number }> {
  const args = ['diff-tree', '-r', '-z', '--numstat', '--no-renames', '--no-ext-diff', '--no-textconv', base, tree];
  const rows = (await must(directory, args)).toString('latin1').split('\0');
  const sum = (column: number): number =>
    rows.reduce((total, row) => total + (Number.parseInt(row.split('\t')[column] ?? '', 10) || 0), 0);
  return { added: sum(0), removed: sum(1) };
}

export async function isBlob(directory: string, oid: string): Promise<boolean> {
  return (await typeOf(directory, oid)) === 'blob';
}

export async function isTree(directory: string, oid: string): Promise<boolean> {
  return (await typeOf(directory, oid)) === 'tree';
}

async function typeOf(directory: string, oid: string): Promise<string> {
  const check = ['cat-file', '--batch-check=%(objecttype)'];
  return (await must(directory, check, Buffer.from(`${oid}\n`))).toString('latin1').trim();
}

export async function readBlob(directory: string, oid: string): Promise<Buffer> {
  return must(directory, ['cat-file', 'blob', oid]);
}

async function must(
  directory: string,
  args: readonly string[],
  input?: Buffer,
  env: Readonly<Record<string, string>> = {},
): Promise<Buffer> {
  const done = await stagingGit(directory, args, {
    maxBytes: 4 * 1024 ** 3,
    env,
    ...(input === undefined ? {} : { input }),
  });
  if (done.exitCode !== 0) throw new Error(`git ${args[0]} failed in ${directory}: ${done.stderr.trim()}`);
  return done.stdout;
}
