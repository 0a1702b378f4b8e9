// test/images/devcontainer/base-image.ts: base images made of this machine's programs, because tests cannot pull any.
// uses: docker, busybox, redis
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const REPO = fileURLToPath(new URL('../../..', import.meta.url));

/** An image with Node, a shell, the built ags, and Redis; with `engine` also nested Docker and its client. */
export function makeBaseImage(name: string, options: { engine?: boolean } = {}): void {
  const dir = mkdtempSync('/var/tmp/ags-base-');
  try {
    for (const one of ['bin', 'usr/bin', 'usr/lib/ags/dist', 'etc', 'tmp', 'root', 'home', 'run', 'var/tmp', 'data'])
      mkdirSync(join(dir, one), { recursive: true });
    for (const one of ['tmp', 'var/tmp', 'data']) chmodSync(join(dir, one), 0o1777);
    copyFileSync('/bin/busybox', join(dir, 'bin/busybox'));
    for (const applet of execFileSync('busybox', ['--list'], { encoding: 'utf8' }).split('\n'))
      if (applet !== '' && applet !== 'busybox') symlinkSync('busybox', join(dir, 'bin', applet));
    for (const program of [process.execPath, '/usr/bin/redis-server', '/usr/bin/redis-cli']) addProgram(dir, program);
    if (options.engine === true) addEngine(dir);
    cpSync(join(REPO, 'bin'), join(dir, 'usr/lib/ags/bin'), { recursive: true });
    cpSync(join(REPO, 'dist/bundle'), join(dir, 'usr/lib/ags/dist/bundle'), { recursive: true });
    copyFileSync(join(REPO, 'package.json'), join(dir, 'usr/lib/ags/package.json'));
    symlinkSync('../lib/ags/bin/ags', join(dir, 'usr/bin/ags'));
    // As in the images of Node, a user has ID 1000, which most hosts give to their first user.
    writeFileSync(
      join(dir, 'etc/passwd'),
      'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/:/bin/sh\nredis:x:999:999::/:/bin/false\n',
    );
    writeFileSync(join(dir, 'etc/group'), 'root:x:0:\nnode:x:1000:\nredis:x:999:\n');
    // A set-user-ID program that the image of the dev container must remove.
    copyFileSync('/bin/busybox', join(dir, 'bin/becomes-root'));
    chmodSync(join(dir, 'bin/becomes-root'), 0o4755);
    const pack = `tar --owner=0 --group=0 -C "$1" -c . | docker import -c 'ENV PATH=/usr/bin:/bin' - "$2"`;
    execFileSync('sh', ['-c', pack, 'sh', dir, name], { stdio: ['ignore', 'ignore', 'pipe'] });
  } finally {
    rmSync(dir, { recursive: true });
  }
}

const ENGINE = [
  'dockerd',
  'docker',
  'docker-proxy',
  'containerd',
  'containerd-shim-runc-v2',
  'runc',
  'iptables',
  'perl',
];

function addEngine(dir: string): void {
  const where = (program: string): string =>
    execFileSync('sh', ['-c', 'command -v "$1"', 'sh', program], {
      encoding: 'utf8',
      env: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin' },
    }).trim();
  for (const program of ENGINE) addProgram(dir, where(program));
  const modules = execFileSync('perl', ['-MPOSIX', '-e', 'print $INC{"POSIX.pm"}'], { encoding: 'utf8' });
  for (const directory of [dirname(modules), join(dirname(modules), '../xtables')])
    cpSync(directory, join(dir, directory), { recursive: true });
}

function addProgram(dir: string, program: string): void {
  const files = spawnSync('ldd', [program], { encoding: 'utf8' }).stdout.match(/\/[^ )]+/g) ?? [];
  for (const file of files) {
    mkdirSync(join(dir, dirname(file)), { recursive: true });
    copyFileSync(file, join(dir, file));
  }
  copyFileSync(program, join(dir, 'usr/bin', basename(program)));
  chmodSync(join(dir, 'usr/bin', basename(program)), 0o755);
}
