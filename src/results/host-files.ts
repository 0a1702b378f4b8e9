// results/host-files.ts: puts those of the user's files that a sandbox touched into staging, for comparison.
// Invariant: no file is in memory as a whole. A very large file is not copied either: it is compared by size and hash.
import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { openDirectory } from '../lib/descend.ts';
import { errorCode } from '../lib/error-code.ts';
import { writeHostTree, type HostFile } from '../git/staging/host-tree.ts';
import type { TreeEntry } from '../git/staging/staging.ts';
import { hostState, type HostState } from '../review/apply.ts';

export interface HostFiles {
  /** The tree in staging. A placeholder line stands for a file that is unreadable or too large. */
  readonly tree: string;
  readonly states: ReadonlyMap<string, HostState | null>;
  /** Why the tree lacks the bytes of a file, by path. */
  readonly unread: ReadonlyMap<string, string>;
}

export const TOO_LARGE = 'Your own file is too large to be compared line by line.';

// Far above the size of any file that is shown or merged.
const LARGE_BYTES = 16 * 1024 * 1024;

export async function stageHostFiles(input: {
  project: string;
  staging: string;
  objectFormat: 'sha1' | 'sha256';
  paths: Iterable<string>;
  /** Files that came out of the sandbox: a large one among them is not copied a second time. */
  captured: Iterable<TreeEntry>;
}): Promise<HostFiles> {
  const states = new Map<string, HostState | null>();
  const unread = new Map<string, string>();
  const large = new Map<number, Set<string>>();
  for (const { bytes, oid } of input.captured)
    if (bytes > LARGE_BYTES) large.set(bytes, (large.get(bytes) ?? new Set()).add(oid));
  const known = (file: number, bytes: number): string | undefined => {
    const ids = large.get(bytes);
    const id = ids === undefined ? undefined : blobId(file, bytes, input.objectFormat);
    return id !== undefined && ids?.has(id) === true ? id : undefined;
  };
  function* files(): Generator<HostFile> {
    for (const path of input.paths) {
      const found = hostState(input.project, path);
      states.set(path, found);
      if (found === null || (found.type !== 'file' && found.type !== 'symlink')) continue;
      const mode = found.type === 'symlink' ? '120000' : (found.mode & 0o100) === 0 ? '100644' : '100755';
      const instead = (why: string): HostFile => {
        unread.set(path, why);
        return { path, mode, content: whole(Buffer.from(`${why}\n`)) };
      };
      using opened = open(input.project, path, found.type);
      if ('problem' in opened) yield instead(`Your own file cannot be read (${opened.problem}).`);
      else if ('target' in opened) yield { path, mode, content: whole(opened.target) };
      else if (opened.bytes <= LARGE_BYTES)
        yield { path, mode, content: { bytes: opened.bytes, chunks: chunksOf(opened.file, opened.bytes) } };
      else {
        const id = known(opened.file, opened.bytes);
        yield id === undefined ? instead(TOO_LARGE) : { path, mode, content: id };
      }
    }
  }
  const tree = await writeHostTree(input.staging, files());
  return { tree, states, unread };
}

function whole(bytes: Buffer): HostFile['content'] {
  return { bytes: bytes.length, chunks: [bytes] };
}

type Opened = Disposable &
  ({ readonly target: Buffer } | { readonly file: number; readonly bytes: number } | { readonly problem: string });

function open(project: string, path: string, type: 'file' | 'symlink'): Opened {
  const nothing = { [Symbol.dispose]: () => undefined };
  try {
    // hostState walked down by descriptor and met no link; a link that appears now is the user's own.
    using parent = openDirectory(dirname(`${project}/${path}`));
    const name = basename(path);
    if (type === 'symlink') return { target: Buffer.from(parent.readlink(name)), ...nothing };
    // Opening a fifo must not wait for a writer.
    const file = openSync(parent.address(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = fstatSync(file);
    const close = { [Symbol.dispose]: () => closeSync(file) };
    return stats.isFile() ? { file, bytes: stats.size, ...close } : { problem: 'EINVAL', ...close };
  } catch (error) {
    const problem = errorCode(error);
    if (problem === undefined) throw error;
    return { problem, ...nothing };
  }
}

/** Reads to the end even if the file has grown meanwhile. */
function* chunksOf(file: number, bytes: number): Generator<Buffer> {
  for (let at = 0; ;) {
    // Each chunk needs its own memory: it is still being written when the next one is read.
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK, Math.max(bytes - at, 1)));
    const read = readSync(file, chunk, 0, chunk.length, at);
    if (read === 0) return;
    yield chunk.subarray(0, read);
    at += read;
  }
}

const CHUNK = 1024 * 1024;

function blobId(file: number, bytes: number, format: 'sha1' | 'sha256'): string {
  const hash = createHash(format).update(`blob ${bytes}\0`);
  for (const chunk of chunksOf(file, bytes)) hash.update(chunk);
  return hash.digest('hex');
}
