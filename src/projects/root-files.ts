// projects/root-files.ts: the names at the root of a project and in its directories, and the text of a few files there.
// Invariant: only small regular files are read, and no link is followed; anything else counts as empty.
import { isUtf8 } from 'node:buffer';
import { openDirectory, type Directory } from '../lib/descend.ts';
import type { RootFiles } from '../config/starter/commands.ts';

const MOST_NAMES = 10_000;
const MOST_PARTS = 100;
const MOST_BYTES = 256 * 1024;
/** Where files of others are. */
const LEFT_OUT: readonly string[] = ['node_modules', 'vendor', 'third_party', 'dist', 'build', 'target', 'examples'];

export function readRootFiles(root: string): RootFiles & Disposable {
  const opened: Directory[] = [openDirectory(root)];
  const dispose = (): void => {
    for (const one of opened) one[Symbol.dispose]();
  };
  try {
    const [directory] = opened as [Directory];
    const listed = directory.list(MOST_NAMES);
    const parts = listed
      .filter(({ isDirectory }) => isDirectory)
      .map(({ name }) => name.toString('utf8'))
      .filter((name) => !name.startsWith('.') && !LEFT_OUT.includes(name))
      .toSorted()
      .slice(0, MOST_PARTS)
      .flatMap((name) => {
        try {
          const child = directory.child(name);
          opened.push(child);
          return [{ name, files: filesIn(child, child.list(MOST_NAMES)) }];
        } catch {
          // It may not be read, or is no directory any more.
          return [];
        }
      });
    return { ...filesIn(directory, listed), parts, [Symbol.dispose]: dispose };
  } catch (error) {
    dispose();
    throw error;
  }
}

function filesIn(directory: Directory, listed: ReturnType<Directory['list']>): RootFiles {
  const names = new Set(listed.map(({ name }) => name.toString('utf8')));
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
  };
}
