// test/sandbox/podman-user.ts: a Podman user for the tests: a new user under root, else the current one.
// uses: podman
import { execFileSync } from 'node:child_process';
import { userInfo } from 'node:os';
import { createUser, type PodmanUser } from '../../scripts/podman-user.mjs';
import { findProgram } from '../../src/sandbox/programs.ts';
import type { Machine } from '../harness.ts';

export type { PodmanUser };

/** Without Podman, its tests are skipped; with AGS_REQUIRE_ALL they fail. */
export const HAS_PODMAN = findProgram('podman') !== null && findProgram('newuidmap') !== null;
if (!HAS_PODMAN && process.env['AGS_REQUIRE_ALL'] !== undefined)
  throw new Error('Podman, or newuidmap, is not installed.');

/** Call once per file. */
export function createPodmanUser(name: string): PodmanUser {
  if (process.getuid?.() === 0) return createUser(name);
  const { uid, username, homedir } = userInfo();
  return { uid, userName: username, home: homedir, env: { HOME: homedir }, [Symbol.dispose]: () => undefined };
}

/** Podman's output, run as the machine's user. */
export function podman({ env, uid }: Machine, ...args: string[]): string {
  const identity = process.getuid?.() === 0 ? { uid, gid: uid } : {};
  // Without the option Podman warns about the cgroup manager.
  return execFileSync('podman', ['--cgroup-manager', 'cgroupfs', ...args], {
    env,
    ...identity,
    cwd: '/',
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}
