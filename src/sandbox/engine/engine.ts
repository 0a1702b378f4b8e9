// sandbox/engine/engine.ts: a container engine, driven by its command line.
import { AgsError } from '../../protocol/errors.ts';
import type { EngineName } from './engine-kinds.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { run, type Finished } from '../../lib/process/process.ts';

export interface Engine {
  readonly name: EngineName;
  readonly program: string;
  /** Before every command. */
  readonly options: readonly string[];
  /** Where the engine is and who asks: DOCKER_HOST, DOCKER_CONTEXT, HOME and the like. */
  readonly env: Readonly<Record<string, string>>;
  /** The Unix socket of the engine's daemon, if it has one. */
  readonly socket: string | null;
  /** It has no right that its caller does not have, and every container has a user namespace of its own. */
  readonly rootless: boolean;
  /** Its address, where it is on another machine: nothing of this one can be mounted there, and no descriptor gets there. */
  readonly far: string | null;
}

const DEADLINE_MS = 60_000;

export function engineArgv(engine: Engine, args: readonly string[]): string[] {
  return [engine.program, ...engine.options, ...args];
}

export function askEngine(engine: Engine, args: readonly string[], input?: Buffer): Promise<Finished> {
  return runEngine(engine, engineArgv(engine, args), input);
}

function runEngine(engine: Engine, argv: readonly string[], input?: Buffer): Promise<Finished> {
  return run(argv, {
    // It need not be allowed to enter the caller's.
    cwd: '/',
    env: engine.env,
    timeoutMs: DEADLINE_MS,
    ...(input === undefined ? {} : { input }),
  });
}

const GONE_MS = 10_000;

/** Ended by itself, a container is there for another moment, and its volumes are mounted. */
export async function containerGone(engine: Engine, name: string): Promise<void> {
  for (const end = Date.now() + GONE_MS; Date.now() < end; await sleep(20)) if (!(await isThere(engine, name))) return;
}

/** A container of this name. */
export async function isThere(engine: Engine, name: string): Promise<boolean> {
  return (await askEngine(engine, ['container', 'inspect', '--format', '.', name])).exitCode === 0;
}

/** What the engine answered; throws what it said when it refused. */
export async function tellEngine(engine: Engine, args: readonly string[], input?: Buffer): Promise<string> {
  return answer(engine, await askEngine(engine, args, input));
}

/** The same with something in front of the engine's command line. */
export async function tellThrough(before: readonly string[], engine: Engine, args: readonly string[]): Promise<string> {
  return answer(engine, await runEngine(engine, [...before, ...engineArgv(engine, args)]));
}

function answer(engine: Engine, { exitCode, stdout, stderr }: Finished): string {
  if (exitCode === 0) return stdout.toString('utf8').trim();
  throw engineRefused(engine, stderr);
}

export function engineRefused(engine: Engine, stderr: string): AgsError {
  const said = stderr
    .split('\n')
    .map((line) => line.replace(/^(docker|podman|Error): /, '').trim())
    .find((line) => line !== '' && !/^(WARNING|time=.* level=warning)/.test(line));
  return new AgsError('backend.failed', `${engine.name} could not start the sandbox: ${said ?? 'it said nothing'}`, {
    hint: 'See what works here: ags doctor',
  });
}
