// cli/main.ts: the entry point. It loads and runs the one command that was called, and reports errors as sentences.
import { isatty } from 'node:tty';
import { AgsError, ERRORS, EXIT } from '../protocol/errors.ts';
import { closeInherited } from '../lib/process/inherited.ts';
import { errorOutput, seen } from './terminal/format.ts';
import { makeHostContext } from './make-context.ts';
import { asTyped } from './typed-command.ts';
import { parseVerb, refuseSurplus } from './parse.ts';
import type { Context, Verb } from './verb.ts';
import { VERBS, type VerbName } from './verbs/table.ts';

export async function main(argv: readonly string[]): Promise<number> {
  closeInherited();
  const ctx = makeContext();
  const json = argv.includes('--json');
  try {
    return await dispatch(argv, ctx);
  } catch (error) {
    const { inWords } = await import('../run/disk-errors.ts');
    return report(inWords(ctx.host, error), ctx, json);
  }
}

async function dispatch(argv: readonly string[], ctx: Context): Promise<number> {
  const [first, ...rest] = argv;
  if (first === undefined || first === 'help' || first === '--help' || first === '-h') {
    const { showHelp } = await import('./help.ts');
    return showHelp(rest, ctx);
  }
  if (first === '--version' || first === '-V' || first === 'version') {
    refuseSurplus(first, rest, { takes: 0, usage: '--version' });
    ctx.stdout.write(`${(await import('../lib/package-file.ts')).readVersion()}\n`);
    return EXIT.done;
  }
  if (first === '__run') return (await import('../agent-run/runner.ts')).runAgentTask(ctx.host, rest[0] ?? '');
  if (first === '__complete') return (await import('./verbs/completion.ts')).completeWords(rest, ctx);
  if (!Object.hasOwn(VERBS, first)) {
    const { unknownVerb } = await import('./help.ts');
    throw unknownVerb(first);
  }
  const verb: Verb = (await VERBS[first as VerbName].load()).default;
  const parsed = parseVerb(first, verb, rest);
  if (parsed === 'help') {
    const { showHelp } = await import('./help.ts');
    return showHelp([first], ctx);
  }
  return verb.run(parsed, ctx);
}

export function report(error: unknown, ctx: Pick<Context, 'stderr'>, json: boolean): number {
  if (!(error instanceof AgsError)) {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    ctx.stderr.write(
      json
        ? `${JSON.stringify({ error: { code: 'internal', message: detail } })}\n`
        : `ags: this is a bug in ags.\n${seen(detail)}\n`,
    );
    return EXIT.failed;
  }
  ctx.stderr.write(errorOutput(error, json));
  return ERRORS[error.code].exit;
}

/** The only place that reads process.env. */
function makeContext(): Context {
  const { env } = process;
  const context = makeHostContext(env);
  return {
    ...context,
    verbs: VERBS,
    host: context,
    // Opening a stream takes 1 to 2 ms, and most sandboxed commands use the descriptors directly.
    get stdin() {
      return process.stdin;
    },
    get stdout() {
      return untilClosed(process.stdout);
    },
    get stderr() {
      return untilGone(process.stderr, (text) => asTyped(text, context));
    },
    get colour() {
      return env['NO_COLOR'] === undefined && (isatty(1) || env['FORCE_COLOR'] !== undefined);
    },
    terminal: { stdin: isatty(0), stdout: isatty(1), stderr: isatty(2) },
    async ask(question) {
      const { askOnTerminal } = await import('./terminal/ask.ts');
      return askOnTerminal(question);
    },
  };
}

/** Messages on stderr are not essential: if the reader is gone, the work goes on. */
function untilGone(stream: NodeJS.WriteStream, say: (text: string) => string): NodeJS.WriteStream {
  if (stream.listenerCount('error') > 0) return stream;
  const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
  stream.write = (chunk: unknown, ...more: unknown[]) => write(typeof chunk === 'string' ? say(chunk) : chunk, ...more);
  return stream.on('error', () => undefined);
}

/** A reader such as "head" may close the pipe early: ags then exits without an error. */
function untilClosed(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  if (stream.listenerCount('error') > 0) return stream;
  return stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(EXIT.done);
  });
}
