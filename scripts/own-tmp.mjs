// scripts/own-tmp.mjs: a /tmp in memory for the tests alone, where root can give them one. Thousands of small projects are made and
// removed there, which takes a disk longer than everything that is tested with them. Tests that are about disks use /var/tmp.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './setup.mjs';

/** The ordinary user that tests run as when root starts them. */
export const TEST_USER = 42_424;

// A clone below /tmp is shown again where it was: the working directory still leads to it, and only for mount -c, which does not make
// a path of it first.
const IN_MEMORY = [
  'mount -t tmpfs -o mode=1777,size=12g tmpfs /tmp',
  'case "$0" in /tmp/*) mkdir -p "$0" && mount -c --rbind . "$0" && cd "$0" ;; esac',
  'exec "$@"',
].join(' && ');

const wrapped = (argv) => ['unshare', '--mount', 'sh', '-c', IN_MEMORY, root, ...argv];

/** The command with a /tmp of its own, or as it is. */
export function enterOwnTmp(argv) {
  const [program, ...rest] = wrapped(['test', '-f', join(root, 'package.json')]);
  return spawnSync(program, rest, { cwd: root, stdio: 'ignore' }).status === 0 ? wrapped(argv) : argv;
}
