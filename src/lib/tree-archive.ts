// lib/tree-archive.ts: a directory as a tar archive of plain files and directories only.
// Invariant: a header is accepted only if it is, byte for byte, the one that TREE_TAR makes tar write for its name, kind and size. So
// there are no links, devices, owners, times, set-id bits or extensions, and every name leads below the directory.

import { BLOCK, headerBytes, headerText, tarHeader } from './tar-header.ts';

/** A script for `sh` that archives the current directory. It skips pipes and sockets, which are useless without their program. */
export const TREE_TAR = `find . \\( -type p -o -type s \\) -o -print0 > /tmp/names && exec tar --create --file=- --null --no-recursion \\
  --files-from=/tmp/names --format=ustar --hard-dereference --numeric-owner --owner=0 --group=0 --mtime=@0 --mode=a-st,u=rwX,go=`;

export interface TreeLimits {
  /** Total size of all files. */
  readonly bytes: number;
  readonly entries: number;
}

export interface TreeEntry {
  /** Path components, one byte per character; empty: the directory itself. */
  readonly path: readonly string[];
  readonly kind: 'file' | 'program' | 'directory';
  readonly bytes: number;
}

export interface TreeReader {
  push(chunk: Buffer): void;
  /** The input is complete. */
  end(): { readonly bytes: number; readonly entries: number };
}

/** A problem with an archive, as part of a sentence. */
export class TreeProblem extends Error {}

/** Reports entries as they arrive, each file's content before the next entry. Throws a TreeProblem. */
export function readTree(
  limits: TreeLimits,
  tell: { entry(entry: TreeEntry): void; content(bytes: Buffer): void },
): TreeReader {
  let waiting: Buffer = Buffer.alloc(0);
  /** Bytes left of a file's content, and of the padding of its last block. */
  let left = 0;
  let filling = 0;
  let zeros = 0;
  const found = { bytes: 0, entries: 0 };
  const header = (block: Buffer): void => {
    if (block.every((byte) => byte === 0)) {
      zeros += 1;
      if (zeros > MOST_ZEROS) throw new TreeProblem('it has data after its end');
      return;
    }
    if (zeros > 0) throw new TreeProblem('it has data after its end');
    const entry = entryOf(block);
    if (found.entries === 0 && entry.path.length > 0) throw new TreeProblem('it does not begin with the directory');
    found.entries += 1;
    found.bytes += entry.bytes;
    if (found.entries > limits.entries) throw new TreeProblem(`it has more than ${limits.entries} files`);
    if (found.bytes > limits.bytes) throw new TreeProblem(`it is larger than ${limits.bytes} bytes`);
    left = entry.bytes;
    filling = Math.ceil(left / BLOCK) * BLOCK - left;
    tell.entry(entry);
  };
  return {
    push(chunk) {
      let rest = waiting.length === 0 ? chunk : Buffer.concat([waiting, chunk]);
      while (rest.length > 0) {
        if (left > 0) {
          const content = rest.subarray(0, left);
          left -= content.length;
          rest = rest.subarray(content.length);
          tell.content(content);
        } else if (filling > 0) {
          const part = rest.subarray(0, filling);
          if (part.some((byte) => byte !== 0)) throw new TreeProblem('a file has hidden data after its end');
          filling -= part.length;
          rest = rest.subarray(part.length);
        } else if (rest.length >= BLOCK) {
          header(rest.subarray(0, BLOCK));
          rest = rest.subarray(BLOCK);
        } else break;
      }
      waiting = rest;
    },
    end() {
      if (left + filling + waiting.length > 0 || zeros < 2) throw new TreeProblem('it ends too early');
      return found;
    },
  };
}

/** tar pads to a multiple of twenty blocks; two of them are the end mark. */
const MOST_ZEROS = 22;
const MOST_DEPTH = 32;

function entryOf(block: Buffer): TreeEntry {
  const prefix = headerText(block, 345, 500);
  const name = headerText(block, 0, 100);
  const full = prefix === '' ? name : `${prefix}/${name}`;
  const bytes = headerBytes(block);
  const isDirectory = full.endsWith('/');
  const kind = isDirectory ? 'directory' : headerText(block, 100, 108) === '0000700' ? 'program' : 'file';
  if (headerText(block, 156, 157) === '2') throw new TreeProblem(`${full} is a link`);
  const expected = {
    name,
    prefix,
    bytes: isDirectory ? 0 : bytes,
    mode: kind === 'file' ? 0o600 : 0o700,
    kind: isDirectory ? 'directory' : 'file',
    devices: '0000000\x000000000\0',
  } as const;
  if (!Number.isSafeInteger(bytes) || !tarHeader(expected).equals(block))
    throw new TreeProblem('it contains an entry that is neither a file nor a directory');
  const path = full.replace(/\/$/, '').split('/');
  if (
    path.shift() !== '.' ||
    // Only the directory itself has no name.
    (path.length === 0 && !isDirectory) ||
    path.length > MOST_DEPTH ||
    path.some((part) => !isPlain(part))
  )
    throw new TreeProblem(`it contains an invalid name: ${full}`);
  return { path, kind, bytes };
}

function isPlain(part: string): boolean {
  // eslint-disable-next-line no-control-regex
  return part !== '' && part !== '.' && part !== '..' && part.length <= 255 && !/[\u0000-\u001f\u007f]/.test(part);
}
