// lib/process/process.ts: runs a program to its end. A command is argv, never a shell string.
import { spawn, type ChildProcess } from 'node:child_process';
import { AgsError } from '../../protocol/errors.ts';

export interface Finished {
  readonly exitCode: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: Buffer | string;
  /** The program is killed when its output exceeds this. */
  readonly maxBytes?: number;
  readonly timeoutMs?: number;
  /** Aborting kills the program. */
  readonly signal?: AbortSignal;
}

/** Always resolves. The exit code is 127 for a program that cannot be started, 124 for one that was cut off. */
export function run(argv: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const [file = '', ...args] = argv;
  const maxBytes = options.maxBytes ?? 64 * 1024 * 1024;
  return new Promise((resolve) => {
    const child = spawn(file, args, {
      cwd: options.cwd,
      env: options.env,
      stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    const out: Buffer[] = [];
    let outBytes = 0;
    let stderr = '';
    let cutOff = false;
    const cut = (): void => {
      cutOff = true;
      child.kill('SIGKILL');
    };
    const timer = options.timeoutMs === undefined ? undefined : setTimeout(cut, options.timeoutMs);
    options.signal?.addEventListener('abort', cut, { once: true });
    if (options.signal?.aborted === true) cut();
    const over = (): void => {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', cut);
    };
    child.stdout?.on('data', (chunk: Buffer) => {
      outBytes += chunk.length;
      if (outBytes > maxBytes) cut();
      else out.push(chunk);
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      if (stderr.length < 64 * 1024) stderr += chunk.toString('utf8');
    });
    child.on('error', (error) => {
      over();
      resolve({ exitCode: 127, stdout: Buffer.alloc(0), stderr: error.message });
    });
    child.on('close', (code, signal) => {
      over();
      const exitCode = cutOff ? 124 : (code ?? 128 + signalNumber(signal));
      resolve({ exitCode, stdout: Buffer.concat(out), stderr });
    });
    // A program may close its input early.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(options.input);
  });
}

/**
 * For a child whose streams are used at once. A failed start is reported by an event, perhaps before a handler exists, and the output
 * never ends; without free descriptors there are no streams at all.
 */
export function withStreams<Child extends ChildProcess>(child: Child): Child {
  child.on('error', () => child.stdout?.destroy());
  if ((child.stdio as unknown) !== undefined) return child;
  throw new AgsError('backend.failed', 'No program can be started: too many files are open.', {
    hint: 'See the limit: ulimit -n',
  });
}

const SIGNALS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGABRT: 6,
  SIGKILL: 9,
  SIGSEGV: 11,
  SIGPIPE: 13,
  SIGTERM: 15,
};

export function signalNumber(signal: string | null): number {
  return signal === null ? 1 : (SIGNALS[signal] ?? 1);
}
