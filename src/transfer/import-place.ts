// transfer/import-place.ts: finds the repository for an imported task, or makes a new one.
// Invariant: unless the user names a directory, a task goes only into a repository that has the commit it started from.
import { existsSync, mkdirSync, readdirSync, realpathSync, renameSync, rmdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { ExportManifest } from '../protocol/export.ts';
import { visible } from '../lib/sanitize.ts';
import type { Repository } from '../git/repository.ts';
import { checkOut, createRepository } from '../git/staging/new-repository.ts';
import { moveRef, ownerGit } from '../git/owner-git.ts';
import { findProject, requireSuitable } from '../run/project.ts';
import type { HostContext } from '../run/host-context.ts';

export type ImportPlace =
  | {
      readonly kind: 'repository';
      readonly project: string;
      readonly repository: Repository;
      /** True if it has the commit that the work is compared with. */
      readonly hasRoot: boolean;
    }
  | { readonly kind: 'new'; readonly project: string };

export async function findPlace(
  context: HostContext,
  { work }: ExportManifest,
  given: { into: string | undefined; complete: boolean },
): Promise<ImportPlace> {
  const directory = given.into === undefined ? context.cwd : resolve(context.cwd, given.into);
  if (given.into !== undefined && isEmpty(directory)) {
    if (!given.complete) throw needsHistory(directory, work.root);
    const project = newProject(directory);
    requireSuitable(project, context);
    return { kind: 'new', project };
  }
  const { root: project, repository } = await findProject({
    cwd: directory,
    home: context.home,
    stateDir: context.stateDir,
    cacheDir: context.cacheDir,
    dataDir: context.dataDir,
    configHome: context.env['XDG_CONFIG_HOME'],
  });
  if (repository === null)
    throw new AgsError('project.unsuitable', `${visible(directory)} is not a git repository.`, {
      hint: 'Run this in the repository of the task, or create one: ags import <file> --into <new directory>',
    });
  if (repository.objectFormat !== work.objectFormat)
    throw new AgsError(
      'project.unsuitable',
      `The task is of a repository with ${work.objectFormat} ids, and this one has ${repository.objectFormat}.`,
      { hint: 'Create a repository for it: ags import <file> --into <new directory>' },
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

/** Uses the real path, so that no link can redirect it meanwhile. */
function newProject(directory: string): string {
  try {
    return join(realpathSync(dirname(directory)), basename(directory));
  } catch (cause) {
    throw new AgsError('path.not-found', `${visible(dirname(directory))} does not exist.`, {
      hint: `Make it first: mkdir -p ${visible(dirname(directory))}`,
      cause,
    });
  }
}

/** Creates the repository under a temporary name. Returns its git directory. */
export function beginRepository(part: string, { work }: ExportManifest): string {
  mkdirSync(part);
  return createRepository(part, work.objectFormat, mainBranch(work));
}

/** Sets the branch that the task was started from to its commit of that time, and checks out its files. */
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
