// git/staging/host-tree.ts: writes files of the host as a tree in staging, to compare with the files of a sandbox.
// Invariant: files of any size are written in pieces, so memory never holds more than a few megabytes.
import { spawn } from 'node:child_process';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { errorCode } from '../../lib/error-code.ts';
import { withStreams } from '../../lib/process/process.ts';
import { ISOLATED_ENV, stagingGit, killedGit } from '../host-git.ts';

export interface HostFile {
  readonly path: string;
  readonly mode: '100644' | '100755' | '120000';
  /** The id of an object in staging, or bytes still to be read. */
  readonly content: string | { readonly bytes: number; readonly chunks: Iterable<Buffer> };
}

/** Reads each file to its end before it takes the next. Returns the id of the tree. */
export async function writeHostTree(staging: string, files: Iterable<HostFile>): Promise<string> {
  // Little compression and no deltas: the objects are read a few times and removed with the task.
  const haste = ['-c', 'pack.compression=1', '--git-dir', staging, 'fast-import', '--depth=0'];
  const args = [...haste, '--quiet', '--force', '--done'];
  const child = withStreams(spawn('git', args, { cwd: '/', env: ISOLATED_ENV, stdio: ['pipe', 'ignore', 'pipe'] }));
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString('utf8')).slice(-4096)));
  // null means that a signal ended it.
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve).on('error', () => resolve(127)));
  const problem = await pipeline(Readable.from(gather(commands(files)), { objectMode: true }), child.stdin).then(
    () => null,
    (error: unknown) => error,
  );
  const code = await ended;
  if (code === null) throw killedGit();
  // If git ended early, its own error says more than EPIPE.
  if (problem !== null && (code === 0 || errorCode(problem) !== 'EPIPE')) throw problem;
  const tree = await stagingGit(staging, ['rev-parse', '--verify', `${REF}^{tree}`]);
  if (code !== 0 || tree.exitCode !== 0)
    throw new Error(`git fast-import failed in ${staging}: ${stderr.trim() || tree.stderr.trim()}`);
  return tree.stdout.toString('utf8').trim();
}

const REF = 'refs/ags/compare';

function* commands(files: Iterable<HostFile>): Generator<Buffer> {
  yield Buffer.from(`reset ${REF}\n\ncommit ${REF}\ncommitter ags <ags@localhost> 0 +0000\ndata 0\ndeleteall\n`);
  for (const { path, mode, content } of files) {
    if (typeof content === 'string') {
      yield Buffer.from(`M ${mode} ${content} ${quotePath(path)}\n`);
      continue;
    }
    yield Buffer.from(`M ${mode} inline ${quotePath(path)}\ndata ${content.bytes}\n`);
    yield* exactly(content.bytes, content.chunks);
    yield Buffer.from('\n');
  }
  yield Buffer.from('done\n');
}

// A file that the user changes during the read no longer has the announced length. Its content then does not matter: it is
// no longer the file that was compared, and nothing will be written over it.
function* exactly(bytes: number, chunks: Iterable<Buffer>): Generator<Buffer> {
  let left = bytes;
  for (const chunk of chunks) {
    if (left === 0) break;
    const part = chunk.subarray(0, left);
    left -= part.length;
    yield part;
  }
  for (; left > 0; left -= Math.min(left, PIECE)) yield Buffer.alloc(Math.min(left, PIECE));
}

const PIECE = 1024 * 1024;

/** Joins many small pieces into a few large ones. */
function* gather(pieces: Iterable<Buffer>): Generator<Buffer> {
  let some: Buffer[] = [];
  let bytes = 0;
  for (const piece of pieces) {
    some.push(piece);
    bytes += piece.length;
    if (bytes < PIECE) continue;
    yield Buffer.concat(some);
    some = [];
    bytes = 0;
  }
  yield Buffer.concat(some);
}

// fast-import accepts C-style quoting, so no name can end the line or begin another command.
function quotePath(path: string): string {
  return `"${path.replaceAll(/["\\]/g, (c) => `\\${c}`).replaceAll('\n', '\\n')}"`;
}
