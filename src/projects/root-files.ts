// projects/root-files.ts: the names at the root of a project, and the text of a few files there.
// Invariant: only small regular files are read, and no link is followed; anything else counts as empty.
import { isUtf8 } from 'node:buffer';
import { openDirectory } from '../lib/descend.ts';
import type { RootFiles } from '../config/starter/commands.ts';

const MOST_NAMES = 10_000;
const MOST_BYTES = 256 * 1024;

export function readRootFiles(root: string): RootFiles & Disposable {
  const directory = openDirectory(root);
  const names = new Set(directory.list(MOST_NAMES).map(({ name }) => name.toString('utf8')));
  return {
    names,
    text(name) {
      if (!names.has(name)) return '';
      try {
        const bytes = directory.readFile(name, MOST_BYTES);
        return isUtf8(bytes) ? bytes.toString('utf8') : '';
      } catch {
        return '';
      }
    },
    [Symbol.dispose]: () => directory[Symbol.dispose](),
  };
}
