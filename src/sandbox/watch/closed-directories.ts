// sandbox/watch/closed-directories.ts: how much lies in directories that an agent has closed to their owner, or made deeper than we walk.
// Invariant: nothing is changed and nothing is read but names and sizes. What is not found out stays unmeasured, and is charged
// to the sandbox (governor-rules.ts).
import { run } from '../../lib/process/process.ts';
import type { DiskUsage } from './disk-usage.ts';
import { SYSTEM_PATH } from '../native/native.ts';

const PATIENCE_MS = 20_000;
const ENV = { PATH: SYSTEM_PATH, LC_ALL: 'C' };
// In a namespace of its own a user may list whatever is its own. Root may do so as it is.
const AS_OWNER = ['unshare', '--user', '--map-root-user', '--'];

/** The same usage, with all of its directories counted where `du` can see them. */
export async function openClosed(
  usage: DiskUsage,
  directories: readonly string[],
  signal: AbortSignal,
): Promise<DiskUsage> {
  const [bytes, files] = [
    await sum(['--block-size=1'], directories, signal),
    await sum(['--inodes'], directories, signal),
  ];
  if (bytes === null || files === null) return usage;
  // It counts the directories themselves, which the walk does not.
  return {
    ...usage,
    bytes: bytes + usage.deletedBytes,
    files: Math.max(0, files - directories.length),
    isListed: true,
  };
}

/** Enters every directory by descriptor and follows no link; a file with several names counts once. */
async function sum(
  options: readonly string[],
  directories: readonly string[],
  signal: AbortSignal,
): Promise<number | null> {
  const du = ['du', '--summarize', '--total', '--one-file-system', ...options, '--', ...directories];
  const asOwner = process.getuid?.() === 0 ? du : [...AS_OWNER, ...du];
  const { exitCode, stdout, stderr } = await run(asOwner, { env: ENV, timeoutMs: PATIENCE_MS, signal });
  // What was deleted meanwhile is no fault; whatever else it complains of was not counted.
  const complaints = stderr.split('\n').filter((line) => line !== '' && !line.endsWith(': No such file or directory'));
  if (exitCode > 1 || complaints.length > 0) return null;
  const total = /(?:^|\n)(\d+)\ttotal\n$/.exec(stdout.toString('latin1'))?.[1];
  return total === undefined ? null : Number(total);
}
