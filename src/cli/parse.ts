// cli/parse.ts: parses the arguments of one command strictly. It uses Node's own parser, because start-up must not load a library.
import { parseArgs } from 'node:util';
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import type { Arguments, Verb } from './verb.ts';

export function parseVerb(name: string, verb: Verb, argv: readonly string[]): Arguments | 'help' {
  const { own, command } = split(verb, argv);
  if (own.includes('--help') || own.includes('-h')) return 'help';
  // Skipping the parser saves loading that part of Node.
  if (own.length === 0) return counted(name, verb, { values: {}, positionals: command });
  const options = Object.fromEntries(
    Object.entries(verb.options).map(([key, o]) => [
      key,
      {
        type: o.type,
        ...(o.short === undefined ? {} : { short: o.short }),
        ...(o.multiple === true ? { multiple: true } : {}),
      },
    ]),
  );
  let parsed: Arguments;
  try {
    const given = parseArgs({ args: [...own], options, allowPositionals: true, strict: true, tokens: true });
    const { values, positionals, tokens } = given;
    const dashes = tokens.findIndex(({ kind }) => kind === 'option-terminator');
    const before = tokens.slice(0, dashes).filter(({ kind }) => kind === 'positional').length;
    parsed = {
      values: values as Arguments['values'],
      positionals: [...positionals, ...command],
      ...(dashes < 0 ? {} : { beforeDashes: before }),
    };
  } catch (error) {
    const message = error instanceof Error ? error.message.split('. To specify')[0] : String(error);
    throw new AgsError('usage.invalid', `${message}`, { hint: `See: ags ${name} --help`, cause: error });
  }
  return counted(name, verb, parsed);
}

function counted(name: string, verb: Verb, args: Arguments): Arguments {
  refuseSurplus(name, args.positionals, verb);
  return args;
}

/** An argument that would be ignored is an error: the user meant something by it. */
export function refuseSurplus(
  name: string,
  given: readonly string[],
  { takes, instead, usage }: Pick<Verb, 'takes' | 'instead' | 'usage'>,
): void {
  if (takes === 'any' || given.length <= takes) return;
  const most = takes === 0 ? 'no arguments' : takes === 1 ? 'one argument' : `${takes} arguments`;
  throw new AgsError(
    'usage.invalid',
    `ags ${name} takes ${most}; not used: ${given.slice(takes).map(visible).join(' ')}`,
    {
      hint: instead ?? `Usage: ags ${usage}`,
    },
  );
}

/** The sandboxed command starts at the first word that is not an option of ags, and stays untouched. */
function split(verb: Verb, argv: readonly string[]): { own: readonly string[]; command: readonly string[] } {
  if (verb.passthrough !== true) return { own: argv, command: [] };
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] ?? '';
    if (word === '--') return { own: argv.slice(0, i), command: argv.slice(i + 1) };
    if (!word.startsWith('-')) return { own: argv.slice(0, i), command: argv.slice(i) };
    const found = Object.entries(verb.options).find(([key, o]) => word === `--${key}` || word === `-${o.short}`);
    if (found?.[1].type === 'string') i++;
  }
  return { own: argv, command: [] };
}
