// git/copy-real.ts: copies out of a git directory that somebody else may have packed.
// Invariant: only files and directories that are there themselves. A link could name any file of the user's, and a pipe would
// never end.
import { constants, copyFileSync, lstatSync, mkdirSync, readdirSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { errorCode } from '../lib/error-code.ts';
import { visible } from '../lib/sanitize.ts';

/** The file or directory `name` below `from`, to the same name below `to`. Whatever else it is, nothing. */
export function copyReal(from: string, name: string, to: string): void {
  const stat = realStat(from, name);
  if (stat?.isFile() === true) copyFile(join(from, name), join(to, name));
  else if (stat?.isDirectory() === true) {
    mkdirSync(join(to, name), { recursive: true });
    for (const entry of readdirSync(join(from, name))) copyReal(from, `${name}/${entry}`, to);
  }
}

function copyFile(from: string, to: string): void {
  try {
    copyFileSync(from, to, constants.COPYFILE_FICLONE);
  } catch (error) {
    if (errorCode(error) !== 'EACCES') throw error;
    throw new AgsError('project.unsuitable', `${visible(from)} cannot be read.`, {
      hint: 'Try: git status',
      cause: error,
    });
  }
}

/** Its path, if it is a file. */
export function realFile(from: string, name: string): string | null {
  return realStat(from, name)?.isFile() === true ? join(from, name) : null;
}

/** Undefined also if one of the directories on the way to it is a link. */
function realStat(from: string, name: string): Stats | undefined {
  const names = name.split('/');
  for (let i = 1; i < names.length; i++)
    if (lstatSync(join(from, ...names.slice(0, i)), { throwIfNoEntry: false })?.isDirectory() !== true)
      return undefined;
  return lstatSync(join(from, name), { throwIfNoEntry: false });
}
