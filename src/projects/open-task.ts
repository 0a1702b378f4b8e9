// projects/open-task.ts: checks out an agent's work in a separate directory that an editor can open.
// Invariants: the directory is made from the brought-out branch, never from the agent's live files. Files that tell an editor which
// container to build or what to run on the host come from the user or from ags, never from the agent. The user's own edits there are kept.
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { removeTree } from '../lib/files.ts';
import { objectStores } from '../git/object-stores.ts';
import { isSame, writeOpened } from '../git/opened.ts';
import { readRef } from '../git/owner-git.ts';
import type { StoredTask } from '../store/tasks.ts';
import { branchOf } from '../results/bring-out.ts';
import { readCapture } from '../results/capture.ts';
import { compareWithBase } from '../results/changes.ts';
import { writeDevContainer, type DevContainerWish } from '../images/devcontainer/devcontainer.ts';
import { openedDirectory } from './opened-directory.ts';
import { repositoryAt } from '../run/project.ts';
import { riskyPatterns } from '../results/review.ts';
import { requireAgent } from '../agent-run/control.ts';
import type { HostContext } from '../run/host-context.ts';

export interface OpenedTask {
  readonly directory: string;
  readonly commit: string;
  /** The commit of a directory that existed before; the task may have newer work. null: the directory is new. */
  readonly kept: string | null;
  /** Files that an editor would act on outside of any container. */
  readonly leftOut: readonly LeftOut[];
  /** Files changed by the agent that can run code on the host. */
  readonly risky: readonly string[];
}

export interface LeftOut {
  readonly path: string;
  /** Completes the sentence "<path> ...". */
  readonly why: string;
}

const CONTAINER_PATHS = ['.devcontainer', '.devcontainer.json'] as const;

export async function openTask(
  context: HostContext,
  stored: StoredTask,
  wish: { fresh: boolean; devContainer: Pick<DevContainerWish, 'agsPackage' | 'services'> | null },
): Promise<OpenedTask> {
  requireAgent(stored);
  const repository = await repositoryAt(context, stored.task.project);
  const commit = repository === null ? null : await readRef(repository.commonDir, branchOf(stored));
  if (repository === null || commit === null)
    throw new AgsError('task.not-found', `${stored.task.name} has no branch to open yet.`, {
      hint: `See its state: ags show ${stored.task.name}`,
    });
  const directory = openedDirectory(context, stored.task.id);
  if (wish.fresh) removeTree(directory);
  const kept = existsSync(directory) ? readMark(directory) : null;
  const leftOut: LeftOut[] = [];
  if (kept === null) {
    const draft = `${directory}.new`;
    removeTree(draft);
    mkdirSync(draft, { recursive: true, mode: 0o700 });
    const visiblePlaces = { root: repository.root, commonDir: repository.commonDir, shown: [repository.root] };
    const stores = objectStores(repository.commonDir, visiblePlaces).map(({ path }) => path);
    await writeOpened(repository, stores, commit, branchOf(stored), draft);
    for (const path of CONTAINER_PATHS) {
      const same = await isSame(join(draft, '.git'), path, repository.headCommit ?? commit, commit);
      if (same && isSelfContained(join(draft, path))) continue;
      removeTree(join(draft, path));
      leftOut.push({ path, why: same ? "refers to files that are the agent's here" : 'was changed by the agent' });
    }
    writeFileSync(join(draft, '.git', MARK), commit);
    renameSync(draft, directory);
  }
  if (wish.devContainer !== null) {
    for (const path of CONTAINER_PATHS) removeTree(join(directory, path));
    await writeDevContainer(context, stored.task.project, directory, wish.devContainer);
  }
  return { directory, commit, kept, leftOut, risky: await riskyPaths(context, stored) };
}

/** True if it names neither host commands nor files elsewhere. A file such as ../docker-compose.yml may be the agent's. */
function isSelfContained(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return true;
  if (stat.isDirectory()) return readdirSync(path).every((name) => isSelfContained(join(path, name)));
  if (!stat.isFile()) return false;
  const text = readFileSync(path, 'latin1');
  // .devcontainer.json lies among the agent's files, so it may not build anything. In a directory, ".." may only mount the project itself.
  const elsewhere = basename(path) === '.devcontainer.json' ? /docker|build/i : /\.\.(?!:|\/\.git:)/;
  return !elsewhere.test(text) && !/initializeCommand|localWorkspaceFolder/i.test(text);
}

/** Also deletes the edits that the user made there. */
export function removeOpened(context: HostContext, stored: StoredTask): boolean {
  const directory = openedDirectory(context, stored.task.id);
  if (!existsSync(directory)) return false;
  removeTree(directory);
  return true;
}

/** Holds the commit that the directory was made from. */
const MARK = 'ags-opened';

function readMark(directory: string): string {
  try {
    return readFileSync(join(directory, '.git', MARK), 'utf8');
  } catch {
    throw new AgsError('state.damaged', `${directory} is incomplete, or was not made by ags.`, {
      hint: 'Create it again: ags open <task> --fresh',
    });
  }
}

async function riskyPaths(context: HostContext, stored: StoredTask): Promise<string[]> {
  const capture = readCapture(stored);
  if (capture === null) return [];
  const patterns = await riskyPatterns(context, stored.task.project);
  const { changeSet } = await compareWithBase(context, stored, capture, patterns);
  return changeSet.changes.filter(({ lane }) => lane === 'host').map(({ path }) => path);
}
