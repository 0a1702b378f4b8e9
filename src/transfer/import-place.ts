// transfer/import-place.ts: where an imported task goes: a repository that is there, or one that is made for it.
// Invariant: without being told so, a task goes only into a repository that has the commit it started from.
import { existsSync, mkdirSync, readdirSync, realpathSync, renameSync, rmdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { ExportManifest } from '../protocol/export.ts';
import { visible } from '../lib/sanitize.ts';
import type { Repository } from '../git/inspect.ts';
import { checkOut, createRepository } from '../git/staging/new-repository.ts';
import { moveRef, ownerGit } from '../git/owner-git.ts';
import { findProject, requireSuitable } from '../run/project.ts';
import type { World } from '../run/host-context.ts';

export type ImportPlace =
  | {
      readonly kind: 'repository';
      readonly project: string;
      readonly repository: Repository;
      /** It has the commit that everything is compared with. */
      readonly hasRoot: boolean;
    }
  | { readonly kind: 'new'; readonly project: string };

export async function findPlace(
  world: World,
  { work }: ExportManifest,
  given: { into: string | undefined; complete: boolean },
): Promise<ImportPlace> {
  const directory = given.into === undefined ? world.cwd : resolve(world.cwd, given.into);
  if (given.into !== undefined && isEmpty(directory)) {
    if (!given.complete) throw needsHistory(directory, work.root);
    const project = newProject(directory);
    requireSuitable(project, world);
    return { kind: 'new', project };
  }
  const { root: project, repository } = await findProject({
    cwd: directory,
    home: world.home,
    stateDir: world.stateDir,
    cacheDir: world.cacheDir,
    dataDir: world.dataDir,
    configHome: world.env['XDG_CONFIG_HOME'],
  });
  if (repository === null)
    throw new AgsError('project.unsuitable', `${visible(directory)} is not a git repository.`, {
      hint: 'Go into the repository of the task, or have one made: ags import <file> --into <new directory>',
    });
  if (repository.objectFormat !== work.objectFormat)
    throw new AgsError(
      'project.unsuitable',
      `The task is of a repository with ${work.objectFormat} ids, and this one has ${repository.objectFormat}.`,
      { hint: 'Have a repository made for it: ags import <file> --into <new directory>' },
    );
  const hasRoot = (await ownerGit(repository.commonDir, ['cat-file', '-e', `${work.root}^{commit}`])).exitCode === 0;
  if (!hasRoot && (given.into === undefined || !given.complete)) throw needsHistory(project, work.root);
  return { kind: 'repository', project, repository, hasRoot };
}

function needsHistory(directory: string, commit: string): AgsError {
  return new AgsError(
    'project.unsuitable',
    `${visible(directory)} does not have the commit ${commit.slice(0, 10)}, which the task started from.`,
    {
      hint: 'Is this the right repository? Fetch it (git fetch --all) and try again, or, if the file has the history (no --thin), name a directory: --into <directory>',
    },
  );
}

function isEmpty(directory: string): boolean {
  const stat = statSync(directory, { throwIfNoEntry: false });
  return stat === undefined || (stat.isDirectory() && readdirSync(directory).length === 0);
}

/** By its real path, which nobody can turn elsewhere while it is made. */
function newProject(directory: string): string {
  try {
    return join(realpathSync(dirname(directory)), basename(directory));
  } catch (cause) {
    throw new AgsError('path.not-found', `${visible(dirname(directory))} is not there.`, {
      hint: `Make it first: mkdir -p ${visible(dirname(directory))}`,
      cause,
    });
  }
}

/** Under a name that is no project's yet. Returns its git directory. */
export function beginRepository(part: string, { work }: ExportManifest): string {
  mkdirSync(part);
  return createRepository(part, work.objectFormat, mainBranch(work));
}

/** The branch that the task was started from, as it was then, with its files. */
export async function fillRepository(part: string, { work }: ExportManifest): Promise<void> {
  const ref = `refs/heads/${mainBranch(work)}`;
  await moveRef(join(part, '.git'), ref, null, work.root, 'ags: import');
  await checkOut(part, work.root);
}

export function moveRepository(part: string, project: string): void {
  if (existsSync(project)) rmdirSync(project);
  renameSync(part, project);
}

export function mainBranch({ branch }: Pick<ExportManifest['work'], 'branch'>): string {
  return branch === null || branch.startsWith('ags/') ? 'main' : branch;
}
