// cli/main.ts: the one entry. Finds the verb, loads it alone, runs it, and turns whatever goes wrong into a sentence.
import { isatty } from 'node:tty';
import { AgsError, ERRORS, EXIT } from '../protocol/errors.ts';
import { closeInherited } from '../lib/process/inherited.ts';
import { errorText, seen } from './terminal/error-text.ts';
import { makeWorld } from './make-context.ts';
import { parseVerb } from './parse.ts';
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
    return report(inWords(ctx.world, error), ctx, json);
  }
}

async function dispatch(argv: readonly string[], ctx: Context): Promise<number> {
  const [first, ...rest] = argv;
  if (first === undefined || first === 'help' || first === '--help' || first === '-h') {
    const { showHelp } = await import('./help.ts');
    return showHelp(first === 'help' ? rest : [], ctx);
  }
  if (first === '--version' || first === '-V' || first === 'version') {
    ctx.stdout.write(`${(await import('./version.ts')).readVersion()}\n`);
    return EXIT.done;
  }
  if (first === '__run') return (await import('../agent-run/runner.ts')).runAgentTask(ctx.world, rest[0] ?? '');
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
  if (json)
    ctx.stderr.write(
      `${JSON.stringify({ error: { code: error.code, message: error.message, ...(error.hint === undefined ? {} : { hint: error.hint }), ...error.details } })}\n`,
    );
  else ctx.stderr.write(errorText(error));
  return ERRORS[error.code].exit;
}

/** The only place that reads process.env. */
function makeContext(): Context {
  const { env } = process;
  const world = makeWorld(env);
  return {
    ...world,
    world,
    // Opening a stream costs a millisecond or two, and most commands in a sandbox use the descriptors themselves.
    get stdin() {
      return process.stdin;
    },
    get stdout() {
      return untilClosed(process.stdout);
    },
    get stderr() {
      return untilGone(process.stderr);
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

/** What nobody reads any more was only told: the work goes on. */
function untilGone(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  return stream.listenerCount('error') > 0 ? stream : stream.on('error', () => undefined);
}

/** Whoever reads our output may stop reading, as "head" does: that is the end, not an error. */
function untilClosed(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  if (stream.listenerCount('error') > 0) return stream;
  return stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(EXIT.done);
  });
}
