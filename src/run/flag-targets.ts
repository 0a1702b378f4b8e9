// run/flag-targets.ts: what flags of a command name and is not there. A missing mount is an error; variables and files to reveal may be
// missing on purpose, in a script for several machines, so ags only says so.
import { existsSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import type { ConfigFlags, EffectiveConfig } from '../config/effective.ts';
import { userGit } from '../git/host-git.ts';
import { visible } from '../lib/sanitize.ts';
import { AgsError } from '../protocol/errors.ts';
import type { HostContext } from './host-context.ts';
import type { Project } from './project.ts';

/** Sentences. A task sees the files of a commit, any other sandbox those of the project as they are (`live`). */
export async function missingTargets(
  context: HostContext,
  { envPass = [], reveal = [] }: ConfigFlags,
  project: Project,
  live: boolean,
): Promise<string[]> {
  const unset = envPass
    .filter((name) => !Object.keys(context.env).some((one) => matches(name, one)))
    .map((name) => `--env ${visible(name)}: no such variable is set, so none is passed on.`);
  const nowhere = await Promise.all(
    reveal.map(async (pattern) => {
      if (pattern.startsWith('!') || (await isInProject(context, pattern, project, live))) return [];
      return [`--reveal ${visible(pattern)}: ${whyNot(pattern, project, live)}`];
    }),
  );
  return [...unset, ...nowhere.flat()];
}

/** Optional mounts belong to the programs of this machine, so a sandbox over an image has none. */
export function presentMounts({ mounts, origins }: EffectiveConfig, overImage: boolean): string[] {
  return mounts
    .filter(({ path, optional }, i) => {
      if (overImage && optional) return false;
      if (existsSync(path)) return true;
      if (optional) return false;
      const origin = origins[`mounts[${i}]`] ?? '--mount';
      throw new AgsError('config.invalid', `${path} cannot be mounted: there is no such file or directory.`, {
        hint: `Correct ${origin === '--mount' ? origin : `"mounts" (${origin})`}.`,
      });
    })
    .map(({ path }) => path);
}

function matches(name: string, one: string): boolean {
  return name.endsWith('*') ? one.startsWith(name.slice(0, -1)) : name === one;
}

async function isInProject(
  context: HostContext,
  pattern: string,
  { root, repository }: Project,
  live: boolean,
): Promise<boolean> {
  const path = pattern.replace(/^\/|\/$/g, '');
  if (live && !/[*?]/.test(path) && existsSync(join(root, path))) return true;
  // Without a repository, only a walk would tell.
  if (repository === null) return !path.includes('/') || /[*?]/.test(path);
  const anchored = pattern.startsWith('/') || path.includes('/');
  const spec = `:(glob,icase)${anchored ? '' : '**/'}${path}`;
  const listed = await userGit(['ls-files', '-z', live ? '-co' : '-c', '--', spec, `${spec}/**`], {
    cwd: root,
    home: context.home,
  });
  return listed.exitCode !== 0 || listed.stdout.length > 0;
}

function whyNot(pattern: string, { root }: Project, live: boolean): string {
  const path = pattern.replace(/\/$/, '');
  if (isAbsolute(path) && existsSync(path))
    return `it is not in the project; for other files: --mount ${visible(pattern)}`;
  if (!live && existsSync(join(root, path)))
    return 'it is not in a commit, and a task sees only committed files. Pass its values with --env.';
  return 'the project has no such file.';
}
