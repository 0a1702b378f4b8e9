// gateway/values.ts: reads a secret value from where the user keeps it outside the sandbox.
// Invariant: no message contains the value or a command's standard output; its standard error is quoted. A value that could break out of
// a header is refused.
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, isAbsolute, join } from 'node:path';
import { AgsError, flat } from '../protocol/errors.ts';
import type { OwnEndpoint, ValueSource } from '../protocol/network.ts';
import { errorCode } from '../lib/error-code.ts';
import { visible } from '../lib/sanitize.ts';
import type { LiveSecret } from './intercept/intercept.ts';

export interface ValueContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** How long a command may take. */
  readonly commandMs?: number;
}

export async function readValue(source: ValueSource, context: ValueContext): Promise<string> {
  const { value, called } = await readRaw(source, context);
  if (value === '') throw unusable(`${called} is empty.`, 'Put the value there, or take it from elsewhere.');
  // A line break would start another header.
  if (/[\x00-\x1f\x7f]/.test(value))
    throw unusable(`${called} holds a line break or another control character.`, 'It must be a single line of text.');
  return value;
}

interface Raw {
  readonly value: string;
  /** The source's name for a message, at the start of a sentence. */
  readonly called: string;
}

async function readRaw(source: ValueSource, context: ValueContext): Promise<Raw> {
  if ('env' in source) {
    const value = context.env[source.env];
    if (value !== undefined) return { value, called: `The variable ${source.env}` };
    throw unusable(
      `The variable ${source.env} is not set.`,
      `Set it before you start ags: export ${source.env}=… Or take the value from a file, a command or the keychain.`,
    );
  }
  if ('file' in source) return readFromFile(source.file, context.home);
  if ('command' in source) return readFromCommand(source.command, context);
  return readFromKeychain(source.keychain, context);
}

async function readFromFile(written: string, home: string): Promise<Raw> {
  const path = written.startsWith('~/') ? join(home, written.slice(2)) : written;
  const called = `The file ${visible(written)}`;
  if (!isAbsolute(path)) throw unusable(`${called} has no full path.`, 'Write it as /… or ~/…');
  // Without NONBLOCK, opening a named pipe would wait for a writer.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    throw unusable(
      `${called} cannot be read (${errorCode(error) ?? 'error'}).`,
      'Write the value into it, readable for you alone.',
    );
  });
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw unusable(`${called} is not a regular file.`, 'Name a file that holds only the value.');
    const mine = stat.uid === process.geteuid?.() || stat.uid === 0;
    if (!mine || (stat.mode & 0o022) !== 0)
      throw unusable(`${called} can be changed by others.`, `Make it yours alone: chmod 600 ${visible(path)}`);
    if (stat.size > MOST_BYTES) throw unusable(`${called} is too large.`, 'Name a file that holds only the value.');
    return { value: textOf(await file.readFile(), called), called };
  } finally {
    await file.close();
  }
}

async function readFromCommand(argv: readonly string[], context: ValueContext): Promise<Raw> {
  const [written = '', ...args] = argv;
  const file = written.startsWith('~/') ? join(context.home, written.slice(2)) : written;
  const called = `The output of ${visible(basename(file))}`;
  const finished = await execute(file, args, context);
  if (finished.failure === null) return { value: textOf(finished.stdout, called), called };
  const said = finished.stderr === '' ? '' : ` It said: ${finished.stderr}`;
  throw unusable(`The command ${visible(file)} ${finished.failure}.${said}`, 'Run it yourself to see the cause.');
}

async function readFromKeychain(entry: string, context: ValueContext): Promise<Raw> {
  const slash = entry.lastIndexOf('/');
  const attributes =
    slash < 0 ? ['service', entry] : ['service', entry.slice(0, slash), 'account', entry.slice(slash + 1)];
  const called = `The keychain entry ${visible(entry)}`;
  const finished = await execute('secret-tool', ['lookup', ...attributes], context);
  if (finished.failure === null) return { value: textOf(finished.stdout, called), called };
  if (finished.missing)
    throw unusable(
      `${called} cannot be read: the program secret-tool is not installed.`,
      'Install it (Debian and Ubuntu: libsecret-tools), or take the value from a variable, a file or a command.',
    );
  // secret-tool prints nothing if the entry does not exist.
  const why = finished.stderr === '' ? 'does not exist' : `cannot be read: ${finished.stderr}`;
  throw unusable(`${called} ${why}.`, `Store it: secret-tool store --label=ags ${attributes.map(visible).join(' ')}`);
}

interface Executed {
  readonly stdout: Buffer;
  readonly stderr: string;
  /** "ended with status 3"; null: it succeeded. */
  readonly failure: string | null;
  readonly missing: boolean;
}

function execute(file: string, args: readonly string[], context: ValueContext): Promise<Executed> {
  // execFile closes the pipes at the timeout, so a grandchild that holds them cannot delay this.
  const { env, commandMs = COMMAND_MS } = context;
  const limits = { timeout: commandMs, killSignal: 'SIGKILL', maxBuffer: MOST_BYTES, encoding: 'buffer' } as const;
  return new Promise((resolve) => {
    const child = execFile(file, args, { ...limits, env, cwd: '/' }, (error, stdout, stderr) => {
      const said = visible(flat(stderr.toString('utf8')).slice(0, 500));
      const missing = error !== null && error.code === 'ENOENT';
      resolve({ stdout, stderr: said, failure: error === null ? null : failureOf(error, commandMs), missing });
    });
    child.stdin?.end();
  });
}

// The error's own message would repeat every argument.
function failureOf(
  error: { code?: number | string | null; killed?: boolean; signal?: string | null },
  commandMs: number,
): string {
  if (error.code === 'ENOENT') return 'does not exist';
  if (error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return 'printed too much';
  if (error.killed === true) return `did not end within ${commandMs / 1000} s`;
  if (typeof error.code === 'number') return `ended with status ${error.code}`;
  return error.signal == null ? `cannot be started (${error.code ?? 'error'})` : `was ended by ${error.signal}`;
}

function textOf(bytes: Buffer, called: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/[\r\n]+$/, '');
  } catch (cause) {
    throw unusable(`${called} is not text.`, 'It must be a single line of text.', cause);
  }
}

function unusable(message: string, hint: string, cause?: unknown): AgsError {
  return new AgsError('config.invalid', message, { hint, cause });
}

const MOST_BYTES = 64 * 1024;
const COMMAND_MS = 30_000;

/** A secret with a known value, and the host that may receive it. */
export interface BoundSecret extends LiveSecret {
  readonly host: string;
  readonly port: number;
  readonly viaEndpoint: boolean;
  /** Its endpoint is one of the user's own. */
  readonly own?: OwnEndpoint;
  /** There is no value: requests to its endpoint go on as they are. */
  readonly keyless?: true;
}
