// sandbox/remote/remote.ts: a sandbox as a container on a remote engine, which can mount nothing of this machine and gets no descriptors.
// Files are copied there and back; streams, listeners and signals go over the standard streams of one container of ours, the relay.
// Invariant: as with every backend, the command runs only after the container was verified, and it ends with us: when the connection
// ends, so do the relay, the gate and the pause container. The gateway, its rules and every secret stay here.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { constants } from 'node:os';
import { AgsError } from '../../protocol/errors.ts';
import type { SandboxSpec } from '../../protocol/spec.ts';
import { ownIdentity } from '../../lib/process/liveness.ts';
import { withStreams } from '../../lib/process/process.ts';
import type { Backend, OnListener, Sandbox, Stdio } from '../backend.ts';
import { agentArgs, pauseArgs } from '../container/container-args.ts';
import type { ContainerOptions } from '../container/options.ts';
import { askEngine, engineArgv, callEngine, type Engine } from '../engine/engine.ts';
import { relayArgs, type RemotePlace } from './remote-args.ts';
import { openChannel, type Channel, type Frame } from './channel.ts';
import { openRemoteListeners, type RemoteListeners } from './listeners.ts';
import { checkRemoteEngine } from '../engine/remote-engine.ts';
import { containerInput, planPayload, type PlannedPayload } from './plan-remote.ts';
import { remoteUnprotected } from '../container/protection.ts';
import { describeStreams, joinStreams } from './streams.ts';
import { bringBack, ensureRemoteImage, remoteLeftovers, sendPayload, writeMemo } from './volume.ts';
import { listenerList } from '../io/descriptors.ts';
import { ownerText, stateMark } from '../engine/owner.ts';
import { seccompFilter } from '../spec/seccomp.ts';

/** Time limit for the gate; the files have arrived by then. */
const ANSWER_MS = 90_000;
const MAX_REPORT = 1024 * 1024;

export function createRemote(options: ContainerOptions): Backend {
  return {
    name: options.engine.name,
    async start(spec, command, stdio, onListener) {
      const { engine, runDir } = options;
      // Files that an earlier sandbox of this run left there come back first: they would be overwritten.
      await bringBack(runDir);
      const payload = planPayload(spec);
      await Promise.all([checkRemoteEngine(engine, options.arch), removeDeadContainers(options)]);
      const place = await sendPayload(
        engine,
        {
          volume: options.name,
          run: options.runMark,
          owner: ownerText(stateMark(options.stateDir)),
          image: await ensureRemoteImage(engine, options.interpreter ?? ''),
          arch: options.arch,
          user: spec.user,
        },
        payload.list,
      );
      writeMemo(runDir, {
        engine,
        place,
        returns: payload.returns,
        maxBytes: spec.limits.diskBytes,
        runner: ownIdentity(),
      });
      try {
        return await startRemote(options, place, spec, payload.at, command, stdio, onListener);
      } catch (error) {
        // Nothing has run; this removes the volume.
        await bringBack(runDir);
        throw error;
      }
    },
  };
}

async function removeDeadContainers({ engine, stateDir }: ContainerOptions): Promise<void> {
  const dead = (await remoteLeftovers(engine, stateDir)).filter(({ kind }) => kind === 'container');
  for (const { id } of dead) await askEngine(engine, ['rm', '--force', '--volumes', id]);
}

async function startRemote(
  options: ContainerOptions,
  place: RemotePlace,
  spec: SandboxSpec,
  at: PlannedPayload['at'],
  command: readonly string[],
  stdio: Stdio,
  onListener: OnListener | undefined,
): Promise<Sandbox> {
  const { engine, runDir } = options;
  const input = containerInput(options, place, spec, at);
  const relay = startRelay(engine, place);
  const state: { exitCode: number | null; report: Buffer; said: string } = {
    exitCode: null,
    report: Buffer.alloc(0),
    said: '',
  };
  relay.stderr?.on('data', (chunk: Buffer) => (state.said = (state.said + chunk.toString('utf8')).slice(-4096)));
  const [listening, ready, over] = [deferred<void>(), deferred<void>(), deferred<string | null>()];
  let listeners: RemoteListeners | null = null;
  const onFrame = (frame: Frame): void => {
    if (listeners?.receive(frame) === true) return;
    const { kind, body } = frame;
    if (kind === 'l') listening.resolve();
    else if (kind === 'r') ready.resolve();
    else if (kind === 'p' && state.report.length + body.length <= MAX_REPORT)
      state.report = Buffer.concat([state.report, body]);
    else if (kind === 'v' && body.length === 4) {
      state.exitCode = body.readUInt32BE(0);
      channel.close();
    } else throw new Error('the relay sent an unknown message');
  };
  if (relay.stdout === null || relay.stdin === null) throw new Error('the relay has no streams');
  const channel: Channel = openChannel(relay.stdout, relay.stdin, {
    onFrame,
    onEnd: (problem) => over.resolve(problem),
  });
  relay.on('error', () => channel.close());
  mkdirSync(runDir, { recursive: true, mode: 0o755 });
  listeners = openRemoteListeners(() => channel, spec.network, runDir, onListener);
  const ended = over.promise.then(async (problem) => {
    await closed(relay);
    return problem;
  });
  try {
    relay.stdin.write(helloOf(options, spec, command, stdio));
    const early = ended.then(() => {
      throw tooEarly(engine, state.said);
    });
    early.catch(() => undefined);
    await within(Promise.race([listening.promise, early]));
    if (spec.network.kind === 'gateway') await callEngine(engine, pauseArgs(input));
    await callEngine(engine, agentArgs(input));
    await within(Promise.race([ready.promise, early]));
    const inspected: unknown = JSON.parse(
      await callEngine(engine, ['container', 'inspect', '--format', '{{json .}}', `${place.volume}-agent`]),
    );
    const lacking = remoteUnprotected(state.report, inspected, spec);
    if (lacking !== null) throw unprotected(lacking);
  } catch (error) {
    listeners.close();
    channel.close();
    await ended;
    throw error;
  }
  const streams = joinStreams(channel, stdio);
  let killed = false;
  const done = ended.then(async () => {
    listeners.close();
    await streams.finish();
    await bringBack(runDir).catch((cause: unknown) => {
      throw lost(engine, cause);
    });
    return state.exitCode !== null && !killed ? state.exitCode : 137;
  });
  done.catch(() => undefined);
  channel.send('g', 0);
  return {
    initPid: null,
    stdin: streams.stdin,
    stdout: streams.stdout,
    stderr: streams.stderr,
    done,
    cutShort: () => (state.exitCode === null && !killed ? 'connection' : null),
    connect: listeners.connect,
    open: listeners.open,
    signal(name) {
      const number = Buffer.alloc(4);
      number.writeUInt32BE(constants.signals[name] ?? 15);
      channel.send('k', 0, number);
    },
    kill() {
      killed = true;
      channel.close();
    },
  };
}

/** In its own session: Ctrl-C in the user's terminal must not end the relay. It ends when its input does, at the latest with us. */
function startRelay(engine: Engine, place: RemotePlace): ChildProcess {
  const [file = '', ...args] = engineArgv(engine, relayArgs(place));
  return withStreams(spawn(file, args, { cwd: '/', env: engine.env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] }));
}

function helloOf({ arch }: ContainerOptions, spec: SandboxSpec, command: readonly string[], stdio: Stdio): Buffer {
  const { network, user, env, workdir, kernel } = spec;
  const { kind, pipes } = describeStreams(stdio);
  const [, ...listeners] = listenerList(network.kind === 'gateway' ? network.listeners : []);
  const words: (string | Buffer)[] = [
    String(user.uid),
    String(user.gid),
    network.kind === 'gateway' ? (network.reach ? '1' : '0') : '',
    kind,
    pipes,
    listeners.join(' '),
    seccompFilter(arch, kernel),
    workdir,
    Object.entries(env)
      .map(([name, value]) => `${name}=${value}\0`)
      .join(''),
    ...command,
  ];
  const body = Buffer.concat(words.flatMap((word) => [sizeOf(Buffer.byteLength(word)), Buffer.from(word)]));
  return Buffer.concat([sizeOf(body.length), body]);
}

function sizeOf(size: number): Buffer {
  const four = Buffer.alloc(4);
  four.writeUInt32BE(size);
  return four;
}

function deferred<T>(): { promise: Promise<T>; resolve(value: T): void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}

async function within<T>(promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () =>
        reject(
          new AgsError(
            'backend.unprotected',
            `The sandbox did not answer in ${ANSWER_MS / 1000} seconds; the command was not run.`,
          ),
        ),
      ANSWER_MS,
    );
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const LINGER_MS = 10_000;

/** The engine's client reports at its end whether the connection was lost; one that does not end is killed. */
function closed(relay: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (relay.exitCode !== null || relay.signalCode !== null || relay.pid === undefined) return resolve();
    const timer = setTimeout(() => relay.kill('SIGKILL'), LINGER_MS);
    relay.once('exit', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function tooEarly(engine: Engine, said: string): AgsError {
  const line =
    said
      .trim()
      .split('\n')
      .at(-1)
      ?.replace(/^(ags|docker): /, '') ?? '';
  return new AgsError(
    'backend.failed',
    `${engine.name} could not start the sandbox at ${engine.far}: ${line || 'the connection ended'}`,
    {
      hint: 'Does the engine answer? docker info',
    },
  );
}

function unprotected(lacking: string): AgsError {
  return new AgsError(
    'backend.unprotected',
    `The sandbox is not protected as planned: ${lacking}; the command was not run.`,
    {
      details: { lacking },
    },
  );
}

function lost(engine: Engine, cause: unknown): AgsError {
  return new AgsError(
    'backend.failed',
    `The files that the sandbox wrote could not be copied back from ${engine.far}: ${cause instanceof Error ? cause.message : String(cause)}`,
    { hint: 'They are kept there in a volume. Try again: ags review', cause },
  );
}
