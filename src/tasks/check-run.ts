// tasks/check-run.ts: one check: its command in a fresh sandbox over the merged tree, and what it prints, made harmless and kept within bounds.
import { StringDecoder } from 'node:string_decoder';
import { createLines } from '../lib/lines.ts';
import { createSanitizer } from '../lib/sanitize.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { openCheckLog } from '../store/checks.ts';
import { taskPaths, type TaskPaths } from '../store/layout.ts';
import { runClean } from './clean-run.ts';
import type { PreparedLayers } from './layers.ts';
import type { RunPlan } from './prepare.ts';
import type { World } from './world.ts';

// Both streams are one, so that lines come in the order in which they were written.
const SCRIPT = 'exec sh -c "$1" 2>&1';

export interface CheckEnd {
  readonly exitCode: number;
  /** Why it was ended, in words. */
  readonly why: string | null;
  readonly denied: readonly string[];
}

export async function runCheck(
  world: World,
  plan: RunPlan,
  over: PreparedLayers,
  directory: string,
  check: {
    readonly n: number;
    readonly run: string;
    readonly task: string;
    readonly seconds: number | null;
    readonly printed: Printed;
    readonly signal: AbortSignal;
  },
): Promise<CheckEnd> {
  const reading: Promise<void>[] = [];
  const outcome = await runClean(world, plan, over, taskPaths(directory, `check-${check.n}`), {
    task: check.task,
    command: ['sh', '-c', SCRIPT, 'sh', check.run],
    seconds: check.seconds,
    onStart(sandbox) {
      for (const stream of [sandbox.stdout, sandbox.stderr])
        if (stream !== null) reading.push(read(stream, check.printed));
    },
    notice: (text) => check.printed.text(`${text}\n`),
    signal: check.signal,
  });
  await Promise.all(reading);
  return {
    exitCode: outcome.exitCode,
    why: outcome.ended?.replace('limits.time', 'checks.timeout') ?? null,
    denied: outcome.denied.map(({ host, port }) => `${host}:${port}`),
  };
}

async function read(stream: NonNullable<Sandbox['stdout']>, printed: Printed): Promise<void> {
  for await (const chunk of stream) printed.bytes(chunk as Buffer);
}

const LAST_LINES = 20;
const LINE_BYTES = 2000;

export interface Printed extends Disposable {
  bytes(chunk: Buffer): void;
  text(text: string): void;
  /** No more comes. */
  end(): void;
  tail(): readonly string[];
  /** The first line that tells of an error, or the last one. */
  line(): string | null;
}

/** What a check prints, on its way to the log and to whoever looks on. */
export function openPrinted(
  paths: Pick<TaskPaths, 'checks' | 'checksDir'>,
  n: number,
  onText: (text: string) => void,
): Printed {
  const log = openCheckLog(paths, n);
  const decoder = new StringDecoder('utf8');
  const sanitizer = createSanitizer();
  const tail: string[] = [];
  let trouble: string | null = null;
  const lines = createLines(LINE_BYTES, (line) => {
    if (line.trim() === '') return;
    tail.push(line);
    if (tail.length > LAST_LINES) tail.shift();
    if (trouble === null && TROUBLE.test(line) && !NO_TROUBLE.test(line)) trouble = line;
  });
  const take = (text: string): void => {
    if (text === '') return;
    log.append(text);
    lines.push(Buffer.from(text));
    onText(text);
  };
  return {
    bytes: (chunk) => take(sanitizer.push(decoder.write(chunk))),
    text: (text) => take(sanitizer.push(text)),
    end() {
      take(sanitizer.push(decoder.end()) + sanitizer.end());
      lines.end();
    },
    tail: () => tail,
    line: () => trouble ?? tail.at(-1) ?? null,
    [Symbol.dispose]: () => log[Symbol.dispose](),
  };
}

const TROUBLE =
  /(^|[^a-z])(error|errors|fail|failed|failure|exception|panicked|not ok|cannot|not found)([^a-z]|$)|[✗✖×]/i;
const NO_TROUBLE = /(^|\D)(0|no) (error|errors|fail|failed|failures)([^a-z]|$)/i;
