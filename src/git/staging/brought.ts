// git/staging/brought.ts: checks commits that came out of a sandbox, in staging, before they go anywhere else.
// Invariant: every object they lead to is in staging or in the user's own repository, and their number and sizes stay within
// limits. Every program here has a deadline and little memory, because the objects are hostile.
import { isUtf8 } from 'node:buffer';
import { AgsError } from '../../protocol/errors.ts';
import { run, type Finished } from '../../lib/process/process.ts';
import { readableSize } from '../../lib/units.ts';
import { readCommit, type CommitParts } from '../commit-text.ts';
import { ISOLATED_ENV, QUIET } from '../host-git.ts';

export const BROUGHT_LIMITS = {
  packBytes: 16 * 1024 ** 3,
  objects: 1_000_000,
  fileBytes: 2 * 1024 ** 3,
  totalBytes: 8 * 1024 ** 3,
  commits: 5000,
  memoryBytes: 2 * 1024 ** 3,
  timeoutMs: 10 * 60_000,
} as const;

/** Limits for a whole history from an imported file. */
export const HISTORY_LIMITS = {
  ...BROUGHT_LIMITS,
  objects: 10_000_000,
  totalBytes: 64 * 1024 ** 3,
  memoryBytes: 4 * 1024 ** 3,
  timeoutMs: 60 * 60_000,
} as const;

export type BroughtLimits = { readonly [key in keyof typeof BROUGHT_LIMITS]: number };

/** Throws unless every object that `tip` leads to beyond `base` (null: every object) exists, within limits. */
export async function requireWhole(
  staging: string,
  tip: string,
  base: string | null,
  limits: BroughtLimits = BROUGHT_LIMITS,
): Promise<void> {
  const beyond = base === null ? [] : ['--not', base];
  const listed = await hostileGit(staging, limits, ['rev-list', '--objects', '--no-object-names', tip, ...beyond]);
  if (listed.exitCode !== 0)
    throw refused(`something that it needs is missing or cannot be read (${lastLine(listed)})`);
  const ids = listed.stdout.toString('latin1').split('\n').slice(0, -1);
  if (ids.length > limits.objects) throw refused(`it has more than ${limits.objects} objects`);
  const sizes = await hostileGit(
    staging,
    limits,
    ['cat-file', '--batch-check=%(objectsize)', '--buffer'],
    listed.stdout,
  );
  const bytes = sizes.stdout.toString('latin1').split('\n').slice(0, -1).map(Number);
  if (sizes.exitCode !== 0 || bytes.length !== ids.length || bytes.some((size) => !Number.isSafeInteger(size)))
    throw refused('something that it needs is missing');
  if (bytes.some((size) => size > limits.fileBytes))
    throw refused(`a file in it is larger than ${readableSize(limits.fileBytes)}`);
  if (bytes.reduce((sum, size) => sum + size, 0) > limits.totalBytes)
    throw refused(`it is more than ${readableSize(limits.totalBytes)} in all`);
}

/** True if the history of one leads to the other. */
export async function isAncestor(
  staging: string,
  ancestor: string,
  commit: string,
  limits: BroughtLimits = BROUGHT_LIMITS,
): Promise<boolean> {
  return (await hostileGit(staging, limits, ['merge-base', '--is-ancestor', ancestor, commit])).exitCode === 0;
}

export type History =
  | { readonly keep: true; readonly top: CommitParts }
  | { readonly keep: false; readonly why: string };

/**
 * Decides whether the commits between `base` and `tip` may be kept. They must build on the base, their texts must be harmless,
 * and none of them, not even an early one, may have a path that is `wrong`.
 */
export async function judgeHistory(
  staging: string,
  tip: string,
  base: string,
  wrong: (path: string, mode: string) => boolean,
  limits: BroughtLimits = BROUGHT_LIMITS,
): Promise<History> {
  const no = (why: string): History => ({ keep: false, why });
  if (!(await isAncestor(staging, base, tip, limits)))
    return no('they do not build on the commit that the task started from');
  const listed = await hostileGit(staging, limits, [
    'rev-list',
    `--max-count=${limits.commits + 1}`,
    tip,
    '--not',
    base,
  ]);
  const ids = listed.stdout.toString('latin1').split('\n').slice(0, -1);
  if (listed.exitCode !== 0 || ids.length === 0 || ids.length > limits.commits)
    return no(`there are more than ${limits.commits} of them`);
  const input = Buffer.from(`${ids.join('\n')}\n`);
  const texts = await hostileGit(staging, limits, ['cat-file', '--batch'], input);
  let top: CommitParts | null = null;
  for (let at = 0; at < texts.stdout.length;) {
    const end = texts.stdout.indexOf(10, at);
    const [oid = '', type, size = '0'] = texts.stdout.subarray(at, end).toString('latin1').split(' ');
    const parts = type === 'commit' ? readCommit(texts.stdout.subarray(end + 1, end + 1 + Number(size))) : null;
    if (parts === null) return no('one of them has a text or a header that is not an ordinary one');
    if (oid === tip) top = parts;
    at = end + 2 + Number(size);
  }
  if (texts.exitCode !== 0 || top === null) return no('they cannot be read');
  const raw = await hostileGit(
    staging,
    limits,
    ['diff-tree', '--stdin', '-r', '-m', '--root', '-z', '--raw', '--no-renames', '--no-commit-id', '--full-index'],
    input,
  );
  if (raw.exitCode !== 0) return no('their files cannot be read');
  return rawPaths(raw.stdout).some(({ path, mode }) => path === null || wrong(path, mode))
    ? no('one of them has a file that is never taken')
    : { keep: true, top };
}

/** The new paths and modes from a raw diff. A path that is not UTF-8 is null. */
function rawPaths(output: Buffer): { path: string | null; mode: string }[] {
  const words = output.toString('latin1').split('\0');
  const found: { path: string | null; mode: string }[] = [];
  for (let i = 0; i + 1 < words.length; i += 2) {
    const [, mode = ''] = (words[i] ?? '').split(' ');
    const bytes = Buffer.from(words[i + 1] ?? '', 'latin1');
    if (mode !== '000000') found.push({ mode, path: isUtf8(bytes) ? bytes.toString('utf8') : null });
  }
  return found;
}

function hostileGit(
  staging: string,
  limits: BroughtLimits,
  args: readonly string[],
  input?: Buffer,
): Promise<Finished> {
  return run(['prlimit', `--data=${limits.memoryBytes}`, '--', 'git', ...QUIET, '--git-dir', staging, ...args], {
    cwd: '/',
    env: ISOLATED_ENV,
    maxBytes: 512 * 1024 * 1024,
    timeoutMs: limits.timeoutMs,
    ...(input === undefined ? {} : { input }),
  });
}

function lastLine({ exitCode, stderr }: Finished): string {
  return exitCode === 124 ? 'it takes too long' : (stderr.trim().split('\n').at(-1) ?? `exit code ${exitCode}`);
}

function refused(why: string): AgsError {
  return new AgsError('capture.refused', `What came out of the sandbox was refused: ${why}.`, {
    hint: 'Nothing was taken. The files are still in the task.',
  });
}
