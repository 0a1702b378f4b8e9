// tasks/probe.ts: starts a complete sandbox over a small project of its own, by the same road as `ags exec`, and asks from inside
// whether every protection is in force. It stands before the first start after each boot, so it must be quick.
// Invariants: nothing of it is left afterwards; and only a sandbox that has shown every protection counts as one that works.
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { SandboxSpec } from '../protocol/spec.ts';
import { loadConfig } from '../config/load.ts';
import { removeTree } from '../lib/files.ts';
import { run } from '../lib/process.ts';
import { visible } from '../lib/sanitize.ts';
import { openCgroup } from '../sandbox/cgroup.ts';
import {
  INSIDE,
  judge,
  LOWER,
  ownNamespaces,
  REFUSED_BY_LIMIT,
  WITHOUT_FILTER,
  type Evidence,
} from '../sandbox/checks/evidence.ts';
import { explainFailure, type Problem } from '../sandbox/checks/failure.ts';
import { fileSystemOf, readKernelFacts } from '../sandbox/checks/kernel-facts.ts';
import { explainOverlay } from '../sandbox/checks/overlay-reason.ts';
import { installCommand, type NativeHost } from '../sandbox/host.ts';
import { prlimitArgv } from '../sandbox/limits.ts';
import { createNative, planNative } from '../sandbox/native.ts';
import { prepareRunDir } from '../sandbox/native-prepare.ts';
import { assemble } from '../sandbox/seccomp.ts';
import { taskPaths, type TaskPaths } from '../store/layout.ts';
import { createRun, type RunPlan } from './prepare.ts';
import type { Readiness } from './ready.ts';
import { nativeOptions } from './run.ts';
import type { World } from './world.ts';

export async function probeReadiness(world: World, host: NativeHost): Promise<Readiness> {
  const { problem, overlay } = await trySandbox(world, host);
  return { problem: problem === null ? null : { message: problem.message, hint: problem.hint }, overlay };
}

/** How the test sandboxes fared. */
export interface Trial {
  readonly problem: Problem | null;
  readonly overlay: { readonly works: boolean; readonly why: string };
  /** From the decision to start until the command inside spoke. */
  readonly startMs: number;
}

export async function trySandbox(world: World, host: NativeHost): Promise<Trial> {
  try {
    mkdirSync(world.stateDir, { recursive: true, mode: 0o700 });
    sweep(world);
    const dir = realpathSync(mkdtempSync(join(world.stateDir, PREFIX)));
    try {
      return await tryIn(await arrange(world, host, dir));
    } finally {
      removeTree(dir);
    }
  } catch (error) {
    return { problem: asProblem(world, host, error), overlay: { works: false, why: '' }, startMs: 0 };
  }
}

const PREFIX = 'probe-';
// Generous: many may be started at once on a small machine.
const GIVE_UP_MS = 60_000;

interface Stage {
  readonly world: World;
  readonly host: NativeHost;
  readonly dir: string;
  readonly plan: RunPlan;
}

async function tryIn(stage: Stage): Promise<Trial> {
  const { world } = stage;
  const running = [tryOne(stage, 'overlay'), tryWithoutFilter(stage)] as const;
  // Both have to be over before anything is removed, also when one of them fails at once.
  await Promise.allSettled(running);
  const [overlay, limited] = await Promise.all(running);
  const fails = (problem: Problem): Trial => ({
    problem,
    overlay: { works: false, why: '' },
    startMs: overlay.startMs,
  });
  // What a sandbox lacks does not depend on its workspace: there is nothing to try again.
  if (overlay.lacking.length > 0) return fails(unprotected(stage, overlay.lacking));
  if (overlay.said === null) {
    return limited === null
      ? { problem: null, overlay: { works: true, why: '' }, startMs: overlay.startMs }
      : fails(limited);
  }
  const copy = await tryOne(stage, 'copy');
  if (copy.lacking.length > 0) return fails(unprotected(stage, copy.lacking));
  if (copy.said !== null) return fails(explain(stage, copy.said));
  if (limited !== null) return fails(limited);
  const why = explainOverlay({
    said: overlay.said,
    kernel: world.kernel,
    stateDir: world.stateDir,
    fileSystem: fileSystemOf(stage.dir),
  });
  return { problem: null, overlay: { works: false, why }, startMs: copy.startMs };
}

/** The project, and the plan over it. Built-in configuration: nothing a user wrote may make the test easier, or impossible. */
async function arrange(world: World, host: NativeHost, dir: string): Promise<Stage> {
  const root = join(dir, 'project');
  for (const [path, content] of Object.entries(LOWER)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  writeFileSync(join(dir, 'mark'), 'outside\n');
  const config = await loadConfig({
    home: world.home,
    userConfigFile: join(dir, 'none'),
    projectDir: root,
    stateDir: world.stateDir,
    cacheDir: world.cacheDir,
    flags: {},
    memoryTotalBytes: world.memoryBytes,
  });
  const isRoot = world.uid === 0;
  const user = {
    uid: isRoot ? config.user : world.uid,
    gid: isRoot ? config.user : world.gid,
    name: 'agent',
    shell: '/bin/sh',
  };
  const plan: RunPlan = {
    project: { root, repository: null },
    config: { ...config, toolDirs: [] },
    host,
    hidden: { paths: ['secret'], trackedSecrets: [] },
    user,
    cwd: root,
    workspace: 'overlay',
    notices: [],
  };
  // Without the caller's environment the programs inside speak English.
  return { world: { ...world, env: {} }, host, dir, plan };
}

interface Outcome {
  readonly lacking: readonly string[];
  /** null: it started and its workspace works. Otherwise what the programs said when it did not. */
  readonly said: string | null;
  readonly startMs: number;
}

async function tryOne(stage: Stage, workspace: 'overlay' | 'copy'): Promise<Outcome> {
  const { world, host, dir } = stage;
  const { spec, paths } = await create(stage, workspace);
  const errors = join(paths.root, 'errors');
  const stderr = openSync(errors, 'w');
  const began = performance.now();
  let report = '';
  let startMs = 0;
  try {
    await using cgroup = openCgroup(host.cgroupPlan, 'probe', spec.limits);
    const backend = createNative(
      await nativeOptions(world, { host }, spec, paths.runDir, 'probe', {
        files: cgroup.enterFiles,
        prefix: cgroup.prefix,
        env: cgroup.env,
      }),
    );
    const sandbox = await backend.start(spec, ['/bin/sh', '-c', INSIDE, 'sh', join(dir, 'mark'), 'secret'], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr,
      terminal: null,
    });
    sandbox.stdout?.on('data', (chunk: Buffer) => {
      startMs ||= performance.now() - began;
      report += chunk.toString('utf8');
    });
    const timer = setTimeout(() => sandbox.kill(), GIVE_UP_MS);
    await sandbox.done.finally(() => clearTimeout(timer));
  } catch (error) {
    const said = readFileSync(errors, 'utf8');
    if (error instanceof AgsError && said.trim() !== '') return { lacking: [], said, startMs };
    // The layers of an overlay could not even be prepared.
    if (workspace === 'overlay' && isSystemError(error)) return { lacking: [], said: error.message, startMs };
    throw error;
  } finally {
    closeSync(stderr);
    // The kernel makes it without any right; removing the tree is much slower if it has to find out.
    if (existsSync(join(paths.work, 'work'))) chmodSync(join(paths.work, 'work'), 0o700);
  }
  const evidence = judge(report, {
    uid: spec.user.uid,
    limits: prlimitArgv(spec.limits, host.limitHost).filter((arg) => arg.includes('=')),
    readOnly: readOnlyPlaces(spec),
    outside: ownNamespaces(),
  });
  return {
    lacking: [...evidence.lacking, ...touched(stage)],
    said: workspaceFault(evidence, workspace, paths),
    startMs,
  };
}

async function create(
  stage: Stage,
  workspace: 'overlay' | 'copy',
  name: string = workspace,
): Promise<{ spec: SandboxSpec; paths: TaskPaths }> {
  const paths = taskPaths(stage.dir, name);
  mkdirSync(paths.root, { recursive: true });
  return { paths, spec: await createRun(stage.world, { ...stage.plan, workspace }, paths, 'probe') };
}

/**
 * The same start with a filter that lets everything pass. User namespaces are refused twice, by the filter and by a limit of
 * the kernel; while the filter is there, nobody can tell whether the limit is. null: it is.
 */
async function tryWithoutFilter(stage: Stage): Promise<Problem | null> {
  const { world, host } = stage;
  const { spec, paths } = await create(stage, 'copy', 'unfiltered');
  const options = await nativeOptions(world, { host }, spec, paths.runDir, 'probe', { files: [], prefix: [], env: {} });
  const launch = planNative(options, spec, ['/bin/sh', '-c', WITHOUT_FILTER], { terminal: null, stdin: 'ignore' });
  prepareRunDir(options, spec, launch);
  const [args, filter] = [join(paths.root, 'args'), join(paths.root, 'filter')];
  writeFileSync(args, launch.bwrapArgs.map((arg) => `${arg}\0`).join(''));
  writeFileSync(filter, assemble(host.arch, {}));
  const argv = [
    '/bin/sh',
    '-c',
    'exec 3< "$1" 4< "$2" 5> /dev/null; shift 2; exec "$@"',
    'sh',
    args,
    filter,
    ...launch.argv,
  ];
  const { stdout, stderr } = await run(argv, {
    cwd: '/',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin:/run/current-system/sw/bin', AGS_RUN: 'probe' },
    timeoutMs: GIVE_UP_MS,
  });
  const answer = stdout.toString('utf8');
  // Before the command was reached, it is the launcher that speaks.
  if (!answer.startsWith('inside\n')) return explain(stage, stderr);
  return REFUSED_BY_LIMIT.test(answer)
    ? null
    : unprotected(stage, ['user namespaces were forbidden by its system call filter alone']);
}

function workspaceFault(evidence: Evidence, workspace: 'overlay' | 'copy', paths: TaskPaths): string | null {
  if (evidence.workspace !== null) return evidence.workspace;
  if (workspace === 'copy') return null;
  const deleted = lstatSync(join(paths.upper, 'gone'), { throwIfNoEntry: false });
  return deleted?.isCharacterDevice() === true && deleted.rdev === 0
    ? null
    : 'a deletion left no mark in the upper layer';
}

function touched({ plan }: Stage): string[] {
  const { root } = plan.project;
  const same = Object.entries(LOWER).every(
    ([path, content]) =>
      statSync(join(root, path), { throwIfNoEntry: false })?.isFile() === true &&
      readFileSync(join(root, path), 'utf8') === content,
  );
  return same && readdirSync(root).length === new Set(Object.keys(LOWER).map((path) => path.split('/')[0])).size
    ? []
    : ["it changed the project's own files"];
}

function readOnlyPlaces(spec: SandboxSpec): string[] {
  return [
    '/',
    '/dev',
    ...spec.mounts.flatMap((mount) =>
      mount.kind === 'file' || (mount.kind === 'bind' && !mount.writable) ? [mount.to] : [],
    ),
  ];
}

function unprotected({ host }: Stage, lacking: readonly string[]): Problem {
  return {
    cause: 'unprotected',
    message: `A test sandbox started, but not with every protection in force: ${lacking.join('; ')}.`,
    hint: `Is ${host.programs.bwrap} the one of your system? Remove it and install it again: ${installCommand(['bubblewrap'])}`,
  };
}

function explain({ host }: Stage, said: string): Problem {
  return explainFailure(said, { facts: readKernelFacts(), programs: host.programs });
}

/** What a user can put right becomes a sentence; anything else is a bug and stays one. */
function asProblem(world: World, host: NativeHost, error: unknown): Problem {
  if (error instanceof AgsError)
    return { cause: 'state', message: error.message, hint: error.hint ?? 'See: ags doctor --json' };
  if (!isSystemError(error)) throw error;
  // Root of a container without the sandbox's user among its own.
  if (error.code === 'EINVAL' && /chown/.test(error.syscall))
    return explainFailure(`map the owner of ${world.stateDir}: ${error.message}`, {
      facts: readKernelFacts(),
      programs: host.programs,
    });
  const full = error.code === 'ENOSPC' || error.code === 'EDQUOT';
  return {
    cause: 'state',
    message: `The state directory ${visible(world.stateDir)} ${full ? 'is full' : 'cannot be used'}: ${visible(error.message)}.`,
    hint: full
      ? 'Free some space: ags cleanup'
      : 'Choose a directory of your own on a local disk: export XDG_STATE_HOME=<directory>',
  };
}

function isSystemError(error: unknown): error is Error & { code: string; syscall: string } {
  return error instanceof Error && 'code' in error && 'syscall' in error;
}

/** What a probe that was killed has left. */
function sweep(world: World): void {
  const old = world.now().getTime() - 10 * 60_000;
  for (const name of readdirSync(world.stateDir).filter((entry) => entry.startsWith(PREFIX))) {
    const stat = lstatSync(join(world.stateDir, name), { throwIfNoEntry: false });
    if (stat?.isDirectory() === true && stat.mtimeMs < old) removeTree(join(world.stateDir, name));
  }
}
