// git/owner-git.ts: runs the few commands that change the user's repository: store a pack, move a branch, set index entries.
// Invariant: no setting of the user or of the repository can make them run a program, and every name is unambiguous. Root first
// becomes the owner of the repository, so new files belong to the owner, and the repository's settings act with the owner's
// rights only.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { statSync } from 'node:fs';
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import { withStreams } from '../lib/process/process.ts';
import { ISOLATED_ENV, killedGit, QUIET } from './host-git.ts';

export interface Answer {
  readonly exitCode: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export interface OwnerGitOptions {
  readonly input?: Buffer;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
  readonly cwd?: string;
  /** A lock that git holds until it ends, even if the caller dies. */
  readonly hold?: number | undefined;
}

/** `gitDir` is that of a linked work tree, or the repository's own. */
export function ownerGit(gitDir: string, args: readonly string[], options: OwnerGitOptions = {}): Promise<Answer> {
  const child = startOwnerGit(gitDir, args, options);
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? Buffer.alloc(0));
  return finished(child, options);
}

/** Pipes one git's output into another's input, so memory holds no more than the pipe. */
export async function sendPack(staging: string, revs: string, gitDir: string, timeoutMs: number): Promise<number> {
  // Like a fetch, a small result is stored as loose objects instead of a pack file.
  const listed = await finished(
    feed(
      spawn('git', [...QUIET, '--git-dir', staging, 'rev-list', '--objects', '--no-object-names', '--stdin'], isolated),
      revs,
    ),
    { maxBytes: 256 * 1024 * 1024, timeoutMs },
  );
  if (listed.exitCode !== 0) throw new Error(`git rev-list failed in ${staging}: ${listed.stderr}`);
  const objects = listed.stdout.toString('latin1').split('\n').length - 1;
  const pack = feed(
    spawn('git', [...QUIET, '--git-dir', staging, 'pack-objects', '--revs', '--stdout', '-q', '--threads=1'], isolated),
    revs,
  );
  const store = startOwnerGit(gitDir, objects <= 100 ? ['unpack-objects', '-q'] : ['index-pack', '--stdin']);
  store.stdin.on('error', () => undefined);
  pack.stdout.pipe(store.stdin);
  const [packed, stored] = await Promise.all([
    finished(pack, { timeoutMs, keepOutput: false }),
    finished(store, { timeoutMs }),
  ]);
  if (stored.exitCode !== 0) throw cannotWrite(gitDir, stored.stderr);
  if (packed.exitCode !== 0) throw new Error(`git pack-objects failed in ${staging}: ${packed.stderr}`);
  return objects;
}

export type Moved = 'moved' | { readonly now: string | null };

/** Moves a ref from one commit to another, or not at all. null stands for no ref, before or after. */
export async function moveRef(
  gitDir: string,
  ref: string,
  from: string | null,
  to: string | null,
  why: string,
  hold?: number,
): Promise<Moved> {
  const zero = '0'.repeat((to ?? from ?? '').length);
  const moved = await ownerGit(gitDir, ['update-ref', '-m', why, ref, to ?? zero, from ?? zero], {
    timeoutMs: 60_000,
    hold,
  }).catch((error: unknown) => ({ error }));
  if ('exitCode' in moved && moved.exitCode === 0) return 'moved';
  const now = await readRef(gitDir, ref);
  // A git that was killed may have moved the ref first.
  if ('error' in moved && now === to) return 'moved';
  if (now !== from) return { now };
  throw 'error' in moved ? moved.error : cannotWrite(gitDir, moved.stderr, ref);
}

/** `ref` is a full name, so no tag or file can be meant instead. */
export async function readRef(gitDir: string, ref: string): Promise<string | null> {
  const found = await ownerGit(gitDir, ['for-each-ref', '--format=%(objectname) %(refname)', ref]);
  if (found.exitCode !== 0) throw new Error(`git for-each-ref failed in ${gitDir}: ${found.stderr}`);
  const line = found.stdout
    .toString('utf8')
    .split('\n')
    .find((one) => one.slice(one.indexOf(' ') + 1) === ref);
  return line === undefined ? null : line.slice(0, line.indexOf(' '));
}

type Child = ChildProcessWithoutNullStreams;

const isolated = { cwd: '/', env: ISOLATED_ENV, stdio: ['pipe', 'pipe', 'pipe'] as ['pipe', 'pipe', 'pipe'] };

function feed(child: Child, input: string): Child {
  withStreams(child).stdin.on('error', () => undefined);
  child.stdin.end(input);
  return child;
}

function startOwnerGit(gitDir: string, args: readonly string[], options: OwnerGitOptions = {}): Child {
  const { uid, gid } = statSync(gitDir);
  const identity = process.geteuid?.() === 0 && uid !== 0 ? { uid, gid } : {};
  return withStreams(
    spawn('git', [...QUIET, '--git-dir', gitDir, ...args], {
      ...isolated,
      ...identity,
      cwd: options.cwd ?? '/',
      env: { ...ISOLATED_ENV, ...options.env },
      stdio: ['pipe', 'pipe', 'pipe', options.hold ?? 'ignore'],
    }) as Child,
  );
}

/** Rejects if git was killed. */
function finished(
  child: Child,
  options: { timeoutMs?: number; maxBytes?: number; keepOutput?: boolean },
): Promise<Answer> {
  const out: Buffer[] = [];
  let bytes = 0;
  let stderr = '';
  if (options.keepOutput !== false)
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > (options.maxBytes ?? 1024 ** 3)) child.kill('SIGKILL');
      else out.push(chunk);
    });
  child.stderr.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString('utf8')).slice(-4096)));
  const timer = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 10 * 60_000);
  return new Promise((resolve, reject) => {
    child.on('error', (error) => {
      clearTimeout(timer);
      resolve({ exitCode: 127, stdout: Buffer.alloc(0), stderr: error.message });
    });
    child.on('close', (exitCode) => {
      clearTimeout(timer);
      if (exitCode === null) reject(killedGit());
      else resolve({ exitCode, stdout: Buffer.concat(out), stderr });
    });
  });
}

export function cannotWrite(gitDir: string, stderr: string, ref?: string): AgsError {
  const said = visible(stderr.trim().split('\n').at(-1) ?? '');
  const lock = /Unable to create '([^']*\.lock)'/.exec(stderr)?.[1];
  if (/No space left|quota/i.test(stderr))
    return new AgsError('disk.full', `There is no room left on the disk of ${gitDir}.`, {
      hint: "Free some space, then try again. The task keeps the agent's work.",
    });
  if (lock !== undefined && /File exists/.test(stderr))
    return new AgsError('task.busy', `Another git is at work in this repository: ${visible(lock)} exists.`, {
      hint: 'Try again when it is done. If no git is running, remove that file.',
    });
  const parent = ref === undefined ? undefined : /'(refs\/heads\/[^']*)' exists; cannot create/.exec(stderr)?.[1];
  if (parent !== undefined)
    return new AgsError('project.unsuitable', `The branch ${parent.slice(11)} is in the way of ${ref?.slice(11)}.`, {
      hint: `Give it another name: git branch -m ${parent.slice(11)} <name>`,
    });
  return new AgsError('project.unsuitable', `The repository ${gitDir} cannot be written: ${said}`, {
    hint: "The task keeps the agent's work. Fix this, then try again.",
  });
}
