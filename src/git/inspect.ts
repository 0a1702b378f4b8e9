// git/inspect.ts: finds out what kind of repository a directory is in, from git itself. Reads nothing of the work tree.
// It reads an ordinary repository (a .git directory, refs in files) directly, which saves three processes.
import { realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { requireBelonging } from './belonging.ts';
import { userGit } from './host-git.ts';
import { readPlain } from './plain-repository.ts';
import { readSettings } from './settings.ts';
import { type Repository } from './repository.ts';

interface At {
  readonly cwd: string;
  readonly home: string;
  readonly configHome?: string | undefined;
  readonly timeoutMs: number;
}

// A named pipe in place of a file makes git wait forever.
const PATIENCE_MS = 30_000;

/** Returns null outside a git repository. */
export async function inspectRepository(
  cwd: string,
  user: { home: string; configHome?: string | undefined; cacheDir: string },
): Promise<Repository | null> {
  const at = { cwd, ...user, timeoutMs: PATIENCE_MS };
  const plain = readPlain(cwd);
  if (plain !== null) {
    const settings = await readSettings({
      root: plain.root,
      gitDir: plain.gitDir,
      head: plain.headRef ?? '',
      home: user.home,
      configHome: user.configHome,
      cacheDir: user.cacheDir,
    });
    // Git itself answers for every other repository, and for one that it refuses to read.
    if (settings !== null && isOrdinary(settings)) return { ...plain, settings };
  }
  const [where, refs, config] = await Promise.all([
    locate(at),
    userGit(
      ['for-each-ref', '--format=%(objectname) %(refname) %(symref)', 'refs/heads', 'refs/tags', 'refs/remotes'],
      at,
    ),
    userGit(['config', '--list', '-z', '--includes'], at),
  ]);
  if ([where.exitCode, refs.exitCode, config.exitCode].includes(124)) throw unusable(cwd, 'it does not answer');
  const [bare, inside, format, gitDir, common, cdup, head] = where.answers;
  if (gitDir === undefined || gitDir === '') {
    if (/not a git repository/.test(where.stderr)) return null;
    throw unusable(cwd, where.stderr);
  }
  if (bare === 'true' || inside !== 'true') {
    throw new AgsError(
      'project.unsuitable',
      bare === 'true'
        ? `${cwd} is a bare repository: it has no files to work on.`
        : cwd === gitDir || cwd.startsWith(`${gitDir}/`)
          ? `${cwd} is inside a git directory.`
          : `${cwd} has a .git whose settings say that its files are elsewhere.`,
      {
        hint: 'Run ags in a work tree: git worktree add ../work && cd ../work',
      },
    );
  }
  if (format !== 'sha1' && format !== 'sha256') throw unusable(cwd, `unknown object format ${format}`);
  const settings = parseConfig(config.stdout);
  const place = {
    root: resolve(cwd, cdup ?? ''),
    gitDir: realpathSync(gitDir),
    commonDir: realpathSync(resolve(cwd, common ?? gitDir)),
  };
  requireBelonging({ ...place, worktree: settings.get('core.worktree') });
  const all = parseRefs(refs.stdout);
  const headName = head === undefined || head === '' ? null : head;
  const symbolic = headName?.startsWith('refs/') === true ? headName : await unbornOrDetached(at);
  return {
    ...place,
    objectFormat: format,
    headRef: symbolic.startsWith('refs/') ? symbolic : null,
    headCommit: symbolic.startsWith('refs/')
      ? (all.find((ref) => ref.name === symbolic)?.oid ?? (await commitOf(symbolic, at)))
      : symbolic,
    refs: all,
    settings,
  };
}

/** If git refuses to read a repository (another user's), its settings lack the format version, without an error. */
function isOrdinary(settings: ReadonlyMap<string, string>): boolean {
  return (
    settings.get('core.repositoryformatversion') === '0' &&
    (settings.get('core.bare') ?? 'false') === 'false' &&
    ![...settings.keys()].some((key) => UNUSUAL.test(key))
  );
}

const UNUSUAL = /^(extensions\..*|core\.worktree)$/;

const QUESTIONS = [
  '--is-bare-repository',
  '--is-inside-work-tree',
  '--show-object-format',
  '--absolute-git-dir',
  '--git-common-dir',
  '--show-cdup',
  '--symbolic-full-name',
] as const;

async function locate(at: At): Promise<{ answers: string[]; stderr: string; exitCode: number }> {
  // rev-parse prints what it can before it stops at an unborn HEAD, so the lines count, not the exit code.
  const { stdout, stderr, exitCode } = await userGit(['rev-parse', ...QUESTIONS, 'HEAD'], at);
  if (!at.cwd.includes('\n')) return { answers: stdout.toString('utf8').split('\n'), stderr, exitCode };
  // A path with a line break would look like two answers, so each is asked alone.
  const each = await Promise.all(
    QUESTIONS.map((question) =>
      userGit(['rev-parse', question, ...(question === '--symbolic-full-name' ? ['HEAD'] : [])], at),
    ),
  );
  return { answers: each.map((one) => one.stdout.toString('utf8').replace(/\n$/, '')), stderr, exitCode };
}

async function unbornOrDetached(at: At): Promise<string> {
  const [symbolic, commit] = await Promise.all([
    userGit(['symbolic-ref', '-q', 'HEAD'], at),
    userGit(['rev-parse', '-q', '--verify', 'HEAD^{commit}'], at),
  ]);
  const name = symbolic.stdout.toString('utf8').trim();
  return name !== '' ? name : commit.stdout.toString('utf8').trim();
}

/** Resolves a HEAD that names a ref outside the usual namespaces. */
async function commitOf(ref: string, at: At): Promise<string | null> {
  const { stdout, exitCode } = await userGit(
    ['rev-parse', '-q', '--verify', '--end-of-options', `${ref}^{commit}`],
    at,
  );
  return exitCode === 0 ? stdout.toString('utf8').trim() : null;
}

function parseRefs(listing: Buffer): { oid: string; name: string }[] {
  return listing
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
    .flatMap((line) => {
      const [oid = '', name = '', target = ''] = line.split(' ');
      // refs/remotes/origin/HEAD points at another ref; a sandbox has no use for it.
      return target !== '' && name.startsWith('refs/remotes/') ? [] : [{ oid, name }];
    });
}

function parseConfig(listing: Buffer): Map<string, string> {
  const entries = listing
    .toString('utf8')
    .split('\0')
    .filter((entry) => entry !== '');
  return new Map(
    entries.map((entry) => {
      const end = entry.indexOf('\n');
      return end < 0 ? [entry, 'true'] : [entry.slice(0, end), entry.slice(end + 1)];
    }),
  );
}

function unusable(cwd: string, stderr: string): AgsError {
  return new AgsError(
    'project.unsuitable',
    `git cannot read the repository at ${cwd}: ${stderr.trim().split('\n').at(-1) ?? ''}`,
    {
      hint: /dubious ownership/.test(stderr)
        ? `If you trust it: git config --global --add safe.directory ${join(cwd)}`
        : 'Try: git status',
    },
  );
}
