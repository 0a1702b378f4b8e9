// agent-setup/install.ts: install the program of an agent from npm, inside a sandbox that reaches the registry and nothing else.
// Invariants: no script of a package runs; what is moved in place is complete, belongs to the user, and has been seen to say its
// version inside a sandbox. Interrupted at any moment, what was there before still counts.
import {
  chmodSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Agent, Install } from '../agents/agent.ts';
import { AgsError } from '../protocol/errors.ts';
import { tryLock } from '../lib/process/lock.ts';
import { isWithin } from '../lib/files.ts';
import { visible } from '../lib/sanitize.ts';
import { APART_WORK, diskUsage, runApart, type ApartRequest, type ApartResult } from '../run/one-off-sandbox.ts';
import { onPath, PROGRAMS_INSIDE, userView, visiblePlaces } from './programs.ts';
import { runForVersion } from './version.ts';
import { agentsDir, readInstalled, removeVersions, writeInstalled } from './installed-agents.ts';
import { findRegistry, type Registry } from './npm-registry.ts';
import { runningTasks } from '../queries/running.ts';
import type { World } from '../run/host-context.ts';

export interface InstallWatch {
  /** "Codex CLI 0.166.0 from registry.example". */
  onStart(text: string): void;
  /** So far, on the disk. */
  onProgress(bytes: number): void;
  notice(text: string): void;
}

export interface Installed {
  readonly version: string;
  readonly bytes: number;
  /** It was there already. */
  readonly already: boolean;
}

type Arch = keyof Install['entry'];

export async function installAgent(
  world: World,
  agent: Agent,
  wanted: string | null,
  watch: InstallWatch,
): Promise<Installed> {
  const { install } = agent;
  const arch = archOf(world);
  if (install === null) throw failed(`${agent.title} is a part of ags: there is nothing to install.`);
  if (wanted !== null && !/^[\w][\w.+-]{0,60}$/.test(wanted))
    throw new AgsError('usage.invalid', `"${visible(wanted)}" is not a version.`, {
      hint: 'For example: --version latest',
    });
  const version = wanted ?? install.version;
  const dir = agentsDir(world);
  mkdirSync(dir, { recursive: true, mode: 0o755 });
  using lock = tryLock(join(dir, `.${agent.name}.lock`));
  if (lock === null)
    throw new AgsError('task.busy', `${agent.title} is being installed or removed by another process right now.`);
  const there = readInstalled(world, agent.name);
  if (there?.version === version) {
    await dropOld(world, agent);
    return { version, bytes: await diskUsage(there.directory), already: true };
  }
  const node = await nodeFor(world, install, arch);
  const registry = await findRegistry(world);
  watch.onStart(`${agent.title} ${version} from ${registry.host}`);
  const packages = [
    `${install.package}@${version}`,
    ...Object.entries(install.more ?? {}).map(([name, exact]) => `${name}@${exact}`),
    ...(node === null ? [] : [`${node.package}@${node.major}`]),
  ];
  const done = await fetchPackages(world, agent, registry, packages, watch, async (work) => {
    settle(work, world);
    const actual = packageVersion(work, install.package) ?? version;
    const installed = { version: actual, node: node?.path ?? null, installedAt: world.now().toISOString() };
    await check(world, agent, install, arch, work, installed);
    const bytes = await diskUsage(work);
    moveInPlace(work, join(dir, agent.name), actual);
    writeInstalled(world, agent.name, installed);
    return { version: actual, bytes, already: false };
  });
  await dropOld(world, agent);
  return done;
}

/** False: ags had not installed it. */
export async function removeAgent(world: World, agent: Agent): Promise<boolean> {
  mkdirSync(agentsDir(world), { recursive: true, mode: 0o755 });
  using lock = tryLock(join(agentsDir(world), `.${agent.name}.lock`));
  if (lock === null || (await isInUse(world, agent)))
    throw new AgsError('task.busy', `${agent.title} is being used by a task right now.`, { hint: 'See: ags list' });
  const there = statSync(join(agentsDir(world), agent.name), { throwIfNoEntry: false }) !== undefined;
  if (there) removeVersions(world, agent.name, true);
  return there;
}

async function isInUse(world: World, agent: Agent): Promise<boolean> {
  return (await runningTasks(world, 'everywhere')).some(({ task }) => task.goal?.agent === agent.name);
}

/** A running task has the old version before its eyes; then it stays until the next time. */
async function dropOld(world: World, agent: Agent): Promise<void> {
  if (!(await isInUse(world, agent))) removeVersions(world, agent.name, false);
}

function fetchPackages<T>(
  world: World,
  agent: Agent,
  registry: Registry,
  packages: readonly string[],
  watch: InstallWatch,
  use: (work: string) => Promise<T>,
): Promise<T> {
  const request: ApartRequest = {
    name: `install-${agent.name}`,
    command: ['npm', 'install', ...NPM_FLAGS, '--prefix', APART_WORK, '--', ...packages],
    network: registry.network,
    mounts: [],
    files: registry.files,
    env: registry.env,
    notice: watch.notice,
    onLook: watch.onProgress,
  };
  return runApart(world, agentsDir(world), request, (result) => {
    if (result.exitCode !== 0) throw npmFailed(agent, result);
    return use(result.work);
  });
}

const NPM_FLAGS = [
  '--ignore-scripts',
  '--no-fund',
  '--no-audit',
  '--no-progress',
  '--loglevel=error',
  '--include=optional',
];

function npmFailed(agent: Agent, { exitCode, ended, denied, said }: ApartResult): AgsError {
  const refused =
    denied.length === 0 ? '' : ` It wanted to reach ${denied.map(({ host }) => visible(host)).join(', ')}.`;
  return failed(
    `${agent.title} could not be installed: npm ended with ${exitCode}.${ended === null ? '' : ` ${ended}`}${refused}\n${firstLines(said)}`,
  );
}

function firstLines(text: string): string {
  const lines = text
    .split('\n')
    .filter((line) => line.trim() !== '' && !/complete log of this run|debug-0\.log/.test(line));
  return lines
    .slice(0, 6)
    .map((line) => `  ${visible(line.slice(0, 300))}`)
    .join('\n');
}

function failed(message: string): AgsError {
  return new AgsError('agent.uninstallable', message, {
    hint: 'Or install it yourself: ags finds programs on your PATH.',
  });
}

/** Owned and readable as every program of the machine, whatever the packages had in mind. Links lead where they lead inside. */
function settle(tree: string, world: World): void {
  const visit = (path: string): void => {
    const stat = lstatSync(path);
    if (world.uid === 0) lchownSync(path, 0, 0);
    if (stat.isSymbolicLink()) return;
    if (!stat.isDirectory() && !stat.isFile())
      throw failed('A package holds something that is neither a file nor a directory.');
    if (stat.isFile()) return chmodSync(path, (stat.mode & 0o111) === 0 ? 0o644 : 0o755);
    chmodSync(path, 0o755);
    for (const name of readdirSync(path)) visit(join(path, name));
  };
  visit(tree);
}

async function check(
  world: World,
  agent: Agent,
  install: Install,
  arch: Arch,
  work: string,
  { node }: { readonly node: string | null },
): Promise<void> {
  const entry = join(work, 'node_modules', install.entry[arch]);
  if (
    statSync(entry, { throwIfNoEntry: false })?.isFile() !== true ||
    !isWithin(realpathSync(entry), realpathSync(work))
  )
    throw failed(`${agent.title} could not be installed: the package does not hold ${install.entry[arch]}.`);
  if (install.node === null) chmodSync(realpathSync(entry), 0o755);
  const to = join(PROGRAMS_INSIDE, agent.name);
  const program = join(to, 'node_modules', install.entry[arch]);
  const argv = install.node === null ? [program] : [node === null ? 'node' : join(to, 'node_modules', node), program];
  const { version, exitCode, said } = await runForVersion(world, { argv, mounts: [{ from: work, to }] });
  if (version === null)
    throw failed(
      `${agent.title} was fetched, but does not say its version in a sandbox (it ended with ${exitCode}), so it was not installed.\n${firstLines(said)}`,
    );
}

function moveInPlace(work: string, home: string, version: string): void {
  mkdirSync(home, { recursive: true, mode: 0o755 });
  const target = join(home, version);
  if (statSync(target, { throwIfNoEntry: false }) === undefined) return renameSync(work, target);
  // It does not count: nobody has started with it since it stopped counting.
  const old = join(home, `.old-${process.pid}`);
  renameSync(target, old);
  renameSync(work, target);
}

/** null: the machine's own Node will do, or none is needed. */
async function nodeFor(
  world: World,
  install: Install,
  arch: Arch,
): Promise<{ package: string; major: number; path: string } | null> {
  if (install.node === null) return null;
  const own = onPath(world, 'node', visiblePlaces(await userView(world)));
  const version = own === null ? null : (await runForVersion(world, { argv: [own], mounts: [] })).version;
  if (version !== null && Number(version.split('.')[0]) >= install.node) return null;
  const name = `node-linux-${arch}`;
  return { package: name, major: Math.max(install.node, LEAST_NODE), path: `${name}/bin/node` };
}

const LEAST_NODE = 22;

function archOf(world: World): Arch {
  if (world.nodeArch === 'x64' || world.nodeArch === 'arm64') return world.nodeArch;
  throw failed(`There are no agents for this kind of machine (${world.nodeArch}).`);
}

function packageVersion(work: string, name: string): string | null {
  try {
    const { version } = JSON.parse(readFileSync(join(work, 'node_modules', name, 'package.json'), 'utf8')) as {
      version?: unknown;
    };
    return typeof version === 'string' && /^[\w][\w.+-]{0,60}$/.test(version) ? version : null;
  } catch {
    return null;
  }
}
