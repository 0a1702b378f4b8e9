// test/attacks/own-context.ts: the host context of a machine, for tests that call functions of ags in their own process.
import { release, totalmem } from 'node:os';
import { join } from 'node:path';
import type { HostContext } from '../../src/run/host-context.ts';
import type { Machine } from '../harness.ts';

export function contextOf(machine: Pick<Machine, 'project' | 'home' | 'env' | 'uid' | 'stateDir'>): HostContext {
  return {
    cwd: machine.project,
    home: machine.home,
    env: machine.env,
    uid: machine.uid,
    gid: machine.uid,
    userName: 'user',
    shell: '/bin/sh',
    stateDir: machine.stateDir,
    cacheDir: join(machine.home, '.cache/ags'),
    self: [],
    dataDir: join(machine.home, '.local/share/ags'),
    configFile: join(machine.home, '.config/ags/config.yaml'),
    memoryBytes: totalmem(),
    kernel: release(),
    platform: process.platform,
    nodeArch: process.arch,
    pid: process.pid,
    now: () => new Date(),
  };
}
