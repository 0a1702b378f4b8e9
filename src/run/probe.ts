// run/probe.ts: does a complete sandbox work here, and on what kind of workspace? Asked of real sandboxes over a small project.
// It stands before the first start after each boot, so it must be quick.
// Invariants: nothing of it is left afterwards; and only a sandbox that has shown every protection counts as one that works.
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { loadConfig } from '../config/load.ts';
import { directoryIdentity, removeTree } from '../lib/files.ts';
import { visible } from '../lib/sanitize.ts';
import { engineFailed, explainFailure, UNVEILED, unprotected, type Problem } from '../sandbox/checks/failure.ts';
import { fileSystemOf, readKernelFacts } from '../sandbox/checks/kernel-facts.ts';
import { explainOverlay, overlayReason } from '../sandbox/checks/overlay-reason.ts';
import { HIDDEN, writeProject } from '../sandbox/checks/test-project.ts';
import type { NativeHost } from '../sandbox/checks/host.ts';
import { readMachine } from '../sandbox/spec/machine.ts';
import { OFFLINE } from './network/plan-network.ts';
import { NO_SERVICES } from './planned-services.ts';
import type { Readiness } from './readiness.ts';
import { isSystemError, tryWorkspace, type Stage } from './test-sandbox.ts';
import type { World } from './host-context.ts';

export async function probeReadiness(world: World, host: NativeHost): Promise<Readiness> {
  const { problem, overlay, namespaces } = await trySandbox(world, host);
  return { problem: problem === null ? null : { message: problem.message, hint: problem.hint }, overlay, namespaces };
}

/** How the test sandboxes fared. */
export interface Trial {
  readonly problem: Problem | null;
  readonly overlay: Readiness['overlay'];
  /** Others than bwrap may make namespaces. */
  readonly namespaces: boolean;
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
    return {
      problem: asProblem(world, host, error),
      overlay: { works: false, why: '' },
      namespaces: false,
      startMs: 0,
    };
  }
}

const PREFIX = 'probe-';

async function tryIn(stage: Stage): Promise<Trial> {
  const { programs, engine } = stage.plan.host;
  const { kernel, stateDir } = stage.world;
  const overlay = await tryWorkspace(stage, 'overlay');
  const { said, startMs } = overlay;
  const explain = (what: string): Problem =>
    engine === null ? explainFailure(what, { facts: readKernelFacts(), programs }) : engineFailed(what, engine.name);
  const builder = engine?.program ?? programs.bwrap;
  const fails = (problem: Problem): Trial => ({
    problem,
    overlay: { works: false, why: '' },
    namespaces: false,
    startMs,
  });
  // What a sandbox lacks does not depend on its workspace: there is nothing to try again.
  if (overlay.lacking.length > 0) return fails(unprotected(overlay.lacking, builder));
  if (said === null) return { problem: null, overlay: { works: true, why: '' }, namespaces: true, startMs };
  // Not the workspace, but something else that is shown: without overlays its sockets could be spoken to.
  if (UNVEILED.test(said)) return fails(explain(said));
  const copy = await tryWorkspace(stage, 'copy');
  if (copy.lacking.length > 0) return fails(unprotected(copy.lacking, builder));
  if (copy.said !== null) return fails(explain(copy.said));
  const failure = { said, kernel, stateDir, fileSystem: fileSystemOf(stage.dir) };
  const overlayFails = { works: false, why: explainOverlay(failure), lasts: overlayReason(failure) !== null };
  // What unshare itself was refused, and not the mount after it.
  const namespaces = !/^unshare: /m.test(said);
  return { problem: null, overlay: overlayFails, namespaces, startMs: copy.startMs };
}

/** The project and the plan over it. Nothing that a user has configured may make the test easier, or impossible. */
async function arrange(world: World, host: NativeHost, dir: string): Promise<Stage> {
  const root = join(dir, 'project');
  const outsider = join(dir, 'outsider');
  writeProject(root);
  writeFileSync(outsider, 'not of the project\n');
  const { home, stateDir, cacheDir, memoryBytes } = world;
  const files = { home, userConfigFile: join(dir, 'none'), projectDir: root, stateDir, cacheDir };
  const config = await loadConfig({ ...files, flags: {}, memoryTotalBytes: memoryBytes });
  const [uid, gid] = world.uid === 0 ? [config.user, config.user] : [world.uid, world.gid];
  return {
    // Without the caller's environment the programs inside speak English.
    world: { ...world, env: {} },
    dir,
    outsider,
    plan: {
      project: { root, identity: directoryIdentity(root), repository: null },
      config: { ...config, toolDirs: [] },
      configured: config,
      host,
      image: null,
      hidden: { paths: HIDDEN, trackedSecrets: [] },
      user: { uid, gid, name: 'agent', shell: '/bin/sh' },
      cwd: root,
      workspace: 'overlay',
      overlays: false,
      namespaces: false,
      machine: readMachine({ home, etc: [], toolDirs: [] }),
      network: OFFLINE,
      services: NO_SERVICES,
      notices: [],
    },
  };
}

/** What a user can put right becomes a sentence; anything else is a bug and stays one. */
function asProblem(world: World, { programs }: NativeHost, error: unknown): Problem {
  const { stateDir } = world;
  if (error instanceof AgsError) {
    return { cause: 'state', message: error.message, hint: error.hint ?? 'See: ags doctor --json' };
  }
  if (!isSystemError(error)) throw error;
  // Root of a container without the sandbox's user among its own.
  if (error.code === 'EINVAL' && /chown/.test(error.syscall)) {
    return explainFailure(`map the owner of ${stateDir}: ${error.message}`, { facts: readKernelFacts(), programs });
  }
  const full = error.code === 'ENOSPC' || error.code === 'EDQUOT';
  return {
    cause: 'state',
    message: `The state directory ${visible(stateDir)} ${full ? 'is full' : 'cannot be used'}: ${visible(error.message)}.`,
    hint: full
      ? 'Free some space: ags cleanup'
      : 'Choose a directory of your own on a local disk: export XDG_STATE_HOME=<directory>',
  };
}

/** What a probe that was killed has left. */
function sweep(world: World): void {
  const old = world.now().getTime() - 10 * 60_000;
  for (const name of readdirSync(world.stateDir).filter((entry) => entry.startsWith(PREFIX))) {
    const stat = lstatSync(join(world.stateDir, name), { throwIfNoEntry: false });
    if (stat?.isDirectory() === true && stat.mtimeMs < old) removeTree(join(world.stateDir, name));
  }
}
