// test/agents/programs.ts: the real programs of agents, from npm, in the exact version that ags names. Each is installed once and
// found again by later runs of the tests.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Agent } from '../../src/agents/agent.ts';

const CACHE = new URL('../../node_modules/.cache/agents/', import.meta.url).pathname;

export function programOf({ install, name }: Agent): string[] {
  if (install === null) throw new Error(`${name} is not installed from npm`);
  const modules = installed(name, { [install.package]: install.version, ...install.more });
  const program = join(modules, install.entry[process.arch === 'arm64' ? 'arm64' : 'x64']);
  return install.node === null ? [program] : [nodeOf(install.node), program];
}

/** This one, if it is new enough; otherwise from npm too. */
function nodeOf(major: number): string {
  if (Number(process.versions.node.split('.')[0]) >= major) return process.execPath;
  return join(installed(`node-${major}`, { node: String(major) }), 'node/bin/node');
}

/** Complete or not there: it is made beside its place and moved. */
function installed(name: string, packages: Readonly<Record<string, string>>): string {
  const directory = join(CACHE, name);
  const wanted = JSON.stringify(packages);
  const mark = join(directory, 'installed.json');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === wanted) return join(directory, 'node_modules');
  mkdirSync(CACHE, { recursive: true });
  const fresh = mkdtempSync(join(CACHE, `.${name}-`));
  writeFileSync(join(fresh, 'package.json'), '{"private":true}');
  const specs = Object.entries(packages).map(([one, version]) => `${one}@${version}`);
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...specs], {
    cwd: fresh,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  writeFileSync(join(fresh, 'installed.json'), wanted);
  rmSync(directory, { recursive: true, force: true });
  renameSync(fresh, directory);
  return join(directory, 'node_modules');
}
