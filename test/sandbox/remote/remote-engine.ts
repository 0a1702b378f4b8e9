// test/sandbox/remote/remote-engine.ts: a remote engine: a dockerd with its own root file system, which contains only this machine's
// programs. It listens on loopback with its own certificates.
// uses: docker, openssl, busybox
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Engine } from '../../../src/sandbox/engine/engine.ts';
import { ENGINE } from '../../conformance/docker-backend.ts';

const run = (argv: readonly string[], cwd: string): void =>
  void execFileSync(argv[0] ?? '', argv.slice(1), { cwd, stdio: ['ignore', 'ignore', 'pipe'] });

/** Only root can start the engine. */
export const HAS_REMOTE =
  process.getuid?.() === 0 &&
  ['dockerd', 'openssl', 'unshare', 'busybox'].every((name) => spawnSync('which', [name]).status === 0);
if (!HAS_REMOTE && process.getuid?.() === 0 && process.env['AGS_REQUIRE_ALL'] !== undefined)
  throw new Error('dockerd, openssl, unshare or busybox is missing');

export interface RemoteEngine extends Disposable {
  /** Variables that select this engine. */
  readonly env: Readonly<Record<string, string>>;
  readonly address: string;
  docker(...args: string[]): string;
  /** Whether any file of the remote machine contains the text. */
  holds(text: string): boolean;
  /** Starts a program on the remote machine, which ends with it. */
  run(argv: readonly string[]): void;
  /** Its containers and volumes. */
  left(): string[];
  /** The engine as ags would find it. */
  readonly engine: Engine;
}

// A root file system with this machine's programs and none of its users' files.
const START = `set -e
mount --make-rprivate /
mount -t tmpfs -o size=2g,mode=755 remote "$1"
cd "$1"
mkdir -p usr etc proc sys dev run tmp var/lib/docker old certs
ln -s /run var/run
for link in bin sbin lib lib64; do if [ -h /$link ]; then ln -s usr/$link $link; elif [ -d /$link ]; then mkdir $link; mount --rbind /$link $link; fi; done
mount --rbind /usr usr; mount --rbind /sys sys; mount --rbind /dev dev; mount -t proc proc proc
cp -rL /etc/ssl etc/ssl 2>/dev/null || mkdir -p etc/ssl
grep -E '^(root|sshd):' /etc/passwd > etc/passwd; grep '^root:' /etc/group > etc/group; echo remote-machine > etc/hostname; : > etc/hosts; : > etc/resolv.conf
cp "$2"/* certs/
pivot_root . old
umount -l /old
exec dockerd --data-root /var/lib/docker --exec-root /run/docker --pidfile /run/docker.pid --host unix:///run/docker.sock --host "tcp://127.0.0.1:$3" --tlsverify --tlscacert /certs/ca.pem --tlscert /certs/server.pem --tlskey /certs/server-key.pem --bridge=none --iptables=false --ip-forward=false --ip-masq=false
`;

export async function startRemoteEngine(): Promise<RemoteEngine> {
  const dir = mkdtempSync('/var/tmp/ags-remote-');
  const certificates = join(dir, 'client');
  for (const name of ['root', 'server', 'client']) mkdirSync(join(dir, name));
  makeCertificates(dir);
  chmodSync(dir, 0o755);
  const port = await freePort();
  const log = join(dir, 'log');
  const engine = spawn(
    'sh',
    [
      '-c',
      `exec unshare --mount --pid --fork --kill-child sh -c "$0" sh "$@" >${log} 2>&1`,
      START,
      join(dir, 'root'),
      join(dir, 'server'),
      String(port),
    ],
    {
      cwd: '/',
      stdio: 'ignore',
      detached: true,
    },
  );
  const address = `tcp://127.0.0.1:${port}`;
  const env = { DOCKER_HOST: address, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: certificates };
  const docker = (...args: string[]): string =>
    execFileSync('docker', args, {
      env: { PATH: process.env['PATH'], HOME: dir, ...env },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const stop = (): void => {
    engine.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  };
  const there = (): string[] => {
    const inside = readFileSync(`/proc/${engine.pid}/task/${engine.pid}/children`, 'utf8').trim();
    return ['--target', inside, '--mount', '--pid', '--'];
  };
  for (let tries = 0; ; tries++) {
    if (spawnSync('docker', ['info'], { env: { PATH: process.env['PATH'], HOME: dir, ...env } }).status === 0) break;
    if (tries > 300 || engine.exitCode !== null) {
      const said = existsSync(log) ? readFileSync(log, 'utf8').slice(-2000) : '';
      stop();
      throw new Error(`the remote engine did not start: ${said}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return {
    env,
    address,
    docker,
    holds(text) {
      const places = ['/var/lib/docker/volumes', '/var/lib/docker/containers', '/tmp', '/run'];
      const look = ['grep', '--recursive', '--quiet', '--devices=skip', '--fixed-strings', '--', text, ...places];
      return spawnSync('nsenter', [...there(), ...look]).status === 0;
    },
    run: (argv) => void spawn('nsenter', [...there(), ...argv], { cwd: '/', stdio: 'ignore' }),
    left: () => [docker('ps', '--all', '--format', '{{.Names}}'), docker('volume', 'ls', '--quiet')].flatMap(lines),
    engine: { ...ENGINE, env: { ...ENGINE.env, ...env }, socket: null, far: address },
    [Symbol.dispose]: stop,
  };
}

function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}

function makeCertificates(dir: string): void {
  const key = ['-newkey', 'rsa:2048', '-nodes'];
  run(
    ['openssl', 'req', '-x509', ...key, '-days', '2', '-subj', '/CN=remote', '-keyout', 'ca-key.pem', '-out', 'ca.pem'],
    dir,
  );
  for (const [name, at, use] of [
    ['server', 'server', 'serverAuth'],
    ['cert', 'client', 'clientAuth'],
  ] as const) {
    const keyFile = name === 'server' ? 'server-key.pem' : 'key.pem';
    run(['openssl', 'req', ...key, '-subj', `/CN=${at}`, '-keyout', join(at, keyFile), '-out', `${at}.csr`], dir);
    writeFileSync(join(dir, `${at}.ext`), `subjectAltName=IP:127.0.0.1\nextendedKeyUsage=${use}\n`);
    run(
      [
        'openssl',
        'x509',
        '-req',
        '-in',
        `${at}.csr`,
        '-CA',
        'ca.pem',
        '-CAkey',
        'ca-key.pem',
        '-CAcreateserial',
        '-days',
        '2',
        '-extfile',
        `${at}.ext`,
        '-out',
        join(at, `${name}.pem`),
      ],
      dir,
    );
    run(['cp', 'ca.pem', join(at, 'ca.pem')], dir);
    run(['chmod', '-R', 'a+rX', at], dir);
  }
}

/** Below the range from which the kernel assigns ports, so that no other process gets the port first. */
export function freePort(): Promise<number> {
  const port = randomInt(20_000, 32_000);
  return new Promise((resolve, reject) => {
    const server = createServer()
      .on('error', (error: NodeJS.ErrnoException) =>
        error.code === 'EADDRINUSE' ? resolve(freePort()) : reject(error),
      )
      .listen(port, '127.0.0.1', () => server.close(() => resolve(port)));
  });
}
