// git/private-git.ts: creates the git directory of a sandbox: its own refs, index and settings over borrowed, read-only objects.
// Invariant: it is made without running git, from facts read before. Only harmless settings of the user go in (no remotes, no
// credentials, no hooks, no filters), and the host never reads any of it again.
import { appendFileSync, copyFileSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { copyReal, realFile } from './copy-real.ts';
import type { Repository } from './repository.ts';
import { objectStores } from './object-stores.ts';

export interface PrivateGit {
  readonly directory: string;
  /** Object stores of the host, each with its read-only mount point. */
  readonly objects: readonly { readonly from: string; readonly to: string }[];
}

const OBJECTS_DIR = '/run/ags/objects';

/** Takes milliseconds for any repository; only the copy of the index grows with its size. */
export function createPrivateGit(input: {
  repository: Repository;
  directory: string;
  checkStat: 'full' | 'minimal';
  /** Paths outside the project that the user mounts into the sandbox. */
  shown: readonly string[];
  /** The checkout of a workspace that is not based on the user's files. */
  at?: Checkout;
}): PrivateGit {
  const { repository, directory, checkStat } = input;
  const { objects, alternates, modules } = borrow(repository, input.shown);
  if (input.at === undefined) writeGitDir({ directory, repository, checkStat, alternates });
  else writeCheckout({ directory, repository, at: input.at, alternates });
  for (const { name, from, alternates: lenders } of modules)
    writeSubmodule(from, join(directory, 'modules', name), lenders, checkStat, settingLines(repository, WHO));
  return { directory, objects };
}

/** A commit checked out on a branch that the user's repository lacks, or has at another commit. */
export interface Checkout {
  /** The full name: refs/heads/ags/fix-login. */
  readonly branch: string;
  readonly commit: string;
  /** The index file that matches the workspace. */
  readonly index: string;
  /** Lines for info/exclude. */
  readonly exclude: readonly string[];
}

/** Object stores of the host that a private git directory borrows from, each with its read-only mount point. */
export function borrowedObjects(repository: Repository, shown: readonly string[]): PrivateGit['objects'] {
  return borrow(repository, shown).objects;
}

interface Borrowed {
  readonly objects: PrivateGit['objects'];
  readonly alternates: readonly string[];
  readonly modules: readonly { readonly name: string; readonly from: string; readonly alternates: readonly string[] }[];
}

function borrow(repository: Repository, shown: readonly string[]): Borrowed {
  const places = { root: repository.root, commonDir: repository.commonDir, shown };
  const objects: { from: string; to: string }[] = [];
  const lenders = (gitDir: string, to: string): string[] =>
    objectStores(gitDir, places).map(({ path, inWorkspace }, i) => {
      if (inWorkspace) return path;
      objects.push({ from: path, to: `${to}/${i}` });
      return `${to}/${i}`;
    });
  const alternates = lenders(repository.commonDir, OBJECTS_DIR);
  // A linked worktree has its own submodules.
  const dir = join(repository.gitDir, 'modules');
  const modules = submodules(dir).map((name) => ({
    name,
    from: join(dir, name),
    alternates: lenders(join(dir, name), `${OBJECTS_DIR}/modules/${name}`),
  }));
  return { objects, alternates, modules };
}

function writeCheckout(input: {
  directory: string;
  repository: Repository;
  at: Checkout;
  alternates: readonly string[];
}): void {
  const { directory, repository, at } = input;
  createDirectories(directory, input.alternates);
  writeFileSync(join(directory, 'HEAD'), `ref: ${at.branch}\n`);
  const refs = repository.refs.filter((ref) => ref.name !== at.branch);
  writeRefs(directory, allRefs({ refs, headRef: at.branch, headCommit: at.commit }));
  writeFileSync(join(directory, 'config'), settingsFile(repository, 'minimal', WHOLE_TREE));
  for (const name of ['info/exclude', 'shallow']) copyReal(repository.commonDir, name, directory);
  if (at.exclude.length > 0)
    appendFileSync(join(directory, 'info/exclude'), `\n${at.exclude.map((line) => `${line}\n`).join('')}`);
  copyFileSync(at.index, join(directory, 'index'));
}

function writeGitDir(input: {
  directory: string;
  repository: Repository;
  checkStat: 'full' | 'minimal';
  alternates: readonly string[];
}): void {
  const { directory, repository } = input;
  const { gitDir } = repository;
  createDirectories(directory, input.alternates);
  writeFileSync(
    join(directory, 'HEAD'),
    repository.headRef === null ? `${repository.headCommit}\n` : `ref: ${repository.headRef}\n`,
  );
  writeRefs(directory, allRefs(repository));
  writeFileSync(join(directory, 'config'), settingsFile(repository, input.checkStat));
  copyState(gitDir, repository.commonDir, directory);
  // Only the reflog of a detached HEAD says where it was detached.
  if (repository.headRef === null) {
    mkdirSync(join(directory, 'logs'), { recursive: true });
    copyReal(gitDir, 'logs/HEAD', directory);
  }
}

function writeRefs(directory: string, refs: Repository['refs']): void {
  writeFileSync(
    join(directory, 'packed-refs'),
    ['# pack-refs with: sorted', ...refs.map((ref) => `${ref.oid} ${ref.name}`), ''].join('\n'),
  );
}

/** All refs in git's byte order. HEAD may name a ref outside the usual namespaces. */
function allRefs({
  refs,
  headRef,
  headCommit,
}: Pick<Repository, 'refs' | 'headRef' | 'headCommit'>): Repository['refs'] {
  if (headRef === null || headCommit === null || refs.some((ref) => ref.name === headRef)) return refs;
  return [...refs, { name: headRef, oid: headCommit }].toSorted((a, b) =>
    Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)),
  );
}

function createDirectories(directory: string, alternates: readonly string[]): void {
  for (const name of ['objects/info', 'refs', 'info']) mkdirSync(join(directory, name), { recursive: true });
  writeFileSync(
    join(directory, 'objects/info/alternates'),
    alternates.map((path) => `${path.includes('\n') ? quote(path) : path}\n`).join(''),
  );
}

// Files of an operation in progress, so that "git status" inside says the same as outside.
const STATE_FILES = new Set([
  'index',
  'MERGE_HEAD',
  'MERGE_MODE',
  'MERGE_MSG',
  'CHERRY_PICK_HEAD',
  'REVERT_HEAD',
  'REBASE_HEAD',
  'ORIG_HEAD',
  'AUTO_MERGE',
  'BISECT_LOG',
  'BISECT_START',
  'BISECT_NAMES',
  'SQUASH_MSG',
]);
const STATE_DIRS = new Set(['rebase-merge', 'rebase-apply', 'sequencer']);
const SHARED_FILES = ['info/exclude', 'info/sparse-checkout', 'shallow'];

function copyState(gitDir: string, commonDir: string, directory: string): void {
  const there = readdirSync(gitDir);
  for (const name of there) {
    // A split index keeps most entries in a second file.
    if (STATE_FILES.has(name) || STATE_DIRS.has(name) || name.startsWith('sharedindex.'))
      copyReal(gitDir, name, directory);
  }
  for (const name of SHARED_FILES) {
    copyReal(commonDir, name, directory);
    if (gitDir !== commonDir) copyReal(gitDir, name, directory);
  }
}

// Only settings for how files are stored and who commits. Settings that name a program or a path stay outside.
const KEPT =
  /^(user\.(name|email)|core\.(autocrlf|eol|safecrlf|filemode|symlinks|ignorecase|precomposeunicode|quotepath|sparsecheckout|sparsecheckoutcone|whitespace)|index\.(sparse|version)|init\.defaultbranch|i18n\..+|pull\.(rebase|ff)|merge\.conflictstyle|extensions\.objectformat)$/;

/** Settings that would be wrong for a workspace that has every file of its commit. */
const WHOLE_TREE = /^(core\.sparsecheckout|core\.sparsecheckoutcone|index\.sparse)$/;

/** The settings that a submodule needs; it has its own for the rest. */
const WHO = /^user\.(name|email)$/;

function settingLines(repository: Repository, kept: RegExp, but?: RegExp): string[] {
  return [...repository.settings]
    .filter(([key]) => kept.test(key) && but?.test(key) !== true)
    .map(([key, value]) => {
      const dot = key.indexOf('.');
      return `[${key.slice(0, dot)}]\n\t${key.slice(dot + 1)} = ${quote(value)}`;
    });
}

function settingsFile(repository: Repository, checkStat: 'full' | 'minimal', but?: RegExp): string {
  return [
    '[core]',
    `\trepositoryformatversion = ${repository.objectFormat === 'sha256' ? 1 : 0}`,
    '\tbare = false',
    '\tlogallrefupdates = true',
    // As root, the owner inside differs from the one in the index, so git must compare only time and size.
    ...(checkStat === 'minimal' ? ['\tcheckStat = minimal', '\ttrustctime = false'] : []),
    ...settingLines(repository, KEPT, but),
    // The borrowed objects belong to the host and cannot be repacked; repacking only the own objects is useless.
    '[gc]\n\tauto = 0',
    '',
  ].join('\n');
}

function quote(value: string): string {
  return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`;
}

/** Names below .git/modules that are git directories; a submodule's name may contain slashes. */
function submodules(modules: string, prefix = ''): string[] {
  if (lstatSync(join(modules, prefix), { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  return readdirSync(join(modules, prefix)).flatMap((entry) => {
    const name = prefix === '' ? entry : `${prefix}/${entry}`;
    const isOne = lstatSync(join(modules, name, 'HEAD'), { throwIfNoEntry: false }) !== undefined;
    return isOne ? [name, ...submodules(modules, `${name}/modules`)] : submodules(modules, name);
  });
}

// A submodule's work tree finds its git directory by the relative path in its .git file, so the path must stay the same.
function writeSubmodule(
  from: string,
  to: string,
  alternates: readonly string[],
  checkStat: 'full' | 'minimal',
  settings: readonly string[],
): void {
  createDirectories(to, alternates);
  copyState(from, from, to);
  for (const name of ['HEAD', 'packed-refs', 'refs']) copyReal(from, name, to);
  const settingsAt = realFile(from, 'config');
  const config = settingsAt === null ? '' : readFileSync(settingsAt, 'utf8');
  const worktree = /^\s*worktree\s*=\s*(.+)$/m.exec(config)?.[1];
  const format = /^\s*objectformat\s*=\s*"?sha256\b/im.test(config)
    ? ['[extensions]', '\tobjectformat = sha256', '[core]', '\trepositoryformatversion = 1']
    : ['[core]', '\trepositoryformatversion = 0'];
  writeFileSync(
    join(to, 'config'),
    [
      ...format,
      '\tbare = false',
      ...(worktree === undefined ? [] : [`\tworktree = ${worktree}`]),
      ...(checkStat === 'minimal' ? ['\tcheckStat = minimal', '\ttrustctime = false'] : []),
      ...settings,
      '[gc]\n\tauto = 0',
      '',
    ].join('\n'),
  );
}
