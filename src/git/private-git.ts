// git/private-git.ts: the git directory a sandbox gets: its own refs, index and settings over borrowed, read-only objects.
// Invariant: made without running git, from facts read beforehand; nothing of the user's settings but harmless ones goes
// in (no remotes, no credentials, no hooks, no filters), and the host never reads any of it again.
import {
  constants,
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Repository } from './inspect.ts';

export interface PrivateGit {
  readonly directory: string;
  /** Object stores of the host, each with the place where it is mounted read-only. */
  readonly objects: readonly { readonly from: string; readonly to: string }[];
}

const OBJECTS_DIR = '/run/ags/objects';

/** Takes milliseconds whatever the size of the repository; the index is the only thing that grows with it. */
export function createPrivateGit(input: {
  repository: Repository;
  directory: string;
  checkStat: 'full' | 'minimal';
}): PrivateGit {
  const { repository, directory } = input;
  const objects = objectStores(join(repository.commonDir, 'objects')).map((from, i) => ({
    from,
    to: `${OBJECTS_DIR}/${i}`,
  }));
  writeGitDir({
    directory,
    gitDir: repository.gitDir,
    repository,
    checkStat: input.checkStat,
    alternates: objects.map((o) => o.to),
  });
  const modules = join(repository.commonDir, 'modules');
  if (existsSync(modules)) {
    for (const name of submodules(modules)) {
      const from = objectStores(join(modules, name, 'objects'));
      const borrowed = from.map((path, i) => ({ from: path, to: `${OBJECTS_DIR}/modules/${name}/${i}` }));
      objects.push(...borrowed);
      writeSubmodule(
        join(modules, name),
        join(directory, 'modules', name),
        borrowed.map((o) => o.to),
        input.checkStat,
        settingLines(repository, WHO),
      );
    }
  }
  return { directory, objects };
}

function writeGitDir(input: {
  directory: string;
  gitDir: string;
  repository: Repository;
  checkStat: 'full' | 'minimal';
  alternates: readonly string[];
}): void {
  const { directory, gitDir, repository } = input;
  skeleton(directory, input.alternates);
  writeFileSync(
    join(directory, 'HEAD'),
    repository.headRef === null ? `${repository.headCommit}\n` : `ref: ${repository.headRef}\n`,
  );
  writeFileSync(
    join(directory, 'packed-refs'),
    ['# pack-refs with: sorted', ...allRefs(repository).map((ref) => `${ref.oid} ${ref.name}`), ''].join('\n'),
  );
  writeFileSync(join(directory, 'config'), settingsFile(repository, input.checkStat));
  copyState(gitDir, repository.commonDir, directory);
  // Where a detached HEAD was detached stands in its log alone.
  if (repository.headRef === null) {
    mkdirSync(join(directory, 'logs'), { recursive: true });
    copyIfThere(join(gitDir, 'logs/HEAD'), join(directory, 'logs/HEAD'));
  }
}

/** In git's order, which is that of bytes. HEAD may name a ref outside of the usual places. */
function allRefs({ refs, headRef, headCommit }: Repository): Repository['refs'] {
  if (headRef === null || headCommit === null || refs.some((ref) => ref.name === headRef)) return refs;
  return [...refs, { name: headRef, oid: headCommit }].toSorted((a, b) =>
    Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)),
  );
}

function skeleton(directory: string, alternates: readonly string[]): void {
  for (const name of ['objects/info', 'refs', 'info']) mkdirSync(join(directory, name), { recursive: true });
  writeFileSync(join(directory, 'objects/info/alternates'), alternates.map((path) => `${path}\n`).join(''));
}

// What an operation in progress has left behind, so that "git status" inside tells the same story as outside.
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
    // A split index keeps most of itself in a second file.
    if (STATE_FILES.has(name) || name.startsWith('sharedindex.'))
      copyIfThere(join(gitDir, name), join(directory, name));
    else if (STATE_DIRS.has(name)) cpSync(join(gitDir, name), join(directory, name), { recursive: true });
  }
  for (const name of SHARED_FILES) {
    copyIfThere(join(commonDir, name), join(directory, name));
    if (gitDir !== commonDir) copyIfThere(join(gitDir, name), join(directory, name));
  }
}

function copyIfThere(from: string, to: string): void {
  // A link in a git directory that somebody else packed could name any file of the user's.
  if (lstatSync(from, { throwIfNoEntry: false })?.isFile() === true) copyFileSync(from, to, constants.COPYFILE_FICLONE);
}

// Only settings that say how files are stored and who commits. Everything that names a program or a place stays outside.
const KEPT =
  /^(user\.(name|email)|core\.(autocrlf|eol|safecrlf|filemode|symlinks|ignorecase|precomposeunicode|quotepath|sparsecheckout|sparsecheckoutcone|whitespace)|index\.(sparse|version)|init\.defaultbranch|i18n\..+|pull\.(rebase|ff)|merge\.conflictstyle|extensions\.objectformat)$/;

/** What a submodule needs of them: it has settings of its own for the rest. */
const WHO = /^user\.(name|email)$/;

function settingLines(repository: Repository, kept: RegExp): string[] {
  return [...repository.settings]
    .filter(([key]) => kept.test(key))
    .map(([key, value]) => {
      const dot = key.indexOf('.');
      return `[${key.slice(0, dot)}]\n\t${key.slice(dot + 1)} = ${quote(value)}`;
    });
}

function settingsFile(repository: Repository, checkStat: 'full' | 'minimal'): string {
  return [
    '[core]',
    `\trepositoryformatversion = ${repository.objectFormat === 'sha256' ? 1 : 0}`,
    '\tbare = false',
    '\tlogallrefupdates = true',
    // The owner that is seen inside differs from the one in the index when the caller is root: compare time and size alone.
    ...(checkStat === 'minimal' ? ['\tcheckStat = minimal', '\ttrustctime = false'] : []),
    ...settingLines(repository, KEPT),
    // The borrowed objects belong to the host: they cannot be repacked, and packing ours again and again is no use.
    '[gc]\n\tauto = 0',
    '',
  ].join('\n');
}

function quote(value: string): string {
  return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`;
}

/**
 * A git directory that somebody else packed may name any directory as a store: only what is one is shown. A store holds
 * nothing but its packs and directories of two hexadecimal digits.
 */
function isObjectStore(path: string): boolean {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return false;
  return readdirSync(path).every((name) => /^(pack|info|[0-9a-f]{2}|maintenance\.lock|tmp_.*)$/.test(name));
}

/** The store itself and those it borrows from, in git's order. */
function objectStores(first: string, seen = new Set<string>()): string[] {
  if (seen.has(first) || !isObjectStore(first)) return [];
  seen.add(first);
  const file = join(first, 'info/alternates');
  const lines = existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('#'))
    : [];
  // As git has it: relative to where the store really is.
  return [
    first,
    ...lines.flatMap((line) => objectStores(line.startsWith('/') ? line : join(realpathSync(first), line), seen)),
  ];
}

/** Names below .git/modules that are git directories; a submodule's name may have slashes in it. */
function submodules(modules: string, prefix = ''): string[] {
  return readdirSync(join(modules, prefix), { withFileTypes: true })
    .filter((e) => e.isDirectory())
    .flatMap((entry) => {
      const name = prefix === '' ? entry.name : `${prefix}/${entry.name}`;
      if (!existsSync(join(modules, name, 'HEAD'))) return submodules(modules, name);
      const nested = join(modules, name, 'modules');
      return [name, ...(existsSync(nested) ? submodules(modules, `${name}/modules`) : [])];
    });
}

// A submodule's work tree finds its git directory by the relative path in its .git file, so it stands at the same place.
function writeSubmodule(
  from: string,
  to: string,
  alternates: readonly string[],
  checkStat: 'full' | 'minimal',
  settings: readonly string[],
): void {
  skeleton(to, alternates);
  copyState(from, from, to);
  for (const name of ['HEAD', 'packed-refs']) copyIfThere(join(from, name), join(to, name));
  cpSync(join(from, 'refs'), join(to, 'refs'), { recursive: true });
  const config = readFileSync(join(from, 'config'), 'utf8');
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
