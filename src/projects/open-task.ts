// projects/open-task.ts: what an agent did, in a directory of its own that an editor can open.
// Invariants: it is made from what was brought out, never from the agent's live files; what tells an editor which container to build,
// and what to run on this machine for it, is the user's or ours, never the agent's; what the user has done there is not lost.
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
import { riskyPatterns } from '../results/risky-patterns.ts';
import { requireAgent } from '../agent-run/control.ts';
import type { World } from '../run/host-context.ts';

export interface OpenedTask {
  readonly directory: string;
  readonly commit: string;
  /** It was there before, at this commit; the task may have gone on since. */
  readonly kept: string | null;
  /** What is not there, because an editor would act on it outside of any container. */
  readonly leftOut: readonly LeftOut[];
  /** What the agent changed that can run code on this machine. */
  readonly risky: readonly string[];
}

export interface LeftOut {
  readonly path: string;
  /** "<path> ..." */
  readonly why: string;
}

const CONTAINER_PATHS = ['.devcontainer', '.devcontainer.json'] as const;

export async function openTask(
  world: World,
  stored: StoredTask,
  wish: { fresh: boolean; devContainer: Pick<DevContainerWish, 'agsPackage' | 'services'> | null },
): Promise<OpenedTask> {
  requireAgent(stored);
  const repository = await repositoryAt(world, stored.task.project);
  const commit = repository === null ? null : await readRef(repository.commonDir, branchOf(stored));
  if (repository === null || commit === null)
    throw new AgsError('task.not-found', `${stored.task.name} has nothing on a branch yet that could be opened.`, {
      hint: `How it stands: ags show ${stored.task.name}`,
    });
  const directory = openedDirectory(world, stored.task.id);
  if (wish.fresh) removeTree(directory);
  const kept = existsSync(directory) ? readMark(directory) : null;
  const leftOut: LeftOut[] = [];
  if (kept === null) {
    const draft = `${directory}.new`;
    removeTree(draft);
    mkdirSync(draft, { recursive: true, mode: 0o700 });
    const places = { root: repository.root, commonDir: repository.commonDir, shown: [repository.root] };
    const stores = objectStores(repository.commonDir, places).map(({ path }) => path);
    await writeOpened(repository, stores, commit, branchOf(stored), draft);
    for (const path of CONTAINER_PATHS) {
      const same = await isSame(join(draft, '.git'), path, repository.headCommit ?? commit, commit);
      if (same && standsAlone(join(draft, path))) continue;
      removeTree(join(draft, path));
      leftOut.push({ path, why: same ? "leads to files that are the agent's here" : 'was changed by the agent' });
    }
    writeFileSync(join(draft, '.git', MARK), commit);
    renameSync(draft, directory);
  }
  if (wish.devContainer !== null) {
    for (const path of CONTAINER_PATHS) removeTree(join(directory, path));
    await writeDevContainer(world, stored.task.project, directory, wish.devContainer);
  }
  return { directory, commit, kept, leftOut, risky: await riskyPaths(world, stored) };
}

/** Neither commands for this machine nor files elsewhere, such as ../docker-compose.yml: those may be the agent's, whoever named them. */
function standsAlone(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return true;
  if (stat.isDirectory()) return readdirSync(path).every((name) => standsAlone(join(path, name)));
  if (!stat.isFile()) return false;
  const text = readFileSync(path, 'latin1');
  // A single file stands among the agent's. To show the directory itself inside, as ours do, tells nobody what to build or run.
  const elsewhere = basename(path) === '.devcontainer.json' ? /docker|build/i : /\.\.(?!:|\/\.git:)/;
  return !elsewhere.test(text) && !/initializeCommand|localWorkspaceFolder/i.test(text);
}

/** Throws away what was done there. */
export function removeOpened(world: World, stored: StoredTask): boolean {
  const directory = openedDirectory(world, stored.task.id);
  if (!existsSync(directory)) return false;
  removeTree(directory);
  return true;
}

/** Which commit it was made from. */
const MARK = 'ags-opened';

function readMark(directory: string): string {
  try {
    return readFileSync(join(directory, '.git', MARK), 'utf8');
  } catch {
    throw new AgsError('state.damaged', `${directory} was not made by ags, or not to its end.`, {
      hint: 'To make it anew: ags open <task> --fresh',
    });
  }
}

async function riskyPaths(world: World, stored: StoredTask): Promise<string[]> {
  const capture = readCapture(stored);
  if (capture === null) return [];
  const patterns = await riskyPatterns(world, stored.task.project);
  const { changeSet } = await compareWithBase(world, stored, capture, patterns);
  return changeSet.changes.filter(({ lane }) => lane === 'host').map(({ path }) => path);
}
