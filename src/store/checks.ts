// store/checks.ts: the last checks of a task: checks.json, and in the directory beside it what each of them printed.
// Invariant: checks that somebody was killed over are never said to run, and no log grows without bound.
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { ChecksFile } from '../protocol/checks.ts';
import { errorCode } from '../lib/error-code.ts';
import { replaceFile } from '../lib/files.ts';
import { isAlive } from '../lib/liveness.ts';
import type { TaskPaths } from './layout.ts';

type Paths = Pick<TaskPaths, 'checks' | 'checksDir'>;

/** null: there were none, or their file cannot be read. */
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

/** False: the task is gone. */
export function writeChecks({ checks }: Pick<TaskPaths, 'checks'>, file: ChecksFile): boolean {
  try {
    replaceFile(checks, `${JSON.stringify(file)}\n`, { durable: file.state !== 'running' });
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false;
    throw error;
  }
}

/** An empty place for what they print. */
export function makeChecksDir({ checksDir }: Paths): void {
  rmSync(checksDir, { recursive: true, force: true });
  mkdirSync(checksDir, { mode: 0o700 });
}

const LOG_BYTES = 2 * 2 ** 20;

export interface CheckLog extends Disposable {
  append(text: string): void;
}

/** The end of what was printed is kept: the latest megabytes, and at most as many before them. */
export function openCheckLog(paths: Paths, n: number): CheckLog {
  const path = checkLogPath(paths, n);
  let fd = openSync(path, 'w', 0o600);
  let bytes = 0;
  return {
    append(text) {
      const content = Buffer.from(text);
      if (bytes + content.length > LOG_BYTES && bytes > 0) {
        closeSync(fd);
        renameSync(path, `${path}.before`);
        fd = openSync(path, 'w', 0o600);
        bytes = 0;
      }
      writeSync(fd, content);
      bytes += content.length;
    },
    [Symbol.dispose]: () => closeSync(fd),
  };
}

export function checkLogPath({ checksDir }: Pick<TaskPaths, 'checksDir'>, n: number): string {
  return join(checksDir, `${n}.log`);
}

/** The last part of what it printed. `cut`: there was more. */
export function readCheckLog(paths: Paths, n: number, maxBytes: number): { text: string; cut: boolean } {
  const path = checkLogPath(paths, n);
  const now = readEnd(path, maxBytes);
  const room = maxBytes - now.bytes.length;
  const before =
    room > 0 ? readEnd(`${path}.before`, room) : { bytes: Buffer.alloc(0), cut: existsSync(`${path}.before`) };
  return { text: Buffer.concat([before.bytes, now.bytes]).toString('utf8'), cut: now.cut || before.cut };
}

function readEnd(path: string, maxBytes: number): { bytes: Buffer; cut: boolean } {
  if (!existsSync(path)) return { bytes: Buffer.alloc(0), cut: false };
  const fd = openSync(path, 'r');
  try {
    const { size } = fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(size, maxBytes));
    const read = readSync(fd, bytes, 0, bytes.length, size - bytes.length);
    return { bytes: bytes.subarray(0, read), cut: size > maxBytes };
  } finally {
    closeSync(fd);
  }
}
