// cli/make-context.ts: who calls, where, and on what machine: made once for each command, from its environment.
import { userInfo, totalmem, release } from 'node:os';
import { join } from 'node:path';
import type { World } from '../run/host-context.ts';

export function makeWorld(env: NodeJS.ProcessEnv): World {
  const uid = process.getuid?.() ?? 0;
  // The account database is asked only for what the environment does not say.
  const account =
    env['HOME'] && env['USER'] && env['SHELL']
      ? { home: env['HOME'], name: env['USER'], shell: env['SHELL'] }
      : readAccount();
  const home = absolute(env['HOME']) ?? account.home;
  return {
    cwd: process.cwd(),
    home,
    env,
    uid,
    gid: process.getgid?.() ?? 0,
    userName: account.name,
    shell: env['SHELL'] ?? account.shell,
    stateDir: join(absolute(env['XDG_STATE_HOME']) ?? join(home, '.local/state'), 'ags'),
    cacheDir: join(absolute(env['XDG_CACHE_HOME']) ?? join(home, '.cache'), 'ags'),
    dataDir: join(absolute(env['XDG_DATA_HOME']) ?? join(home, '.local/share'), 'ags'),
    configFile: join(absolute(env['XDG_CONFIG_HOME']) ?? join(home, '.config'), 'ags/config.yaml'),
    memoryBytes: totalmem(),
    kernel: release(),
    platform: process.platform,
    nodeArch: process.arch,
    pid: process.pid,
    self: [process.execPath, process.argv[1] ?? ''],
    now: () => new Date(),
  };
}

/** The specification of these variables: what is empty or relative counts as not set. */
function absolute(path: string | undefined): string | undefined {
  return path?.startsWith('/') === true ? path : undefined;
}

function readAccount(): { name: string; home: string; shell: string } {
  try {
    const info = userInfo();
    return { name: info.username, home: info.homedir, shell: info.shell ?? '/bin/sh' };
  } catch {
    // A uid without an account, as in many containers.
    return { name: 'user', home: '/', shell: '/bin/sh' };
  }
}
