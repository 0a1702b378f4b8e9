// cli/verbs/completion.ts: `ags completion <shell>`, and the hidden command that completion scripts call.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { entryIds } from '../../queries/entries.ts';
import { restOf, SHELLS, type Completable, type Rest } from '../completion-scripts.ts';
import type { Context, Option, Verb } from '../verb.ts';

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

/**
 * `ags __complete tasks <words>`: tasks that are not among the words of the line yet. `ags __complete branches`: those of the user.
 * Fast, and silent on errors.
 */
export async function completeWords([kind, ...given]: readonly string[], ctx: Context): Promise<number> {
  if (kind === 'tasks')
    ctx.stdout.write(
      entryIds(ctx.stateDir)
        .filter((id) => !given.includes(id))
        .map((id) => `${id}\n`)
        .join(''),
    );
  if (kind === 'branches') ctx.stdout.write(await branches(ctx));
  return EXIT.done;
}

/** Without the branches of tasks, which no merge goes into. A name that a shell would split is left out. */
async function branches({ host }: Context): Promise<string> {
  const { findProject } = await import('../../run/project.ts');
  const { repository } = await findProject(host);
  return (repository?.refs ?? [])
    .flatMap(({ name }) => /^refs\/heads\/(?!ags\/)([\w./@+-]+)$/.exec(name)?.[1] ?? [])
    .map((name) => `${name}\n`)
    .join('');
}

async function completables({ verbs: all }: Context): Promise<Completable[]> {
  const { TOPICS } = await import('../help-topics.ts');
  const { AGENTS } = await import('../../agents/agents.ts');
  const { listKeys } = await import('../../config/file/keys.ts');
  const agents = AGENTS.map(({ name }) => name).join('|');
  const named = (option: Option): Option => (option.value === 'agent' ? { ...option, value: agents } : option);
  const keys = listKeys().flatMap(({ path }) => (/[[<]/.test(path) ? [] : path));
  const verbs = await Promise.all(
    Object.entries(all).map(async ([name, entry]): Promise<Completable> => {
      const { default: one } = await entry.load();
      const options = Object.fromEntries(Object.entries(one.options).map(([flag, option]) => [flag, named(option)]));
      const rest: Rest = name === 'config' ? { kind: 'words', words: ['path', ...keys] } : restOf(one);
      return { name, summary: entry.summary, options, rest };
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
