// git/staging/pack-out.ts: packs objects of a repository of ours, and of those it borrows from, for an export file.
import { spawn } from 'node:child_process';
import { AgsError } from '../../protocol/errors.ts';
import { withStreams } from '../../lib/process/process.ts';
import { ISOLATED_ENV, QUIET, stagingGit } from '../host-git.ts';

/** Streams one pack of the objects that `revs` lead to. `revs` has a commit per line, with ^ before commits that the reader has. */
export async function* packOut(staging: string, revs: string): AsyncGenerator<Buffer> {
  const args = ['pack-objects', '--revs', '--stdout', '-q', '--threads=1', '--delta-base-offset'];
  const child = withStreams(
    spawn('git', [...QUIET, '--git-dir', staging, ...args], {
      cwd: '/',
      env: ISOLATED_ENV,
      stdio: ['pipe', 'pipe', 'pipe'],
    }),
  );
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve).on('error', () => resolve(127)));
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString('utf8')).slice(-4096)));
  child.stdin.on('error', () => undefined);
  child.stdin.end(revs);
  try {
    for await (const chunk of child.stdout) yield chunk as Buffer;
    if ((await ended) !== 0) throw incomplete(stderr);
  } catch (error) {
    throw child.pid === undefined ? incomplete(stderr) : error;
  } finally {
    child.kill('SIGKILL');
  }
}

/** A path for each object in the history of a commit. */
export async function pathsInHistory(staging: string, commit: string): Promise<string[]> {
  const done = await stagingGit(staging, ['rev-list', '--objects', commit], { maxBytes: 1024 ** 3 });
  if (done.exitCode !== 0) throw incomplete(done.stderr);
  return done.stdout
    .toString('utf8')
    .split('\n')
    .flatMap((line) => {
      const blank = line.indexOf(' ');
      return blank < 0 || blank === line.length - 1 ? [] : [line.slice(blank + 1)];
    });
}

function incomplete(stderr: string): AgsError {
  const said = stderr.trim().split('\n').at(-1) ?? '';
  return new AgsError('project.unsuitable', `git cannot read every object that the task needs: ${said}`, {
    hint: 'A partial clone may lack some objects. Export without the history, for a machine that has it: --thin',
  });
}
