// run/hidden-files.ts: the files of a project that its sandbox does not see.
// Tracked files are part of the code and stay visible, whatever their name; they are reported instead. Files that the user asked
// to hide are always hidden.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { remember } from '../lib/remember.ts';
import { shortHash } from '../lib/short-hash.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { HIDE } from '../config/defaults.ts';
import { compileHidden, compilePatterns, type Matcher } from '../config/patterns.ts';
import { userGit } from '../git/host-git.ts';
import { readScanMemory, scanHidden } from '../sandbox/spec/hidden-scan.ts';
import type { Project } from './project.ts';
import type { HostContext } from './host-context.ts';

export interface HiddenFiles {
  /** Relative to the project; files, sockets and whole directories. */
  readonly paths: readonly string[];
  /** Tracked files whose names look like secrets. */
  readonly trackedSecrets: readonly string[];
}

export async function findHidden(
  context: HostContext,
  project: Project,
  config: EffectiveConfig,
): Promise<HiddenFiles> {
  const hide = [...GIT_SETTINGS, ...config.hide];
  const skipGit = project.repository !== null;
  const key = JSON.stringify([project.root, skipGit, hide, config.reveal]);
  const memoryFile = join(context.cacheDir, `scan-${shortHash(project.root)}.json`);
  const scan = scanHidden({
    project: project.root,
    matches: lazily(() => compileHidden(hide, config.reveal)),
    skipGit,
    key,
    memory: readScanMemory(memoryFile),
    nowMs: context.now().getTime(),
  });
  if (scan.changed) remember(memoryFile, JSON.stringify(scan.memory));
  const named = scan.found.filter((hit) => hit.why === 'pattern' && !IN_GIT.test(hit.path)).map((hit) => hit.path);
  const tracked = await trackedAmong(context, project, named);
  const asked = compilePatterns(config.hide.slice(HIDE.length));
  const wanted = new Set(scan.found.filter((hit) => asked(hit.path, hit.directory)).map((hit) => hit.path));
  const isTracked = (path: string): boolean =>
    !wanted.has(path) && tracked.some((file) => file === path || file.startsWith(`${path}/`));
  return {
    paths: scan.found.flatMap((hit) => {
      if (!isTracked(hit.path)) return [hit.path];
      return hit.directory ? untrackedBelow(project.root, hit.path, new Set(tracked)) : [];
    }),
    trackedSecrets: tracked.filter((file) => ![...wanted].some((path) => file === path || file.startsWith(`${path}/`))),
  };
}

// Settings of repositories within the project: their URLs often contain a password, and a header may be one. Without settings
// git treats them as ordinary repositories. The exceptions are for branches called "config".
const GIT_SETTINGS = [
  '**/.git/config',
  '**/.git/config.worktree',
  '**/.git/worktrees/*/config.worktree',
  '**/.git/modules/**/config',
  '**/.git/modules/**/config.worktree',
  '**/.git/remotes/',
  '**/.git/branches/',
  '!**/.git/modules/**/refs/**',
  '!**/.git/modules/**/logs/**',
];

/** Never tracked, so git need not be asked. */
const IN_GIT = /(^|\/)\.git\//;

/** One tracked file does not reveal a directory of secrets: every other file in it stays hidden. */
function untrackedBelow(root: string, dir: string, tracked: ReadonlySet<string>): string[] {
  return readdirSync(join(root, dir), { withFileTypes: true }).flatMap((entry) => {
    const path = `${dir}/${entry.name}`;
    if (entry.isDirectory()) return untrackedBelow(root, path, tracked);
    return tracked.has(path) ? [] : [path];
  });
}

async function trackedAmong(context: HostContext, project: Project, paths: readonly string[]): Promise<string[]> {
  if (project.repository === null || paths.length === 0) return [];
  const listing = await userGit(['--literal-pathspecs', 'ls-files', '-z', '--', ...paths], {
    cwd: project.root,
    home: context.home,
  });
  return listing.stdout
    .toString('utf8')
    .split('\0')
    .filter((path) => path !== '');
}

/** Compiles the patterns when the first name is checked, which a remembered scan makes rare. */
function lazily(make: () => Matcher): Matcher {
  let made: Matcher | null = null;
  return (path, isDirectory) => (made ??= make())(path, isDirectory);
}
