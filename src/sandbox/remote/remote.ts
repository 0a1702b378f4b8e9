// sandbox/remote/remote.ts: a sandbox as a container on another machine. Nothing of this machine can be mounted there and no descriptor gets there: files are
// carried there and back, and everything else (streams, doors, signals) goes over the standard streams of one container of ours, the relay.
// Invariant: as with every backend the command runs only when the container has been seen to have given everything up, and it ends with us:
// when the connection ends, so does the relay, and with it gate and holder. The gateway, its rules and every secret stay here.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { constants } from 'node:os';
import { AgsError } from '../../protocol/errors.ts';
import type { SandboxSpec } from '../../protocol/spec.ts';
import { ownIdentity } from '../../lib/process/liveness.ts';
import { withStreams } from '../../lib/process/process.ts';
import type { Backend, OnDoor, Sandbox, Stdio } from '../backend.ts';
import { agentArgs, holderArgs } from '../container/container-args.ts';
import type { DockerOptions } from '../container/container.ts';
import { askEngine, engineArgv, tellEngine, type Engine } from '../engine/engine.ts';
import { relayArgs, type FarPlace } from './remote-args.ts';
import { openChannel, type Channel, type Frame } from './channel.ts';
import { openFarDoors, type FarDoors } from './listeners.ts';
import { checkFarEngine } from '../engine/remote-engine.ts';
import { containerInput, planCargo, type PlannedCargo } from './plan-remote.ts';
import { farUnprotected } from './protection.ts';
import { describeStreams, joinStreams } from './streams.ts';
import { bringBack, ensureFarImage, farLeftovers, sendCargo, writeMemo } from './volume.ts';
import { doorList } from '../native/launch.ts';
import { ownerText, stateMark } from '../engine/owner.ts';
import { seccompFilter } from '../spec/seccomp.ts';

/** Until the gate is there: files have arrived by then. */
const ANSWER_MS = 90_000;
const MAX_REPORT = 1024 * 1024;

export function createFar(options: DockerOptions): Backend {
  return {
    name: options.engine.name,
    async start(spec, command, stdio, onDoor) {
      const { engine, runDir } = options;
      // What an earlier one of this run left there comes first: it would be written over.
      await bringBack(runDir);
      const cargo = planCargo(spec);
      await Promise.all([checkFarEngine(engine, options.arch), removeDeadContainers(options)]);
      const place = await sendCargo(
        engine,
        {
          volume: options.name,
          run: options.runMark,
          owner: ownerText(stateMark(options.stateDir)),
          image: await ensureFarImage(engine, options.interpreter ?? ''),
          arch: options.arch,
          user: spec.user,
        },
        cargo.list,
      );
      writeMemo(runDir, {
        engine,
        place,
        returns: cargo.returns,
        maxBytes: spec.limits.diskBytes,
        runner: ownIdentity(),
      });
      try {
        return await startFar(options, place, spec, cargo.at, command, stdio, onDoor);
      } catch (error) {
        // Nothing has run; it only has to go.
        await bringBack(runDir);
        throw error;
      }
    },
  };
}

async function removeDeadContainers({ engine, stateDir }: DockerOptions): Promise<void> {
  const dead = (await farLeftovers(engine, stateDir)).filter(({ kind }) => kind === 'container');
  for (const { id } of dead) await askEngine(engine, ['rm', '--force', '--volumes', id]);
}

async function startFar(
  options: DockerOptions,
  place: FarPlace,
  spec: SandboxSpec,
  at: PlannedCargo['at'],
  command: readonly string[],
  stdio: Stdio,
  onDoor: OnDoor | undefined,
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
  let doors: FarDoors | null = null;
  const onFrame = (frame: Frame): void => {
    if (doors?.heard(frame) === true) return;
    const { kind, body } = frame;
    if (kind === 'l') listening.resolve();
    else if (kind === 'r') ready.resolve();
    else if (kind === 'p' && state.report.length + body.length <= MAX_REPORT)
      state.report = Buffer.concat([state.report, body]);
    else if (kind === 'v' && body.length === 4) {
      state.exitCode = body.readUInt32BE(0);
      channel.close();
    } else throw new Error('the relay said something that it never says');
  };
  if (relay.stdout === null || relay.stdin === null) throw new Error('the relay has no streams');
  const channel: Channel = openChannel(relay.stdout, relay.stdin, {
    onFrame,
    onEnd: (problem) => over.resolve(problem),
  });
  relay.on('error', () => channel.close());
  mkdirSync(runDir, { recursive: true, mode: 0o755 });
  doors = openFarDoors(() => channel, spec.network, runDir, onDoor);
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
    if (spec.network.kind === 'gateway') await tellEngine(engine, holderArgs(input));
    await tellEngine(engine, agentArgs(input));
    await within(Promise.race([ready.promise, early]));
    const inspected: unknown = JSON.parse(
      await tellEngine(engine, ['container', 'inspect', '--format', '{{json .}}', `${place.volume}-agent`]),
    );
    const lacking = farUnprotected(state.report, inspected, spec);
    if (lacking !== null) throw unprotected(lacking);
  } catch (error) {
    doors.close();
    channel.close();
    await ended;
    throw error;
  }
  const streams = joinStreams(channel, stdio);
  let killed = false;
  const done = ended.then(async () => {
    doors.close();
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
    connect: doors.connect,
    open: doors.open,
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

/** Ctrl-C in the user's terminal must not end it: so it has a session of its own. Its input ends with us, and then it does. */
function startRelay(engine: Engine, place: FarPlace): ChildProcess {
  const [file = '', ...args] = engineArgv(engine, relayArgs(place));
  return withStreams(spawn(file, args, { cwd: '/', env: engine.env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] }));
}

function helloOf({ arch }: DockerOptions, spec: SandboxSpec, command: readonly string[], stdio: Stdio): Buffer {
  const { network, user, env, workdir, kernel } = spec;
  const { kind, pipes } = describeStreams(stdio);
  const [, ...doors] = doorList(network.kind === 'gateway' ? network.doors : []);
  const words: (string | Buffer)[] = [
    String(user.uid),
    String(user.gid),
    network.kind === 'gateway' ? (network.reach ? '1' : '0') : '',
    kind,
    pipes,
    doors.join(' '),
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

/** The client of the engine says in the end whether the connection was lost; one that does not end is ended. */
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
    `The sandbox is not what it should be: ${lacking}; the command was not run.`,
    {
      details: { lacking },
    },
  );
}

function lost(engine: Engine, cause: unknown): AgsError {
  return new AgsError(
    'backend.failed',
    `What the sandbox wrote could not be brought back from ${engine.far}: ${cause instanceof Error ? cause.message : String(cause)}`,
    { hint: 'It is kept there, in a volume, and comes with the next look: ags review', cause },
  );
}
