// git/copy-real.ts: copies out of a git directory that a stranger may have packed.
// Invariant: it copies only real files and directories. A link could name any file of the user, and reading a pipe would never end.
import { constants, copyFileSync, lstatSync, mkdirSync, readdirSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { errorCode } from '../lib/error-code.ts';
import { visible } from '../lib/sanitize.ts';

/** Copies the file or directory `name` below `from` to the same name below `to`. Copies nothing else, such as links. */
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

/** Returns its path if it is a real file. */
export function realFile(from: string, name: string): string | null {
  return realStat(from, name)?.isFile() === true ? join(from, name) : null;
}

/** Undefined also if a directory of its path is a link. */
function realStat(from: string, name: string): Stats | undefined {
  const names = name.split('/');
  for (let i = 1; i < names.length; i++)
    if (lstatSync(join(from, ...names.slice(0, i)), { throwIfNoEntry: false })?.isDirectory() !== true)
      return undefined;
  return lstatSync(join(from, name), { throwIfNoEntry: false });
}
