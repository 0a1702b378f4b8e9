// merge/check-suggestions.ts: suggests checks from the project's files on the user's branch, never from an agent's files.
import type { ChecksFile } from '../protocol/checks.ts';
import { AgsError } from '../protocol/errors.ts';
import { stagingGit } from '../git/host-git.ts';
import { readRef } from '../git/owner-git.ts';
import { READ, suggestChecks as checksFrom, suggestSetup, type RootFiles } from '../config/starter/commands.ts';
import type { StoredTask } from '../store/tasks.ts';
import type { MergedBranch } from './merge-tree.ts';
import { repositoryAt } from '../run/project.ts';
import type { HostContext } from '../run/host-context.ts';

export async function noChecks(stored: StoredTask, merged: Pick<MergedBranch, 'from'>): Promise<AgsError> {
  const suggestions = await suggestChecks(stored, merged.from);
  const hint =
    suggestions.length === 0
      ? 'Write commands into ags.yaml, such as "checks: [make test]", or name one now: --run <command>'
      : `Suggested, for ags.yaml:\n${yamlOf(suggestions)}\nOr once: --run '${suggestions[0]}'`;
  return new AgsError('checks.none', 'There are no checks for this project yet.', { hint, details: { suggestions } });
}

/** Suggests checks for the branch that the task was started from. */
export async function suggestionsFor(context: HostContext, stored: StoredTask): Promise<string[]> {
  const ref = stored.task.goal?.baseRef ?? null;
  const repository = ref === null ? null : await repositoryAt(context, stored.task.project).catch(() => null);
  const commit = repository === null || ref === null ? null : await readRef(repository.commonDir, ref);
  return commit === null ? [] : suggestChecks(stored, commit);
}

function yamlOf(commands: readonly string[]): string {
  return ['checks:', ...commands.map((command) => `  - ${command}`)].join('\n');
}

/** Why what package managers install was not there; null: checks did not fail, or not for that reason. */
export async function missingSetup(
  stored: Pick<StoredTask, 'paths'>,
  { state, setup, from }: Pick<ChecksFile, 'state' | 'setup' | 'from'>,
): Promise<string | null> {
  if (state !== 'failed' || setup !== 'none') return null;
  const files = await rootFiles(stored, from);
  const commands = suggestSetup(files);
  if (commands.length === 0) return null;
  const what = files.names.has('package.json') ? 'node_modules was' : 'installed dependencies were';
  return [
    `Checks see committed files and what "setup" makes. This project has no "setup", so ${what} not there. For ags.yaml:`,
    'setup:',
    ...commands.map((command) => `  - ${command}`),
  ].join('\n');
}

async function suggestChecks(stored: Pick<StoredTask, 'paths'>, commit: string): Promise<string[]> {
  return checksFrom(await rootFiles(stored, commit));
}

/** `commit` must be one of the user's. */
async function rootFiles({ paths }: Pick<StoredTask, 'paths'>, commit: string): Promise<RootFiles> {
  const listing = await stagingGit(paths.staging, ['ls-tree', '-z', '--name-only', '--full-tree', commit]);
  const names = new Set(listing.stdout.toString('utf8').split('\0'));
  const texts = new Map<string, string>();
  for (const name of READ.filter((one) => names.has(one))) {
    const blob = await stagingGit(paths.staging, ['cat-file', 'blob', `${commit}:${name}`], { maxBytes: 2 ** 20 });
    if (blob.exitCode === 0) texts.set(name, blob.stdout.toString('utf8'));
  }
  return { names, text: (name) => texts.get(name) ?? '' };
}
