// housekeeping/doctor.ts: checks what works on this machine; each problem comes with the command that fixes it.
// Invariant: `ready` predicts `ags exec`, because both use the same probe and the same messages.
import { mkdtempSync, realpathSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { loadConfig } from '../config/load.ts';
import { userGit } from '../git/host-git.ts';
import { removeTree } from '../lib/files.ts';
import { visible } from '../lib/sanitize.ts';
import { count, readableSize } from '../lib/units.ts';
import { missing, note, ok, type Check, type Finding } from '../sandbox/checks/check.ts';
import { KERNEL_CHECKS } from '../sandbox/checks/kernel.ts';
import { readKernelFacts } from '../sandbox/checks/kernel-facts.ts';
import { LIMIT_CHECKS, sentence, SYSTEM_CHECKS } from '../sandbox/checks/system.ts';
import type { MachineFacts } from '../sandbox/checks/machine-facts.ts';
import { isBefore } from '../sandbox/checks/overlay-reason.ts';
import { ENGINE_KINDS, ENGINE_NAMES, type EngineName } from '../sandbox/engine/engine-kinds.ts';
import { freeBreach } from '../sandbox/watch/governor-rules.ts';
import { findProgram, installCommand } from '../sandbox/programs.ts';
import { freeFloor } from '../sandbox/watch/limits.ts';
import { planCleanup } from './cleanup.ts';
import type { CleanupItem } from './leftovers.ts';
import { trySandbox } from '../run/probe.ts';
import { freeUser, inspectMachine, type HostContext } from '../run/host-context.ts';

export interface Diagnosis {
  /** True when `ags exec` works here. */
  readonly ready: boolean;
  readonly checks: readonly Answer[];
}

export type Answer = { readonly id: string; readonly group: string } & Finding;

interface Facts extends MachineFacts {
  readonly context: HostContext;
  readonly config: Promise<EffectiveConfig | AgsError>;
}

/** `programDirs`: directories to search for programs instead of the system's. */
export async function diagnose(
  context: HostContext,
  options: { programDirs?: readonly string[] } = {},
): Promise<Diagnosis> {
  const facts = gather(context, options.programDirs);
  // The trial runs alone, because its start time is one of the results. The checks then run in parallel.
  await facts.trial;
  const answers = await Promise.all(
    CHECKS.map(async ({ id, group, run }) => ({ id, group, finding: await run(facts) })),
  );
  const checks = answers.flatMap(({ id, group, finding }) => (finding === null ? [] : [{ id, group, ...finding }]));
  return { ready: checks.every(({ status }) => status !== 'missing'), checks };
}

function gather(context: HostContext, programDirs: readonly string[] | undefined): Facts {
  const host = asValue(inspectMachine(context, programDirs === undefined ? {} : { programDirs }));
  const load = (userConfigFile: string): Promise<EffectiveConfig> =>
    loadConfig({
      home: context.home,
      userConfigFile,
      projectDir: NOWHERE,
      stateDir: context.stateDir,
      cacheDir: context.cacheDir,
      flags: {},
      memoryTotalBytes: context.memoryBytes,
      freeUser: freeUser(context),
    });
  const config = asValue(load(context.configFile));
  return {
    context,
    platform: context.platform,
    nodeArch: context.nodeArch,
    nodeVersion: process.versions.node,
    kernel: context.kernel,
    uid: context.uid,
    stateDir: context.stateDir,
    kernelFacts: readKernelFacts(),
    find: (program) => findProgram(program, programDirs),
    host,
    trial: host.then((found) => (found instanceof AgsError ? null : trySandbox(context, found))),
    config,
    limits: config.then((found) => (found instanceof AgsError ? load(NOWHERE) : found)).then(({ limits }) => limits),
  };
}

// Doctor reads no project's file; `ags config` checks it. Nothing can exist below /dev/null, because it is a file.
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
  { id: 'docker-inside', group: 'Container engines', run: checkNestedDocker },
];

async function checkGit({ context }: Facts): Promise<Finding> {
  const { exitCode, stdout } = await userGit(['--version'], { cwd: '/', home: context.home });
  const version = /(\d+\.\d+[\w.]*)/.exec(stdout.toString('utf8'))?.[1];
  const fix = `Install: ${installCommand(['git'])}`;
  if (exitCode !== 0 || version === undefined) return missing('git is not installed, or does not run.', fix);
  return isBefore(version, 2, 31)
    ? missing(`git ${version} is too old: 2.31 or newer is needed.`, fix)
    : ok(`git ${version}`);
}

async function checkTerminal(): Promise<Finding> {
  const fix = 'Reinstall the packages of ags with those for this platform: npm install --include=optional';
  try {
    const pty = ((await import('@lydell/node-pty')).default as unknown as { open(options: object): OpenPty }).open({
      cols: 80,
      rows: 24,
    });
    pty.slave.destroy();
    pty.master.destroy();
    return ok('Sandboxes can have terminals');
  } catch (error) {
    return missing(
      `ags cannot open a terminal for a sandbox: ${visible(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error))}.`,
      fix,
    );
  }
}

interface OpenPty {
  readonly master: { destroy(): void };
  readonly slave: { destroy(): void };
}

/** Tests from inside a sandbox that the gateway answers, and refuses a host that no rule covers. */
async function checkGateway({ context, trial, config }: Facts): Promise<Finding | null> {
  const [tried, settings] = await Promise.all([trial, config]);
  if (tried === null || tried.problem !== null || settings instanceof AgsError) return null;
  if (settings.network.mode === 'off') return ok('The network of sandboxes is off (network.mode)');
  if (context.uid !== 0 && !tried.namespaces)
    return note(
      'Sandboxes have no network but loopback: only bwrap may create namespaces on this machine.',
      'Allow unprivileged user namespaces, or work without a network',
    );
  const { testNetwork } = await import('../exec/net-test.ts');
  // The test has its own project, state and cache, so that it leaves nothing behind and does not touch the user's.
  const [stateDir, cacheDir, project] = [
    join(context.stateDir, 'probe-'),
    join(context.cacheDir, 'probe-'),
    join(tmpdir(), 'ags-doctor-'),
  ].map((prefix) => realpathSync(mkdtempSync(prefix))) as [string, string, string];
  try {
    const own = { ...context, cwd: project, stateDir, cacheDir };
    const reached = await testNetwork(own, {}, [{ host: 'host.invalid', port: 443 }], () => {});
    return reached[0]?.verdict === 'refused'
      ? ok('The gateway answers, and refuses hosts that no rule allows')
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
  const has = `${readableSize(free.bytes)}${fs.files === 0 ? '' : ` and ${fs.ffree} files`} free in the state directory (${visible(stateDir)})`;
  const isBelow = (share: number): boolean =>
    freeBreach(
      {
        ...free,
        leastBytes: free.bytes,
        leastFiles: fs.files === 0 ? Number.POSITIVE_INFINITY : free.files,
        totalFiles: fs.files,
      },
      freeFloor(fs) * share,
    ) !== null;
  if (isBelow(1)) return missing(`Only ${has}: a sandbox would be stopped at once.`, 'Free some space: ags cleanup');
  return isBelow(2) ? note(`Only ${has}.`, 'Free some space: ags cleanup') : ok(has);
}

const PLURAL: Partial<Record<CleanupItem['kind'], string>> = {
  process: 'processes',
  directory: 'directories',
  apply: 'applies',
};

async function checkLeftovers({ context }: Facts): Promise<Finding> {
  const { items } = await planCleanup(context, { all: false, olderThanMs: 0 });
  // Single files are mostly caches.
  const left = items.filter(({ kind }) => kind !== 'file');
  if (left.length === 0) return ok('No leftovers of killed sandboxes');
  const kinds = [...new Set(left.map(({ kind }) => kind))].map((kind) =>
    count(left.filter((item) => item.kind === kind).length, kind, PLURAL[kind]),
  );
  return note(`Leftovers of killed or finished sandboxes: ${kinds.join(', ')}.`, 'Run: ags cleanup');
}

async function checkConfig({ config, context }: Facts): Promise<Finding> {
  const found = await config;
  if (found instanceof AgsError) return sentence(found);
  return ok(
    found.files.length === 0
      ? 'The built-in configuration is in force'
      : `Your configuration is valid (${visible(context.configFile)})`,
  );
}

async function checkBareRepositories({ context }: Facts): Promise<Finding | null> {
  const version = await userGit(['--version'], { cwd: '/', home: context.home });
  if (isBefore(/(\d+\.\d+)/.exec(version.stdout.toString('utf8'))?.[1] ?? '0', 2, 38)) return null;
  const { stdout } = await userGit(['config', '--get', 'safe.bareRepository'], {
    cwd: '/',
    home: context.home,
    configHome: context.env['XDG_CONFIG_HOME'],
  });
  if (stdout.toString('utf8').trim() === 'explicit')
    return ok('git ignores bare repositories inside a project (safe.bareRepository)');
  return note(
    'git obeys the settings of a bare repository that is hidden inside a project, and may run programs they name.',
    'Run: git config --global safe.bareRepository explicit',
  );
}

/** Checks the services of the current project. `ags config` reports errors in its file. */
async function checkServices({ context }: Facts): Promise<Finding | null> {
  const { configuredServices } = await import('../services/view.ts');
  const found = await asValue(configuredServices(context));
  if (found instanceof AgsError || found.length === 0) return null;
  const broken = found.find(({ problem }) => problem !== null);
  if (broken !== undefined) return note(broken.problem ?? '', broken.hint ?? '');
  return ok(
    `The services of this project can run here: ${found.map(({ name, kind }) => `${name} (${kind})`).join(', ')}`,
  );
}

/** An engine is optional where bubblewrap works, unless the configuration asks for it. */
async function checkEngine(name: EngineName, { context, find, config }: Facts): Promise<Finding> {
  const { title } = ENGINE_KINDS[name];
  const found = await config;
  const asked = !(found instanceof AgsError) && found.backend === name;
  const absent = asked ? missing : note;
  if (find(name) === null && !asked) return ok(`${title} is not installed; not needed`);
  const host = await asValue(inspectMachine(context, {}, name));
  if (host instanceof AgsError) return absent(host.message, host.hint ?? '');
  if (host.engine?.far != null) {
    const { checkRemoteEngine } = await import('../sandbox/engine/remote-engine.ts');
    const answer = await asValue(checkRemoteEngine(host.engine, host.arch));
    if (answer instanceof AgsError) return absent(answer.message, answer.hint ?? '');
    return ok(
      `${title} answers at ${host.engine.far}; a sandbox there needs an image (--backend ${name} --image <name>)`,
    );
  }
  const tried = await asValue(trySandbox(context, host));
  if (tried instanceof AgsError) return absent(`${title} does not work here: ${tried.message}`, tried.hint ?? '');
  const { problem, overlay, startMs } = tried;
  if (problem !== null)
    return absent(`${title} cannot build a complete sandbox here: ${problem.message}`, problem.hint);
  const workspace = overlay.works ? 'overlay workspaces' : `full copies of projects, because ${overlay.why}`;
  const soft = host.cgroupPlan.kind === 'none' ? `; ags watches memory itself, because ${host.cgroupPlan.why}` : '';
  return ok(
    `${title} builds complete sandboxes (--backend ${name}), in ${Math.round(startMs)} ms, with ${workspace}${soft}`,
  );
}

/** Starts nested Docker and stops it again: only a trial shows whether this kernel and this engine allow it. */
async function checkNestedDocker({ context, find, config, trial }: Facts): Promise<Finding | null> {
  const found = await config;
  if ((await trial)?.problem?.cause === 'state') return null;
  if (found instanceof AgsError || (find('docker') === null && !found.docker.enabled)) return null;
  const absent = found.docker.enabled ? missing : note;
  const { tryNestedEngine } = await import('../nested-docker/open-nested-docker.ts');
  const tried = await asValue(tryNestedEngine(context, found));
  if (tried instanceof AgsError) return absent(`Nested Docker does not work here: ${tried.message}`, tried.hint ?? '');
  const client = found.compose === null ? null : await asValue(findClient());
  return client instanceof AgsError
    ? missing(client.message, client.hint ?? '')
    : ok(`Nested Docker works (--docker): ${tried}`);
}

async function findClient(): Promise<string> {
  return (await import('../nested-docker/compose-client.ts')).findComposeClient();
}

/** Turns an error that a user can fix into a value. */
function asValue<T>(promise: Promise<T>): Promise<T | AgsError> {
  return promise.catch((error: unknown) => {
    if (error instanceof AgsError) return error;
    throw error;
  });
}
