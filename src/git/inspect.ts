// git/inspect.ts: finds out what kind of repository a directory is in, and its settings, from git itself. Reads nothing of the work tree.
// It reads an ordinary repository (a .git directory, refs in files) directly, which saves three processes.
import { realpathSync, readFileSync, statSync, type Stats } from 'node:fs';
import { join, resolve, dirname } from 'node:path';
import { errorCode } from '../lib/error-code.ts';
import { remember } from '../lib/remember.ts';
import { shortHash } from '../lib/short-hash.ts';
import { AgsError } from '../protocol/errors.ts';
import { requireBelonging } from './belonging.ts';
import { userGit } from './host-git.ts';
import { readPlain } from './plain-repository.ts';
import type { Repository } from './repository.ts';

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

export function parseConfig(listing: Buffer): Map<string, string> {
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
  const lines = stderr.trim().split('\n');
  // Advice may follow the error.
  const fatal = lines.find((line) => line.startsWith('fatal: ')) ?? lines.at(-1) ?? '';
  return new AgsError(
    'project.unsuitable',
    `git cannot read the repository at ${cwd}: ${fatal.replace('fatal: ', '')}.`,
    {
      hint: /dubious ownership/.test(stderr)
        ? `If you trust it: git config --global --add safe.directory ${join(cwd)}`
        : 'Try: git status',
    },
  );
}

// Settings: git is asked once, and again only after one of the files has changed, because starting git takes a tenth of the time that a
// sandbox takes.

interface SettingsInput {
  readonly root: string;
  readonly gitDir: string;
  /** Conditional includes may depend on the branch. */
  readonly head: string;
  readonly home: string;
  readonly configHome?: string | undefined;
  readonly cacheDir: string;
}

interface Memory {
  readonly key: string;
  readonly files: readonly (readonly [path: string, stamp: string])[];
  readonly settings: readonly (readonly [string, string])[];
}

/** Returns null if git refuses to read this repository. */
async function readSettings(input: SettingsInput): Promise<ReadonlyMap<string, string> | null> {
  const key = JSON.stringify([input.root, input.gitDir, input.head, input.home, input.configHome]);
  const file = join(input.cacheDir, `git-${shortHash(input.root)}.json`);
  const memory = recall(file);
  if (memory?.key === key && memory.files.every(([path, stamp]) => stampOf(path) === stamp))
    return new Map(memory.settings);
  const listing = await userGit(['config', '--list', '-z', '--show-origin', '--includes'], {
    cwd: input.root,
    home: input.home,
    configHome: input.configHome,
  });
  if (listing.exitCode !== 0) return null;
  const { origins, settings } = parseListing(listing.stdout, input);
  const files = new Set([...places(input), ...origins]);
  remember(
    file,
    JSON.stringify({
      key,
      files: [...files].map((path) => [path, stampOf(path)] as const),
      settings: [...settings],
    } satisfies Memory),
  );
  return settings;
}

/** The files that git would read, whether they exist or not. */
function places({ gitDir, home, configHome }: SettingsInput): string[] {
  return [
    join(gitDir, 'config'),
    join(gitDir, 'config.worktree'),
    join(home, '.gitconfig'),
    join(configHome ?? join(home, '.config'), 'git/config'),
    '/etc/gitconfig',
    '/usr/local/etc/gitconfig',
  ];
}

// Follows links, because many people keep their settings elsewhere and link to them.
function stampOf(path: string): string {
  let stat: Stats | undefined;
  try {
    stat = statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    // git itself says what it may not read.
    if (errorCode(error) !== 'EACCES') throw error;
  }
  return stat === undefined ? '' : `${stat.mtimeMs} ${stat.ctimeMs} ${stat.size} ${stat.ino}`;
}

/** Rows come in pairs: the origin, then "key\nvalue". The last value of a key counts. */
function parseListing(
  listing: Buffer,
  { root, home }: SettingsInput,
): { origins: string[]; settings: Map<string, string> } {
  const words = listing.toString('utf8').split('\0');
  const origins = new Set<string>();
  const settings = new Map<string, string>();
  for (let i = 0; i + 1 < words.length; i += 2) {
    const origin = words[i] ?? '';
    const file = origin.startsWith('file:') ? resolve(root, origin.slice('file:'.length)) : null;
    if (file !== null) origins.add(file);
    const entry = words[i + 1] ?? '';
    const end = entry.indexOf('\n');
    const key = end < 0 ? entry : entry.slice(0, end);
    const value = end < 0 ? 'true' : entry.slice(end + 1);
    settings.set(key, value);
    // An included file may not exist yet.
    if (file !== null && /^include(if\..*)?\.path$/s.test(key))
      origins.add(resolve(dirname(file), value.replace(/^~(?=\/)/, home)));
  }
  return { origins: [...origins], settings };
}

function recall(file: string): Memory | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Memory;
  } catch {
    return null;
  }
}
