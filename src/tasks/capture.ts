// tasks/capture.ts: take what a finished sandbox changed out of it, as git objects in our own staging repository.
// Invariant: the host reads names and types by descriptor and nothing else; ignore rules, extended attributes and file
// contents are read by programs in a throw-away sandbox, and contents come out as a checked pack only.
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { Refusal } from '../protocol/changes.ts';
import { giveTree, removeTree, replaceFile } from '../lib/files.ts';
import { formatSize } from '../lib/units.ts';
import { inspectRepository } from '../git/inspect.ts';
import { createStaging, receivePack } from '../git/staging.ts';
import { inspectName } from '../review/names.ts';
import { opaqueProbe, parseOpaque } from '../review/opaque.ts';
import { listUpper, upperDirectories, UPPER_LIMITS, type UpperListing } from '../review/upper.ts';
import { INSIDE } from '../sandbox/question.ts';
import type { StoredTask } from '../store/tasks.ts';
import { listCopy } from './list-copy.ts';
import { openQuestions, type Ask } from './question.ts';
import type { World } from './world.ts';

export interface Capture {
  readonly version: 1;
  /** The captured files, and no others, as a tree in staging. */
  readonly tree: string;
  readonly deleted: readonly string[];
  /** Directories that no longer exist inside, innermost first. */
  readonly removedDirs: readonly string[];
  readonly refused: readonly Refusal[];
  readonly ignored: { readonly written: readonly string[]; readonly deleted: readonly string[]; readonly bytes: number };
  /** The ignored files are in the tree too. */
  readonly withIgnored: boolean;
}

const MAX_FILE = 2 * 1024 ** 3;
const MAX_TOTAL = 8 * 1024 ** 3;
const PACK_TIMEOUT_MS = 15 * 60_000;

/** Captures once; a later call answers from what was captured. `withIgnored` takes the git-ignored files out as well. */
export async function captureChanges(world: World, task: StoredTask, options: { withIgnored: boolean }): Promise<Capture> {
  const file = join(task.paths.root, 'capture.json');
  const earlier = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Capture) : null;
  if (earlier !== null && (earlier.withIgnored || !options.withIgnored)) return earlier;
  const outDir = join(task.paths.runDir, 'out');
  removeTree(outDir);
  removeTree(task.paths.staging);
  try {
    const ask = await openQuestions(world, task, outDir);
    const listing = await listChanges(task, ask);
    const named = refuseNames(listing);
    const ignored = task.task.git ? await findIgnored(world, task, ask, outDir, named.entries.map((e) => e.path)) : new Set<string>();
    const written = named.entries.filter((e) => e.kind === 'written');
    const wanted = written.filter((e) => options.withIgnored || !ignored.has(e.path));
    checkSizes(wanted);
    createStaging(task.paths.staging, task.run.objectFormat);
    const capture: Capture = {
      version: 1,
      tree: await pack(task, ask, outDir, wanted.map((e) => e.path)),
      deleted: named.entries.filter((e) => e.kind === 'deleted' && (options.withIgnored || !ignored.has(e.path))).map((e) => e.path),
      removedDirs: listing.removed,
      refused: named.refused,
      ignored: {
        written: written.filter((e) => ignored.has(e.path)).map((e) => e.path),
        deleted: named.entries.filter((e) => e.kind === 'deleted' && ignored.has(e.path)).map((e) => e.path),
        bytes: written.filter((e) => ignored.has(e.path)).reduce((sum, e) => sum + e.bytes, 0),
      },
      withIgnored: options.withIgnored,
    };
    replaceFile(file, JSON.stringify(capture), { durable: true });
    return capture;
  } finally {
    removeTree(outDir);
  }
}

async function listChanges(task: StoredTask, ask: Ask): Promise<UpperListing> {
  const { paths, run } = task;
  const hidden = new Set(run.hidden);
  if (run.workspace === 'copy') return listCopy({ copy: paths.copy, original: task.task.project, hidden: (path) => hidden.has(path) });
  const directories = upperDirectories(paths.upper, UPPER_LIMITS).filter((dir) => dir !== '.git' && !dir.startsWith('.git/'));
  const probe = opaqueProbe(directories);
  const answer = directories.length === 0 ? null : await ask({ argv: ['sh', '-c', 'cd "$1" && shift && exec "$@"', 'sh', INSIDE.upper, ...probe.argv], input: probe.input });
  const opaque = answer === null ? new Set<string>() : parseOpaque(answer, directories);
  return listUpper({ upper: paths.upper, lower: task.task.project, hidden: (path) => hidden.has(path), isOpaque: (path) => opaque.has(path), limits: UPPER_LIMITS });
}

function refuseNames(listing: UpperListing): { entries: UpperListing['entries']; refused: Refusal[] } {
  const problem = new Map(listing.entries.map((e) => [e.path, inspectName(e.path).refuse]));
  return {
    entries: listing.entries.filter((e) => problem.get(e.path) === null),
    refused: [...listing.refused, ...[...problem].flatMap(([path, reason]) => (reason === null ? [] : [{ path, reason }]))],
  };
}

function checkSizes(entries: UpperListing['entries']): void {
  const large = entries.find((e) => e.bytes > MAX_FILE);
  if (large !== undefined) throw new AgsError('capture.refused', `${large.path} is ${formatSize(large.bytes)}; files over ${formatSize(MAX_FILE)} are not taken out of a sandbox.`, { hint: 'Let the command write it to /tmp or to an ignored directory.' });
  const total = entries.reduce((sum, e) => sum + e.bytes, 0);
  if (total > MAX_TOTAL) throw new AgsError('capture.refused', `The changes are ${formatSize(total)} in all; more than ${formatSize(MAX_TOTAL)} is not taken out of a sandbox.`);
}

const GIT_ENV = {
  GIT_DIR: `${INSIDE.out}/git`,
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_ATTR_NOSYSTEM: '1',
} as const;

/** By the project's rules as they stand inside. Only a convenience: an ignored file is thrown away unless the user looks at it. */
async function findIgnored(world: World, task: StoredTask, ask: Ask, outDir: string, paths: readonly string[]): Promise<Set<string>> {
  const repository = await inspectRepository(task.task.project, { home: world.home, configHome: world.env['XDG_CONFIG_HOME'], cacheDir: world.cacheDir });
  if (repository === null || paths.length === 0) return new Set();
  const git = captureGit(task, outDir);
  const excludes = [join(repository.commonDir, 'info/exclude'), repository.settings.get('core.excludesfile')?.replace(/^~\//, `${world.home}/`) ?? join(world.env['XDG_CONFIG_HOME'] ?? join(world.home, '.config'), 'git/ignore')];
  writeFileSync(join(git, 'info/exclude'), excludes.filter((path) => existsSync(path)).map((path) => readFileSync(path, 'utf8')).join('\n'));
  const index = join(repository.gitDir, 'index');
  if (existsSync(index)) copyFileSync(index, join(git, 'index'));
  giveTree(git, task.run.user);
  const answer = await ask({
    argv: ['git', 'check-ignore', '-z', '--stdin'],
    input: Buffer.from(paths.map((path) => `${path}\0`).join('')),
    env: { ...GIT_ENV, GIT_WORK_TREE: task.task.project },
    // 1: none is ignored.
    good: [0, 1],
  });
  return new Set(answer.toString('utf8').split('\0').filter((path) => path !== ''));
}

/** Only the named files, byte for byte, as one checked pack. */
async function pack(task: StoredTask, ask: Ask, outDir: string, paths: readonly string[]): Promise<string> {
  captureGit(task, outDir);
  const index = { GIT_INDEX_FILE: `${INSIDE.out}/index`, GIT_WORK_TREE: task.task.project };
  const env = { ...GIT_ENV, ...index, GIT_AUTHOR_NAME: 'ags', GIT_AUTHOR_EMAIL: 'ags@localhost', GIT_COMMITTER_NAME: 'ags', GIT_COMMITTER_EMAIL: 'ags@localhost' };
  const tree = (await ask({ argv: ['sh', '-c', 'git update-index -z --add --stdin && git write-tree', 'sh'], input: Buffer.from(paths.map((path) => `${path}\0`).join('')), env })).toString('latin1').trim();
  if (!/^[0-9a-f]{40}([0-9a-f]{24})?$/.test(tree)) throw new AgsError('capture.refused', 'The sandbox gave no tree.');
  const commit = 'c=$(git commit-tree -m captured "$1") && echo "$c" | git pack-objects --revs --stdout -q';
  await ask({ argv: ['sh', '-c', commit, 'sh', tree], input: Buffer.alloc(0), env, consume: (answer) => receivePack(task.paths.staging, answer, 2 * MAX_TOTAL, PACK_TIMEOUT_MS) });
  return tree;
}

/** A git directory of ours in the answer's place, so that no setting of the agent's is read even in there. */
function captureGit(task: StoredTask, outDir: string): string {
  const git = join(outDir, 'git');
  if (!existsSync(git)) {
    createStaging(git, task.run.objectFormat, { bare: false });
    giveTree(git, task.run.user);
  }
  return git;
}
