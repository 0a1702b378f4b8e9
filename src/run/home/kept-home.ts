// run/home/kept-home.ts: homes that stay between tasks (`home:`): where they are, who uses one, and their removal.
// Invariants: agents wrote what stands in a home. The host mounts it and removes it, and reads, follows and runs nothing in it.
// One run at a time has it: ags makes mount points in a home, which is safe only while no program inside can change it.
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import type { HomeChoice } from '../../config/effective.ts';
import { giveTree, removeTree, replaceFile } from '../../lib/files.ts';
import { lockHolder, tryLock } from '../../lib/process/lock.ts';
import { slug } from '../../store/tasks.ts';
import type { HostContext } from '../host-context.ts';
import type { RunPlan } from '../run-plan.ts';

type Context = Pick<HostContext, 'dataDir' | 'uid' | 'now'>;

/** The home of a project; null: each task has its own. */
export function keptHomeOf({ dataDir }: Pick<Context, 'dataDir'>, home: HomeChoice, project: string): string | null {
  if (home.keep === 'task') return null;
  // Two projects must never share a home by accident, so this is a cryptographic hash.
  const own = `${slug(basename(project), 24)}-${hashOf(project).slice(0, 16)}`;
  return home.keep === 'directory' ? join(home.path, home.shared ? 'shared' : own) : join(homesDir(dataDir), own);
}

export interface HeldHome extends Disposable {
  readonly directory: string;
  /** Notes who uses it. */
  usedBy(task: string): void;
}

/** Creates the home if it is new. `busy`: another run has it. */
export function holdHome(
  context: Context,
  plan: Pick<RunPlan, 'config' | 'project' | 'user'>,
): HeldHome | { readonly busy: string } | null {
  const project = plan.project.root;
  const directory = keptHomeOf(context, plan.config.home, project);
  if (directory === null) return null;
  const files = filesOf(context, directory);
  mkdirSync(homesDir(context.dataDir), { recursive: true, mode: 0o700 });
  const lock = tryLock(files.lock);
  if (lock === null) return { busy: readRecord(files.record)?.task ?? 'another task' };
  try {
    create(context, directory, plan.user);
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
  return {
    directory,
    usedBy: (task) => writeRecord(files.record, { directory, project, task, usedAtMs: context.now().getTime() }),
    [Symbol.dispose]: () => lock[Symbol.dispose](),
  };
}

export interface KnownHome {
  readonly directory: string;
  /** The last project and task that used it. */
  readonly project: string;
  readonly task: string;
  readonly usedAtMs: number;
  readonly inUse: boolean;
}

/** All homes that are there, the last used first. */
export function listHomes(context: Pick<Context, 'dataDir'>): KnownHome[] {
  return namesIn(homesDir(context.dataDir))
    .filter((name) => name.endsWith('.json'))
    .flatMap((name) => readRecord(join(homesDir(context.dataDir), name)) ?? [])
    .filter(({ directory }) => lstatSync(directory, { throwIfNoEntry: false }) !== undefined)
    .map((record) => ({ ...record, inUse: lockHolder(filesOf(context, record.directory).lock) !== null }))
    .toSorted((a, b) => b.usedAtMs - a.usedAtMs);
}

/** The homes that a project used last, and the one that it would use now. */
export function homesOf(context: Pick<Context, 'dataDir'>, project: string, now: string | null): KnownHome[] {
  const known = listHomes(context).filter((home) => home.project === project || home.directory === now);
  if (now === null || known.some(({ directory }) => directory === now)) return known;
  if (lstatSync(now, { throwIfNoEntry: false }) === undefined) return known;
  const inUse = lockHolder(filesOf(context, now).lock) !== null;
  return [...known, { directory: now, project, task: '', usedAtMs: 0, inUse }];
}

/** Removes everything in a home. False: there is none. */
export function resetHome(context: Pick<Context, 'dataDir'>, directory: string): boolean {
  if (lstatSync(directory, { throwIfNoEntry: false }) === undefined) return false;
  const files = filesOf(context, directory);
  using lock = tryLock(files.lock);
  if (lock === null) {
    const task = readRecord(files.record)?.task;
    throw new AgsError('task.busy', `${task ?? 'A task'} is running in this home.`, {
      hint: task === undefined ? 'Wait until it has ended.' : `Wait until it has ended, or stop it: ags stop ${task}`,
    });
  }
  removeTree(directory);
  rmSync(files.record, { force: true });
  return true;
}

function homesDir(dataDir: string): string {
  return join(dataDir, 'homes');
}

/** Beside the homes of ags and never in one, so no agent can write them. */
function filesOf({ dataDir }: Pick<Context, 'dataDir'>, directory: string): { lock: string; record: string } {
  const name = join(homesDir(dataDir), hashOf(directory).slice(0, 24));
  return { lock: `${name}.lock`, record: `${name}.json` };
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Every directory on the way to one that the user named must be real: the configuration was checked by its name. */
function create(context: Context, directory: string, user: RunPlan['user']): void {
  const parent = dirname(directory);
  const named = parent !== homesDir(context.dataDir);
  // Before anything is made behind a link, and again afterwards.
  if (named) refuseLinks(parent);
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  if (named) refuseLinks(parent);
  // Its owner could put a link in place of a home, and root would give away what it leads to.
  if (statSync(parent).uid !== context.uid)
    throw unusable(`${parent} belongs to another user.`, `Name a directory of your own.`);
  if (lstatSync(directory, { throwIfNoEntry: false }) === undefined) mkdirSync(directory, { mode: 0o755 });
  if ((statSync(parent).mode & 0o077) !== 0)
    // A program inside may set the setuid bit of a file there.
    throw unusable(`other users of this machine can enter ${parent}.`, `Close it to them: chmod 700 ${parent}`);
  const stat = lstatSync(directory);
  // New, or of the time before the ID of the sandbox's user became that of an account.
  if (context.uid === 0 && stat.isDirectory() && stat.uid !== user.uid) giveTree(directory, user);
  if (!stat.isDirectory() || lstatSync(directory).uid !== user.uid)
    throw unusable(
      `${directory} is ${stat.isDirectory() ? 'owned by another user' : 'not a directory'}.`,
      `Remove it: ags home reset`,
    );
}

/** The path, as far as it exists, must be the real one. */
function refuseLinks(path: string): void {
  let there = path;
  while (lstatSync(there, { throwIfNoEntry: false }) === undefined) there = dirname(there);
  const real = realpathSync(there);
  if (real !== there)
    throw unusable(
      `${path} leads to ${real} through a symbolic link.`,
      `Name that directory itself: home: ${real}${path.slice(there.length)}`,
    );
}

function unusable(what: string, hint: string): AgsError {
  return new AgsError('config.invalid', `The home cannot be kept there: ${what}`, { hint });
}

type HomeRecord = Omit<KnownHome, 'inUse'>;

function writeRecord(path: string, record: HomeRecord): void {
  replaceFile(path, `${JSON.stringify(record, null, 2)}\n`);
}

function readRecord(path: string): HomeRecord | null {
  try {
    const record = JSON.parse(readFileSync(path, 'utf8')) as HomeRecord;
    return typeof record.directory === 'string' && typeof record.task === 'string' ? record : null;
  } catch {
    // Never used, or half written when the machine stopped.
    return null;
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
