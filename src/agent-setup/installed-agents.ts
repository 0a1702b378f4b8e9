// agent-setup/installed-agents.ts: which agents ags has installed. <dataDir>/agents/<name>/<version>/ holds node_modules; current.json
// beside it says which version counts.
// Invariant: a version counts only when current.json names it, which is written last.
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { removeTree, replaceFile } from '../lib/files.ts';
import type { World } from '../run/host-context.ts';

export interface InstalledAgent {
  readonly version: string;
  /** Holds node_modules. */
  readonly directory: string;
  /** Node for it, below node_modules; null: it uses the machine's, or needs none. */
  readonly node: string | null;
  readonly installedAt: string;
}

export function agentsDir(world: Pick<World, 'dataDir'>): string {
  return join(world.dataDir, 'agents');
}

/** null: none, or not complete. */
export function readInstalled(world: Pick<World, 'dataDir'>, name: string): InstalledAgent | null {
  const home = join(agentsDir(world), name);
  try {
    const { version, node, installedAt } = JSON.parse(readFileSync(join(home, CURRENT), 'utf8')) as Record<
      string,
      unknown
    >;
    if (typeof version !== 'string' || !PLAIN.test(version) || typeof installedAt !== 'string') return null;
    const directory = join(home, version);
    if (!statSync(join(directory, 'node_modules')).isDirectory()) return null;
    return { version, directory, node: typeof node === 'string' ? node : null, installedAt };
  } catch {
    return null;
  }
}

export function writeInstalled(
  world: Pick<World, 'dataDir'>,
  name: string,
  installed: Omit<InstalledAgent, 'directory'>,
): void {
  const home = join(agentsDir(world), name);
  mkdirSync(home, { recursive: true, mode: 0o755 });
  replaceFile(join(home, CURRENT), `${JSON.stringify(installed)}\n`, { durable: true });
}

/** Versions that do not count, or (`all`) every one. Nobody may be using them. */
export function removeVersions(world: Pick<World, 'dataDir'>, name: string, all: boolean): void {
  const home = join(agentsDir(world), name);
  if (all) return removeTree(home);
  const current = readInstalled(world, name)?.version;
  for (const entry of readdirSync(home, { withFileTypes: true }))
    if (entry.isDirectory() && entry.name !== current) removeTree(join(home, entry.name));
}

/** Removing begins with the file that makes a version count. */
const CURRENT = 'current.json';
const PLAIN = /^[\w][\w.+-]{0,80}$/;
