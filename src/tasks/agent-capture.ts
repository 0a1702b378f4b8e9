// tasks/agent-capture.ts: an agent's result in the form that a review reads: the changed files as a tree, and what is gone.
import { join } from 'node:path';
import { rmSync } from 'node:fs';
import type { Refusal } from '../protocol/changes.ts';
import { stagingGit } from '../git/host-git.ts';
import { diffTrees, listTree } from '../git/staging.ts';
import { ancestors } from '../review/order.ts';
import type { StoredTask } from '../store/tasks.ts';
import type { AgentResult, Capture } from './capture.ts';

export interface Counted {
  readonly commit: string;
  readonly files: number;
  readonly added: number;
  readonly removed: number;
}

/** `result` is null where the two trees are the same. */
export async function captureFrom(
  { paths: { staging } }: StoredTask,
  agent: AgentResult & { readonly refused: readonly Refusal[] },
): Promise<{ capture: Capture; result: Counted | null }> {
  const { base, commit, tree, earlier } = agent;
  const rows = await diffTrees(staging, base, tree, { renames: false });
  const written = new Set(rows.filter((one) => one.status !== 'D').map((one) => one.path));
  const deleted = rows.filter((one) => one.status === 'D').map((one) => one.path);
  const entries = (await listTree(staging, tree)).filter((entry) => written.has(entry.path));
  const lines = entries.map(({ mode, oid, path }) => `${mode} ${oid}\t${path}\0`).join('');
  const capture: Capture = {
    version: 1,
    tree: await subTree(staging, lines),
    deleted,
    removedDirs: await goneDirectories(staging, tree, deleted),
    refused: agent.refused,
    // What the project ignores is no part of the work, and stays in the sandbox.
    ignored: { written: [], deleted: [], bytes: 0 },
    withIgnored: true,
    agent: { base, commit, tree, earlier },
  };
  return {
    capture,
    result: rows.length === 0 ? null : { commit, files: rows.length, ...(await count(staging, base, tree)) },
  };
}

async function subTree(staging: string, lines: string): Promise<string> {
  const index = join(staging, `index-${process.pid}`);
  const env = { GIT_INDEX_FILE: index };
  try {
    rmSync(index, { force: true });
    await must(staging, ['update-index', '-z', '--index-info'], { input: Buffer.from(lines), env });
    return (await must(staging, ['write-tree'], { env })).toString('latin1').trim();
  } finally {
    rmSync(index, { force: true });
  }
}

/** Directories of the base that are not in the tree, innermost first. */
async function goneDirectories(staging: string, tree: string, deleted: readonly string[]): Promise<string[]> {
  if (deleted.length === 0) return [];
  const listing = await must(staging, ['ls-tree', '-r', '-d', '-z', '--name-only', '--full-tree', tree]);
  const there = new Set(listing.toString('utf8').split('\0'));
  return [...new Set(deleted.flatMap(ancestors))]
    .filter((dir) => !there.has(dir))
    .toSorted((a, b) => b.split('/').length - a.split('/').length);
}

async function count(staging: string, base: string, tree: string): Promise<{ added: number; removed: number }> {
  const args = ['diff-tree', '-r', '-z', '--numstat', '--no-renames', '--no-ext-diff', '--no-textconv', base, tree];
  const rows = (await must(staging, args)).toString('latin1').split('\0');
  const sum = (column: number): number =>
    rows.reduce((total, row) => total + (Number.parseInt(row.split('\t')[column] ?? '', 10) || 0), 0);
  return { added: sum(0), removed: sum(1) };
}

async function must(
  staging: string,
  args: readonly string[],
  options: { input?: Buffer; env?: Record<string, string> } = {},
): Promise<Buffer> {
  const done = await stagingGit(staging, args, { maxBytes: 1024 ** 3, ...options });
  if (done.exitCode !== 0) throw new Error(`git ${args[0]} failed in ${staging}: ${done.stderr.trim()}`);
  return done.stdout;
}
