// git/plain-repository.ts: reads an ordinary repository without starting git: a .git directory that holds everything
// itself, with refs in files or in packed-refs. For anything else it returns null, and the caller uses git.
// Invariant: a result is exactly git's own answer. In doubt, the result is null.
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorCode } from '../lib/error-code.ts';
import type { Repository } from './repository.ts';

export function readPlain(cwd: string): Omit<Repository, 'settings'> | null {
  try {
    return readOrdinary(cwd);
  } catch (error) {
    // The user's own git may pack or delete a ref between the listing and the read.
    if (errorCode(error) === undefined) throw error;
    return null;
  }
}

function readOrdinary(cwd: string): Omit<Repository, 'settings'> | null {
  const root = findRoot(cwd);
  if (root === null) return null;
  const gitDir = join(root, '.git');
  if (
    // A linked directory may belong to another repository.
    ['objects', 'refs'].some(
      (name) => lstatSync(join(gitDir, name), { throwIfNoEntry: false })?.isDirectory() !== true,
    ) ||
    ['commondir', 'reftable'].some((name) => existsSync(join(gitDir, name)))
  )
    return null;
  // Old versions of git made HEAD a symbolic link.
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
    // This is a bare repository, the inside of a git directory, or a .git that is a file or a link.
    if (stat !== undefined || existsSync(join(dir, 'HEAD')) || dir === '/') return null;
  }
}

/** Loose refs override packed ones and are read first, so that a ref packed meanwhile is seen twice, not missed. Returns null for unexpected content. */
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
    // refs/remotes/origin/HEAD points at another ref; a sandbox has no use for it. Git must follow a branch that does so.
    if (value.startsWith('ref: ') && dir.startsWith('refs/remotes/')) continue;
    if (!OID.test(value)) return false;
    refs.set(name, value);
  }
  return true;
}

/** Decoding maps all bytes that are not UTF-8 to the same character, so such names are refused. */
function isText(name: string): boolean {
  return !name.includes('\uFFFD');
}
