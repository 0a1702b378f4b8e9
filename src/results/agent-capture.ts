// results/agent-capture.ts: converts an agent's result into the capture that a review reads: the changed files as a tree, and the deletions.
import type { Refusal } from '../protocol/changes.ts';
import { countLines, diffTrees, goneDirectories, listTree, writeTree } from '../git/staging/staging.ts';
import type { TaskPaths } from '../store/layout.ts';
import type { AgentResult, Capture } from './capture.ts';

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
