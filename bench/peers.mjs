// bench/peers.mjs: gets what ags is measured against: npm packages into bench/node_modules, and the programs they need.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { which } from './world.mjs';

const say = (text) => process.stderr.write(`bench: ${text}\n`);

/** The directory of the installed peers and a name for each; null with the reason where they cannot be had. */
export function installPeers(root) {
  const bench = join(root, 'bench');
  const version = JSON.parse(readFileSync(join(bench, 'package.json'), 'utf8')).dependencies[
    '@anthropic-ai/sandbox-runtime'
  ];
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

// sandbox-runtime needs them, and says so itself.
function installPrograms(packages) {
  const missing = () => Object.keys(packages).filter((program) => which(program) === null);
  if (missing().length === 0) return null;
  const names = missing()
    .map((program) => packages[program])
    .join(' ');
  if (process.getuid() === 0 && which('apt-get') !== null) {
    say(`installing ${names} (apt-get install)`);
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    spawnSync('apt-get', ['update', '-qq'], { env, stdio: ['ignore', 'ignore', 2] });
    spawnSync('apt-get', ['install', '-y', '-qq', ...names.split(' ')], { env, stdio: ['ignore', 'ignore', 2] });
  }
  return missing().length === 0 ? null : `${names} is not installed, and may not be installed from here`;
}
