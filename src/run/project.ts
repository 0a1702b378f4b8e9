// run/project.ts: finds the project's directory and refuses unsuitable ones.
import { realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { directoryIdentity, isWithin } from '../lib/files.ts';
import { inspectRepository } from '../git/inspect.ts';
import type { Repository } from '../git/repository.ts';

/** Subdirectory of the data directory for repositories that ags has cloned. */
export const CLONES = 'projects';

export interface Project {
  readonly root: string;
  /** Identity of the root when it was inspected. */
  readonly identity: string;
  readonly repository: Repository | null;
}

export async function findProject(input: {
  cwd: string;
  home: string;
  stateDir: string;
  cacheDir: string;
  /** Holds agents' programs that later sandboxes start, so no project may be there. */
  dataDir?: string;
  configHome?: string | undefined;
}): Promise<Project> {
  // Creating a directory there would hang.
  if (/^\/(proc|sys)(\/|$)/.test(input.stateDir))
    throw new AgsError('project.unsuitable', `The state of ags cannot be kept in ${input.stateDir}.`, {
      hint: 'Set XDG_STATE_HOME to a directory of your own, or unset it.',
    });
  const cwd = realDirectory(input.cwd);
  const repository = await inspectRepository(cwd, input);
  const root = repository?.root ?? cwd;
  const identity = directoryIdentity(root);
  requireSuitable(root, input);
  return { root, identity, repository };
}

/** Throws if no project may be at this path, whether it exists or not. */
export function requireSuitable(root: string, input: { home: string; stateDir: string; dataDir?: string }): void {
  const problem = unsuitable(root, input);
  if (problem !== null) throw problem;
}

/** null: the directory is in no repository. */
export function repositoryAt(
  context: {
    readonly home: string;
    readonly cacheDir: string;
    readonly env: Readonly<Record<string, string | undefined>>;
  },
  directory: string,
): Promise<Repository | null> {
  return inspectRepository(directory, {
    home: context.home,
    configHome: context.env['XDG_CONFIG_HOME'],
    cacheDir: context.cacheDir,
  });
}

function realDirectory(path: string): string {
  const real = tryReal(path);
  if (real === null || !statSync(real).isDirectory())
    throw new AgsError('project.unsuitable', `${path} is not a directory.`, {
      hint: 'Run ags in the directory of your project, or name one: ags exec --project <directory> -- <command>',
    });
  return real;
}

function tryReal(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

const NEVER = [
  '/',
  '/usr',
  '/etc',
  '/var',
  '/bin',
  '/sbin',
  '/lib',
  '/opt',
  '/boot',
  '/home',
  '/root',
  '/tmp',
  '/run',
  '/mnt',
  '/media',
  '/srv',
];
const NEVER_BELOW = ['/proc', '/sys', '/dev', '/etc'];

function unsuitable(
  root: string,
  { home, stateDir, dataDir }: { home: string; stateDir: string; dataDir?: string },
): AgsError | null {
  const realHome = tryReal(home) ?? home;
  const realState = tryReal(stateDir) ?? stateDir;
  const hint =
    'Change to the directory of one project first. Any directory below your home will do, with or without git.';
  if (isWithin(realHome, root))
    return new AgsError(
      'project.unsuitable',
      `${root} contains your whole home directory; a sandbox over it would show everything in it.`,
      { hint },
    );
  if (NEVER.includes(root) || NEVER_BELOW.some((dir) => isWithin(root, dir)))
    return new AgsError('project.unsuitable', `${root} is a system directory, not a project.`, { hint });
  if (isWithin(realState, root) || isWithin(root, realState))
    return new AgsError('project.unsuitable', `${root} overlaps the state directory of ags (${realState}).`, {
      hint: 'Put the state elsewhere: set XDG_STATE_HOME',
    });
  const realData = dataDir === undefined ? null : (tryReal(dataDir) ?? dataDir);
  // Clones are there as well, each in its own directory beside the programs.
  const isClone = realData !== null && isWithin(root, join(realData, CLONES)) && root !== join(realData, CLONES);
  if (realData !== null && !isClone && (isWithin(realData, root) || isWithin(root, realData)))
    return new AgsError('project.unsuitable', `${root} overlaps the programs that ags has installed (${realData}).`, {
      hint: 'Put them elsewhere: set XDG_DATA_HOME',
    });
  return null;
}
