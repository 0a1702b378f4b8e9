// scripts/own-tmp.mjs: gives tests their own /tmp in memory, if root can. Creating and removing thousands of small projects there is faster than
// on a disk. Tests about disks use /var/tmp.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './setup.mjs';

/** The ordinary user for tests started by root. */
export const TEST_USER = 42_424;

// Mounts a clone below /tmp again at its path, through the working directory; only mount -c accepts that without resolving the path first.
const IN_MEMORY = [
  'mount -t tmpfs -o mode=1777,size=12g tmpfs /tmp',
  'case "$0" in /tmp/*) mkdir -p "$0" && mount -c --rbind . "$0" && cd "$0" ;; esac',
  'exec "$@"',
].join(' && ');

const wrapped = (argv) => ['unshare', '--mount', 'sh', '-c', IN_MEMORY, root, ...argv];

/** The command with its own /tmp, or unchanged. */
export function enterOwnTmp(argv) {
  const [program, ...rest] = wrapped(['test', '-f', join(root, 'package.json')]);
  return spawnSync(program, rest, { cwd: root, stdio: 'ignore' }).status === 0 ? wrapped(argv) : argv;
}
