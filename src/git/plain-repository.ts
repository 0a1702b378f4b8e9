// git/plain-repository.ts: the ordinary repository, read without starting git: a .git directory that holds everything
// itself, refs in files or in packed-refs. Anything else is null, and is left to git.
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Repository } from './inspect.ts';

export function readPlain(cwd: string): Omit<Repository, 'settings'> | null {
  const root = findRoot(cwd);
  if (root === null) return null;
  const gitDir = join(root, '.git');
  if (['objects', 'refs', 'HEAD'].some((name) => !existsSync(join(gitDir, name))) || ['commondir', 'reftable'].some((name) => existsSync(join(gitDir, name)))) return null;
  const refs = readRefs(gitDir);
  if (refs === null) return null;
  const head = readFileSync(join(gitDir, 'HEAD'), 'latin1').trim();
  const headRef = /^ref: (refs\/.+)$/.exec(head)?.[1] ?? null;
  if (headRef === null && !OID.test(head)) return null;
  return {
    root,
    gitDir,
    commonDir: gitDir,
    objectFormat: 'sha1',
    headRef,
    headCommit: headRef === null ? head : (refs.get(headRef) ?? null),
    refs: [...refs].map(([name, oid]) => ({ name, oid })).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

const OID = /^[0-9a-f]{40}$/;

function findRoot(cwd: string): string | null {
  for (let dir = cwd; ; dir = dirname(dir)) {
    const stat = lstatSync(join(dir, '.git'), { throwIfNoEntry: false });
    if (stat?.isDirectory() === true) return dir;
    // A bare repository, the inside of a git directory, or a .git that is a file or a link.
    if (stat !== undefined || existsSync(join(dir, 'HEAD')) || dir === '/') return null;
  }
}

/** Loose refs win over packed ones. null: something is not as expected. */
function readRefs(gitDir: string): Map<string, string> | null {
  const refs = new Map<string, string>();
  const packed = join(gitDir, 'packed-refs');
  const lines = existsSync(packed) ? readFileSync(packed, 'latin1').split('\n') : [];
  for (const line of lines) {
    if (line === '' || line.startsWith('#') || line.startsWith('^')) continue;
    const name = line.slice(41);
    if (!OID.test(line.slice(0, 40))) return null;
    if (KEPT.some((prefix) => name.startsWith(prefix))) refs.set(name, line.slice(0, 40));
  }
  for (const prefix of KEPT) if (!readLoose(gitDir, prefix.slice(0, -1), refs)) return null;
  return refs;
}

const KEPT = ['refs/heads/', 'refs/remotes/', 'refs/tags/'];

function readLoose(gitDir: string, dir: string, refs: Map<string, string>): boolean {
  if (!existsSync(join(gitDir, dir))) return true;
  for (const entry of readdirSync(join(gitDir, dir), { withFileTypes: true })) {
    const name = `${dir}/${entry.name}`;
    if (entry.isDirectory()) {
      if (!readLoose(gitDir, name, refs)) return false;
      continue;
    }
    const value = readFileSync(join(gitDir, name), 'latin1').trim();
    // refs/remotes/origin/HEAD points at another ref; inside it is of no use.
    if (value.startsWith('ref: ') || name.endsWith('.lock')) continue;
    if (!OID.test(value)) return false;
    refs.set(name, value);
  }
  return true;
}
