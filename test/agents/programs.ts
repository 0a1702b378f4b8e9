// test/agents/programs.ts: the real programs of agents, from npm, in the exact version that ags installs. Each is installed once and
// kept for later test runs.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Agent } from '../../src/agents/agent.ts';

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/agents/', import.meta.url));

export function programOf(agent: Agent): string[] {
  const { node, program } = programIn(agent);
  return node === null ? [program] : [node, program];
}

export interface ProgramInPlace {
  /** The directory with node_modules. */
  readonly directory: string;
  /** Path below node_modules of a Node that was installed with the agent, as ags does. */
  readonly ownNode: string | null;
  readonly node: string | null;
  readonly program: string;
}

export function programIn({ install, name }: Agent): ProgramInPlace {
  if (install === null) throw new Error(`${name} is not installed from npm`);
  const machine = process.arch === 'arm64' ? 'arm64' : 'x64';
  const newEnough = install.node === null || Number(process.versions.node.split('.')[0]) >= install.node;
  const nodePackage = newEnough ? null : `node-linux-${machine}`;
  const directory = installed(name, {
    [install.package]: install.version,
    ...install.more,
    ...(nodePackage === null ? {} : { [nodePackage]: String(install.node) }),
  });
  const modules = join(directory, 'node_modules');
  const ownNode = nodePackage === null ? null : `${nodePackage}/bin/node`;
  return {
    directory,
    ownNode,
    node: install.node === null ? null : ownNode === null ? process.execPath : join(modules, ownNode),
    program: join(modules, install.entry[machine]),
  };
}

/** Installs packages atomically: into a temporary directory that is renamed. */
function installed(name: string, packages: Readonly<Record<string, string>>): string {
  const directory = join(CACHE, name);
  const wanted = JSON.stringify(packages);
  const isThere = (): boolean => {
    const mark = join(directory, 'installed.json');
    return existsSync(mark) && readFileSync(mark, 'utf8') === wanted;
  };
  if (isThere()) return directory;
  mkdirSync(CACHE, { recursive: true });
  const fresh = mkdtempSync(join(CACHE, `.${name}-`));
  // An ordinary user runs the programs too.
  chmodSync(fresh, 0o755);
  writeFileSync(join(fresh, 'package.json'), '{"private":true}');
  const specs = Object.entries(packages).map(([one, version]) => `${one}@${version}`);
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...specs], {
    cwd: fresh,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  writeFileSync(join(fresh, 'installed.json'), wanted);
  // Another test file may have installed the same meanwhile, and use it already.
  if (isThere()) rmSync(fresh, { recursive: true });
  else {
    rmSync(directory, { recursive: true, force: true });
    renameSync(fresh, directory);
  }
  return directory;
}
