// cli/read-given.ts: reads a file named on the command line.
import { readFileSync } from 'node:fs';
import { AgsError } from '../protocol/errors.ts';
import { errorCode } from '../lib/error-code.ts';

const WHY: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'you may not read it',
  ENOTDIR: 'a part of the path is not a directory',
};

/** `-` is standard input. */
export function readGiven(option: string, path: string): Buffer {
  try {
    return readFileSync(path === '-' ? 0 : path);
  } catch (error) {
    const code = errorCode(error) ?? '';
    throw new AgsError('path.not-found', `${path} cannot be read: ${WHY[code] ?? code}.`, {
      hint: `Check the value of ${option}.`,
    });
  }
}
