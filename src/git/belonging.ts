// git/belonging.ts: checks that a git directory belongs to the work tree that leads to it. A project may come from an archive whose
// .git a stranger made, and which may name any repository of the user.
// Invariant: a git directory outside the project is trusted only if it names the project in turn, because only its owner can have
// written that. Git does so for linked worktrees (worktrees/<id>/gitdir) and for submodules (core.worktree).
import { lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';

export interface Claim {
  /** All three paths are free of symbolic links. */
  readonly root: string;
  readonly gitDir: string;
  readonly commonDir: string;
  /** The setting core.worktree. */
  readonly worktree: string | undefined;
}

/** Throws unless git's own files on both sides name each other. */
export function requireBelonging(claim: Claim): void {
  const { root, gitDir, commonDir } = claim;
  const dotGit = join(root, '.git');
  const there = lstatSync(dotGit, { throwIfNoEntry: false });
  if (there === undefined || (there.isDirectory() && gitDir !== dotGit)) throw elsewhere(claim);
  if (gitDir !== commonDir ? !isLinked(claim) : gitDir !== dotGit && !isNamed(claim)) throw foreign(claim);
  for (const [base, name] of [
    [gitDir, 'HEAD'],
    ...['packed-refs', 'refs', 'reftable'].map((file) => [commonDir, file] as const),
  ] as const)
    requireOwnLinks(base, name);
}

/** A linked worktree: the main repository names exactly this .git. */
function isLinked({ root, gitDir, commonDir }: Claim): boolean {
  if (dirname(gitDir) !== join(commonDir, 'worktrees')) return false;
  const pointer = readText(join(gitDir, 'gitdir'));
  if (pointer === null) return false;
  const named = resolve(gitDir, pointer);
  return basename(named) === '.git' && realPath(dirname(named)) === root;
}

/** A submodule, or a separate git directory whose settings name this work tree. */
function isNamed({ root, gitDir, worktree }: Claim): boolean {
  return worktree !== undefined && realPath(resolve(gitDir, worktree)) === root;
}

/** Refuses links that lead outside: through one, git would read the branches of another repository as its own. */
function requireOwnLinks(base: string, name: string): void {
  const path = join(base, name);
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isSymbolicLink() === true) {
    const target = realPath(path);
    if (target !== null && !target.startsWith(`${base}/`))
      throw new AgsError('project.unsuitable', `${visible(path)} is a link to ${visible(target)}, which is outside.`, {
        hint: 'Put the files themselves in its place, if they are yours.',
      });
  } else if (stat?.isDirectory() === true) {
    for (const entry of readdirSync(path)) requireOwnLinks(base, `${name}/${entry}`);
  }
}

function readText(path: string): string | null {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true ? readFileSync(path, 'utf8').trim() : null;
}

/** Returns null if nothing is there, or if it may not be read. */
export function realPath(path: string): string | null {
  try {
    return realpathSync.native(path);
  } catch {
    return null;
  }
}

function elsewhere({ root, gitDir }: Claim): AgsError {
  return new AgsError(
    'project.unsuitable',
    `The settings of ${visible(gitDir)} say that its files are in ${visible(root)}, which has no .git that leads there.`,
    { hint: `If they are wrong: git config --file ${visible(join(gitDir, 'config'))} --unset core.worktree` },
  );
}

function foreign({ root, gitDir, commonDir }: Claim): AgsError {
  const other = basename(commonDir) === '.git' && dirname(commonDir) !== root;
  return new AgsError(
    'project.unsuitable',
    `${visible(join(root, '.git'))} leads to the repository ${visible(commonDir)}, which does not know of this directory.`,
    {
      hint:
        gitDir === commonDir && !other
          ? `If you have put it there yourself: git config core.worktree ${visible(root)}`
          : 'A linked worktree that was moved is mended by: git worktree repair\nIf it is no linked worktree, a stranger made this .git: remove it, and use the files without it.',
    },
  );
}
