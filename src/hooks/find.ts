// hooks/find.ts: finds the hook files of a directory: `<point>` and `<point>.d/*`, in the order in which they run.
// Invariant: the returned bytes are the inspected ones, read once and through no link. A file that looks like a hook but cannot
// be one is an error, because a silently ignored hook would be worse than none.
import { createHash } from 'node:crypto';
import { realpathSync, type BigIntStats } from 'node:fs';
import { AgsError } from '../protocol/errors.ts';
import { HOOK_POINTS, type HookPoint } from '../protocol/hook.ts';
import { openDirectory, type Directory } from '../lib/descend.ts';
import { visible } from '../lib/sanitize.ts';

export interface HookFile {
  /** Its path in messages: ".ags/hooks/pre-bash", "~/.config/ags/hooks/pre-any.d/10-mine". */
  readonly path: string;
  readonly point: HookPoint;
  readonly bytes: Buffer;
  readonly sha256: string;
}

export const PROJECT_HOOKS = '.ags/hooks';

/** The hooks of the project's checkout. */
export function findProjectHooks(projectDir: string): HookFile[] {
  using root = openDirectory(realpathSync(projectDir));
  using ags = childDirectory(root, '.ags', '.ags');
  using hooks = ags && childDirectory(ags, 'hooks', PROJECT_HOOKS);
  return hooks === null ? [] : listHooks(hooks, PROJECT_HOOKS, () => null);
}

/** The user's own hooks. They need no approval, but no other user may be able to write them. */
export function findUserHooks(directory: string, label: string, uid: number): HookFile[] {
  using hooks = tryOpen(directory);
  const foreign = (stat: BigIntStats): string | null =>
    stat.uid === BigInt(uid) || stat.uid === 0n ? null : 'belongs to another user';
  return hooks === null ? [] : listHooks(hooks, label, foreign);
}

const MAX_BYTES = 4 * 1024 * 1024;
const MAX_FILES = 64;

type Check = (stat: BigIntStats) => string | null;

function listHooks(directory: Directory, label: string, check: Check): HookFile[] {
  refuseUnsafe(directory.stat(), label, check);
  const names = namesOf(directory, label);
  const strange = names.find(
    (name) => /^(pre|post)-/.test(name) && !HOOK_POINTS.some((p) => name === p || name === `${p}.d`),
  );
  if (strange !== undefined)
    throw wrong(`${label}/${strange}`, `is not the name of a hook; known names: ${HOOK_POINTS.join(', ')}`);
  return HOOK_POINTS.flatMap((point) => [
    ...(names.includes(point) ? [readHook(directory, point, point, `${label}/${point}`, check)] : []),
    ...(names.includes(`${point}.d`) ? listMore(directory, point, `${label}/${point}.d`, check) : []),
  ]);
}

function listMore(parent: Directory, point: HookPoint, label: string, check: Check): HookFile[] {
  using directory = childDirectory(parent, `${point}.d`, label);
  if (directory === null) return [];
  refuseUnsafe(directory.stat(), label, check);
  return namesOf(directory, label)
    .filter((name) => !name.startsWith('.') && !name.startsWith('README'))
    .map((name) => readHook(directory, name, point, `${label}/${name}`, check));
}

function namesOf(directory: Directory, label: string): string[] {
  const names = directory.list(MAX_FILES + 1).map(({ name }) => name.toString('utf8'));
  if (names.length > MAX_FILES) throw wrong(label, `has more than ${MAX_FILES} files`);
  // By code units: the same order for every language of the user.
  return names.toSorted((a, b) => (a < b ? -1 : 1));
}

function readHook(directory: Directory, name: string, point: HookPoint, path: string, check: Check): HookFile {
  const stat = directory.lstat(name);
  if (stat === null) throw wrong(path, 'has a name that is not readable text, or was just removed');
  if (stat.isSymbolicLink())
    throw wrong(path, 'is a symbolic link', 'Put the file itself there: the target of a link can change unnoticed.');
  if (!stat.isFile()) throw wrong(path, 'is not a regular file');
  refuseUnsafe(stat, path, check);
  if ((stat.mode & 0o111n) === 0n) throw wrong(path, 'is not executable', `If it is a hook: chmod +x ${path}`);
  const bytes = readBytes(directory, name, path);
  if (bytes.length === 0) throw wrong(path, 'is empty');
  return { path, point, bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}

function readBytes(directory: Directory, name: string, path: string): Buffer {
  try {
    return directory.readFile(name, MAX_BYTES);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EFBIG') throw wrong(path, 'has more than 4 MB');
    throw wrong(path, code === 'EACCES' ? 'is not readable by you' : `cannot be read (${code})`);
  }
}

function refuseUnsafe(stat: BigIntStats, path: string, check: Check): void {
  if ((stat.mode & 0o002n) !== 0n && !stat.isSymbolicLink())
    throw wrong(path, 'can be written by every user of this machine', `Remove that permission: chmod o-w ${path}`);
  const problem = check(stat);
  if (problem !== null) throw wrong(path, problem);
}

function childDirectory(parent: Directory, name: string, label: string): Directory | null {
  const stat = parent.lstat(name);
  if (stat === null) return null;
  if (!stat.isDirectory()) throw wrong(label, stat.isSymbolicLink() ? 'is a symbolic link' : 'is not a directory');
  return parent.child(name);
}

function tryOpen(path: string): Directory | null {
  try {
    return openDirectory(realpathSync(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw wrong(path, `cannot be opened (${(error as NodeJS.ErrnoException).code})`);
  }
}

function wrong(path: string, problem: string, hint?: string): AgsError {
  return new AgsError('config.invalid', `${visible(path)} ${problem}.`, { hint: hint && visible(hint) });
}
