// git/plain-repository.ts: the ordinary repository, read without starting git: a .git directory that holds everything
// itself, refs in files or in packed-refs. Anything else is null, and is left to git.
// Invariant: what is not null is what git itself would say. Whatever git might read in another way is null.
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorCode } from '../lib/error-code.ts';
import type { Repository } from './inspect.ts';

export function readPlain(cwd: string): Omit<Repository, 'settings'> | null {
  try {
    return readOrdinary(cwd);
  } catch (error) {
    // The user's own git may be at work: a ref that was listed is packed or deleted before it is read.
    if (errorCode(error) === undefined) throw error;
    return null;
  }
}

function readOrdinary(cwd: string): Omit<Repository, 'settings'> | null {
  const root = findRoot(cwd);
  if (root === null) return null;
  const gitDir = join(root, '.git');
  if (
    // What is linked from elsewhere may belong to another repository.
    ['objects', 'refs'].some(
      (name) => lstatSync(join(gitDir, name), { throwIfNoEntry: false })?.isDirectory() !== true,
    ) ||
    ['commondir', 'reftable'].some((name) => existsSync(join(gitDir, name)))
  )
    return null;
  // Old versions made HEAD a symbolic link.
  if (lstatSync(join(gitDir, 'HEAD'), { throwIfNoEntry: false })?.isFile() !== true) return null;
  const head = readFileSync(join(gitDir, 'HEAD'), 'utf8').trim();
  const headRef = /^ref: (refs\/heads\/.+)$/.exec(head)?.[1] ?? null;
  if ((headRef === null && !OID.test(head)) || !isText(head)) return null;
  const refs = readRefs(gitDir);
  if (refs === null) return null;
  return {
    root,
    gitDir,
    commonDir: gitDir,
    objectFormat: 'sha1',
    headRef,
    headCommit: headRef === null ? head : (refs.get(headRef) ?? null),
    refs: [...refs]
      .map(([name, oid]) => ({ name, oid }))
      .toSorted((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name))),
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

/** Loose refs win over packed ones, and are read first: a ref that is packed meanwhile is then seen twice, not missed. null: something is not as expected. */
function readRefs(gitDir: string): Map<string, string> | null {
  const refs = new Map<string, string>();
  for (const prefix of KEPT) {
    const dir = prefix.slice(0, -1);
    const stat = lstatSync(join(gitDir, dir), { throwIfNoEntry: false });
    if (stat === undefined) continue;
    if (!stat.isDirectory() || !readLoose(gitDir, dir, refs)) return null;
  }
  const packed = join(gitDir, 'packed-refs');
  const stat = lstatSync(packed, { throwIfNoEntry: false });
  if (stat?.isFile() === false) return null;
  const lines = stat === undefined ? [] : readFileSync(packed, 'utf8').split('\n');
  for (const line of lines) {
    if (line === '' || line.startsWith('#') || line.startsWith('^')) continue;
    const name = line.slice(41);
    if (!OID.test(line.slice(0, 40)) || !isText(name)) return null;
    if (KEPT.some((prefix) => name.startsWith(prefix)) && !refs.has(name)) refs.set(name, line.slice(0, 40));
  }
  return refs;
}

const KEPT = ['refs/heads/', 'refs/remotes/', 'refs/tags/'];

function readLoose(gitDir: string, dir: string, refs: Map<string, string>): boolean {
  for (const entry of readdirSync(join(gitDir, dir), { withFileTypes: true })) {
    const name = `${dir}/${entry.name}`;
    if (entry.isDirectory()) {
      if (!readLoose(gitDir, name, refs)) return false;
      continue;
    }
    if (name.endsWith('.lock')) continue;
    if (!entry.isFile() || !isText(name)) return false;
    const value = readFileSync(join(gitDir, name), 'utf8').trim();
    // refs/remotes/origin/HEAD points at another ref; inside it is of no use. A branch that does so is git's to follow.
    if (value.startsWith('ref: ') && dir.startsWith('refs/remotes/')) continue;
    if (!OID.test(value)) return false;
    refs.set(name, value);
  }
  return true;
}

/** Bytes that are not UTF-8 cannot be told apart once they were decoded. */
function isText(name: string): boolean {
  return !name.includes('\uFFFD');
}
