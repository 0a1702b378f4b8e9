// tasks/agent-tree.ts: what an agent left, committed or not, as one tree; asked of git in a throw-away sandbox.
// Invariant: the host lists names and types by descriptor. The agent's git directory is read inside only, through a git directory
// of ours with settings of ours; nothing of the agent's is written, so it finds its work as it left it.
import { isUtf8 } from 'node:buffer';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { Refusal } from '../protocol/changes.ts';
import { giveTree } from '../lib/files.ts';
import { formatSize } from '../lib/units.ts';
import { compilePatterns } from '../config/patterns.ts';
import { realFile } from '../git/copy-real.ts';
import type { Repository } from '../git/inspect.ts';
import { inspectName } from '../review/names.ts';
import { ancestors } from '../review/order.ts';
import { listUpper, type UpperEntry, type UpperListing } from '../review/upper.ts';
import { INSIDE } from '../sandbox/question.ts';
import type { StoredTask } from '../store/tasks.ts';
import { askIgnored, captureGit, findPipes, GIT_ENV } from './capture.ts';
import type { Ask } from './question.ts';
import type { World } from './world.ts';

/** Where the agent's git directory and the objects of the user's repository are shown. */
export const AGENT_GIT = '/run/ags/agent-git';
export const agentStore = (i: number): string => `/run/ags/stores/${i}`;

export interface AgentTree {
  /** The agent's last commit; null: there is none that can be read. */
  readonly head: string | null;
  readonly headTree: string | null;
  readonly tree: string;
  readonly refused: readonly Refusal[];
  /** Paths that are not part of the work, in the tree of any commit. */
  wrong(path: string, mode: string): boolean;
}

export interface AgentTreeInput {
  readonly world: World;
  readonly task: StoredTask;
  readonly repository: Repository;
  readonly base: string;
  readonly scratch: readonly string[];
  readonly stores: number;
  readonly outDir: string;
  readonly ask: Ask;
}

export async function readAgentTree(input: AgentTreeInput): Promise<AgentTree> {
  prepareGit(input);
  const listing = listWritten(input);
  const pipes = findPipes(input.task, listing.refused);
  const facts = await readFacts(input, pipes);
  const scratch = compilePatterns(input.scratch);
  const isScratch = (path: string): boolean =>
    !facts.base.has(bytesOf(path)) && (scratch(path, false) || ancestors(path).some((dir) => scratch(dir, true)));
  const wrong = (path: string, mode: string): boolean =>
    inspectName(path).refuse !== null || isScratch(path) || !/^(100644|100755|120000)$/.test(mode);
  const plan = planIndex({ input, listing, facts, isScratch });
  const untracked = plan.add.filter((path) => !facts.tip.has(path));
  const ignored = new Set(
    (
      await askIgnored(input.world, input.task, input.ask, input.outDir, input.repository, untracked.map(textOf), pipes)
    ).map(bytesOf),
  );
  const add = plan.add.filter((path) => !ignored.has(path));
  checkSizes(listing.entries, new Set(add));
  const tree = await writeTree(input, plan.set, add, pipes);
  return { head: facts.head, headTree: facts.headTree, tree, refused: plan.refused, wrong };
}

/** A git directory of ours that finds the agent's objects and the user's, and knows where a shallow history ends. */
function prepareGit({ task, repository, outDir, stores }: AgentTreeInput): void {
  const git = captureGit(task, outDir);
  writeFileSync(
    join(git, 'objects/info/alternates'),
    [`${AGENT_GIT}/objects`, ...Array.from({ length: stores }, (_, i) => agentStore(i)), ''].join('\n'),
  );
  const shallow = realFile(repository.commonDir, 'shallow');
  if (shallow !== null) writeFileSync(join(git, 'shallow'), readFileSync(shallow));
  giveTree(git, task.run.user);
}

/** What the layers below hold is git's business: of the upper, what was written is all that has to be known. */
function listWritten({ task, outDir }: AgentTreeInput): UpperListing {
  if (task.run.workspace === 'copy') return { entries: [], directories: [], removed: [], refused: [] };
  const nothing = join(outDir, 'nothing');
  mkdirSync(nothing, { recursive: true });
  const listing = listUpper({
    upper: task.paths.upper,
    lower: nothing,
    hidden: () => false,
    isOpaque: () => false,
    limits: { entries: 1_000_000, depth: 200 },
  });
  return { ...listing, refused: listing.refused.filter(({ path }) => path !== '.git') };
}

interface Entry {
  readonly mode: string;
  readonly oid: string;
}

interface Facts {
  readonly head: string | null;
  readonly headTree: string | null;
  /** Of the agent's last commit, or of the base where that cannot be read; by path, one character for each byte. */
  readonly tip: ReadonlyMap<string, Entry>;
  readonly base: ReadonlyMap<string, Entry>;
  /** Not in the workspace any more. */
  readonly gone: ReadonlySet<string>;
  /** In the workspace, and in no commit; known for a copy alone. */
  readonly others: readonly string[];
}

// The agent's HEAD and refs through our own settings. A pipe in place of a file, or an object that cannot be read, costs
// the agent's commits, not its work: everything is read again without them.
const FACTS = `
umask 077
base=$1; head=-; tree=-
if [ "$2" = with ] && [ -f ${AGENT_GIT}/HEAD ]; then
  cp -- ${AGENT_GIT}/HEAD "$GIT_DIR/HEAD" && rm -rf "$GIT_DIR/refs" && ln -s ${AGENT_GIT}/refs "$GIT_DIR/refs" || exit 3
  if [ -f ${AGENT_GIT}/packed-refs ]; then ln -sf ${AGENT_GIT}/packed-refs "$GIT_DIR/packed-refs" || exit 3; fi
  head=$(timeout 60 git rev-parse -q --verify 'HEAD^{commit}') || head=-
  if [ "$head" != - ]; then tree=$(timeout 60 git rev-parse -q --verify "$head^{tree}") || exit 3; fi
else
  rm -rf "$GIT_DIR/refs" "$GIT_DIR/packed-refs"; mkdir -p "$GIT_DIR/refs"; echo 'ref: refs/heads/none' > "$GIT_DIR/HEAD"
fi
rm -f "$GIT_INDEX_FILE"
tip=$head; [ "$head" != - ] || tip=$base
printf '%s\\0%s\\0\\0' "$head" "$tree" &&
git ls-tree -r -z --full-tree "$base" && printf '\\0' &&
timeout 300 git read-tree "$tip" && git ls-files -s -z && printf '\\0' &&
git ls-files -d -z && printf '\\0' &&
if [ "$3" = copy ]; then git ls-files -o -z; fi`;

async function readFacts(input: AgentTreeInput, cover: readonly string[]): Promise<Facts> {
  const { ask, task, base } = input;
  const question = (how: 'with' | 'without'): Promise<Buffer> =>
    ask({
      argv: ['sh', '-c', FACTS, 'sh', base, how, task.run.workspace],
      input: Buffer.alloc(0),
      env: gitEnv(task),
      cover,
      maxBytes: 1024 ** 3,
      deadlineMs: 8 * 60_000,
    });
  const answer = await question('with').catch((error: unknown) => {
    if (error instanceof AgsError && error.code === 'capture.refused') return question('without');
    throw error;
  });
  return parseFacts(answer);
}

function parseFacts(answer: Buffer): Facts {
  const words = answer.toString('latin1').split('\0');
  const sections: string[][] = [[]];
  // Only a section ends in two of them: no name is empty.
  for (const word of words)
    if (word === '') sections.push([]);
    else sections.at(-1)?.push(word);
  const [[head = '-', tree = '-'] = [], base = [], tip = [], gone = [], others = []] = sections;
  const id = (text: string): string | null => (OID.test(text) ? text : null);
  return {
    head: id(head),
    headTree: id(tree),
    base: entries(base, /^(\d{6}) \w+ ([0-9a-f]+)\t/),
    tip: entries(tip, /^(\d{6}) ([0-9a-f]+) \d\t/),
    gone: new Set(gone),
    others,
  };
}

export const OID = /^[0-9a-f]{40}([0-9a-f]{24})?$/;

function entries(rows: readonly string[], row: RegExp): Map<string, Entry> {
  return new Map(
    rows.flatMap((text) => {
      const [all, mode, oid] = row.exec(text) ?? [];
      return all === undefined || mode === undefined || oid === undefined
        ? []
        : [[text.slice(all.length), { mode, oid }] as const];
    }),
  );
}

interface IndexPlan {
  /** Entries to set, or to remove (null), before anything is read from the workspace. */
  readonly set: ReadonlyMap<string, Entry | null>;
  /** Paths to read from the workspace; those that are not there are removed. */
  readonly add: readonly string[];
  readonly refused: readonly Refusal[];
}

/** From the agent's last commit to its workspace, path by path. Names are bytes here: one character for each. */
function planIndex(given: {
  input: AgentTreeInput;
  listing: UpperListing;
  facts: Facts;
  isScratch: (path: string) => boolean;
}): IndexPlan {
  const { listing, facts, input, isScratch } = given;
  const { base, tip, gone } = facts;
  const set = new Map<string, Entry | null>();
  const refused = new Refused();
  for (const { path, reason } of listing.refused) refused.add(path, reason);
  const written = new Map<string, UpperEntry>(listing.entries.map((entry) => [bytesOf(entry.path), entry]));
  const hidden = new Set(input.task.run.hidden.map(bytesOf));
  const submodules = new Set([...base].filter(([, { mode }]) => mode === GITLINK).map(([path]) => path));
  const inSubmodule = (path: string): string | undefined => ancestors(path).find((dir) => submodules.has(dir));
  // What the agent's own commits changed is read again: the workspace may have gone on, or back.
  const changed = new Set([...tip.keys(), ...base.keys()].filter((path) => !same(tip.get(path), base.get(path))));
  for (const path of changed) {
    const now = tip.get(path);
    const was = base.get(path) ?? null;
    if (now?.mode === GITLINK || was?.mode === GITLINK) {
      set.set(path, was?.mode === GITLINK ? was : null);
      refused.add(textOf(path), was?.mode === GITLINK ? SUBMODULE : REPOSITORY);
    } else if (now !== undefined) {
      const problem = problemOf(path, isScratch);
      if (problem === null) continue;
      set.set(path, was);
      refused.add(textOf(path), problem);
    }
  }
  // A pipe, or a directory that may not be read: what git knows of it stays as it was committed.
  const closed = new Set(listing.refused.map(({ path }) => bytesOf(path)).filter((path) => !written.has(path)));
  const isClosed = (path: string): boolean => closed.has(path) || ancestors(path).some((dir) => closed.has(dir));
  for (const path of gone)
    if (!isClosed(path) && !hidden.has(path) && tip.get(path)?.mode !== GITLINK && !set.has(path)) set.set(path, null);
  for (const directory of listing.directories.map(bytesOf))
    if (tip.has(directory) && tip.get(directory)?.mode !== GITLINK) set.set(directory, null);
  const add: string[] = [];
  const candidates = new Set([
    ...written.keys(),
    ...[...changed].filter((path) => !ancestors(path).some((dir) => written.has(dir))),
    ...(input.task.run.workspace === 'copy' ? [...facts.others, ...tip.keys()] : []),
  ]);
  for (const path of candidates) {
    if (set.has(path) && !written.has(path)) continue;
    if (submodules.has(path) || path.endsWith('/') || isClosed(path)) continue;
    const submodule = inSubmodule(path);
    const problem = submodule === undefined ? problemOf(path, isScratch) : SUBMODULE;
    if (problem === null) add.push(path);
    else if (written.has(path)) refused.add(submodule ?? textOf(path), problem);
  }
  return { set, add, refused: refused.list() };
}

const GITLINK = '160000';
const SUBMODULE = 'a submodule: what changed in it is never taken';
const REPOSITORY = 'a repository of its own: never taken as one, its files are';
const SCRATCH = "the agent's own settings or notes: never taken";

function problemOf(path: string, isScratch: (path: string) => boolean): string | null {
  if (!isUtf8(Buffer.from(path, 'latin1'))) return 'a name that is not UTF-8: never taken';
  const text = textOf(path);
  return inspectName(text).refuse ?? (isScratch(text) ? SCRATCH : null);
}

/** One line for a directory full of them would do; a list has an end. */
class Refused {
  readonly #found = new Map<string, string>();
  add(path: string, reason: string): void {
    if (this.#found.size < 10_000) this.#found.set(path, reason);
  }
  list(): Refusal[] {
    return [...this.#found].map(([path, reason]) => ({ path, reason }));
  }
}

function same(a: Entry | undefined, b: Entry | undefined): boolean {
  return a?.mode === b?.mode && a?.oid === b?.oid;
}

function bytesOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

function textOf(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

function checkSizes(written: readonly UpperEntry[], taken: ReadonlySet<string>): void {
  const some = written.filter(({ path }) => taken.has(bytesOf(path)));
  const large = some.find((entry) => entry.bytes > MAX_FILE);
  if (large !== undefined)
    throw new AgsError(
      'capture.refused',
      `${large.path} is ${formatSize(large.bytes)}; files over ${formatSize(MAX_FILE)} are not taken out of a sandbox.`,
      { hint: 'Have the agent delete it, or add it to .gitignore: ags send' },
    );
  if (some.reduce((sum, entry) => sum + entry.bytes, 0) > MAX_TOTAL)
    throw new AgsError('capture.refused', `The changes are more than ${formatSize(MAX_TOTAL)} in all.`);
}

const MAX_FILE = 2 * 1024 ** 3;
const MAX_TOTAL = 8 * 1024 ** 3;

const WRITE_TREE =
  'head -c "$1" | git update-index -z --index-info && git update-index -z --add --remove --replace --stdin && git write-tree';

async function writeTree(
  { ask, task }: AgentTreeInput,
  set: IndexPlan['set'],
  add: readonly string[],
  cover: readonly string[],
): Promise<string> {
  const zero = '0'.repeat(task.run.objectFormat === 'sha256' ? 64 : 40);
  const first = [...set].map(([path, entry]) => `${entry?.mode ?? '0'} ${entry?.oid ?? zero}\t${path}\0`).join('');
  const second = add.map((path) => `${path}\0`).join('');
  const answer = await ask({
    argv: ['sh', '-c', WRITE_TREE, 'sh', String(first.length)],
    input: Buffer.from(first + second, 'latin1'),
    env: gitEnv(task),
    cover,
  });
  const tree = answer.toString('latin1').trim();
  if (!OID.test(tree)) throw new AgsError('capture.refused', 'The sandbox gave no tree.');
  return tree;
}

export function gitEnv(task: StoredTask): Record<string, string> {
  return {
    ...GIT_ENV,
    GIT_INDEX_FILE: `${INSIDE.out}/index`,
    GIT_WORK_TREE: task.task.project,
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_AUTHOR_NAME: 'ags',
    GIT_AUTHOR_EMAIL: 'ags@localhost',
    GIT_COMMITTER_NAME: 'ags',
    GIT_COMMITTER_EMAIL: 'ags@localhost',
  };
}
