// cli/verbs/net.ts: `ags net <command>`: the network of sandboxes. Each command has its own file, loaded on use.
import { suggest } from '../../config/file/suggest.ts';
import { visible } from '../../lib/sanitize.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { Arguments, Context, Verb } from '../verb.ts';

type Run = (args: Arguments, ctx: Context) => Promise<number>;

/** The options of each command besides --json, and the maximum number of its arguments. */
const WORDS: Readonly<Record<string, { options: readonly string[]; words: number; load(): Promise<Run> }>> = {
  rules: { options: ['task'], words: 1, load: async () => (await import('../net/rules.ts')).showRules },
  log: { options: ['task', 'follow', 'denied'], words: 1, load: async () => (await import('../net/log.ts')).showLog },
  asks: { options: ['task'], words: 1, load: async () => (await import('../net/asks.ts')).showAsks },
  test: { options: [], words: Infinity, load: async () => (await import('../net/test.ts')).testHosts },
  lock: { options: ['task', 'yes', 'only'], words: 1, load: async () => (await import('../net/lock.ts')).lock },
};

const verb: Verb = {
  summary: 'show network rules, logs and waiting connections',
  usage: `net {${Object.keys(WORDS).join('|')}} [task | host...] [options]`,
  takes: 'any',
  about:
    'rules: the rules in force and their files; with a task, the rules of that running sandbox. log: the connections a run tried, and each decision; without a task, the latest run of this project. test: tries hosts from inside a sandbox and prints the reason; without hosts, every complete host name in the rules. asks: connections that wait for your answer (--network record). lock: goes through the hosts that recorded runs of this project used, and writes those you choose into ags.yaml.',
  examples: [
    'ags net rules',
    'ags net log --follow',
    'ags net log build-w8xz --denied',
    'ags net test github.com example.com:8443',
    'ags net asks',
    'ags net lock',
    'ags net lock --only example.com,api.example.com:8443',
  ],
  options: {
    task: { type: 'string', value: 'task', about: 'the task; the same as its name alone' },
    follow: { type: 'boolean', short: 'f', about: 'log: follow it until the run ends' },
    denied: { type: 'boolean', about: 'log: only connections that were not allowed' },
    yes: { type: 'boolean', short: 'y', about: 'lock: allow all of them without asking' },
    only: { type: 'string', value: 'host,...', about: 'lock: allow these without asking' },
    json: { type: 'boolean', about: 'print one JSON document; with --follow, one line per decision' },
  },
  async run(args, ctx) {
    const [word, ...rest] = args.positionals;
    const entry = word !== undefined && Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
    if (word === undefined || entry === undefined) throw unknownWord(word);
    const unknown = Object.keys(args.values).find((name) => name !== 'json' && !entry.options.includes(name));
    if (unknown !== undefined)
      throw new AgsError('usage.invalid', `ags net ${word} does not take --${unknown}.`, {
        hint: 'See: ags net --help',
      });
    const named = [...rest, ...(typeof args.values['task'] === 'string' ? [args.values['task']] : [])];
    if (named.length > entry.words)
      throw new AgsError('usage.invalid', `ags net ${word} takes one task at most.`, { hint: 'See: ags net --help' });
    const run = await entry.load();
    return run({ values: args.values, positionals: named }, ctx);
  },
};
export default verb;

function unknownWord(word: string | undefined): AgsError {
  const all = Object.keys(WORDS);
  const near = word === undefined ? undefined : suggest(word, all);
  return new AgsError(
    'usage.invalid',
    word === undefined ? `ags net needs a word: ${all.join(', ')}` : `ags net has no "${visible(word)}".`,
    { hint: near === undefined ? 'For example: ags net rules' : `Did you mean: ags net ${near}` },
  );
}
