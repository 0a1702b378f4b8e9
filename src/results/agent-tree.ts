// results/agent-tree.ts: writes an agent's work, committed or not, as one tree, with git in a throw-away sandbox, and makes the
// capture that a review reads.
// Invariant: the host lists only names and types, by descriptor. The agent's git directory is read only inside that sandbox, through a
// git directory of ours with our own settings. Nothing of the agent's is written, so the agent finds its work unchanged.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { Refusal } from '../protocol/changes.ts';
import { giveTree } from '../lib/files.ts';
import { readableSize } from '../lib/units.ts';
import { compilePatterns } from '../config/patterns.ts';
import { realFile } from '../git/copy-real.ts';
import type { Repository } from '../git/repository.ts';
import { inspectName } from '../review/names.ts';
import { ancestors } from '../review/order.ts';
import { listUpper, type UpperEntry, type UpperListing } from '../review/upper.ts';
import { INSIDE } from '../sandbox/spec/plan-inspection.ts';
import type { StoredTask } from '../store/tasks.ts';
import { bytesOf, planIndex, textOf, type Entry, type Facts, type IndexPlan } from './agent-index.ts';
import { askIgnored, captureGit, findPipes, GIT_ENV, type AgentResult, type Capture } from './capture.ts';
import type { Inspect } from '../run/inspection.ts';
import { asCopied, pipesForRules, sizesInCopy } from './list-copy.ts';
import type { HostContext } from '../run/host-context.ts';
import { countLines, diffTrees, goneDirectories, listTree, writeTree } from '../git/staging/staging.ts';
import type { TaskPaths } from '../store/layout.ts';

/** Mount points of the agent's git directory and of the user's object stores in the inspection. */
export const AGENT_GIT = '/run/ags/agent-git';
export const agentStore = (i: number): string => `/run/ags/stores/${i}`;

export interface AgentTree {
  /** The agent's last commit; null if none can be read. */
  readonly head: string | null;
  readonly headTree: string | null;
  readonly tree: string;
  readonly refused: readonly Refusal[];
  /** Named pipes in place of rule files, at which git would wait forever. */
  readonly pipes: readonly string[];
  /** True for a path that may not be part of the work, in the tree of any commit. */
  wrong(path: string, mode: string): boolean;
}

export interface AgentTreeInput {
  readonly context: HostContext;
  readonly task: StoredTask;
  readonly repository: Repository;
  readonly base: string;
  readonly scratch: readonly string[];
  readonly stores: number;
  readonly outDir: string;
  readonly ask: Inspect;
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
  const { hidden, workspace } = input.task.run;
  const plan = planIndex({ hidden, workspace, listing, facts, isScratch });
  const untracked = plan.add.filter((path) => !facts.tip.has(path));
  const ignored = new Set(
    (
      await askIgnored(
        input.context,
        input.task,
        input.ask,
        input.outDir,
        input.repository,
        untracked.map(textOf),
        pipes,
      )
    ).map(bytesOf),
  );
  // Files from setup commands lie in a layer below an overlay; in a copy they are among the agent's files.
  const made =
    workspace === 'copy'
      ? asCopied(
          input.task.paths.copy,
          input.task.run.layers ?? [],
          untracked.filter((path) => !ignored.has(path)),
        )
      : new Set<string>();
  const add = plan.add.filter((path) => !ignored.has(path) && !made.has(path));
  checkSizes(workspace === 'copy' ? sizesInCopy(input.task.paths.copy, add) : sizesOf(listing.entries, new Set(add)));
  const tree = await writeAgentTree(input, plan.set, add, pipes);
  return { head: facts.head, headTree: facts.headTree, tree, refused: plan.refused, pipes, wrong };
}

/** Makes a git directory of ours that finds the agent's objects and the user's, and knows where a shallow history ends. */
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

/** Lists written files only: git itself compares with the layers below. */
function listWritten({ task, outDir }: AgentTreeInput): UpperListing {
  if (task.run.workspace === 'copy')
    return { entries: [], directories: [], removed: [], refused: pipesForRules(task.paths.copy) };
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

// Reads the agent's HEAD and refs with our own settings. If a pipe stands in place of a file, or an object cannot be read,
// everything is read again without the agent's commits: the commits are lost, the files are not.
const FACTS = `
umask 077
base=$1; head=-; tree=-
if [ "$2" = with ] && [ -f ${AGENT_GIT}/HEAD ]; then
  cp -- ${AGENT_GIT}/HEAD "$GIT_DIR/HEAD" && rm -rf "$GIT_DIR/refs" && ln -s ${AGENT_GIT}/refs "$GIT_DIR/refs" || exit 3
  if [ -f ${AGENT_GIT}/packed-refs ]; then ln -sf ${AGENT_GIT}/packed-refs "$GIT_DIR/packed-refs" || exit 3; fi
  head=$(timeout 60 git rev-parse -q --verify 'HEAD^{commit}'); code=$?
  # A git that was killed has not said that there is no commit.
  [ $code -le 128 ] || exit $code
  [ $code = 0 ] || head=-
  if [ "$head" != - ]; then tree=$(timeout 60 git rev-parse -q --verify "$head^{tree}") || exit; fi
else
  rm -rf "$GIT_DIR/refs" "$GIT_DIR/packed-refs"; mkdir -p "$GIT_DIR/refs"; echo 'ref: refs/heads/none' > "$GIT_DIR/HEAD"
fi
rm -f "$GIT_INDEX_FILE" "$GIT_INDEX_FILE.lock"
tip=$head; [ "$head" != - ] || tip=$base
printf '%s\\0%s\\0\\0' "$head" "$tree" &&
git ls-tree -r -z --full-tree "$base" && printf '\\0' &&
timeout 300 git read-tree "$tip" && git ls-files -s -z && printf '\\0' &&
git ls-files -d -z && printf '\\0' &&
if [ "$3" = copy ]; then git ls-files -o -z; fi`;

async function readFacts(input: AgentTreeInput, cover: readonly string[]): Promise<Facts> {
  const { ask, task, base } = input;
  const readWith = (how: 'with' | 'without'): Promise<Buffer> =>
    ask({
      argv: ['sh', '-c', FACTS, 'sh', base, how, task.run.workspace],
      input: Buffer.alloc(0),
      env: gitEnv(task),
      cover,
      maxBytes: 1024 ** 3,
      deadlineMs: 8 * 60_000,
    });
  const answer = await readWith('with').catch((error: unknown) => {
    if (error instanceof AgsError && error.code === 'capture.refused') return readWith('without');
    throw error;
  });
  return parseFacts(answer);
}

function parseFacts(answer: Buffer): Facts {
  const words = answer.toString('latin1').split('\0');
  const sections: string[][] = [[]];
  // An empty word ends a section: no name is empty.
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

function sizesOf(written: readonly UpperEntry[], taken: ReadonlySet<string>): { path: string; bytes: number }[] {
  return written.map(({ path, bytes }) => ({ path: bytesOf(path), bytes })).filter(({ path }) => taken.has(path));
}

/** Paths are latin1 strings, one character per byte. */
function checkSizes(some: readonly { readonly path: string; readonly bytes: number }[]): void {
  const large = some.find((entry) => entry.bytes > MAX_FILE);
  if (large !== undefined)
    throw new AgsError(
      'capture.refused',
      `${textOf(large.path)} is ${readableSize(large.bytes)}; files over ${readableSize(MAX_FILE)} are not taken out of a sandbox.`,
      { hint: 'Have the agent delete it, or add it to .gitignore: ags send' },
    );
  if (some.reduce((sum, entry) => sum + entry.bytes, 0) > MAX_TOTAL)
    throw new AgsError('capture.refused', `The changes are more than ${readableSize(MAX_TOTAL)} in total.`);
}

const MAX_FILE = 2 * 1024 ** 3;
const MAX_TOTAL = 8 * 1024 ** 3;

const WRITE_TREE =
  'head -c "$1" | git update-index -z --index-info && git update-index -z --add --remove --replace --stdin && git write-tree';

async function writeAgentTree(
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

export interface Counted {
  readonly commit: string;
  readonly files: number;
  readonly added: number;
  readonly removed: number;
}

/** `result` is null if the two trees are equal. */
export async function captureFrom(
  { paths: { staging } }: { readonly paths: Pick<TaskPaths, 'staging'> },
  agent: AgentResult & { readonly refused: readonly Refusal[] },
): Promise<{ capture: Capture; result: Counted | null }> {
  const { base, commit, tree, earlier, notKept, by } = agent;
  const rows = await diffTrees(staging, base, tree, { renames: false });
  const written = new Set(rows.filter((one) => one.status !== 'D').map((one) => one.path));
  const deleted = rows.filter((one) => one.status === 'D').map((one) => one.path);
  const entries = (await listTree(staging, tree)).filter((entry) => written.has(entry.path));
  const capture: Capture = {
    version: 1,
    tree: await writeTree(staging, entries),
    deleted,
    removedDirs: await goneDirectories(staging, tree, deleted),
    refused: agent.refused,
    // Files that the project ignores are not part of the work and stay in the sandbox.
    ignored: { written: [], deleted: [], bytes: 0 },
    withIgnored: true,
    agent: { base, commit, tree, earlier, notKept, by },
  };
  const counted = { commit, files: rows.length, ...(await countLines(staging, base, tree)) };
  return { capture, result: rows.length === 0 ? null : counted };
}
