// run/probe.ts: does a complete sandbox work here, and with which workspace? Tested with real sandboxes over a small project.
// It runs before the first start after each boot, so it must be quick.
// Invariants: it leaves nothing behind; a sandbox counts as working only if it showed every protection.
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { loadConfig } from '../config/load.ts';
import { directoryIdentity, removeTree } from '../lib/files.ts';
import { visible } from '../lib/sanitize.ts';
import { engineFailed, explainFailure, UNVEILED, unprotected, type Problem } from '../sandbox/checks/failure.ts';
import { fileSystemOf, readKernelFacts } from '../sandbox/checks/kernel-facts.ts';
import { explainOverlay, overlayReason } from '../sandbox/checks/overlay-reason.ts';
import { HIDDEN, writeProject } from '../sandbox/checks/evidence.ts';
import type { NativeHost } from '../sandbox/checks/host.ts';
import { readMachine } from '../sandbox/spec/machine.ts';
import { OFFLINE } from './network/plan-network.ts';
import { NO_SERVICES } from './planned-services.ts';
import { isSystemError, tryWorkspace, type TestSetup } from './test-sandbox.ts';
import { freeUser, type HostContext } from './host-context.ts';

export async function probeReadiness(context: HostContext, host: NativeHost): Promise<Readiness> {
  const { problem, overlay, namespaces } = await trySandbox(context, host);
  return { problem: problem === null ? null : { message: problem.message, hint: problem.hint }, overlay, namespaces };
}

/** The result of the test sandboxes. */
export interface Trial {
  readonly problem: Problem | null;
  readonly overlay: Readiness['overlay'];
  /** Programs other than bwrap may create namespaces. */
  readonly namespaces: boolean;
  /** From the decision to start until the command's first output. */
  readonly startMs: number;
}

export async function trySandbox(context: HostContext, host: NativeHost): Promise<Trial> {
  try {
    mkdirSync(context.stateDir, { recursive: true, mode: 0o700 });
    sweep(context);
    const dir = realpathSync(mkdtempSync(join(context.stateDir, PREFIX)));
    try {
      return await tryIn(await arrange(context, host, dir));
    } finally {
      removeTree(dir);
    }
  } catch (error) {
    return {
      problem: asProblem(context, host, error),
      overlay: { works: false, why: '' },
      namespaces: false,
      startMs: 0,
    };
  }
}

const PREFIX = 'probe-';

async function tryIn(setup: TestSetup): Promise<Trial> {
  const { programs, engine } = setup.plan.host;
  const { kernel, stateDir } = setup.context;
  const overlay = await tryWorkspace(setup, 'overlay');
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
  // A missing protection does not depend on the workspace, so there is nothing to try again.
  if (overlay.lacking.length > 0) return fails(unprotected(overlay.lacking, builder));
  if (said === null) return { problem: null, overlay: { works: true, why: '' }, namespaces: true, startMs };
  // Another mount failed, not the workspace: without overlays its sockets could be reached.
  if (UNVEILED.test(said)) return fails(explain(said));
  const copy = await tryWorkspace(setup, 'copy');
  if (copy.lacking.length > 0) return fails(unprotected(copy.lacking, builder));
  if (copy.said !== null) return fails(explain(copy.said));
  const failure = { said, kernel, stateDir, fileSystem: fileSystemOf(setup.dir) };
  const overlayFails = { works: false, why: explainOverlay(failure), lasts: overlayReason(failure) !== null };
  // unshare itself was refused, not the mount after it.
  const namespaces = !/^unshare: /m.test(said);
  return { problem: null, overlay: overlayFails, namespaces, startMs: copy.startMs };
}

/** The project and its plan. No user configuration may make the test easier or impossible. */
async function arrange(context: HostContext, host: NativeHost, dir: string): Promise<TestSetup> {
  const root = join(dir, 'project');
  const outsider = join(dir, 'outsider');
  writeProject(root);
  writeFileSync(outsider, 'not of the project\n');
  const { home, stateDir, cacheDir, memoryBytes } = context;
  const files = { home, userConfigFile: join(dir, 'none'), projectDir: root, stateDir, cacheDir };
  const config = await loadConfig({ ...files, flags: {}, memoryTotalBytes: memoryBytes, freeUser: freeUser(context) });
  const [uid, gid] = context.uid === 0 ? [config.user, config.user] : [context.uid, context.gid];
  return {
    // Without the caller's environment the programs inside print English.
    context: { ...context, env: {} },
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

/** Turns an error that the user can fix into a sentence; any other error is a bug and is thrown. */
function asProblem(context: HostContext, { programs }: NativeHost, error: unknown): Problem {
  const { stateDir } = context;
  if (error instanceof AgsError) {
    return { cause: 'state', message: error.message, hint: error.hint ?? 'See: ags doctor --json' };
  }
  if (!isSystemError(error)) throw error;
  // Root of a container whose user namespace lacks the sandbox's user.
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

/** Removes directories of killed probes. */
function sweep(context: HostContext): void {
  const old = context.now().getTime() - 10 * 60_000;
  for (const name of readdirSync(context.stateDir).filter((entry) => entry.startsWith(PREFIX))) {
    const stat = lstatSync(join(context.stateDir, name), { throwIfNoEntry: false });
    if (stat?.isDirectory() === true && stat.mtimeMs < old) removeTree(join(context.stateDir, name));
  }
}

export interface Readiness {
  /** null: a complete sandbox works. Otherwise the message and hint that `ags doctor` shows. */
  readonly problem: { readonly message: string; readonly hint: string } | null;
  /** `lasts`: this machine does not support overlays. Without it, the failure may be temporary, such as a full disk. */
  readonly overlay: { readonly works: boolean; readonly why: string; readonly lasts?: boolean };
  /** Programs other than bwrap may create namespaces. */
  readonly namespaces: boolean;
}
