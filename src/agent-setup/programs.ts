// agent-setup/programs.ts: the program of an agent as a sandbox can reach it: one that ags has installed, or the user's own.
// Invariant: whatever is shown inside is read-only, and is a program: never a home, and nothing beside the program's own package.
import { accessSync, closeSync, constants, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Agent } from '../agents/agent.ts';
import { isWithin } from '../lib/files.ts';
import { readMachine } from '../sandbox/spec/machine.ts';
import { isVisible } from '../sandbox/spec/plan-sandbox.ts';
import { userConfig, type ProgramMount } from '../run/one-off-sandbox.ts';
import { agentInImage } from '../images/wanted/base-image.ts';
import { askVersion, PACKAGE } from './version.ts';
import { readInstalled } from './installed-agents.ts';
import type { RunPlan } from '../run/plan-run.ts';
import type { World } from '../run/host-context.ts';

export interface AgentProgram {
  /** Inside, with what must stand in front of it. */
  readonly argv: readonly string[];
  readonly mounts: readonly ProgramMount[];
  /** null: it does not say. */
  readonly version: string | null;
  readonly source: 'host' | 'installed' | 'built-in' | 'image';
  /** Of `host`: where it is. */
  readonly path?: string;
}

/** What a sandbox shows at its own path. */
export type View = Pick<RunPlan, 'machine' | 'config' | 'image'>;

/** Where programs are that a sandbox would not show otherwise. */
export const PROGRAMS_INSIDE = '/run/ags/agents';

/** null: it is not installed. Its version is asked for in a sandbox, unless `ask` is false or the answer is known. */
export async function findProgram(
  world: World,
  agent: Agent,
  view: View,
  options: { ask?: boolean } = {},
): Promise<AgentProgram | null> {
  if (agent.install === null) return { argv: [], mounts: [], version: null, source: 'built-in' };
  const inImage = view.image === null ? null : agentInImage(view.image.labels, agent.name);
  if (inImage !== null) return { argv: [agent.install.program], mounts: [], ...inImage, source: 'image' };
  const places = visiblePlaces(view);
  const installed = installedProgram(world, agent, places);
  // A program of this machine would need its libraries.
  if (installed !== null || view.image !== null) return installed;
  const found = hostProgram(world, agent.install.program, agent.name, places);
  if (found === null) return null;
  const version = await askVersion(world, found, options.ask !== false);
  return { ...found, version, source: 'host' };
}

/** Outside any project. */
export async function userView(world: World): Promise<View> {
  const config = await userConfig(world, world.stateDir);
  return { config, image: null, machine: readMachine({ home: world.home, etc: [], toolDirs: config.toolDirs }) };
}

export function visiblePlaces({ machine, config, image }: View): string[] {
  const mounts = config.mounts.filter(({ optional }) => image === null || !optional).map(({ path }) => path);
  return [...machine.system.map(({ path }) => path), ...machine.toolDirs, ...mounts];
}

function installedProgram(world: World, agent: Agent, places: readonly string[]): AgentProgram | null {
  const { install, name } = agent;
  const installed = readInstalled(world, name);
  const entry = install?.entry[world.nodeArch === 'arm64' ? 'arm64' : 'x64'];
  if (install === null || installed === null || entry === undefined) return null;
  const to = join(PROGRAMS_INSIDE, name);
  const program = join(to, 'node_modules', entry);
  const node = installed.node === null ? onPath(world, 'node', places) : join(to, 'node_modules', installed.node);
  if (install.node !== null && node === null) return null;
  return {
    argv: install.node === null ? [program] : [node ?? '', program],
    mounts: [{ from: installed.directory, to }],
    version: installed.version,
    source: 'installed',
  };
}

export interface HostProgram {
  readonly argv: readonly string[];
  readonly mounts: readonly ProgramMount[];
  /** As it was found, and what it leads to. */
  readonly path: string;
  readonly real: string;
}

/** The user's own. null: there is none, or nothing inside could run it. */
export function hostProgram(
  world: World,
  program: string,
  name: string,
  places: readonly string[],
): HostProgram | null {
  const path = lookUp(world, program);
  if (path === null) return null;
  const real = realpathSync(path);
  if (needsNode(real) && onPath(world, 'node', places) === null) return null;
  // By the name it was found under: the shims of version managers go by their names.
  if (isVisible(path, places) && isVisible(real, places)) return { argv: [path], mounts: [], path, real };
  if (isVisible(real, places)) return { argv: [real], mounts: [], path, real };
  const to = join(PROGRAMS_INSIDE, name);
  const shown = packageDirectory(real);
  if (shown === null || isWithin(realHome(world), shown)) {
    const alone = join(to, basename(real));
    return { argv: [alone], mounts: [{ from: real, to: alone }], path, real };
  }
  return { argv: [join(to, real.slice(shown.length + 1))], mounts: [{ from: shown, to }], path, real };
}

/**
 * The package of a program that npm or its kin have installed. pnpm keeps what a package needs beside it, behind links: there
 * it takes the whole store.
 */
function packageDirectory(real: string): string | null {
  const store = real.indexOf('/node_modules/.pnpm/');
  if (store >= 0) return real.slice(0, store + '/node_modules'.length);
  return PACKAGE.exec(real)?.[0] ?? null;
}

/** The path of a program that is the same inside and outside. */
export function onPath(world: World, program: string, places: readonly string[]): string | null {
  const path = lookUp(world, program, (dir) => isVisible(dir, places));
  return path !== null && isVisible(realpathSync(path), places) ? path : null;
}

function lookUp(world: World, program: string, fits: (dir: string) => boolean = () => true): string | null {
  const dirs = (world.env['PATH'] ?? '').split(':').filter((dir) => dir.startsWith('/') && fits(dir));
  return dirs.map((dir) => join(dir, program)).find(isProgram) ?? null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function needsNode(path: string): boolean {
  const fd = openSync(path, 'r');
  try {
    const start = Buffer.alloc(128);
    const line = start.toString('latin1', 0, readSync(fd, start)).split('\n')[0] ?? '';
    return /^#!.*\bnode\b/.test(line);
  } finally {
    closeSync(fd);
  }
}

function realHome(world: World): string {
  try {
    return realpathSync(world.home);
  } catch {
    return world.home;
  }
}
