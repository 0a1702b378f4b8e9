// sandbox/engine/build.ts: runs an engine's long commands (build, import, pull) and reports their output line by line.
import { spawn, type ChildProcess } from 'node:child_process';
import { pipeline } from 'node:stream/promises';
import { createLines } from '../../lib/stream/lines.ts';
import { withStreams } from '../../lib/process/process.ts';
import { engineArgv, type Engine } from './engine.ts';

export interface Told {
  readonly exitCode: number;
  /** The last lines of output. */
  readonly last: readonly string[];
}

const KEPT_LINES = 40;
const LINE_BYTES = 4096;

/** A program that writes the engine's standard input. */
export interface Producer {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** How an engine's command is started. */
export interface Surroundings {
  /** Prepended to its command line. */
  readonly before: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export async function tellSlowly(
  engine: Engine,
  args: readonly string[],
  onLine: (line: string) => void,
  producer: Producer | null = null,
  { before, env }: Surroundings = { before: [], env: {} },
): Promise<Told> {
  const last: string[] = [];
  const hear = (said: string): void => {
    // The builder colours the standard error of a step.
    const line = said.replaceAll(/\u001b\[[0-9;]*m/g, '');
    last.push(line);
    if (last.length > KEPT_LINES) last.shift();
    onLine(line);
  };
  const [file = '', ...rest] = [...before, ...engineArgv(engine, args)];
  const child = spawn(file, rest, {
    cwd: '/',
    env: { ...engine.env, ...env },
    stdio: [producer === null ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  const ended = endOf(child, hear);
  if (producer === null) return { exitCode: await ended, last };
  const [from = '', ...words] = producer.argv;
  const source = withStreams(spawn(from, words, { env: producer.env, stdio: ['ignore', 'pipe', 'pipe'] }));
  const sourceEnded = endOf(source, hear, ['stderr']);
  if (source.stdout !== null && child.stdin !== null)
    await pipeline(source.stdout, child.stdin).catch(() => source.kill());
  const [made, taken] = await Promise.all([sourceEnded, ended]);
  return { exitCode: made === 0 ? taken : made, last };
}

function endOf(
  child: ChildProcess,
  hear: (line: string) => void,
  streams: readonly ('stdout' | 'stderr')[] = ['stdout', 'stderr'],
): Promise<number> {
  for (const name of streams) {
    const lines = createLines(LINE_BYTES, hear);
    child[name]?.on('data', (chunk: Buffer) => lines.push(chunk));
    child[name]?.on('end', () => lines.end());
  }
  return new Promise((resolve) => {
    child.on('error', (error) => {
      hear(error.message);
      resolve(127);
    });
    child.on('close', (code) => resolve(code ?? 137));
  });
}
