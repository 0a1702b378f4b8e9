// cli/help.ts: the help texts, generated from the values that also parse the commands, so that the two always agree.
import { AgsError, EXIT } from '../protocol/errors.ts';
import { suggest } from '../config/file/suggest.ts';
import { visible } from '../lib/sanitize.ts';
import { createPaint, type Paint } from './terminal/colour.ts';
import { section, table, wrap } from './terminal/format.ts';
import type { Context, Option, Verb } from './verb.ts';
import { VERBS, type VerbName } from './verbs/table.ts';
import type { VerbEntry } from './verb.ts';

export async function showHelp(topics: readonly string[], ctx: Context): Promise<number> {
  const [topic, ...more] = topics;
  if (more.length > 0)
    throw new AgsError('usage.invalid', 'ags help takes one command or topic.', { hint: 'For example: ags help exec' });
  ctx.stdout.write(await helpOn(topic, createPaint(ctx.colour)));
  return EXIT.done;
}

export async function helpOn(topic: string | undefined, paint: Paint): Promise<string> {
  if (topic === undefined) return overview(paint);
  if (isVerb(topic)) return verbHelp(topic, (await VERBS[topic].load()).default, paint);
  const { TOPICS } = await import('./help-topics.ts');
  const text = Object.hasOwn(TOPICS, topic) ? TOPICS[topic as keyof typeof TOPICS] : undefined;
  if (text !== undefined) return text(paint);
  throw unknownTopic(topic, Object.keys(TOPICS));
}

export function unknownVerb(word: string): AgsError {
  const meant = Object.hasOwn(MEANT, word) ? MEANT[word as keyof typeof MEANT] : suggest(word, Object.keys(VERBS));
  return new AgsError('usage.invalid', `ags has no command "${visible(word)}".`, {
    hint: meant === undefined ? 'All commands: ags help' : `Did you mean: ags ${meant}`,
  });
}

/** Names that other tools use for our commands. */
const MEANT = {
  ls: 'list',
  ps: 'list',
  status: 'list',
  tasks: 'list',
  run: 'exec',
  sh: 'shell',
  remove: 'rm',
  delete: 'rm',
  discard: 'rm',
  clean: 'cleanup',
  prune: 'cleanup',
  gc: 'cleanup',
  check: 'doctor',
  accept: 'review',
  revert: 'undo',
  show: 'diff',
} as const satisfies Record<string, VerbName>;

function unknownTopic(topic: string, topics: readonly string[]): AgsError {
  const near = suggest(topic, [...Object.keys(VERBS), ...topics]);
  const list = `Commands: ${Object.keys(VERBS).join(', ')}\nTopics: ${topics.join(', ')}`;
  return new AgsError('usage.invalid', `There is no help on "${visible(topic)}".`, {
    hint: near === undefined ? list : `Did you mean: ags help ${near}\n${list}`,
  });
}

function isVerb(word: string): word is VerbName {
  return Object.hasOwn(VERBS, word);
}

const EXAMPLES = [
  ['ags exec -- npm test', 'run a command; the repository is never written'],
  ['ags shell claude', 'let an agent work in its own terminal'],
  ['ags review', 'accept what it changed, file by file, or nothing'],
] as const;

function overview(paint: Paint): string {
  const entries = Object.entries(VERBS) as [VerbName, VerbEntry][];
  const groups = [...new Set(entries.map(([, { group }]) => group))];
  const width = Math.max(...entries.map(([name]) => name.length));
  const list = (group: string): string =>
    table(
      entries
        .filter(([, entry]) => entry.group === group)
        .map(([name, { summary }]) => [{ text: name.padEnd(width), paint: (text) => paint('bold', text) }, summary]),
      { indent: 2 },
    );
  return [
    wrap(
      'ags (Agent Sandbox) runs commands and coding agents on your repository inside a sandbox, then lets you review and keep their changes.',
    ),
    section(
      'Examples',
      table(
        EXAMPLES.map(([command, means]) => [command, { text: means, paint: (text) => paint('dim', text) }]),
        { indent: 2 },
      ),
      paint,
    ),
    ...groups.map((group) => section(group, list(group), paint)),
    section(
      'More',
      table(
        [
          ['ags help <command>', 'options and examples, the same as: ags <command> --help'],
          ['ags help <topic>', 'exit-codes, environment, json, network, hooks'],
          ['ags --version', ''],
        ],
        { indent: 2 },
      ),
      paint,
    ),
  ].join('\n');
}

function verbHelp(name: VerbName, verb: Verb, paint: Paint): string {
  const options = Object.entries(verb.options);
  return [
    wrap(`ags ${name}: ${verb.summary}`),
    section('Usage', `  ags ${verb.usage}\n`, paint),
    ...(verb.about === undefined ? [] : [paragraphs(verb.about)]),
    ...(verb.examples.length === 0
      ? []
      : [section('Examples', verb.examples.map((line) => `  ${line}\n`).join(''), paint)]),
    section(
      'Options',
      optionList([...options, ['help', { type: 'boolean', short: 'h', about: 'show this text' }]]),
      paint,
    ),
  ].join('\n');
}

/** Indented lines stay as they are: they show a file. Other line breaks are those of the source. */
function paragraphs(about: string): string {
  return about
    .split('\n\n')
    .map((part) => (part.startsWith('  ') ? `${part}\n` : wrap(part.replaceAll('\n', ' '))))
    .join('\n');
}

const OPTION_WIDTH = 26;

function optionList(options: readonly (readonly [string, Option])[]): string {
  return options
    .map(([name, option]) => {
      const flags = `${option.short === undefined ? '    ' : `-${option.short}, `}--${name}${placeholder(option)}`;
      const about = wrap(`${option.about}${option.multiple === true ? '; may be repeated' : ''}`, {
        width: 80,
        indent: OPTION_WIDTH + 4,
      });
      // A flag too long for its column has its description on the next line.
      return flags.length > OPTION_WIDTH
        ? `  ${flags}\n${about}`
        : `  ${flags.padEnd(OPTION_WIDTH)}  ${about.trimStart()}`;
    })
    .join('');
}

function placeholder(option: Option): string {
  if (option.type === 'boolean') return '';
  const value = option.value ?? 'value';
  return value.includes('|') ? ` {${value}}` : ` <${value}>`;
}
