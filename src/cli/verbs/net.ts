// cli/verbs/net.ts: `ags net <what>`: look at the network of sandboxes. Each word has a file of its own, loaded when it is asked for.
import { suggest } from '../../config/file/suggest.ts';
import { visible } from '../../lib/sanitize.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { Arguments, Context, Verb } from '../verb.ts';

type Run = (args: Arguments, ctx: Context) => Promise<number>;

/** Its options, besides --json, and the most words that may follow it. */
const WORDS: Readonly<Record<string, { options: readonly string[]; words: number; load(): Promise<Run> }>> = {
  rules: { options: ['task'], words: 1, load: async () => (await import('../net/rules.ts')).showRules },
  log: { options: ['task', 'follow', 'denied'], words: 1, load: async () => (await import('../net/log.ts')).showLog },
  asks: { options: ['task'], words: 1, load: async () => (await import('../net/asks.ts')).showAsks },
  test: { options: [], words: Infinity, load: async () => (await import('../net/test.ts')).testHosts },
  lock: { options: ['task', 'yes', 'only'], words: 1, load: async () => (await import('../net/lock.ts')).lock },
};

const verb: Verb = {
  summary: 'show what may be reached, what was, and what waits for you',
  usage: `net {${Object.keys(WORDS).join('|')}} [task | host...] [options]`,
  about:
    'rules: what may be reached, and which file says so; with a task, what holds in it now. log: what a run tried to reach, and what was decided; without a task, the latest run of this project. test: from inside a sandbox, host by host: reachable or not, and why; without hosts, all that rules name in full. asks: what running sandboxes wait to be allowed, with --network record. lock: go through the hosts that recorded runs of this project wanted, and write those you choose into ags.yaml.',
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
    task: { type: 'string', value: 'task', about: 'the task that is meant; the same as its name alone' },
    follow: { type: 'boolean', short: 'f', about: 'log: go on until the run ends' },
    denied: { type: 'boolean', about: 'log: only what did not get through' },
    yes: { type: 'boolean', short: 'y', about: 'lock: take all of them without asking' },
    only: { type: 'string', value: 'host,...', about: 'lock: take these without asking' },
    json: { type: 'boolean', about: 'print one JSON document; with --follow one line for each decision' },
  },
  async run(args, ctx) {
    const [word, ...rest] = args.positionals;
    const entry = word !== undefined && Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
    if (word === undefined || entry === undefined) throw unknownWord(word);
    const strange = Object.keys(args.values).find((name) => name !== 'json' && !entry.options.includes(name));
    if (strange !== undefined)
      throw new AgsError('usage.invalid', `ags net ${word} does not take --${strange}.`, {
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
