// scripts/setup.mjs: whatever a fresh clone needs, installed only if it is missing, and said out loud.
// Plain Node without packages: it runs before there are any.
import { execFileSync, spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
const say = (text) => process.stderr.write(`setup: ${text}\n`);

/** What a sandbox is made with. */
export const NEEDED = ['bwrap', 'git', 'perl', 'prlimit', 'unshare'];

/** npm packages, the build, and the system packages that provide these programs. Without an optional one, set-up says so and goes on. */
export async function setUp({ programs = NEEDED, optional = [], quiet = false } = {}) {
  checkNode();
  ensurePrograms(programs);
  ensurePrograms(optional, { orGoOn: true });
  ensurePackages();
  await ensureBuild(quiet);
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  say(`Node ${process.versions.node} is too old; ags needs Node 20.19 or newer.`);
  process.exit(9);
}

/** A clone may belong to somebody else: then nothing can be installed or built in it from here. */
function mayWrite(what) {
  try {
    accessSync(root, constants.W_OK);
    for (const made of ['dist', 'node_modules'])
      if (existsSync(join(root, made))) accessSync(join(root, made), constants.W_OK);
  } catch {
    say(`${what}, and ${root} may not be written from here. Run there, as its owner: ./ags --version`);
    process.exit(9);
  }
}

export function ensurePackages() {
  if (hasPackages()) return;
  mayWrite('npm packages are missing');
  say('installing npm packages');
  // Not `npm ci`: it insists on an entry for the binaries of every other platform, which npm itself may leave out.
  execFileSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
}

/** By content: git and npm leave times that say nothing. npm skips optional packages that are for other platforms. */
function hasPackages() {
  const installed = packagesIn('node_modules/.package-lock.json');
  if (installed === null) return false;
  return Object.entries(packagesIn('package-lock.json')).every(([path, { version, integrity, optional }]) => {
    const found = installed[path];
    if (path === '') return true;
    return found === undefined ? optional === true : found.version === version && found.integrity === integrity;
  });
}

function packagesIn(lock) {
  const file = join(root, lock);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).packages : null;
}

export async function ensureBuild(quiet) {
  if (existsSync(BUILT_FROM) && readFileSync(BUILT_FROM, 'utf8') === sourceStamp()) return;
  mayWrite('dist/ is older than the source');
  if (!quiet) say('building dist/');
  execFileSync(process.execPath, [join(root, 'scripts/build.mjs')], { cwd: root, stdio: ['ignore', 2, 2] });
}

/** What dist/ was built from. The build writes it. */
export const BUILT_FROM = join(root, 'dist/.built-from');

export function sourceStamp() {
  const hash = createHash('sha256');
  const visit = (dir) => {
    for (const entry of readdirSync(dir, { withFileTypes: true })) {
      const path = join(dir, entry.name);
      if (entry.isDirectory()) visit(path);
      else hash.update(`${path.slice(root.length)} ${statSync(path).mtimeMs} ${statSync(path).size}\n`);
    }
  };
  visit(join(root, 'src'));
  visit(join(root, 'web'));
  for (const file of ['package.json', 'scripts/build.mjs']) hash.update(readFileSync(join(root, file)));
  return hash.digest('hex');
}

const PACKAGES = {
  bwrap: 'bubblewrap',
  busybox: 'busybox-static',
  dockerd: 'docker.io',
  newuidmap: 'uidmap',
  prlimit: 'util-linux',
  unshare: 'util-linux',
  sshd: 'openssh-server',
  psql: 'postgresql',
  mariadbd: 'mariadb-server',
  javac: 'default-jdk-headless',
  keytool: 'default-jdk-headless',
};
// What it recommends is for networks and images that no test has.
const LEAN = ['podman', 'rabbitmq-server', 'memcached', 'openssh-server'];
const MANAGERS = [
  {
    program: 'apt-get',
    before: ['apt-get', 'update', '-qq'],
    install: ['apt-get', 'install', '-y', '-qq'],
    lean: ['apt-get', 'install', '-y', '-qq', '--no-install-recommends'],
  },
  { program: 'dnf', install: ['dnf', 'install', '-y', '-q'] },
  { program: 'pacman', install: ['pacman', '-S', '--noconfirm'] },
  { program: 'zypper', install: ['zypper', '-q', 'install', '-y'] },
  { program: 'apk', install: ['apk', 'add', '-q'] },
];

export function ensurePrograms(programs, { orGoOn = false } = {}) {
  const missing = programs.filter((name) => !has(name));
  if (missing.length === 0) return;
  const { packages, manager, command } = installing(missing);
  const sudo =
    process.getuid?.() === 0
      ? []
      : spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0
        ? ['sudo', '-n']
        : null;
  if (manager === undefined || sudo === null) {
    say(`${missing.join(', ')} is missing and may not be installed from here. Run: sudo ${command}`);
    if (orGoOn) return;
    process.exit(9);
  }
  say(`installing ${packages.join(', ')} (${command})`);
  const run = (argv) =>
    spawnSync([...sudo, ...argv][0], [...sudo, ...argv].slice(1), {
      stdio: ['ignore', 'ignore', 2],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    }).status;
  if (manager.before !== undefined) run(manager.before);
  const [lean, whole] = [true, false].map((is) => packages.filter((name) => LEAN.includes(name) === is));
  const install = (argv, names) => (names.length === 0 ? 0 : run([...argv, ...names]));
  const done = withoutServers(
    run,
    () => install(manager.install, whole) || install(manager.lean ?? manager.install, lean),
  );
  if (done !== 0 || missing.some((name) => !has(name))) {
    say(`could not install ${packages.join(', ')}. Run: sudo ${command}`);
    if (!orGoOn) process.exit(9);
  }
}

/** The packages that provide these programs, and the command that installs them here. */
export function installing(programs) {
  const packages = [...new Set(programs.map((name) => PACKAGES[name] ?? name))];
  const manager = MANAGERS.find(({ program }) => has(program));
  const command = manager === undefined ? `install ${packages.join(' ')}` : [...manager.install, ...packages].join(' ');
  return { packages, manager, command };
}

/** Debian starts a server as soon as it is installed, unless a file says no. One that is there is somebody else's, and stays. */
function withoutServers(run, install) {
  const policy = '/usr/sbin/policy-rc.d';
  const ours = has('apt-get') && !existsSync(policy);
  if (ours) run(['sh', '-c', `printf '#!/bin/sh\\nexit 101\\n' > ${policy} && chmod 755 ${policy}`]);
  try {
    return install();
  } finally {
    if (ours) run(['rm', '-f', policy]);
  }
}

export function has(program) {
  return ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin', '/run/current-system/sw/bin'].some((dir) =>
    existsSync(join(dir, program)),
  );
}
