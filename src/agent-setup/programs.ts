// agent-setup/programs.ts: finds the program of an agent for a sandbox: one that ags installed, or the user's own.
// Invariant: only the program and its own package are mounted, read-only; never a home directory.
import { accessSync, closeSync, constants, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Agent } from '../agents/agent.ts';
import { isWithin } from '../lib/files.ts';
import { readMachine } from '../sandbox/spec/machine.ts';
import { isVisible } from '../sandbox/spec/plan-sandbox.ts';
import { userConfig } from '../run/one-off-sandbox.ts';
import { agentInImage } from '../images/wanted/base-image.ts';
import { askVersion, PACKAGE } from './version.ts';
import { readInstalled } from './installed-agents.ts';
import type { RunPlan } from '../run/run-plan.ts';
import type { HostContext } from '../run/host-context.ts';
import { type AgentProgram, type HostProgram } from './agent-program.ts';

/** The parts of a plan that decide which host paths a sandbox shows. */
export type View = Pick<RunPlan, 'machine' | 'config' | 'image'>;

/** Mount point of programs that a sandbox would not show otherwise. */
export const PROGRAMS_INSIDE = '/run/ags/agents';

/** null: not installed. Runs the program in a sandbox to get its version, unless `ask` is false or the version is cached. */
export async function findProgram(
  context: HostContext,
  agent: Agent,
  view: View,
  options: { ask?: boolean } = {},
): Promise<AgentProgram | null> {
  if (agent.install === null) return { argv: [], mounts: [], version: null, source: 'built-in' };
  const inImage = view.image === null ? null : agentInImage(view.image.labels, agent.name);
  if (inImage !== null) return { argv: [agent.install.program], mounts: [], ...inImage, source: 'image' };
  const places = visiblePlaces(view);
  const installed = installedProgram(context, agent, places);
  // A host program would need libraries of the host, which an image does not have.
  if (installed !== null || view.image !== null) return installed;
  const found = hostProgram(context, agent.install.program, agent.name, places);
  if (found === null) return null;
  const version = await askVersion(context, found, options.ask !== false);
  return { ...found, version, source: 'host' };
}

/** The view outside any project. */
export async function userView(context: HostContext): Promise<View> {
  const config = await userConfig(context, context.stateDir);
  return { config, image: null, machine: readMachine({ home: context.home, etc: [], toolDirs: config.toolDirs }) };
}

export function visiblePlaces({ machine, config, image }: View): string[] {
  const mounts = config.mounts.filter(({ optional }) => image === null || !optional).map(({ path }) => path);
  return [...machine.system.map(({ path }) => path), ...machine.toolDirs, ...mounts];
}

function installedProgram(context: HostContext, agent: Agent, places: readonly string[]): AgentProgram | null {
  const { install, name } = agent;
  const installed = readInstalled(context, name);
  const entry = install?.entry[context.nodeArch === 'arm64' ? 'arm64' : 'x64'];
  if (install === null || installed === null || entry === undefined) return null;
  const to = join(PROGRAMS_INSIDE, name);
  const program = join(to, 'node_modules', entry);
  const node = installed.node === null ? onPath(context, 'node', places) : join(to, 'node_modules', installed.node);
  if (install.node !== null && node === null) return null;
  return {
    argv: install.node === null ? [program] : [node ?? '', program],
    mounts: [{ from: installed.directory, to }],
    version: installed.version,
    source: 'installed',
  };
}

/** Finds the user's own program. null: there is none, or nothing inside could run it. */
export function hostProgram(
  context: HostContext,
  program: string,
  name: string,
  places: readonly string[],
): HostProgram | null {
  const path = lookUp(context, program);
  if (path === null) return null;
  const real = realpathSync(path);
  if (needsNode(real) && onPath(context, 'node', places) === null) return null;
  // Use the name it was found under: shims of version managers depend on it.
  if (isVisible(path, places) && isVisible(real, places)) return { argv: [path], mounts: [], path, real };
  if (isVisible(real, places)) return { argv: [real], mounts: [], path, real };
  const to = join(PROGRAMS_INSIDE, name);
  const shown = packageDirectory(real);
  if (shown === null || isWithin(realHome(context), shown)) {
    const alone = join(to, basename(real));
    return { argv: [alone], mounts: [{ from: real, to: alone }], path, real };
  }
  return { argv: [join(to, real.slice(shown.length + 1))], mounts: [{ from: shown, to }], path, real };
}

/** The directory of the npm package that holds a program. pnpm links dependencies into a store, so the whole store is needed there. */
function packageDirectory(real: string): string | null {
  const store = real.indexOf('/node_modules/.pnpm/');
  if (store >= 0) return real.slice(0, store + '/node_modules'.length);
  return PACKAGE.exec(real)?.[0] ?? null;
}

/** Finds a program whose path is the same inside and outside. */
export function onPath(context: HostContext, program: string, places: readonly string[]): string | null {
  const path = lookUp(context, program, (dir) => isVisible(dir, places));
  return path !== null && isVisible(realpathSync(path), places) ? path : null;
}

function lookUp(context: HostContext, program: string, fits: (dir: string) => boolean = () => true): string | null {
  const dirs = (context.env['PATH'] ?? '').split(':').filter((dir) => dir.startsWith('/') && fits(dir));
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

function realHome(context: HostContext): string {
  try {
    return realpathSync(context.home);
  } catch {
    return context.home;
  }
}
