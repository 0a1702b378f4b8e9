// results/capture.ts: takes the changes of a finished sandbox out of it, as git objects in our own staging repository.
// Invariant: the host reads only names and types, by descriptor. Programs in a throw-away sandbox read ignore rules,
// extended attributes and file contents, and contents come out only as a checked pack.
import { existsSync, lstatSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { Refusal } from '../protocol/changes.ts';
import { giveTree, removeTree, replaceFile } from '../lib/files.ts';
import { readableSize } from '../lib/units.ts';
import { CHECK_IGNORE, ignoredOnHost, ignoreInput, parseIgnored, READ_BY_GIT, trackedFiles } from '../git/ignored.ts';
import type { Repository } from '../git/repository.ts';
import { createStaging, receivePack, listTree } from '../git/staging/staging.ts';
import { inspectName } from '../review/names.ts';
import { opaqueProbe, parseOpaque } from '../review/opaque.ts';
import { listUpper, upperDirectories, UPPER_LIMITS, type UpperListing } from '../review/upper.ts';
import { INSIDE } from '../sandbox/spec/plan-inspection.ts';
import type { StoredTask } from '../store/tasks.ts';
import { listCopy } from './list-copy.ts';
import { openInspections, type Inspect } from '../run/inspection.ts';
import { repositoryAt } from '../run/project.ts';
import type { HostContext } from '../run/host-context.ts';

export interface Capture {
  readonly version: 1;
  /** The captured files, and no others, as a tree in staging. */
  readonly tree: string;
  readonly deleted: readonly string[];
  /** Directories that the sandbox removed, innermost first. */
  readonly removedDirs: readonly string[];
  readonly refused: readonly Refusal[];
  readonly ignored: {
    readonly written: readonly string[];
    readonly deleted: readonly string[];
    readonly bytes: number;
  };
  /** True if the tree also holds the ignored files. */
  readonly withIgnored: boolean;
  /** Set for an agent's task: its changes are compared with the commit it started from. */
  readonly agent?: AgentResult;
}

export interface AgentResult {
  readonly base: string;
  /** The commit on the task's branch, or the one that would be there if the repository could be written. */
  readonly commit: string;
  readonly tree: string;
  /** The commit that was on the branch before. */
  readonly earlier: string | null;
  /** Why the agent's own commits are not on the branch; null if they are, or if there were none. */
  readonly notKept: string | null;
  readonly by: { readonly name: string; readonly email: string };
}

const MAX_FILE = 2 * 1024 ** 3;
const MAX_TOTAL = 8 * 1024 ** 3;
const PACK_TIMEOUT_MS = 15 * 60_000;

/** Captures once; later calls return that capture. `withIgnored` also takes the git-ignored files out. */
export async function captureChanges(
  context: HostContext,
  task: StoredTask,
  options: { withIgnored: boolean },
): Promise<Capture> {
  const file = join(task.paths.root, 'capture.json');
  const earlier = readCapture(task);
  if (task.task.kind === 'agent') return earlier ?? nothingYet(task);
  if (earlier !== null && (earlier.withIgnored || !options.withIgnored)) return earlier;
  const outDir = join(task.paths.runDir, 'out');
  removeTree(outDir);
  // The two go together: the earlier capture lies in that repository.
  rmSync(file, { force: true });
  removeTree(task.paths.staging);
  let complete = false;
  try {
    const ask = await openInspections(context, task, outDir);
    const listing = await listChanges(task, ask);
    const named = refuseNames(listing);
    const pipes = findPipes(task, listing.refused);
    const ignored = task.task.git
      ? await findIgnored(context, task, ask, outDir, named.entries, pipes)
      : new Set<string>();
    const written = named.entries.filter((e) => e.kind === 'written');
    const wanted = written.filter((e) => options.withIgnored || !ignored.has(e.path));
    checkSizes(wanted);
    createStaging(task.paths.staging, task.run.objectFormat);
    const tree = await pack(
      task,
      ask,
      outDir,
      wanted.map((e) => e.path),
      pipes,
    );
    const left = await leftOut(task.paths.staging, tree, wanted);
    const capture: Capture = {
      version: 1,
      tree,
      deleted: named.entries
        .filter((e) => e.kind === 'deleted' && (options.withIgnored || !ignored.has(e.path)))
        .map((e) => e.path),
      removedDirs: listing.removed,
      refused: [...named.refused, ...left],
      ignored: {
        written: written.filter((e) => ignored.has(e.path)).map((e) => e.path),
        deleted: named.entries.filter((e) => e.kind === 'deleted' && ignored.has(e.path)).map((e) => e.path),
        bytes: written.filter((e) => ignored.has(e.path)).reduce((sum, e) => sum + e.bytes, 0),
      },
      withIgnored: options.withIgnored,
    };
    replaceFile(file, JSON.stringify(capture), { durable: true });
    complete = true;
    return capture;
  } finally {
    removeTree(outDir);
    // A pack that was refused midway may fill the disk.
    if (!complete) removeTree(task.paths.staging);
  }
}

export function readCapture(task: StoredTask): Capture | null {
  const file = join(task.paths.root, 'capture.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Capture) : null;
}

function nothingYet({ task }: StoredTask): never {
  throw new AgsError('capture.refused', `Nothing of ${task.name} has been brought out yet.`, {
    hint: `See its state: ags show ${task.name}`,
  });
}

async function listChanges(task: StoredTask, ask: Inspect): Promise<UpperListing> {
  const { paths, run } = task;
  const hidden = new Set(run.hidden);
  if (run.workspace === 'copy')
    return listCopy({
      copy: paths.copy,
      original: run.layers ?? [task.task.project],
      hidden: (path) => hidden.has(path),
    });
  const directories = upperDirectories(paths.upper, UPPER_LIMITS).filter(
    (dir) => dir !== '.git' && !dir.startsWith('.git/'),
  );
  const probe = opaqueProbe(directories);
  const answer =
    directories.length === 0
      ? null
      : await ask({
          argv: ['sh', '-c', 'cd "$1" && shift && exec "$@"', 'sh', INSIDE.upper, ...probe.argv],
          input: probe.input,
        });
  const opaque = answer === null ? new Set<string>() : parseOpaque(answer, directories);
  const listing = listUpper({
    upper: paths.upper,
    lower: run.layers ?? task.task.project,
    hidden: (path) => hidden.has(path),
    isOpaque: (path) => opaque.has(path),
    limits: UPPER_LIMITS,
  });
  // In a linked worktree, ags mounts a directory over the .git file while the sandbox runs; the mount point is no change.
  return task.task.git ? { ...listing, refused: listing.refused.filter(({ path }) => path !== '.git') } : listing;
}

function refuseNames(listing: UpperListing): { entries: UpperListing['entries']; refused: Refusal[] } {
  const problem = new Map(listing.entries.map((e) => [e.path, inspectName(e.path).refuse]));
  return {
    entries: listing.entries.filter((e) => problem.get(e.path) === null),
    refused: [
      ...listing.refused,
      ...[...problem].flatMap(([path, reason]) => (reason === null ? [] : [{ path, reason }])),
    ],
  };
}

function checkSizes(entries: UpperListing['entries']): void {
  const large = entries.find((e) => e.bytes > MAX_FILE);
  if (large !== undefined)
    throw new AgsError(
      'capture.refused',
      `${large.path} is ${readableSize(large.bytes)}; files over ${readableSize(MAX_FILE)} are not taken out of a sandbox.`,
      { hint: 'Let the command write it to /tmp or to an ignored directory.' },
    );
  const total = entries.reduce((sum, e) => sum + e.bytes, 0);
  if (total > MAX_TOTAL)
    throw new AgsError(
      'capture.refused',
      `The changes are ${readableSize(total)} in total; ags takes at most ${readableSize(MAX_TOTAL)} out of a sandbox.`,
    );
}

export const GIT_ENV = {
  GIT_DIR: `${INSIDE.out}/git`,
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_ATTR_NOSYSTEM: '1',
} as const;

/**
 * Judges written files by the rules inside the sandbox, and deleted files by the user's own rules. Only a convenience: an
 * ignored file is deleted with the task unless the user asks to see it.
 */
async function findIgnored(
  context: HostContext,
  task: StoredTask,
  ask: Inspect,
  outDir: string,
  entries: UpperListing['entries'],
  cover: readonly string[],
): Promise<Set<string>> {
  const configHome = context.env['XDG_CONFIG_HOME'];
  const repository = await repositoryAt(context, task.task.project);
  if (repository === null || entries.length === 0) return new Set();
  const pathsOf = (kind: 'written' | 'deleted'): string[] => entries.filter((e) => e.kind === kind).map((e) => e.path);
  const tree = { project: task.task.project, home: context.home, configHome };
  const [written, deleted] = await Promise.all([
    askIgnored(context, task, ask, outDir, repository, pathsOf('written'), cover),
    ignoredOnHost(tree, pathsOf('deleted')),
  ]);
  if (written.length + deleted.length === 0) return new Set();
  const tracked = await trackedFiles(tree);
  return new Set([...written, ...deleted].filter((path) => !tracked.has(path)));
}

export async function askIgnored(
  context: HostContext,
  task: StoredTask,
  ask: Inspect,
  outDir: string,
  repository: Repository,
  paths: readonly string[],
  cover: readonly string[],
): Promise<string[]> {
  if (paths.length === 0) return [];
  const git = captureGit(task, outDir);
  const excludes = [
    join(repository.commonDir, 'info/exclude'),
    repository.settings.get('core.excludesfile')?.replace(/^~\//, `${context.home}/`) ??
      join(context.env['XDG_CONFIG_HOME'] ?? join(context.home, '.config'), 'git/ignore'),
  ];
  writeFileSync(
    join(git, 'info/exclude'),
    excludes
      // The settings or the git directory may come from a stranger: reading a pipe or /dev/zero would never end.
      .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true)
      .map((path) => readFileSync(path, 'utf8'))
      .join('\n'),
  );
  giveTree(git, task.run.user);
  const answer = await ask({
    argv: ['git', ...CHECK_IGNORE],
    input: ignoreInput(paths),
    env: { ...GIT_ENV, GIT_WORK_TREE: task.task.project },
    // Exit code 1 means that no path is ignored.
    good: [0, 1],
    cover,
  });
  return parseIgnored(answer);
}

export function findPipes(task: StoredTask, refused: readonly Refusal[]): string[] {
  const files = task.run.workspace === 'copy' ? task.paths.copy : task.paths.upper;
  const pipes = refused
    .map((one) => one.path)
    .filter(
      (path) => READ_BY_GIT.test(path) && lstatSync(join(files, path), { throwIfNoEntry: false })?.isFIFO() === true,
    );
  if (pipes.length > 100)
    throw new AgsError(
      'capture.refused',
      `${pipes.length} named pipes stand in place of git rule files, for example ${pipes[0]}.`,
      { hint: 'They block a review, perhaps on purpose. Delete the sandbox: ags rm' },
    );
  return pipes;
}

/** Packs only the named files, byte for byte, and receives them as one checked pack. */
async function pack(
  task: StoredTask,
  ask: Inspect,
  outDir: string,
  paths: readonly string[],
  cover: readonly string[],
): Promise<string> {
  captureGit(task, outDir);
  const index = { GIT_INDEX_FILE: `${INSIDE.out}/index`, GIT_WORK_TREE: task.task.project };
  const env = {
    ...GIT_ENV,
    ...index,
    GIT_AUTHOR_NAME: 'ags',
    GIT_AUTHOR_EMAIL: 'ags@localhost',
    GIT_COMMITTER_NAME: 'ags',
    GIT_COMMITTER_EMAIL: 'ags@localhost',
  };
  const tree = (
    await ask({
      argv: ['sh', '-c', 'git update-index -z --add --stdin && git write-tree', 'sh'],
      input: Buffer.from(paths.map((path) => `${path}\0`).join('')),
      env,
      cover,
    })
  )
    .toString('latin1')
    .trim();
  if (!/^[0-9a-f]{40}([0-9a-f]{24})?$/.test(tree)) throw new AgsError('capture.refused', 'The sandbox gave no tree.');
  const commit = 'c=$(git commit-tree -m captured "$1") && echo "$c" | git pack-objects --revs --stdout -q';
  await ask({
    argv: ['sh', '-c', commit, 'sh', tree],
    input: Buffer.alloc(0),
    env,
    cover,
    consume: (answer) => receivePack(task.paths.staging, answer, 2 * MAX_TOTAL, PACK_TIMEOUT_MS),
  });
  return tree;
}

/** A git directory of ours in the inspection's output directory, so that git reads no setting of the agent's even there. */
export function captureGit(task: StoredTask, outDir: string): string {
  const git = join(outDir, 'git');
  if (!existsSync(git)) {
    createStaging(git, task.run.objectFormat, { bare: false });
    giveTree(git, task.run.user);
  }
  return git;
}

// A compromised git in the sandbox cannot deliver files, kinds or sizes that the host did not see itself.
/** Throws unless the tree holds only requested files. Returns the names that git leaves out, for example a link called .gitmodules. */
export async function leftOut(staging: string, tree: string, wanted: UpperListing['entries']): Promise<Refusal[]> {
  const found = new Map((await listTree(staging, tree)).map((entry) => [entry.path, entry]));
  const missing = wanted.filter((entry) => !found.has(entry.path));
  const isWanted = ({ path, type, bytes }: UpperListing['entries'][number]): boolean => {
    const taken = found.get(path);
    return (
      taken !== undefined &&
      taken.bytes === bytes &&
      (type === 'symlink' ? taken.mode === '120000' : /^100(644|755)$/.test(taken.mode))
    );
  };
  if (wanted.filter(isWanted).length !== found.size)
    throw new AgsError('capture.refused', 'The sandbox returned other files than requested.', {
      hint: 'Nothing was taken. The files are still in the task.',
    });
  return missing.map(({ path }) => ({ path, reason: 'git does not take a file of this name: never taken' }));
}
