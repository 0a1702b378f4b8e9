// projects/known-projects.ts: the projects that are known: those somebody added, and those that tasks were started in.
// Invariant: a project is named by what its path says, so that it has the same name on every start; adding and removing one never
// touches its files.
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { replaceFile } from '../lib/files.ts';
import { shortHash } from '../lib/short-hash.ts';
import { slug } from '../store/tasks.ts';
import { findProject, repositoryAt } from '../run/project.ts';
import type { World } from '../run/host-context.ts';

export interface KnownProject {
  readonly id: string;
  readonly path: string;
  /** Where it was cloned from, if that was done by ags. */
  readonly url: string | null;
}

export function projectId(path: string): string {
  return `${slug(basename(path), 30)}-${shortHash(path).slice(-6)}`;
}

export function readProjects(world: Pick<World, 'stateDir'>): KnownProject[] {
  const file = listFile(world);
  if (!existsSync(file)) return [];
  try {
    const { projects } = JSON.parse(readFileSync(file, 'utf8')) as {
      projects: { path: string; url?: string | null }[];
    };
    return projects.map(({ path, url }) => ({ id: projectId(path), path, url: url ?? null }));
  } catch (cause) {
    throw new AgsError('state.damaged', `${file} cannot be read.`, { hint: 'Look at it, then remove it.', cause });
  }
}

/** A directory of this machine; what is inside a repository means the repository. */
export async function addProject(world: World, path: string): Promise<KnownProject> {
  if (!path.startsWith('/') && !path.startsWith('~/'))
    throw new AgsError('usage.invalid', 'The path of a project begins with "/" or "~/".');
  const at = resolve(path.replace(/^~\//, `${world.home}/`));
  if (statSync(at, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new AgsError('path.not-found', `There is no directory ${at}.`, {
      hint: 'Name a directory of this machine, or the address of a repository.',
    });
  const { root, repository } = await findProject({ ...world, cwd: at, configHome: world.env['XDG_CONFIG_HOME'] });
  if (repository === null)
    throw new AgsError('project.unsuitable', `${root} is not a git repository.`, {
      hint: 'Agents work on commits: git init && git add -A && git commit -m "Start"',
    });
  return keepProject(world, { path: root, url: null });
}

export function keepProject(world: World, { path, url }: { path: string; url: string | null }): KnownProject {
  const project = { id: projectId(path), path, url };
  const others = readProjects(world).filter((one) => one.path !== path);
  const before = readProjects(world).find((one) => one.path === path);
  write(world, [...others, { ...project, url: url ?? before?.url ?? null }]);
  return project;
}

/** Out of the list; its files and tasks stay. */
export function forgetProject(world: World, id: string): boolean {
  const projects = readProjects(world);
  const left = projects.filter((one) => one.id !== id);
  write(world, left);
  return left.length < projects.length;
}

export async function projectBranches(
  world: World,
  path: string,
): Promise<{ current: string | null; branches: string[] }> {
  const repository = await repositoryAt(world, path);
  const short = (ref: string): string => ref.replace('refs/heads/', '');
  return {
    current: repository?.headRef == null ? null : short(repository.headRef),
    branches: (repository?.refs ?? []).flatMap(({ name }) =>
      name.startsWith('refs/heads/') && !name.startsWith('refs/heads/ags/') ? [short(name)] : [],
    ),
  };
}

function write(world: Pick<World, 'stateDir'>, projects: readonly KnownProject[]): void {
  const file = listFile(world);
  mkdirSync(join(world.stateDir, 'server'), { recursive: true, mode: 0o700 });
  replaceFile(
    file,
    `${JSON.stringify({ version: 1, projects: projects.map(({ path, url }) => ({ path, url })) }, null, 1)}\n`,
  );
}

function listFile({ stateDir }: Pick<World, 'stateDir'>): string {
  return join(stateDir, 'server/projects.json');
}
