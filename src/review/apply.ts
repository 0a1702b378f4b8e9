// review/apply.ts: writes one accepted change into the user's tree.
// Invariant: nothing is written through a symbolic link, outside the project or into .git. A file that differs from the
// caller's expectation is left alone. A refusal leaves the tree unchanged. A file appears complete under its name or not at all.
import { randomBytes } from 'node:crypto';
import { closeSync, fsync } from 'node:fs';
import { promisify } from 'node:util';
import type { NewFile, Owner } from '../lib/descend.ts';
import { errorCode } from '../lib/error-code.ts';
import { giveOwner, keepOwner, openRoute, stateOf, type HostState, type Route } from './host.ts';
import { inspectName } from './names.ts';

export { hostState, type HostState } from './host.ts';

export type ApplyOp =
  | {
      readonly kind: 'write';
      readonly path: string;
      readonly mode: '100644' | '100755';
      /** The bytes, or a function that loads them when needed, so that a review never holds all files in memory. */
      readonly bytes: Buffer | (() => Promise<Buffer>);
    }
  | { readonly kind: 'symlink'; readonly path: string; readonly target: string }
  /** `prune`: directories that the sandbox removed. Only these are removed when this deletion leaves them empty. */
  | { readonly kind: 'delete'; readonly path: string; readonly prune?: readonly string[] };

export type ApplyOutcome = 'applied' | { readonly refused: string } | { readonly changed: string };

export interface ApplyInput {
  readonly project: string;
  readonly op: ApplyOp;
  /** The file's state when the change was shown; null if there was none. */
  readonly expect: HostState | null;
  /** Chosen in advance, so that a journal can clean up after a crash. */
  readonly temporary?: string;
  /** Permission bits for a restored file; without this they follow the replaced file or the umask. */
  readonly exactMode?: number;
  /** True if writeAhead has already written `temporary`. */
  readonly written?: boolean;
}

/**
 * Writes the temporary files of several changes and syncs them together, which takes little longer than syncing one.
 * Skips changes that need a new directory or loaded bytes: those are written in their turn. Returns the written ones.
 */
export async function writeAhead(
  project: string,
  changes: readonly { readonly op: ApplyOp; readonly expect: HostState | null; readonly temporary: string }[],
): Promise<ReadonlySet<string>> {
  const written = new Set<string>();
  const syncs: Promise<void>[] = [];
  for (const { op, expect, temporary } of changes) {
    if (op.kind !== 'write' || !Buffer.isBuffer(op.bytes) || inspectName(op.path).refuse !== null) continue;
    const input = { project, op: { ...op, bytes: op.bytes }, expect };
    const route = openRoute(project, op.path);
    try {
      if (route.blocked !== null || route.missing.length > 0 || whyNot(input, currentState(route)) !== null) continue;
      const { bytes, mode, more } = describeFile(undefined, input.op, route);
      const file = route.parent.writeOpen(temporary, bytes, mode, more);
      written.add(temporary);
      const drop = (): void => {
        written.delete(temporary);
        using again = openRoute(project, op.path);
        again.parent.unlink(temporary);
      };
      syncs.push(sync(file).catch(drop));
    } catch (error) {
      // The change reports the error in its turn.
      if (errorCode(error) === undefined) throw error;
    } finally {
      route[Symbol.dispose]();
    }
  }
  await Promise.all(syncs);
  return written;
}

const fsyncFile = promisify(fsync);

async function sync(file: number): Promise<void> {
  try {
    await fsyncFile(file);
  } finally {
    closeSync(file);
  }
}

export async function applyChange(given: ApplyInput): Promise<ApplyOutcome> {
  const input = { ...given, op: await withBytes(given.op) };
  const refuse = inspectName(input.op.path).refuse ?? whyTargetRefused(input.op);
  if (refuse !== null) return { refused: refuse };
  try {
    using route = openRoute(input.project, input.op.path);
    if (route.blocked !== null) return { refused: route.blocked };
    const problem = whyNot(input, currentState(route));
    if (problem) return problem;
    return input.op.kind === 'delete' ? remove(route, input.op.prune ?? []) : put(input, route);
  } catch (error) {
    const code = errorCode(error);
    if (code === undefined) throw error;
    return { refused: SENTENCES[code] ?? `It could not be written (${code}).` };
  }
}

type LoadedOp =
  | Exclude<ApplyOp, { kind: 'write' }>
  | (Extract<ApplyOp, { kind: 'write' }> & { readonly bytes: Buffer });

type LoadedInput = ApplyInput & { readonly op: LoadedOp };

export async function withBytes(op: ApplyOp): Promise<LoadedOp> {
  if (op.kind !== 'write') return op;
  return { ...op, bytes: Buffer.isBuffer(op.bytes) ? op.bytes : await op.bytes() };
}

export function temporaryName(): string {
  return `.ags-tmp-${randomBytes(8).toString('hex')}`;
}

export const TEMPORARY = /^\.ags-tmp-[0-9a-f]{16}$/;

const SENTENCES: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full.',
  EDQUOT: 'The disk quota is used up.',
  EROFS: 'The file system is read-only.',
  EACCES: 'Permission is denied in this directory.',
  EPERM: 'Permission is denied in this directory.',
  EFBIG: 'The file is larger than this process may write.',
  ENAMETOOLONG: 'The file system does not take a name this long.',
  ELOOP: 'A directory on the way was replaced by a symbolic link.',
  ENOTDIR: 'A directory on the way was replaced by a link or a file.',
  ENOENT: 'A directory on the way was removed meanwhile.',
  ENOTEMPTY: 'It is a directory on your side, with files that are not part of this change.',
  EBUSY: 'It is in use as a mount point.',
};

// Checks the file on the host twice: before anything is written, and again just before it is replaced.
function whyNot(input: LoadedInput, now: HostState | null): Exclude<ApplyOutcome, 'applied'> | null {
  const changed = whatChanged(input.expect, now);
  if (changed !== null) return { changed };
  if (now?.type === 'other') return { refused: 'It is a device, a pipe or a socket on your side.' };
  if (now?.type === 'directory' && input.op.kind === 'delete') return { refused: 'It is a directory on your side.' };
  return null;
}

const THING = {
  file: 'a file',
  symlink: 'a symbolic link',
  directory: 'a directory',
  other: 'a device, pipe or socket',
} as const;

function currentState(route: Route): HostState | null {
  return route.missing.length > 0 ? null : stateOf(route.parent.lstat(route.name));
}

function whatChanged(expect: HostState | null, now: HostState | null): string | null {
  if (expect === null) return now === null ? null : `${THING[now.type]} was created on your side`;
  // Earlier deletions have emptied, and perhaps removed, a directory that becomes a file.
  if (expect.type === 'directory' && (now === null || (now.ino === expect.ino && now.dev === expect.dev))) return null;
  if (now === null) return 'it was deleted on your side';
  if (now.type !== expect.type) return `it became ${THING[now.type]} on your side`;
  const keys = ['mode', 'size', 'mtimeNs', 'ctimeNs', 'ino', 'dev'] as const;
  return keys.every((key) => now[key] === expect[key]) ? null : 'it was changed on your side';
}

function remove(route: Route, prune: readonly string[]): ApplyOutcome {
  if (currentState(route) === null) return 'applied';
  route.parent.unlink(route.name);
  route.prune((path) => prune.includes(path));
  return 'applied';
}

function put(input: LoadedInput, route: Route): ApplyOutcome {
  const temporary = input.temporary ?? temporaryName();
  if (!TEMPORARY.test(temporary)) throw new Error(`not a temporary name: ${temporary}`);
  let outcome: ApplyOutcome | null = null;
  try {
    route.make();
    if (input.written !== true) writeTemporary(input, route, temporary);
    const now = currentState(route);
    outcome = whyNot(input, now) ?? replace(route, temporary, now);
  } finally {
    if (outcome !== 'applied') {
      if (route.parent.lstat(temporary)) route.parent.unlink(temporary);
      route.unmake();
    }
  }
  return outcome;
}

function writeTemporary(input: LoadedInput, route: Route, temporary: string): void {
  const { op } = input;
  if (op.kind === 'symlink') route.parent.symlinkNew(temporary, op.target, ownerOf(route));
  if (op.kind !== 'write') return;
  const { bytes, mode, more } = describeFile(input.exactMode, op, route);
  route.parent.writeNew(temporary, bytes, mode, more);
}

function describeFile(
  exactMode: number | undefined,
  { bytes, mode }: Extract<LoadedOp, { kind: 'write' }>,
  route: Route,
): { bytes: Buffer; mode: number; more: NewFile } {
  const existing = route.parent.lstat(route.name);
  const owner = ownerOf(route, existing);
  const executable = mode === '100755';
  const chmod = exactMode ?? (existing?.isFile() ? keptMode(Number(existing.mode), executable) : undefined);
  const chown = owner ? { chown: owner } : {};
  // The file may be private, so only its owner can read it until it has its final mode.
  if (chmod !== undefined) return { bytes, mode: 0o600, more: { ...chown, chmod: chmod & 0o777 } };
  return { bytes, mode: executable ? 0o755 : 0o644, more: chown };
}

function ownerOf({ parent, name }: Route, existing = parent.lstat(name)): Owner | undefined {
  return existing ? keepOwner(existing) : giveOwner(parent.stat());
}

// As with git and the umask, read permission implies execute permission.
function keptMode(mode: number, executable: boolean): number {
  return executable ? mode | ((mode & 0o444) >> 2) : mode & ~0o111;
}

function replace({ parent, name }: Route, temporary: string, now: HostState | null): ApplyOutcome {
  if (now && now.type !== 'directory') {
    parent.rename(temporary, name);
    return 'applied';
  }
  // rmdir removes only an empty directory, so no file is lost that the user never saw in the list.
  if (now) parent.rmdir(name);
  try {
    // link() never replaces a file, so a file that appears at the same time stays.
    parent.link(temporary, name);
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return { changed: 'a file was created on your side' };
    if (!['EPERM', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(errorCode(error) ?? '')) throw error;
    // FAT and similar file systems have no links.
    parent.rename(temporary, name);
    return 'applied';
  }
  parent.unlink(temporary);
  return 'applied';
}

function whyTargetRefused(op: ApplyOp): string | null {
  if (op.kind !== 'symlink') return null;
  if (op.target === '' || op.target.includes('\0')) return 'The link has no usable target.';
  return Buffer.byteLength(op.target) > 4095 ? 'The target of the link is longer than 4095 bytes.' : null;
}
