// projects/clone-project.ts: a repository from elsewhere becomes a project: cloned by the user's own git, with the user's own credentials,
// outside of any sandbox.
// Invariant: the address is one of a repository elsewhere, never a command or an option of git; half a clone is never a project.
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { removeTree } from '../lib/files.ts';
import { visible } from '../lib/sanitize.ts';
import { cloneWithUserGit } from '../git/clone.ts';
import { slug } from '../store/tasks.ts';
import { CLONES } from '../run/project.ts';
import type { World } from '../run/host-context.ts';

/** Where it will be. Throws if the address cannot be one. */
export function planClone(world: World, url: string): { url: string; path: string } {
  requireAddress(url);
  const words = url.replace(/\/+$/, '').replace(/\.git$/, '');
  const name = slug(basename(words.replace(/^[^/]*:/, '/')), 40);
  const place = join(world.dataDir, CLONES);
  for (let i = 1; ; i++) {
    const path = join(place, i === 1 ? name : `${name}-${i}`);
    if (!existsSync(path)) return { url, path };
  }
}

export async function cloneProject(
  world: World,
  plan: { url: string; path: string },
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  mkdirSync(dirname(plan.path), { recursive: true, mode: 0o700 });
  const making = `${plan.path}.${process.pid}.part`;
  removeTree(making);
  try {
    const { exitCode, said } = await cloneWithUserGit({
      url: plan.url,
      to: making,
      env: world.env,
      signal,
      onProgress: (line) => onProgress(visible(line)),
    });
    if (exitCode !== 0)
      throw new AgsError('project.unsuitable', `It could not be cloned: ${visible(said)}`, {
        hint: `Try it yourself: git clone -- ${visible(plan.url)}`,
      });
    renameSync(making, plan.path);
  } finally {
    removeTree(making);
  }
}

/** https, ssh (also user@host:path), git, file. Not ext::, which names a command, nor anything that git would take for an option. */
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
