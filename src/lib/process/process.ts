// lib/process/process.ts: run a program to its end. A command is argv, never a shell string.
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
  /** Output beyond this many bytes ends the program. */
  readonly maxBytes?: number;
  readonly timeoutMs?: number;
  /** Ends the program as well. */
  readonly signal?: AbortSignal;
}

/** Resolves with whatever happened; a program that cannot be started has exit code 127, one that was cut off 124. */
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
    // A program may close its input early; that is its own business.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(options.input);
  });
}

/**
 * For a child whose streams are used at once. One that could not be started tells it by an event, perhaps before anybody listens, and never
 * ends its output; where descriptors are short it has no streams at all.
 */
export function withStreams<Child extends ChildProcess>(child: Child): Child {
  child.on('error', () => child.stdout?.destroy());
  if ((child.stdio as unknown) !== undefined) return child;
  throw new AgsError('backend.failed', 'No program can be started: too many files are open.', {
    hint: 'See how many there may be: ulimit -n',
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
