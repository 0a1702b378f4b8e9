// housekeeping/doctor.ts: what works on this machine, and what does not, each with the command that puts it right.
// Invariant: `ready` says what `ags exec` would do, because it comes from the same probe and the same sentences.
import { mkdtempSync, realpathSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { loadConfig } from '../config/load.ts';
import { userGit } from '../git/host-git.ts';
import { removeTree } from '../lib/files.ts';
import { visible } from '../lib/sanitize.ts';
import { formatSize } from '../lib/units.ts';
import { missing, note, ok, type Check, type Finding } from '../sandbox/checks/check.ts';
import { KERNEL_CHECKS } from '../sandbox/checks/kernel.ts';
import { readKernelFacts } from '../sandbox/checks/kernel-facts.ts';
import { LIMIT_CHECKS } from '../sandbox/checks/limits.ts';
import type { MachineFacts } from '../sandbox/checks/machine-facts.ts';
import { isBefore } from '../sandbox/checks/overlay-reason.ts';
import { sentence, SYSTEM_CHECKS } from '../sandbox/checks/system.ts';
import { ENGINE_KINDS, ENGINE_NAMES, type EngineName } from '../sandbox/engine/engine-kinds.ts';
import { freeBreach } from '../sandbox/watch/governor-rules.ts';
import { findProgram, installCommand } from '../sandbox/checks/host.ts';
import { freeFloor } from '../sandbox/watch/limits.ts';
import { planCleanup } from './cleanup.ts';
import { trySandbox } from '../run/probe.ts';
import { inspectWorld, type World } from '../run/host-context.ts';

export interface Diagnosis {
  /** True when `ags exec` works here. */
  readonly ready: boolean;
  readonly checks: readonly Answer[];
}

export type Answer = { readonly id: string; readonly group: string } & Finding;

interface Facts extends MachineFacts {
  readonly world: World;
  readonly config: Promise<EffectiveConfig | AgsError>;
}

/** `programDirs`: where to look for programs instead of the directories of the system. */
export async function diagnose(world: World, options: { programDirs?: readonly string[] } = {}): Promise<Diagnosis> {
  const facts = gather(world, options.programDirs);
  // Alone, because its start time is one of the answers; everything after it runs at once.
  await facts.trial;
  const answers = await Promise.all(
    CHECKS.map(async ({ id, group, run }) => ({ id, group, finding: await run(facts) })),
  );
  const checks = answers.flatMap(({ id, group, finding }) => (finding === null ? [] : [{ id, group, ...finding }]));
  return { ready: checks.every(({ status }) => status !== 'missing'), checks };
}

function gather(world: World, programDirs: readonly string[] | undefined): Facts {
  const host = settle(inspectWorld(world, programDirs === undefined ? {} : { programDirs }));
  const load = (userConfigFile: string): Promise<EffectiveConfig> =>
    loadConfig({
      home: world.home,
      userConfigFile,
      projectDir: NOWHERE,
      stateDir: world.stateDir,
      cacheDir: world.cacheDir,
      flags: {},
      memoryTotalBytes: world.memoryBytes,
    });
  const config = settle(load(world.configFile));
  return {
    world,
    platform: world.platform,
    nodeArch: world.nodeArch,
    nodeVersion: process.versions.node,
    kernel: world.kernel,
    uid: world.uid,
    stateDir: world.stateDir,
    kernelFacts: readKernelFacts(),
    find: (program) => findProgram(program, programDirs),
    host,
    trial: host.then((found) => (found instanceof AgsError ? null : trySandbox(world, found))),
    config,
    limits: config.then((found) => (found instanceof AgsError ? load(NOWHERE) : found)).then(({ limits }) => limits),
  };
}

// A project's own file is that project's matter: `ags config` speaks about it.
// Below a file there is nothing, whatever else somebody has made.
const NOWHERE = '/dev/null/nowhere';

const CHECKS: readonly Check<Facts>[] = [
  ...SYSTEM_CHECKS,
  { id: 'git', group: 'System', run: checkGit },
  { id: 'terminal', group: 'System', run: checkTerminal },
  ...KERNEL_CHECKS,
  ...LIMIT_CHECKS,
  { id: 'gateway', group: 'Network', run: checkGateway },
  { id: 'disk', group: 'Disk', run: checkDisk },
  { id: 'leftovers', group: 'Disk', run: checkLeftovers },
  { id: 'config', group: 'Settings', run: checkConfig },
  { id: 'bare-repositories', group: 'Settings', run: checkBareRepositories },
  { id: 'services', group: 'Services', run: checkServices },
  ...ENGINE_NAMES.map((name): Check<Facts> => ({
    id: name,
    group: 'Container engines',
    run: (facts) => checkEngine(name, facts),
  })),
  { id: 'docker-inside', group: 'Container engines', run: checkInnerDocker },
];

async function checkGit({ world }: Facts): Promise<Finding> {
  const { exitCode, stdout } = await userGit(['--version'], { cwd: '/', home: world.home });
  const version = /(\d+\.\d+[\w.]*)/.exec(stdout.toString('utf8'))?.[1];
  const fix = `Install: ${installCommand(['git'])}`;
  if (exitCode !== 0 || version === undefined) return missing('git is not installed, or does not run.', fix);
  return isBefore(version, 2, 31)
    ? missing(`git ${version} is too old: 2.31 or newer is needed.`, fix)
    : ok(`git ${version}`);
}

async function checkTerminal(): Promise<Finding> {
  const fix = 'Install the packages of ags again, with the one for this platform: npm install --include=optional';
  try {
    const pty = ((await import('@lydell/node-pty')).default as unknown as { open(options: object): OpenPty }).open({
      cols: 80,
      rows: 24,
    });
    pty.slave.destroy();
    pty.master.destroy();
    return ok('Terminals for sandboxes can be opened');
  } catch (error) {
    return missing(
      `No terminal can be opened for a sandbox: ${visible(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error))}.`,
      fix,
    );
  }
}

interface OpenPty {
  readonly master: { destroy(): void };
  readonly slave: { destroy(): void };
}

/** From inside a sandbox: is there a gateway, and does it refuse what no rule can cover? */
async function checkGateway({ world, trial, config }: Facts): Promise<Finding | null> {
  const [tried, settings] = await Promise.all([trial, config]);
  if (tried === null || tried.problem !== null || settings instanceof AgsError) return null;
  if (settings.network.mode === 'off') return ok('The network of sandboxes is off (network.mode)');
  if (world.uid !== 0 && !tried.namespaces)
    return note(
      'Sandboxes have no network but loopback: no program but bwrap may make namespaces here.',
      'Allow unprivileged user namespaces, or go on without a network',
    );
  const { testNetwork } = await import('../exec/net-test.ts');
  // Of its own are the project, and the state and what is remembered of it: nothing may be left, nor mistaken for the user's.
  const [stateDir, cacheDir, project] = [
    join(world.stateDir, 'probe-'),
    join(world.cacheDir, 'probe-'),
    join(tmpdir(), 'ags-doctor-'),
  ].map((prefix) => realpathSync(mkdtempSync(prefix))) as [string, string, string];
  try {
    const place = { ...world, cwd: project, stateDir, cacheDir };
    const reached = await testNetwork(place, {}, [{ host: 'host.invalid', port: 443 }], () => {});
    return reached[0]?.verdict === 'refused'
      ? ok('The gateway answers, and refuses what no rule allows')
      : missing('A sandbox did not reach its gateway.', 'Run without a network: ags exec --network off');
  } catch (error) {
    if (error instanceof AgsError) return sentence(error);
    throw error;
  } finally {
    for (const path of [stateDir, cacheDir, project]) removeTree(path);
  }
}

async function checkDisk({ stateDir, trial }: Facts): Promise<Finding | null> {
  const tried = await trial;
  const fs = tried === null || tried.problem?.cause === 'state' ? null : statfsSync(stateDir);
  if (fs === null) return null;
  const free = { bytes: fs.bavail * fs.bsize, files: fs.ffree };
  const has = `${formatSize(free.bytes)} are free${fs.files === 0 ? '' : `, and room for ${fs.ffree} files,`} where ags keeps its state (${visible(stateDir)})`;
  const look = (share: number): boolean =>
    freeBreach(
      {
        ...free,
        leastBytes: free.bytes,
        leastFiles: fs.files === 0 ? Number.POSITIVE_INFINITY : free.files,
        totalFiles: fs.files,
      },
      freeFloor(fs) * share,
    ) !== null;
  if (look(1)) return missing(`Only ${has}: a sandbox would be ended at once.`, 'Free some space: ags cleanup');
  return look(2) ? note(`Only ${has}.`, 'Free some space: ags cleanup') : ok(has);
}

async function checkLeftovers({ world }: Facts): Promise<Finding> {
  const { items } = await planCleanup(world, { all: false, olderThanMs: 0 });
  // Single files are only caches and the like.
  const left = items.filter(({ kind }) => kind !== 'file');
  if (left.length === 0) return ok('Nothing is left of killed sandboxes');
  const kinds = [...new Set(left.map(({ kind }) => kind))].map(
    (kind) => `${left.filter((item) => item.kind === kind).length} ${kind}`,
  );
  return note(`Something is left of killed or settled sandboxes (${kinds.join(', ')}).`, 'Run: ags cleanup');
}

async function checkConfig({ config, world }: Facts): Promise<Finding> {
  const found = await config;
  if (found instanceof AgsError) return sentence(found);
  return ok(
    found.files.length === 0
      ? 'The built-in configuration is in force'
      : `Your configuration is valid (${visible(world.configFile)})`,
  );
}

async function checkBareRepositories({ world }: Facts): Promise<Finding | null> {
  const version = await userGit(['--version'], { cwd: '/', home: world.home });
  if (isBefore(/(\d+\.\d+)/.exec(version.stdout.toString('utf8'))?.[1] ?? '0', 2, 38)) return null;
  const { stdout } = await userGit(['config', '--get', 'safe.bareRepository'], {
    cwd: '/',
    home: world.home,
    configHome: world.env['XDG_CONFIG_HOME'],
  });
  if (stdout.toString('utf8').trim() === 'explicit')
    return ok('git ignores repositories that are hidden in a project (safe.bareRepository)');
  return note(
    'git would run the settings of a repository that somebody hid inside a project.',
    'Run: git config --global safe.bareRepository explicit',
  );
}

/** Those of the project one stands in; what is wrong with its file is told elsewhere. */
async function checkServices({ world }: Facts): Promise<Finding | null> {
  const { configuredServices } = await import('../services/view.ts');
  const found = await settle(configuredServices(world));
  if (found instanceof AgsError || found.length === 0) return null;
  const broken = found.find(({ problem }) => problem !== null);
  if (broken !== undefined) return note(visible(broken.problem ?? ''), visible(broken.hint ?? ''));
  return ok(
    `The services of this project can run here: ${found.map(({ name, kind }) => `${name} (${kind})`).join(', ')}`,
  );
}

/** Not needed where bubblewrap works, unless the configuration asks for it. */
async function checkEngine(name: EngineName, { world, find, config }: Facts): Promise<Finding> {
  const { title } = ENGINE_KINDS[name];
  const found = await config;
  const asked = !(found instanceof AgsError) && found.backend === name;
  const absent = asked ? missing : note;
  if (find(name) === null && !asked) return ok(`${title} is not there; not needed`);
  const host = await settle(inspectWorld(world, {}, name));
  if (host instanceof AgsError) return absent(host.message, host.hint ?? '');
  if (host.engine?.far != null) {
    const { checkFarEngine } = await import('../sandbox/engine/remote-engine.ts');
    const answer = await settle(checkFarEngine(host.engine, host.arch));
    if (answer instanceof AgsError) return absent(answer.message, answer.hint ?? '');
    return ok(
      `${title} answers at ${host.engine.far}; a sandbox there needs an image (--backend ${name} --image <name>)`,
    );
  }
  const tried = await settle(trySandbox(world, host));
  if (tried instanceof AgsError) return absent(`${title} does not work here: ${tried.message}`, tried.hint ?? '');
  const { problem, overlay, startMs } = tried;
  if (problem !== null) return absent(`A container is no sandbox here: ${problem.message}`, problem.hint);
  const workspace = overlay.works ? 'overlay workspaces' : `full copies of projects, because ${overlay.why}`;
  const soft = host.cgroupPlan.kind === 'none' ? `; memory is watched, because ${host.cgroupPlan.why}` : '';
  return ok(
    `${title} builds complete sandboxes (--backend ${name}), in ${Math.round(startMs)} ms, with ${workspace}${soft}`,
  );
}

/** Started, asked, and ended again: nothing else tells whether this kernel and this engine let it be. */
async function checkInnerDocker({ world, find, config, trial }: Facts): Promise<Finding | null> {
  const found = await config;
  if ((await trial)?.problem?.cause === 'state') return null;
  if (found instanceof AgsError || (find('docker') === null && !found.docker.enabled)) return null;
  const absent = found.docker.enabled ? missing : note;
  const { tryInnerEngine } = await import('../nested-docker/try-nested-docker.ts');
  const tried = await settle(tryInnerEngine(world, found));
  if (tried instanceof AgsError)
    return absent(`Sandboxes cannot have an engine of their own: ${tried.message}`, tried.hint ?? '');
  const client = found.compose === null ? null : await settle(findClient());
  return client instanceof AgsError
    ? missing(client.message, client.hint ?? '')
    : ok(`Sandboxes can have an engine of their own (--docker): ${tried}`);
}

async function findClient(): Promise<string> {
  return (await import('../nested-docker/compose-client.ts')).findComposeClient();
}

/** An error that a user can put right becomes a value. */
function settle<T>(promise: Promise<T>): Promise<T | AgsError> {
  return promise.catch((error: unknown) => {
    if (error instanceof AgsError) return error;
    throw error;
  });
}
