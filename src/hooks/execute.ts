// hooks/execute.ts: runs a hook's program on this machine, in its own process group, with limits, until it ends.
// Invariant: no process of its group outlives it; if it was cut off, no process it started at all.
//
// RLIMIT_NPROC is not among the limits: outside a sandbox it counts every process of the user, including the desktop, and never
// applies to root. Instead, the processes of a hook are counted once the machine suddenly has many more.
import { spawn, type ChildProcess } from 'node:child_process';
import { createSanitizer } from '../lib/sanitize.ts';
import { ALLOWED, type Answer } from './hook.ts';
import { countAll, findMarked, killMarked, killQuietly } from './marked.ts';

export interface Execution {
  readonly argv: readonly string[];
  readonly input: string;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly timeoutMs: number;
  /** In the environment of all its processes, and of no other process. */
  readonly mark: string;
  readonly signal: AbortSignal;
}

export const MARK = 'AGS_HOOK_MARK';

const MOST_OUTPUT = 16 * 1024 * 1024;
const MOST_REASON = 4096;
const MOST_PROCESSES = 256;
const LOOK_EVERY_MS = 50;
/** Time for output that is still in the pipe when the program has ended. */
const LAST_WORDS_MS = 250;

export function execute(execution: Execution): Promise<Answer> {
  return new Promise((resolve) => {
    const child = start(execution);
    const stderr = collect(child, () => cut(`it printed more than ${MOST_OUTPUT / 2 ** 20} MB`));
    let why: string | null = null;
    const cut = (reason: string): void => {
      why ??= reason;
      end(child);
    };
    const before = countAll();
    const watch = setInterval(() => {
      if (countAll() - before <= MOST_PROCESSES) return;
      if (findMarked(markOf(execution)).length > MOST_PROCESSES)
        cut(`it started more than ${MOST_PROCESSES} processes`);
    }, LOOK_EVERY_MS);
    const onAbort = (): void => cut(`it gave no answer within ${execution.timeoutMs / 1000} s`);
    execution.signal.addEventListener('abort', onAbort);
    const finish = (answer: Answer): void => {
      clearInterval(watch);
      execution.signal.removeEventListener('abort', onAbort);
      if (why !== null) killMarked(markOf(execution));
      child.stderr?.destroy();
      resolve(answer);
    };
    child.once('error', (error) => finish({ verdict: 'failed', reason: `it could not be started: ${error.message}` }));
    child.once('exit', (code, signal) => {
      end(child);
      const done = (): void =>
        finish(why === null ? answerOf(code, signal, stderr()) : { verdict: 'failed', reason: why });
      const timer = setTimeout(() => {
        // A process has left the group and still holds the pipe.
        killMarked(markOf(execution));
        done();
      }, LAST_WORDS_MS);
      child.once('close', () => {
        clearTimeout(timer);
        done();
      });
    });
    if (execution.signal.aborted) onAbort();
    // The hook may decide without reading its input.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(execution.input);
  });
}

/** `timeout` kills the group even if ags itself has died. */
function start({ argv, env, cwd, timeoutMs, mark }: Execution): ChildProcess {
  const seconds = Math.ceil(timeoutMs / 1000);
  const limits = ['--core=0', '--nofile=1024', `--fsize=${2 ** 30}`, `--data=${2 * 2 ** 30}`, `--cpu=${seconds + 1}`];
  const guard = ['-s', 'KILL', String(seconds + 2), '/usr/bin/prlimit', ...limits, '--', ...argv];
  return spawn('/usr/bin/timeout', guard, {
    cwd,
    env: { ...env, [MARK]: mark },
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe'],
  });
}

function markOf({ mark }: Execution): string {
  return `${MARK}=${mark}`;
}

function end({ pid }: ChildProcess): void {
  if (pid !== undefined) killQuietly(-pid);
}

/** Keeps the beginning of stderr; reads and drops the rest, so that the program does not block. */
function collect(child: ChildProcess, tooMuch: () => void): () => Buffer {
  const chunks: Buffer[] = [];
  let total = 0;
  child.stderr?.on('data', (chunk: Buffer) => {
    if (total < MOST_REASON) chunks.push(chunk.subarray(0, MOST_REASON - total));
    total += chunk.length;
    if (total > MOST_OUTPUT) tooMuch();
  });
  child.stderr?.on('error', () => undefined);
  return () => Buffer.concat(chunks);
}

export function answerOf(code: number | null, signal: string | null, stderr: Buffer): Answer {
  if (code === 0) return ALLOWED;
  const said = readable(stderr);
  if (code === 2) return { verdict: 'refused', reason: said === '' ? 'it gave no reason' : said };
  const how = code === null ? `it was ended by ${signal ?? 'a signal'}` : `it ended with exit code ${code}`;
  return { verdict: 'failed', reason: said === '' ? how : `${how}: ${said}` };
}

function readable(bytes: Buffer): string {
  const sanitizer = createSanitizer({ maxLine: 1000 });
  return (sanitizer.push(bytes.toString('utf8').replace(/\uFFFD$/, '')) + sanitizer.end()).trim();
}
