// scripts/setup.mjs: whatever a fresh clone needs, installed only if it is missing, and said out loud.
// Plain Node without packages: it runs before there are any.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
const say = (text) => process.stderr.write(`setup: ${text}\n`);

/** What a sandbox is made with. */
export const NEEDED = ['bwrap', 'git', 'perl', 'prlimit', 'unshare'];

/** npm packages, the build, and the system packages that provide these programs. */
export async function setUp({ programs = NEEDED, quiet = false } = {}) {
  checkNode();
  ensurePrograms(programs);
  ensurePackages();
  await ensureBuild(quiet);
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  say(`Node ${process.versions.node} is too old; ags needs Node 20.19 or newer.`);
  process.exit(9);
}

export function ensurePackages() {
  const lock = join(root, 'package-lock.json');
  const installed = join(root, 'node_modules/.package-lock.json');
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  say('installing npm packages');
  // Not `npm ci`: it insists on an entry for the binaries of every other platform, which npm itself may leave out.
  execFileSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
}

export async function ensureBuild(quiet) {
  const stamp = join(root, 'dist/.built-from');
  const wanted = sourceStamp();
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  if (!quiet) say('building dist/');
  execFileSync(process.execPath, [join(root, 'scripts/build.mjs')], { cwd: root, stdio: ['ignore', 2, 2] });
  writeFileSync(stamp, wanted);
}

function sourceStamp() {
  const hash = createHash('sha256');
  const visit = (dir) => {
    for (const entry of readdirSync(dir, { withFileTypes: true })) {
      const path = join(dir, entry.name);
      if (entry.isDirectory()) visit(path);
      else hash.update(`${path} ${statSync(path).mtimeMs} ${statSync(path).size}\n`);
    }
  };
  visit(join(root, 'src'));
  visit(join(root, 'web'));
  for (const file of ['package.json', 'scripts/build.mjs']) hash.update(readFileSync(join(root, file)));
  return hash.digest('hex');
}

const PACKAGES = {
  bwrap: 'bubblewrap',
  prlimit: 'util-linux',
  unshare: 'util-linux',
  psql: 'postgresql',
  javac: 'default-jdk-headless',
  keytool: 'default-jdk-headless',
};
const MANAGERS = [
  { program: 'apt-get', before: ['apt-get', 'update', '-qq'], install: ['apt-get', 'install', '-y', '-qq'] },
  { program: 'dnf', install: ['dnf', 'install', '-y', '-q'] },
  { program: 'pacman', install: ['pacman', '-S', '--noconfirm'] },
  { program: 'zypper', install: ['zypper', '-q', 'install', '-y'] },
  { program: 'apk', install: ['apk', 'add', '-q'] },
];

export function ensurePrograms(programs) {
  const missing = programs.filter((name) => !has(name));
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map((name) => PACKAGES[name] ?? name))];
  const manager = MANAGERS.find(({ program }) => has(program));
  const command = manager === undefined ? `install ${packages.join(' ')}` : [...manager.install, ...packages].join(' ');
  const sudo =
    process.getuid?.() === 0
      ? []
      : spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0
        ? ['sudo', '-n']
        : null;
  if (manager === undefined || sudo === null) {
    say(`${missing.join(', ')} is missing and may not be installed from here. Run: sudo ${command}`);
    process.exit(9);
  }
  say(`installing ${packages.join(', ')} (${command})`);
  const run = (argv) =>
    spawnSync([...sudo, ...argv][0], [...sudo, ...argv].slice(1), {
      stdio: ['ignore', 'ignore', 2],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    }).status;
  if (manager.before !== undefined) run(manager.before);
  if (run([...manager.install, ...packages]) !== 0 || missing.some((name) => !has(name))) {
    say(`could not install ${packages.join(', ')}. Run: sudo ${command}`);
    process.exit(9);
  }
}

function has(program) {
  return ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin', '/run/current-system/sw/bin'].some((dir) =>
    existsSync(join(dir, program)),
  );
}
