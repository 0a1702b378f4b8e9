// sandbox/container/container.ts: a sandbox as a container. The engine creates namespaces, mounts and cgroups; the command's streams,
// exit and listeners bypass it.
// Invariant: the command runs only after it was verified from outside that the container has given everything up, and nothing of it
// outlives this process.
import { type ChildProcess, spawn } from 'node:child_process';
import { chownSync, closeSync, mkdirSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { directoryIdentity } from '../../lib/files.ts';
import { perlProgram } from '../../lib/perl.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { SandboxSpec } from '../../protocol/spec.ts';
import type { Backend, OnListener, Sandbox, Stdio } from '../backend.ts';
import { ENGINE_KINDS } from '../engine/engine-kinds.ts';
import { callEngine, containerGone, type Engine, isThere, tellThrough } from '../engine/engine.ts';
import { ownerText } from '../engine/owner.ts';
import { attach, endedEarly, feed, openStatus } from '../io/attach.ts';
import { DESCRIPTORS, listenerList, streamList, SYSTEM_PATH, withoutStrangers } from '../io/descriptors.ts';
import { receiveListeners } from '../io/listeners.ts';
import { prepareMountPoints, prepareOverlay } from '../io/prepare-mounts.ts';
import { perlInside } from '../spec/interpreter.ts';
import { type PlannedFile, planSources } from '../spec/mount-sources.ts';
import { seccompFilter } from '../spec/seccomp.ts';
import { grantableArgv, holds, prlimitArgv } from '../watch/limits.ts';
import { agentArgs, type ContainerInput, pauseArgs } from './container-args.ts';
import { ensureRootImage, rootImageName } from './root-image.ts';
import { overlayOf, rootImageOf } from './mounts.ts';
import { type ContainerOptions, usesWorkDirectory } from './options.ts';
import { removeStaleContainers } from './leftovers.ts';
import { removeWork, staleWork } from './work-directories.ts';
import { stageArgv, stageOff, stageOn, stagePlace } from './root-mounts.ts';
import { tmpfsPlace, wrapperArgv } from './namespace-wrapper.ts';
import { unprotectedBy } from './protection.ts';

export interface ContainerPlan {
  readonly pause: readonly string[] | null;
  readonly agent: readonly string[];
  /** Prepended to the engine's command for the agent: creates the namespaces in which an engine without a daemon starts. */
  readonly before: readonly string[];
  /** For root: the command that mounts what the engine must find. */
  readonly stage: readonly string[] | null;
  readonly broker: readonly string[];
  readonly files: readonly PlannedFile[];
}

export function createContainer(options: ContainerOptions): Backend {
  return {
    name: options.engine.name,
    async start(spec, command, stdio, onListener) {
      const plan = planContainer(options, spec, command, stdio);
      prepareContainer(options, spec, plan.files);
      await Promise.all([
        ensureRootImage(options.engine, rootImageOf(spec), spec.user, options.runDir),
        removeStaleContainers(options.engine),
      ]);
      if (plan.stage !== null) await stageOn(plan.stage);
      let mayGo = false;
      try {
        return await startContainers(options, plan, spec, stdio, onListener, () => mayGo);
      } catch (error) {
        if (usesWorkDirectory(options, spec)) await removeWork(options.engine, options.workRoot, [options.name]);
        throw error;
      } finally {
        if (plan.stage !== null) await stageOff(options);
        mayGo = true;
      }
    },
  };
}

async function startContainers(
  options: ContainerOptions,
  plan: ContainerPlan,
  spec: SandboxSpec,
  stdio: Stdio,
  onListener: OnListener | undefined,
  mayGo: () => boolean,
): Promise<Sandbox> {
  const { engine } = options;
  const status = openStatus(options.runDir);
  const broker = startBroker(options, plan, spec, stdio, status);
  const attached = attach(broker, status, receiveListeners(broker, spec.network, onListener), {
    answerSeconds: 90,
    mayGo,
    lacking: (pid) => unprotectedBy(pid, spec, engine.rootless),
  });
  // The first failure is the cause; the other one is a consequence.
  attached.catch(() => undefined);
  try {
    if (plan.pause !== null) await callEngine(engine, plan.pause);
    await tellThrough(plan.before, engine, plan.agent);
    sameLayers(spec);
  } catch (error) {
    const early = broker.exitCode !== null;
    broker.kill('SIGKILL');
    const sandbox = await attached.catch((why: unknown) => why);
    await containerGone(engine, `${options.name}-agent`);
    if (early) throw sandbox;
    throw error;
  }
  const sandbox = await attachedUnlessGone(attached, broker, engine, `${options.name}-agent`).catch(
    async (error: unknown) => {
      await containerGone(engine, `${options.name}-agent`);
      throw error;
    },
  );
  return usesWorkDirectory(options, spec) ? { ...sandbox, done: removeWorkAfter(sandbox.done, options) } : sandbox;
}

const SILENT_MS = 3000;

/** A container that ends before it meets the stream broker sends nothing, so the engine is asked about a silent one. */
async function attachedUnlessGone(
  attached: Promise<Sandbox>,
  broker: ChildProcess,
  engine: Engine,
  container: string,
): Promise<Sandbox> {
  for (;;) {
    const met = await Promise.race([attached, sleep(SILENT_MS, null, { ref: false })]);
    if (met !== null) return met;
    if (await isThere(engine, container)) continue;
    broker.kill('SIGKILL');
    await attached.catch(() => undefined);
    throw endedEarly();
  }
}

async function removeWorkAfter(done: Promise<number>, { engine, name, workRoot }: ContainerOptions): Promise<number> {
  try {
    return await done;
  } finally {
    await containerGone(engine, `${name}-agent`);
    await removeWork(engine, workRoot, [name, ...staleWork(workRoot)]);
  }
}

export function planContainer(
  options: ContainerOptions,
  spec: SandboxSpec,
  command: readonly string[],
  stdio: Pick<Stdio, 'terminal' | 'stdin'>,
): ContainerPlan {
  const { runDir, callerIsRoot, engine } = options;
  const kind = ENGINE_KINDS[engine.name];
  const wrapped = !kind.daemon;
  const staging = callerIsRoot && kind.daemon;
  const here = staging ? stagePlace(options) : runDir;
  const { source, staged, files } = planSources({ runDir, here, callerIsRoot, mayMount: true });
  const sources = new Map(
    spec.mounts.map((mount) => [mount, mount.kind === 'tmpfs' ? join(here, tmpfsPlace(spec, mount)) : source(mount)]),
  );
  const byEngine = staged.map((one) => ({ ...one, source: join(here, one.at) }));
  const rootImage = rootImageName(rootImageOf(spec), spec.user);
  const input: ContainerInput = {
    kind,
    spec,
    source: (mount) => {
      const path = sources.get(mount) ?? '';
      const veiled = callerIsRoot || wrapped ? undefined : byEngine.find((one) => one.source === path);
      return veiled === undefined || !isDirectory(veiled.from) ? (veiled?.from ?? path) : path;
    },
    overlays:
      callerIsRoot || wrapped
        ? null
        : (path, mount) => overlayOf(path, mount, byEngine, runDir, join(options.workRoot, options.name), isDirectory),
    name: options.name,
    run: options.runMark,
    rootless: engine.rootless,
    counts: holds(options.limitHost.cgroup, 'memory'),
    owner: ownerText(),
    image: spec.root.kind === 'image' ? spec.root.id : rootImage,
    rootImage,
    perl: perlInside(spec.root, options.perl),
    interpreter: options.interpreter,
    arch: options.arch,
    ipv6: options.ipv6,
    limitArgv: kind.raisesLimits
      ? grantableArgv(spec.limits, options.limitHost, Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8')))
      : prlimitArgv(spec.limits, options.limitHost),
    meeting: { gate: join(here, 'gate'), pause: join(here, 'pause') },
  };
  return {
    pause: spec.network.kind === 'gateway' && kind.daemon ? pauseArgs(input) : null,
    agent: agentArgs(input),
    before: wrapped ? wrapperArgv(options, spec, staged) : [],
    stage: staging ? stageArgv(options, spec, staged) : null,
    broker: brokerArgv(options, spec, command, stdio),
    files,
  };
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() !== false;
}

/** If the engine mounted the layers itself, they must still be the inspected directories. */
function sameLayers(spec: SandboxSpec): void {
  for (const mount of spec.mounts) {
    if (mount.kind !== 'workspace' || mount.workspace.kind === 'copy') continue;
    for (const { path, identity } of mount.workspace.layers)
      if (directoryIdentity(path) !== identity)
        throw new AgsError('backend.failed', `${path} was replaced by another directory while the sandbox started.`);
  }
}

// prctl, dup3, sendmsg
const BROKER_CALLS = { x64: '157,292,46', arm64: '167,24,211' } as const;

function brokerArgv(
  options: ContainerOptions,
  { network, user, workdir }: SandboxSpec,
  command: readonly string[],
  stdio: Pick<Stdio, 'terminal' | 'stdin'>,
): string[] {
  const separateStdin = stdio.terminal !== null && stdio.stdin !== stdio.terminal;
  const channel = separateStdin ? DESCRIPTORS.stdin + 1 : DESCRIPTORS.stdin;
  const listeners = network.kind === 'gateway' ? network.listeners : [];
  return [
    options.perl,
    '-e',
    perlProgram('sandbox/perl/stream-broker.pl'),
    '--',
    BROKER_CALLS[options.arch],
    String(process.pid),
    `${options.callerIsRoot ? 'give' : 'keep'},${user.uid},${user.gid}`,
    stdio.terminal === null ? 'plain' : separateStdin ? 'apart' : 'terminal',
    options.runDir,
    workdir,
    network.kind === 'gateway' ? `${channel},${network.reach ? 1 : 0}` : '',
    ...listenerList(listeners),
    ...command,
  ];
}

function startBroker(
  options: ContainerOptions,
  plan: ContainerPlan,
  spec: SandboxSpec,
  stdio: Stdio,
  status: number,
): ChildProcess {
  const [file = '', ...args] = plan.broker;
  const streams = streamList(stdio, status, spec.network);
  const nothing = stdio.terminal === null ? null : openSync('/dev/null', 'r');
  try {
    const child = spawn(file, args, {
      env: { PATH: SYSTEM_PATH, AGS_RUN: options.runMark },
      cwd: '/',
      detached: true,
      stdio: nothing === null ? streams : withoutStrangers(streams, nothing),
    });
    feed(
      child,
      DESCRIPTORS.args,
      Object.entries(spec.env)
        .map(([name, value]) => `${name}=${value}\0`)
        .join(''),
    );
    feed(child, DESCRIPTORS.seccomp, seccompFilter(options.arch, spec.kernel));
    return child;
  } catch (cause) {
    closeSync(status);
    throw new AgsError('backend.failed', `The sandbox could not be started: ${(cause as Error).message}`, {
      hint: 'Is the command line too long? Put the command into a script.',
      cause,
    });
  } finally {
    if (nothing !== null) closeSync(nothing);
  }
}

function prepareContainer(options: ContainerOptions, spec: SandboxSpec, files: readonly PlannedFile[]): void {
  const { runDir } = options;
  const own = (path: string): void => {
    if (options.callerIsRoot) chownSync(path, spec.user.uid, spec.user.gid);
  };
  const workspace = spec.mounts.find((m) => m.kind === 'workspace')?.workspace;
  if (workspace !== undefined && workspace.kind !== 'copy') prepareOverlay(options, workspace, own);
  if (usesWorkDirectory(options, spec))
    mkdirSync(join(options.workRoot, options.name), { recursive: true, mode: 0o700 });
  for (const name of ['files', 'stage', 'none', 'memory', 'gate', 'pause'])
    mkdirSync(join(runDir, name), { recursive: true, mode: 0o755 });
  for (const { path, content, binary } of files)
    writeFileSync(join(runDir, path), content, { mode: 0o644, encoding: binary ? 'latin1' : 'utf8' });
  prepareMountPoints(spec, own);
}
