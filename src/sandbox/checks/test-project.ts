// sandbox/checks/test-project.ts: the small project of a test sandbox, and a check that the project is unchanged.
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Files that the script in evidence.ts changes, deletes and must never see. */
const FILES: Readonly<Record<string, string>> = {
  kept: 'as it was\n',
  gone: 'to be deleted\n',
  'dir/inner': 'to be deleted with its directory\n',
  secret: 'never to be seen\n',
};
export const HIDDEN = ['secret'] as const;

export function writeProject(root: string): void {
  for (const [path, content] of Object.entries(FILES)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}

export function isUntouched(root: string): boolean {
  const names = new Set(Object.keys(FILES).map((path) => path.split('/')[0]));
  return (
    readdirSync(root).length === names.size &&
    Object.entries(FILES).every(([path, content]) => holds(join(root, path), content))
  );
}

function holds(path: string, content: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true && readFileSync(path, 'utf8') === content;
}
