// test/sandbox/podman-user.ts: somebody who may use Podman, for the tests: a user of its own, or whoever runs them.
// uses: podman
import { execFileSync } from 'node:child_process';
import { userInfo } from 'node:os';
import { createUser, type PodmanUser } from '../../scripts/podman-user.mjs';
import { findProgram } from '../../src/sandbox/programs.ts';
import type { Machine } from '../harness.ts';

export type { PodmanUser };

/** Without it, tests with Podman are left out; with AGS_REQUIRE_ALL they fail. */
export const HAS_PODMAN = findProgram('podman') !== null && findProgram('newuidmap') !== null;
if (!HAS_PODMAN && process.env['AGS_REQUIRE_ALL'] !== undefined)
  throw new Error('Podman, or newuidmap, is not installed.');

/** One for each file. */
export function createPodmanUser(name: string): PodmanUser {
  if (process.getuid?.() === 0) return createUser(name);
  const { uid, username, homedir } = userInfo();
  return { uid, userName: username, home: homedir, env: { HOME: homedir }, [Symbol.dispose]: () => undefined };
}

/** What Podman answers whoever uses this machine. */
export function podman({ env, uid }: Machine, ...args: string[]): string {
  const identity = process.getuid?.() === 0 ? { uid, gid: uid } : {};
  // The first complaint of its start, about what it is told on its command line otherwise, is not what it answers.
  return execFileSync('podman', ['--cgroup-manager', 'cgroupfs', ...args], {
    env,
    ...identity,
    cwd: '/',
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}
