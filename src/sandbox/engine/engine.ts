// sandbox/engine/engine.ts: a container engine, driven by its command line.
import { AgsError } from '../../protocol/errors.ts';
import type { EngineName } from './engine-kinds.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { run, type Finished } from '../../lib/process/process.ts';

export interface Engine {
  readonly name: EngineName;
  readonly program: string;
  /** Global options before every command. */
  readonly options: readonly string[];
  /** The client's environment: DOCKER_HOST, DOCKER_CONTEXT, HOME and others. */
  readonly env: Readonly<Record<string, string>>;
  /** The Unix socket of the engine's daemon, if it has one. */
  readonly socket: string | null;
  /** The engine has only its caller's rights, and every container has its own user namespace. */
  readonly rootless: boolean;
  /** Address of a remote engine; null: a local one. A remote engine can mount nothing of this machine and gets no descriptors. */
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
    // The engine may not be allowed to enter the caller's directory.
    cwd: '/',
    env: engine.env,
    timeoutMs: DEADLINE_MS,
    ...(input === undefined ? {} : { input }),
  });
}

const GONE_MS = 10_000;

/** Waits until a container is gone: after its end it exists for another moment, with its volumes mounted. */
export async function containerGone(engine: Engine, name: string): Promise<void> {
  for (const end = Date.now() + GONE_MS; Date.now() < end; await sleep(20)) if (!(await isThere(engine, name))) return;
}

/** Does a container of this name exist? */
export async function isThere(engine: Engine, name: string): Promise<boolean> {
  return (await askEngine(engine, ['container', 'inspect', '--format', '.', name])).exitCode === 0;
}

/** Returns the engine's output; throws its error message if it fails. */
export async function callEngine(engine: Engine, args: readonly string[], input?: Buffer): Promise<string> {
  return answer(engine, await askEngine(engine, args, input));
}

/** Like callEngine, with a prefix before the engine's command line. */
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
  return new AgsError('backend.failed', `${engine.name} could not start the sandbox: ${said ?? 'no error message'}`, {
    hint: 'See what works here: ags doctor',
  });
}
