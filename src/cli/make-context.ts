// cli/make-context.ts: builds the host context (user, directories, machine) once for each command.
import { userInfo, totalmem, release } from 'node:os';
import { join } from 'node:path';
import type { HostContext } from '../run/host-context.ts';

export function makeHostContext(env: NodeJS.ProcessEnv): HostContext {
  const uid = process.getuid?.() ?? 0;
  // The account database is read only if the environment is incomplete.
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

/** The XDG specification says: an empty or relative path counts as not set. */
function absolute(path: string | undefined): string | undefined {
  return path?.startsWith('/') === true ? path : undefined;
}

function readAccount(): { name: string; home: string; shell: string } {
  try {
    const info = userInfo();
    return { name: info.username, home: info.homedir, shell: info.shell ?? '/bin/sh' };
  } catch {
    // Many containers run under a uid without an account.
    return { name: 'user', home: '/', shell: '/bin/sh' };
  }
}
