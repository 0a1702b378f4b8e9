// projects/clone-project.ts: clones a repository and makes it a project. The user's own git clones it with the user's own
// credentials, outside of any sandbox.
// Invariant: the address names a repository, never a command or an option of git. An unfinished clone is never a project.
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { removeTree } from '../lib/files.ts';
import { visible } from '../lib/sanitize.ts';
import { cloneWithUserGit } from '../git/clone.ts';
import { slug } from '../store/tasks.ts';
import { CLONES } from '../run/project.ts';
import type { HostContext } from '../run/host-context.ts';

/** Chooses a free directory. Throws if the address is not one of a repository. */
export function planClone(context: HostContext, url: string): { url: string; path: string } {
  requireAddress(url);
  const address = url.replace(/\/+$/, '').replace(/\.git$/, '');
  const name = slug(basename(address.replace(/^[^/]*:/, '/')), 40);
  const clones = join(context.dataDir, CLONES);
  for (let i = 1; ; i++) {
    const path = join(clones, i === 1 ? name : `${name}-${i}`);
    if (!existsSync(path)) return { url, path };
  }
}

export async function cloneProject(
  context: HostContext,
  plan: { url: string; path: string },
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  mkdirSync(dirname(plan.path), { recursive: true, mode: 0o700 });
  const unfinished = `${plan.path}.${process.pid}.part`;
  removeTree(unfinished);
  try {
    const { exitCode, said } = await cloneWithUserGit({
      url: plan.url,
      to: unfinished,
      env: context.env,
      signal,
      onProgress: (line) => onProgress(visible(line)),
    });
    if (exitCode !== 0)
      throw new AgsError('project.unsuitable', `git clone failed: ${visible(said)}`, {
        hint: `Try it yourself: git clone -- ${visible(plan.url)}`,
      });
    renameSync(unfinished, plan.path);
  } finally {
    removeTree(unfinished);
  }
}

/** Accepts https, ssh (also user@host:path), git and file. Refuses ext::, which names a command, and anything git would read as an option. */
function requireAddress(url: string): void {
  const known = /^(?:https|ssh|git|file):\/\/[^\s]+$/.test(url) || /^[\w.-]+@[\w.-]+:[^\s:][^\s]*$/.test(url);
  const odd = url.startsWith('-') || url.includes('::') || url.length > 2000 || /[\0-\x20\x7f]/.test(url);
  // A host that begins with a dash would become an option of ssh.
  const host = /^(?:[a-z]+:\/\/)?(?:[^@/]*@)?([^/:]*)/.exec(url)?.[1] ?? '';
  if (known && !odd && !host.startsWith('-')) return;
  throw new AgsError('usage.invalid', `"${visible(url)}" is not the address of a repository.`, {
    hint: 'It begins with https://, ssh://, git:// or file://, or is like git@example.com:team/app.git',
  });
}
