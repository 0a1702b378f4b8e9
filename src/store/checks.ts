// store/checks.ts: the last checks of a task: checks.json, and a directory beside it with the output of each.
// Invariant: checks whose process was killed are never reported as running.
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { ChecksFile } from '../protocol/checks.ts';
import { errorCode } from '../lib/error-code.ts';
import { replaceFile } from '../lib/files.ts';
import { isAlive } from '../lib/process/liveness.ts';
import type { TaskPaths } from './layout.ts';

type Paths = Pick<TaskPaths, 'checks' | 'checksDir'>;

/** null: no checks, or their file cannot be read. */
export function readChecks({ checks }: Pick<TaskPaths, 'checks'>): ChecksFile | null {
  const file = parse(checks);
  if (file === null || file.state !== 'running' || isAlive(file.runner)) return file;
  return {
    ...file,
    state: 'ended',
    reason: 'The ags that ran them was killed.',
    checks: file.checks.map((one) =>
      one.state === 'running' || one.state === 'waiting' ? { ...one, state: 'ended', why: 'It was killed.' } : one,
    ),
  };
}

function parse(path: string): ChecksFile | null {
  try {
    const file = JSON.parse(readFileSync(path, 'utf8')) as ChecksFile;
    return file.version === 1 ? file : null;
  } catch (error) {
    if (error instanceof SyntaxError || errorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

/** False: the task no longer exists. */
export function writeChecks({ checks }: Pick<TaskPaths, 'checks'>, file: ChecksFile): boolean {
  try {
    replaceFile(checks, `${JSON.stringify(file)}\n`, { durable: file.state !== 'running' });
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Removes the result. Used when a new state cannot be written, so that no file claims that checks still run. */
export function dropChecks({ checks }: Pick<TaskPaths, 'checks'>): void {
  rmSync(checks, { force: true });
}

/** An empty directory for their output. */
export function makeChecksDir({ checksDir }: Paths): void {
  rmSync(checksDir, { recursive: true, force: true });
  mkdirSync(checksDir, { mode: 0o700 });
}

export function checkLogPath({ checksDir }: Pick<TaskPaths, 'checksDir'>, n: number): string {
  return join(checksDir, `${n}.log`);
}
