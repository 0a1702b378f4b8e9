// sandbox/watch/closed-directories.ts: measures directories that an agent closed to their owner, or made deeper than our walk goes.
// Invariant: this code changes nothing and reads only names and sizes. An unmeasured directory is charged to the sandbox
// (governor-rules.ts).
import { run } from '../../lib/process/process.ts';
import type { DiskUsage } from './disk-usage.ts';
import { SYSTEM_PATH } from '../io/descriptors.ts';

const PATIENCE_MS = 20_000;
const ENV = { PATH: SYSTEM_PATH, LC_ALL: 'C' };
// In a new user namespace a user may list all of their own directories. Root needs none.
const AS_OWNER = ['unshare', '--user', '--map-root-user', '--'];

/** Returns the usage with all directories counted, as far as `du` can see them. */
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
  // du counts the top directories themselves; the walk does not.
  return {
    ...usage,
    bytes: bytes + usage.deletedBytes,
    files: Math.max(0, files - directories.length),
    isListed: true,
  };
}

/** du enters directories by descriptor, follows no link, and counts a file with several names once. */
async function sum(
  options: readonly string[],
  directories: readonly string[],
  signal: AbortSignal,
): Promise<number | null> {
  const du = ['du', '--summarize', '--total', '--one-file-system', ...options, '--', ...directories];
  const asOwner = process.getuid?.() === 0 ? du : [...AS_OWNER, ...du];
  const { exitCode, stdout, stderr } = await run(asOwner, { env: ENV, timeoutMs: PATIENCE_MS, signal });
  // A file deleted meanwhile is no error. Any other complaint means that something was not counted.
  const complaints = stderr.split('\n').filter((line) => line !== '' && !line.endsWith(': No such file or directory'));
  if (exitCode > 1 || complaints.length > 0) return null;
  const total = /(?:^|\n)(\d+)\ttotal\n$/.exec(stdout.toString('latin1'))?.[1];
  return total === undefined ? null : Number(total);
}
