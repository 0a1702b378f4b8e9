// agent-setup/install.ts: installs the program of an agent from npm, in a sandbox that reaches only the registry.
// Invariants: no script of a package runs. A version is moved in place only when it is complete, belongs to the user, and has
// printed its version in a sandbox. After an interruption the previous version is still in use.
import {
  chmodSync,
  closeSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
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
import { ONE_OFF_WORK, diskUsage, runOneOff, type OneOffRequest, type OneOffResult } from '../run/one-off-sandbox.ts';
import { onPath, PROGRAMS_INSIDE, userView, visiblePlaces } from './programs.ts';
import { runForVersion } from './version.ts';
import { agentsDir, readInstalled, removeVersions, writeInstalled } from './installed-agents.ts';
import { findRegistry, type Registry } from './npm-registry.ts';
import { runningTasks } from '../queries/running.ts';
import type { HostContext } from '../run/host-context.ts';

export interface InstallWatch {
  /** "Codex CLI 0.166.0 from registry.example". */
  onStart(text: string): void;
  /** Bytes on the disk so far. */
  onProgress(bytes: number): void;
  notice(text: string): void;
}

export interface Installed {
  readonly version: string;
  readonly bytes: number;
  /** This version was already installed. */
  readonly already: boolean;
}

type Arch = keyof Install['entry'];

export async function installAgent(
  context: HostContext,
  agent: Agent,
  wanted: string | null,
  watch: InstallWatch,
): Promise<Installed> {
  const { install } = agent;
  const arch = archOf(context);
  if (install === null) throw failed(`${agent.title} is part of ags: there is nothing to install.`);
  if (wanted !== null && !/^[\w][\w.+-]{0,60}$/.test(wanted))
    throw new AgsError('usage.invalid', `"${visible(wanted)}" is not a version.`, {
      hint: 'For example: --version latest',
    });
  const version = wanted ?? install.version;
  const dir = agentsDir(context);
  mkdirSync(dir, { recursive: true, mode: 0o755 });
  using lock = tryLock(join(dir, `.${agent.name}.lock`));
  if (lock === null) throw new AgsError('task.busy', `Another process is installing or removing ${agent.title}.`);
  const there = readInstalled(context, agent.name);
  if (there?.version === version) {
    // An earlier ags may have installed it.
    normalizeTree(there.directory, context);
    await dropOld(context, agent);
    return { version, bytes: await diskUsage(there.directory), already: true };
  }
  const node = await nodeFor(context, install, arch);
  const registry = await findRegistry(context);
  watch.onStart(`${agent.title} ${version} from ${registry.host}`);
  const packages = [
    `${install.package}@${version}`,
    ...Object.entries(install.more ?? {}).map(([name, exact]) => `${name}@${exact}`),
    ...(node === null ? [] : [`${node.package}@${node.major}`]),
  ];
  const done = await fetchPackages(context, agent, registry, packages, watch, async (work) => {
    normalizeTree(work, context);
    const actual = packageVersion(work, install.package) ?? version;
    const installed = { version: actual, node: node?.path ?? null, installedAt: context.now().toISOString() };
    await check(context, agent, install, arch, work, installed);
    const bytes = await diskUsage(work);
    moveInPlace(work, join(dir, agent.name), actual);
    writeInstalled(context, agent.name, installed);
    return { version: actual, bytes, already: false };
  });
  await dropOld(context, agent);
  return done;
}

/** Returns false if ags had not installed it. */
export async function removeAgent(context: HostContext, agent: Agent): Promise<boolean> {
  mkdirSync(agentsDir(context), { recursive: true, mode: 0o755 });
  using lock = tryLock(join(agentsDir(context), `.${agent.name}.lock`));
  if (lock === null || (await isInUse(context, agent)))
    throw new AgsError('task.busy', `A running task or shell uses ${agent.title}.`, {
      hint: 'See which: ags list --all',
    });
  const there = statSync(join(agentsDir(context), agent.name), { throwIfNoEntry: false }) !== undefined;
  if (there) removeVersions(context, agent.name, true);
  return there;
}

/** A command or shell may use any agent. */
async function isInUse(context: HostContext, agent: Agent): Promise<boolean> {
  return (await runningTasks(context, 'everywhere')).some(
    ({ task }) => task.goal === undefined || task.goal.agent === agent.name,
  );
}

/** Keeps old versions while any sandbox runs, because all of them see the agent; the next installation removes them. */
async function dropOld(context: HostContext, agent: Agent): Promise<void> {
  if ((await runningTasks(context, 'everywhere')).length === 0) removeVersions(context, agent.name, false);
}

function fetchPackages<T>(
  context: HostContext,
  agent: Agent,
  registry: Registry,
  packages: readonly string[],
  watch: InstallWatch,
  use: (work: string) => Promise<T>,
): Promise<T> {
  const request: OneOffRequest = {
    name: `install-${agent.name}`,
    command: ['npm', 'install', ...NPM_FLAGS, '--prefix', ONE_OFF_WORK, '--', ...packages],
    network: registry.network,
    mounts: [],
    files: registry.files,
    env: registry.env,
    notice: watch.notice,
    onLook: watch.onProgress,
  };
  return runOneOff(context, agentsDir(context), request, (result) => {
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

function npmFailed(agent: Agent, { exitCode, ended, denied, said }: OneOffResult): AgsError {
  const refused =
    denied.length === 0 ? '' : ` It tried to reach ${denied.map(({ host }) => visible(host)).join(', ')}.`;
  return failed(
    `${agent.title} could not be installed: npm exited with code ${exitCode}.${ended === null ? '' : ` ${ended}`}${refused}\n${firstLines(said)}`,
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
    hint: 'You can also install it yourself: ags finds programs on your PATH.',
  });
}

/** Sets the usual owner and modes of installed programs, whatever the packages contain. Leaves links alone: they are resolved inside. */
function normalizeTree(tree: string, context: HostContext): void {
  const visit = (path: string): void => {
    const stat = lstatSync(path);
    if (context.uid === 0) lchownSync(path, 0, 0);
    if (stat.isSymbolicLink()) return;
    if (!stat.isDirectory() && !stat.isFile())
      throw failed('A package contains something that is neither a file nor a directory.');
    if (stat.isFile()) return chmodSync(path, (stat.mode & 0o111) === 0 && !isBinary(path, stat.size) ? 0o644 : 0o755);
    chmodSync(path, 0o755);
    for (const name of readdirSync(path)) visit(join(path, name));
  };
  visit(tree);
}

/** Some packages contain programs that only a script of theirs, which does not run, would make executable. */
function isBinary(path: string, size: number): boolean {
  if (size < ELF.length) return false;
  const start = Buffer.alloc(ELF.length);
  const fd = openSync(path, 'r');
  try {
    return readSync(fd, start) === ELF.length && start.equals(ELF);
  } finally {
    closeSync(fd);
  }
}

const ELF = Buffer.from('\x7fELF', 'latin1');

async function check(
  context: HostContext,
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
    throw failed(`${agent.title} could not be installed: the package does not contain ${install.entry[arch]}.`);
  if (install.node === null) chmodSync(realpathSync(entry), 0o755);
  const to = join(PROGRAMS_INSIDE, agent.name);
  const program = join(to, 'node_modules', install.entry[arch]);
  const argv = install.node === null ? [program] : [node === null ? 'node' : join(to, 'node_modules', node), program];
  const { version, exitCode, said } = await runForVersion(context, { argv, mounts: [{ from: work, to }] });
  if (version === null)
    throw failed(
      `${agent.title} was downloaded but not installed: it does not print its version in a sandbox (exit code ${exitCode}).\n${firstLines(said)}`,
    );
}

function moveInPlace(work: string, home: string, version: string): void {
  mkdirSync(home, { recursive: true, mode: 0o755 });
  const target = join(home, version);
  if (statSync(target, { throwIfNoEntry: false }) === undefined) return renameSync(work, target);
  // current.json does not name this version, so no task uses it.
  const old = join(home, `.old-${process.pid}`);
  renameSync(target, old);
  renameSync(work, target);
}

/** null: the machine's own Node is new enough, or none is needed. */
async function nodeFor(
  context: HostContext,
  install: Install,
  arch: Arch,
): Promise<{ package: string; major: number; path: string } | null> {
  if (install.node === null) return null;
  const own = onPath(context, 'node', visiblePlaces(await userView(context)));
  const version = own === null ? null : (await runForVersion(context, { argv: [own], mounts: [] })).version;
  if (version !== null && Number(version.split('.')[0]) >= install.node) return null;
  const name = `node-linux-${arch}`;
  return { package: name, major: Math.max(install.node, LEAST_NODE), path: `${name}/bin/node` };
}

const LEAST_NODE = 22;

function archOf(context: HostContext): Arch {
  if (context.nodeArch === 'x64' || context.nodeArch === 'arm64') return context.nodeArch;
  throw failed(`Agents are not available for this architecture (${context.nodeArch}).`);
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
