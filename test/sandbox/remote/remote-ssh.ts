// test/sandbox/remote/remote-ssh.ts: ssh to the remote machine: a server there on loopback, and a local user with an authorized key.
// uses: ssh
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AGS, giveTo, type Machine } from '../../harness.ts';
import { freePort, type RemoteEngine } from './remote-engine.ts';

export const HAS_SSH = ['sshd', 'ssh', 'ssh-keygen'].every((name) => spawnSync('which', [name]).status === 0);

export interface SshServer {
  readonly port: number;
  /** A line for known_hosts, and the user's private key. */
  readonly hostKey: string;
  readonly userKey: string;
}

const SERVE = `umask 077; mkdir -p /run/sshd /root; printf '%s\\n' "$1" > /run/sshd/key; printf '%s\\n' "$2" > /run/sshd/allowed
exec /usr/sbin/sshd -D -f /dev/null -p "$3" -h /run/sshd/key -o ListenAddress=127.0.0.1 -o PidFile=none -o AuthorizedKeysFile=/run/sshd/allowed -o StrictModes=no -o PasswordAuthentication=no`;

export async function startSsh(remote: RemoteEngine): Promise<SshServer> {
  const port = await freePort();
  const [host, user] = [makeKey(), makeKey()];
  remote.run(['sh', '-c', SERVE, 'sh', host.secret, user.open, String(port)]);
  for (const end = Date.now() + 60_000; !(await isOpen(port)); await sleep(50))
    if (Date.now() > end) throw new Error('sshd does not listen');
  return { port, hostKey: `[127.0.0.1]:${port} ${host.open}`, userKey: user.secret };
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

function makeKey(): { secret: string; open: string } {
  const dir = mkdtempSync('/var/tmp/ags-key-');
  try {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', join(dir, 'key')]);
    return {
      secret: readFileSync(join(dir, 'key'), 'utf8').trim(),
      open: readFileSync(join(dir, 'key.pub'), 'utf8').trim(),
    };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** A prefix for commands of this user: ssh takes the home from /etc/passwd, not from HOME, so the command gets its own /etc. */
export function withKey(machine: Machine, { hostKey, userKey }: SshServer): [string, ...string[]] {
  const ssh = join(machine.home, '.ssh');
  mkdirSync(ssh, { mode: 0o700 });
  writeFileSync(join(ssh, 'known_hosts'), `${hostKey}\n`);
  writeFileSync(join(ssh, 'id_ed25519'), `${userKey}\n`, { mode: 0o600 });
  // One connection for every command of Docker's client, as docs/containers/remote-docker.md says.
  writeFileSync(join(ssh, 'config'), 'Host *\n  ControlMaster auto\n  ControlPath ~/.ssh/%C\n  ControlPersist 5\n');
  giveTo(ssh, machine.uid);
  // A mount over /etc/passwd alone disappears as soon as any process on this machine replaces the file.
  const etc = join(machine.root, 'etc');
  // cp may fail on a lock file that vanishes meanwhile; the file that matters is read below.
  spawnSync('cp', ['-a', '/etc', etc]);
  const users = join(etc, 'passwd');
  const others = readFileSync(users, 'utf8')
    .split('\n')
    .filter((line) => line.split(':')[2] !== String(machine.uid));
  writeFileSync(users, [`dev:x:${machine.uid}:${machine.uid}::${machine.home}:/bin/sh`, ...others].join('\n'));
  const enter = ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /etc && exec "$@"', etc];
  return ['env', ...enter, 'setpriv', `--reuid=${machine.uid}`, `--regid=${machine.uid}`, '--clear-groups', '--'];
}

export const agsArgv = (...args: string[]): string[] => [process.execPath, AGS, ...args];
