// cli/verbs/completion.ts: `ags completion <shell>`, and the hidden command that completion scripts call.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { entryIds } from '../../queries/entries.ts';
import { restOf, SHELLS, type Completable } from '../completion-scripts.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'print a completion script for your shell',
  usage: 'completion {bash|zsh|fish}',
  takes: 1,
  about:
    'To install it permanently, write it where your shell looks for it, as below. For zsh, put "fpath+=~/.zfunc" before "compinit" in ~/.zshrc.',
  examples: ['source <(ags completion bash)', ...Object.values(SHELLS).map(({ install }) => install)],
  options: {},
  async run({ positionals }, ctx) {
    const [shell] = positionals;
    if (positionals.length !== 1 || shell === undefined || !Object.hasOwn(SHELLS, shell)) {
      throw new AgsError('usage.invalid', 'Which shell: bash, zsh or fish?', {
        hint: 'For example: source <(ags completion bash)',
      });
    }
    const { script, install } = SHELLS[shell as keyof typeof SHELLS];
    ctx.stdout.write(script(await completables(ctx)));
    if (ctx.stdout.isTTY) ctx.stderr.write(`\nTo install it: ${install}\n`);
    return EXIT.done;
  },
};
export default verb;

/** `ags __complete tasks <words>`: tasks that are not among the words of the line yet. Fast, and silent on errors. */
export async function completeWords([kind, ...given]: readonly string[], ctx: Context): Promise<number> {
  if (kind === 'tasks')
    ctx.stdout.write(
      entryIds(ctx.stateDir)
        .filter((id) => !given.includes(id))
        .map((id) => `${id}\n`)
        .join(''),
    );
  return EXIT.done;
}

async function completables({ verbs: all }: Context): Promise<Completable[]> {
  const { TOPICS } = await import('../help-topics.ts');
  const verbs = await Promise.all(
    Object.entries(all).map(async ([name, entry]): Promise<Completable> => {
      const { default: one } = await entry.load();
      return { name, summary: entry.summary, options: one.options, rest: restOf(one) };
    }),
  );
  const help: Completable = {
    name: 'help',
    summary: 'help on a command or topic',
    options: {},
    rest: { kind: 'words', words: [...Object.keys(all), ...Object.keys(TOPICS)] },
  };
  return [...verbs, help];
}
