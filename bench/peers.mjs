// bench/peers.mjs: installs the peers that ags is measured against: npm packages in bench/node_modules, and their programs.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { which } from './fixture.mjs';

const say = (text) => process.stderr.write(`bench: ${text}\n`);

/** The directory of the installed peers and their version; a null directory comes with the reason. */
export function installPeers(root) {
  const bench = join(root, 'bench');
  const version = JSON.parse(readFileSync(join(bench, 'package.json'), 'utf8')).dependencies[
    '@anthropic-ai/sandbox-runtime'
  ];
  // Requirements of sandbox-runtime.
  const missing = installPrograms({ rg: 'ripgrep', socat: 'socat' });
  if (missing !== null) return { directory: null, version, why: missing };
  const installed = join(bench, 'node_modules/.package-lock.json');
  if (!existsSync(installed) || statSync(installed).mtimeMs < statSync(join(bench, 'package-lock.json')).mtimeMs) {
    say('installing the peers (npm install --prefix bench)');
    execFileSync('npm', ['install', '--no-save', '--prefix', bench, '--no-audit', '--no-fund', '--loglevel=error'], {
      stdio: ['ignore', 2, 2],
    });
  }
  return { directory: join(bench, 'node_modules'), version, why: null };
}

/** Installs missing programs, given with their packages. Returns null, or the reason why some are missing. */
export function installPrograms(packages) {
  const missing = () => Object.keys(packages).filter((program) => which(program) === null);
  if (missing().length === 0) return null;
  const names = missing()
    .map((program) => packages[program])
    .join(' ');
  const sudo = which('apt-get') === null ? null : asRoot();
  if (sudo !== null) {
    say(`installing ${names} (apt-get install)`);
    withoutServices(sudo, () => {
      run([...sudo, 'apt-get', 'update', '-qq']);
      run([...sudo, 'apt-get', 'install', '-y', '-qq', ...names.split(' ')]);
    });
    // Nor at the next boot.
    const services = names.split(' ').filter((name) => SERVICES.includes(name));
    if (services.length > 0 && which('systemctl') !== null)
      run([...sudo, 'systemctl', '--quiet', 'disable', ...services]);
  }
  return missing().length === 0 ? null : `${names} is not installed, and may not be installed from here`;
}

const SERVICES = ['tinyproxy', 'squid'];

function asRoot() {
  if (process.getuid() === 0) return [];
  return spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0 ? ['sudo', '-n'] : null;
}

/** Installs without starting services. Debian asks policy-rc.d whether a package may start one. */
function withoutServices(sudo, install) {
  const policy = '/usr/sbin/policy-rc.d';
  const ours = !existsSync(policy);
  if (ours) run([...sudo, 'sh', '-c', `printf '#!/bin/sh\nexit 101\n' > ${policy} && chmod 755 ${policy}`]);
  install();
  if (ours) run([...sudo, 'rm', '-f', policy]);
}

function run([program, ...args]) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  spawnSync(program, args, { env, stdio: ['ignore', 'ignore', 2] });
}

export function programVersion([program, ...args]) {
  return /\d+(\.\d+)+/.exec(execFileSync(program, args, { encoding: 'utf8' }))?.[0] ?? 'unknown';
}
