// sandbox/container/container.ts: a sandbox as a container. The engine builds namespaces, mounts and control groups; the command's streams,
// its end and the doors do not go through it.
// Invariant: the command runs only when the container has been seen from outside to have given everything up, and nothing of it
// outlives this process.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { directoryIdentity } from '../../lib/files.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { SandboxSpec } from '../../protocol/spec.ts';
import type { Backend, OnDoor, Sandbox, Stdio } from '../backend.ts';
import { agentArgs, holderArgs, type ContainerInput } from './container-args.ts';
import { removeStaleContainers } from './leftovers.ts';
import { overlayOf, skeletonOf } from './mounts.ts';
import { prepareContainer } from './prepare.ts';
import { unprotectedBy } from './protection.ts';
import { USHER } from '../docker-scripts.ts';
import { ensureSkeleton, skeletonName } from './root-image.ts';
import { removeWork, staleWork } from './work-directories.ts';
import { stageArgv, stageOff, stageOn, stagePlace } from './root-mounts.ts';
import { receiveDoors } from '../io/listeners.ts';
import { containerGone, isThere, tellEngine, tellThrough, type Engine } from '../engine/engine.ts';
import { ENGINE_KINDS } from '../engine/engine-kinds.ts';
import { roomArgv, tmpfsPlace } from './namespace-wrapper.ts';
import { grantableArgv, holds, prlimitArgv, type LimitHost } from '../watch/limits.ts';
import { perlInside } from '../spec/interpreter.ts';
import { ownerText } from '../engine/owner.ts';
import { attach, endedEarly, feed, openStatus } from '../io/attach.ts';
import { DESCRIPTORS, doorList } from '../native/launch.ts';
import { streamList, SYSTEM_PATH, withoutStrangers } from '../native/native.ts';
import { seccompFilter } from '../spec/seccomp.ts';
import { planSources, type PlannedFile } from '../spec/mount-sources.ts';

export interface DockerOptions {
  readonly engine: Engine;
  readonly runDir: string;
  readonly whiteout: string;
  readonly callerIsRoot: boolean;
  readonly owner: { readonly uid: number; readonly gid: number };
  readonly arch: 'x64' | 'arm64';
  readonly perl: string;
  /** For a sandbox over an image: see interpreter.ts. */
  readonly interpreter: string | null;
  readonly ipv6: boolean;
  readonly limitHost: LimitHost;
  /** Names the run. */
  readonly runMark: string;
  /** Of this one sandbox: a run has several, one after the other. */
  readonly name: string;
  /** On the file system of the run: here are the work directories of overlays that the engine mounts, which fills them as root. */
  readonly workRoot: string;
  /** Where it is kept what has to come back from another machine. */
  readonly stateDir: string;
}

export interface DockerPlan {
  readonly holder: readonly string[] | null;
  readonly agent: readonly string[];
  /** In front of the engine's command line for the agent: makes the namespaces in which an engine without a daemon starts. */
  readonly before: readonly string[];
  /** For root: what is mounted for the engine to find. */
  readonly stage: readonly string[] | null;
  readonly usher: readonly string[];
  readonly files: readonly PlannedFile[];
}

export function createDocker(options: DockerOptions): Backend {
  return {
    name: options.engine.name,
    async start(spec, command, stdio, onDoor) {
      const plan = planDocker(options, spec, command, stdio);
      prepareContainer(options, spec, plan.files);
      await Promise.all([
        ensureSkeleton(options.engine, skeletonOf(spec), spec.user, options.runDir),
        removeStaleContainers(options.engine),
      ]);
      if (plan.stage !== null) await stageOn(plan.stage);
      let mayGo = false;
      try {
        return await startContainers(options, plan, spec, stdio, onDoor, () => mayGo);
      } catch (error) {
        if (worksApart(options, spec)) await removeWork(options.engine, options.workRoot, [options.name]);
        throw error;
      } finally {
        if (plan.stage !== null) await stageOff(options);
        mayGo = true;
      }
    },
  };
}

async function startContainers(
  options: DockerOptions,
  plan: DockerPlan,
  spec: SandboxSpec,
  stdio: Stdio,
  onDoor: OnDoor | undefined,
  mayGo: () => boolean,
): Promise<Sandbox> {
  const { engine } = options;
  const status = openStatus(options.runDir);
  const usher = startUsher(options, plan, spec, stdio, status);
  const attached = attach(usher, status, receiveDoors(usher, spec.network, onDoor), {
    answerSeconds: 90,
    mayGo,
    lacking: (pid) => unprotectedBy(pid, spec, engine.rootless),
  });
  // Whoever fails first tells why; what the other says then is a consequence.
  attached.catch(() => undefined);
  try {
    if (plan.holder !== null) await tellEngine(engine, plan.holder);
    await tellThrough(plan.before, engine, plan.agent);
    sameLayers(spec);
  } catch (error) {
    const early = usher.exitCode !== null;
    usher.kill('SIGKILL');
    const sandbox = await attached.catch((why: unknown) => why);
    await containerGone(engine, `${options.name}-agent`);
    if (early) throw sandbox;
    throw error;
  }
  const sandbox = await orGone(attached, usher, engine, `${options.name}-agent`).catch(async (error: unknown) => {
    await containerGone(engine, `${options.name}-agent`);
    throw error;
  });
  return worksApart(options, spec) ? { ...sandbox, done: endTidily(sandbox.done, options) } : sandbox;
}

const SILENT_MS = 3000;

/** A container that has ended before it met the usher tells nobody: the engine is asked about one that is silent. */
async function orGone(
  attached: Promise<Sandbox>,
  usher: ChildProcess,
  engine: Engine,
  container: string,
): Promise<Sandbox> {
  for (;;) {
    const met = await Promise.race([attached, sleep(SILENT_MS, null, { ref: false })]);
    if (met !== null) return met;
    if (await isThere(engine, container)) continue;
    usher.kill('SIGKILL');
    await attached.catch(() => undefined);
    throw endedEarly();
  }
}

async function endTidily(done: Promise<number>, { engine, name, workRoot }: DockerOptions): Promise<number> {
  try {
    return await done;
  } finally {
    await containerGone(engine, `${name}-agent`);
    await removeWork(engine, workRoot, [name, ...staleWork(workRoot)]);
  }
}

/** The engine mounts the overlay, and has a work directory of its own for it. */
export function worksApart({ callerIsRoot, engine }: DockerOptions, spec: SandboxSpec): boolean {
  const upper = spec.mounts.some((mount) => mount.kind === 'workspace' && mount.workspace.kind === 'overlay');
  return upper && !callerIsRoot && ENGINE_KINDS[engine.name].daemon;
}

export function planDocker(
  options: DockerOptions,
  spec: SandboxSpec,
  command: readonly string[],
  stdio: Pick<Stdio, 'terminal' | 'stdin'>,
): DockerPlan {
  const { runDir, callerIsRoot, engine } = options;
  const kind = ENGINE_KINDS[engine.name];
  const ownRoom = !kind.daemon;
  const staging = callerIsRoot && kind.daemon;
  const here = staging ? stagePlace(options) : runDir;
  const { source, staged, files } = planSources({ runDir, here, callerIsRoot, mayMount: true });
  const sources = new Map(
    spec.mounts.map((mount) => [mount, mount.kind === 'tmpfs' ? join(here, tmpfsPlace(spec, mount)) : source(mount)]),
  );
  const byEngine = staged.map((one) => ({ ...one, source: join(here, one.at) }));
  const skeleton = skeletonName(skeletonOf(spec), spec.user);
  const input: ContainerInput = {
    kind,
    spec,
    source: (mount) => {
      const path = sources.get(mount) ?? '';
      const veiled = callerIsRoot || ownRoom ? undefined : byEngine.find((one) => one.source === path);
      return veiled === undefined || !isDirectory(veiled.from) ? (veiled?.from ?? path) : path;
    },
    overlays:
      callerIsRoot || ownRoom
        ? null
        : (path, mount) => overlayOf(path, mount, byEngine, runDir, join(options.workRoot, options.name), isDirectory),
    name: options.name,
    run: options.runMark,
    rootless: engine.rootless,
    counts: holds(options.limitHost.cgroup, 'memory'),
    owner: ownerText(),
    image: spec.root.kind === 'image' ? spec.root.id : skeleton,
    skeleton,
    perl: perlInside(spec.root, options.perl),
    interpreter: options.interpreter,
    arch: options.arch,
    ipv6: options.ipv6,
    limitArgv: kind.raisesLimits
      ? grantableArgv(spec.limits, options.limitHost, Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8')))
      : prlimitArgv(spec.limits, options.limitHost),
    meeting: { gate: join(here, 'gate'), holder: join(here, 'holder') },
  };
  return {
    holder: spec.network.kind === 'gateway' && kind.daemon ? holderArgs(input) : null,
    agent: agentArgs(input),
    before: ownRoom ? roomArgv(options, spec, staged) : [],
    stage: staging ? stageArgv(options, spec, staged) : null,
    usher: usherArgv(options, spec, command, stdio),
    files,
  };
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() !== false;
}

/** Where the engine has mounted the layers itself, they must still be what was looked at. */
function sameLayers(spec: SandboxSpec): void {
  for (const mount of spec.mounts) {
    if (mount.kind !== 'workspace' || mount.workspace.kind === 'copy') continue;
    for (const { path, identity } of mount.workspace.layers)
      if (directoryIdentity(path) !== identity)
        throw new AgsError('backend.failed', `${path} is not the directory any more that it was a moment ago.`);
  }
}

// prctl, dup3, sendmsg
const USHER_CALLS = { x64: '157,292,46', arm64: '167,24,211' } as const;

function usherArgv(
  options: DockerOptions,
  { network, user, workdir }: SandboxSpec,
  command: readonly string[],
  stdio: Pick<Stdio, 'terminal' | 'stdin'>,
): string[] {
  const apart = stdio.terminal !== null && stdio.stdin !== stdio.terminal;
  const channel = apart ? DESCRIPTORS.stdin + 1 : DESCRIPTORS.stdin;
  const doors = network.kind === 'gateway' ? network.doors : [];
  return [
    options.perl,
    '-e',
    USHER,
    '--',
    USHER_CALLS[options.arch],
    String(process.pid),
    `${options.callerIsRoot ? 'give' : 'keep'},${user.uid},${user.gid}`,
    stdio.terminal === null ? 'plain' : apart ? 'apart' : 'terminal',
    options.runDir,
    workdir,
    network.kind === 'gateway' ? `${channel},${network.reach ? 1 : 0}` : '',
    ...doorList(doors),
    ...command,
  ];
}

function startUsher(
  options: DockerOptions,
  plan: DockerPlan,
  spec: SandboxSpec,
  stdio: Stdio,
  status: number,
): ChildProcess {
  const [file = '', ...args] = plan.usher;
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
