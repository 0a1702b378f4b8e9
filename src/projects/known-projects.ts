// projects/known-projects.ts: the list of projects that users added or started tasks in.
// Invariant: a project's ID is computed from its path, so it is the same on every start. Adding and removing a project never
// touches its files.
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { replaceFile } from '../lib/files.ts';
import { shortHash } from '../lib/short-hash.ts';
import { slug } from '../store/tasks.ts';
import { findProject, repositoryAt } from '../run/project.ts';
import type { HostContext } from '../run/host-context.ts';

export interface KnownProject {
  readonly id: string;
  readonly path: string;
  /** The address that ags cloned it from; null: ags did not clone it. */
  readonly url: string | null;
}

export function projectId(path: string): string {
  return `${slug(basename(path), 30)}-${shortHash(path).slice(-6)}`;
}

export function readProjects(context: Pick<HostContext, 'stateDir'>): KnownProject[] {
  const file = listFile(context);
  if (!existsSync(file)) return [];
  try {
    const { projects } = JSON.parse(readFileSync(file, 'utf8')) as {
      projects: { path: string; url?: string | null }[];
    };
    return projects.map(({ path, url }) => ({ id: projectId(path), path, url: url ?? null }));
  } catch (cause) {
    throw new AgsError('state.damaged', `${file} cannot be read.`, {
      hint: `Inspect the file, then remove it: rm ${file}`,
      cause,
    });
  }
}

/** A directory inside a repository stands for the whole repository. */
export async function addProject(context: HostContext, path: string): Promise<KnownProject> {
  if (!path.startsWith('/') && !path.startsWith('~/'))
    throw new AgsError('usage.invalid', 'The path of a project begins with "/" or "~/".');
  const at = resolve(path.replace(/^~\//, `${context.home}/`));
  if (statSync(at, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new AgsError('path.not-found', `There is no directory ${at}.`, {
      hint: 'Give an existing directory, or the address of a repository.',
    });
  const { root, repository } = await findProject({ ...context, cwd: at, configHome: context.env['XDG_CONFIG_HOME'] });
  if (repository === null)
    throw new AgsError('project.unsuitable', `${root} is not a git repository.`, {
      hint: 'Agents work on commits: git init && git add -A && git commit -m "Start"',
    });
  return keepProject(context, { path: root, url: null });
}

export function keepProject(context: HostContext, { path, url }: { path: string; url: string | null }): KnownProject {
  const project = { id: projectId(path), path, url };
  const others = readProjects(context).filter((one) => one.path !== path);
  const before = readProjects(context).find((one) => one.path === path);
  write(context, [...others, { ...project, url: url ?? before?.url ?? null }]);
  return project;
}

/** Removes the project from the list; its files and tasks stay. */
export function forgetProject(context: HostContext, id: string): boolean {
  const projects = readProjects(context);
  const left = projects.filter((one) => one.id !== id);
  write(context, left);
  return left.length < projects.length;
}

export async function projectBranches(
  context: HostContext,
  path: string,
): Promise<{ current: string | null; branches: string[] }> {
  const repository = await repositoryAt(context, path);
  const short = (ref: string): string => ref.replace('refs/heads/', '');
  return {
    current: repository?.headRef == null ? null : short(repository.headRef),
    branches: (repository?.refs ?? []).flatMap(({ name }) =>
      name.startsWith('refs/heads/') && !name.startsWith('refs/heads/ags/') ? [short(name)] : [],
    ),
  };
}

function write(context: Pick<HostContext, 'stateDir'>, projects: readonly KnownProject[]): void {
  const file = listFile(context);
  mkdirSync(join(context.stateDir, 'server'), { recursive: true, mode: 0o700 });
  replaceFile(
    file,
    `${JSON.stringify({ version: 1, projects: projects.map(({ path, url }) => ({ path, url })) }, null, 1)}\n`,
  );
}

function listFile({ stateDir }: Pick<HostContext, 'stateDir'>): string {
  return join(stateDir, 'server/projects.json');
}
