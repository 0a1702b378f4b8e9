// agent-setup/installed-agents.ts: lists the agents that ags installed. <dataDir>/agents/<name>/<version>/ holds node_modules;
// current.json beside it names the version in use.
// Invariant: a version is in use only if current.json names it, and that file is written last.
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { removeTree, replaceFile } from '../lib/files.ts';
import type { HostContext } from '../run/host-context.ts';

export interface InstalledAgent {
  readonly version: string;
  /** Holds node_modules. */
  readonly directory: string;
  /** Path of its own Node below node_modules; null: it uses the machine's Node, or needs none. */
  readonly node: string | null;
  readonly installedAt: string;
}

export function agentsDir(context: Pick<HostContext, 'dataDir'>): string {
  return join(context.dataDir, 'agents');
}

/** null: not installed, or incomplete. */
export function readInstalled(context: Pick<HostContext, 'dataDir'>, name: string): InstalledAgent | null {
  const home = join(agentsDir(context), name);
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
  context: Pick<HostContext, 'dataDir'>,
  name: string,
  installed: Omit<InstalledAgent, 'directory'>,
): void {
  const home = join(agentsDir(context), name);
  mkdirSync(home, { recursive: true, mode: 0o755 });
  replaceFile(join(home, CURRENT), `${JSON.stringify(installed)}\n`, { durable: true });
}

/** Removes old versions or, with `all`, every version. The caller ensures that no task uses them. */
export function removeVersions(context: Pick<HostContext, 'dataDir'>, name: string, all: boolean): void {
  const home = join(agentsDir(context), name);
  if (all) return removeTree(home);
  const current = readInstalled(context, name)?.version;
  for (const entry of readdirSync(home, { withFileTypes: true }))
    if (entry.isDirectory() && entry.name !== current) removeTree(join(home, entry.name));
}

const CURRENT = 'current.json';
const PLAIN = /^[\w][\w.+-]{0,80}$/;
