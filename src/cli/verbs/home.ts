// cli/verbs/home.ts: `ags home`: the home that stays between tasks: where it is, how large, who uses it; and its removal.
import { loadConfig } from '../../config/load.ts';
import { homeText } from '../../config/home.ts';
import { readableSize } from '../../lib/units.ts';
import { visible } from '../../lib/sanitize.ts';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { measureDisk } from '../../sandbox/watch/disk-usage.ts';
import { homesOf, keptHomeOf, listHomes, resetHome, type KnownHome } from '../../run/home/kept-home.ts';
import type { Context, Verb } from '../verb.ts';
import { configInput } from './config.ts';

const verb: Verb = {
  summary: 'show or empty the home that stays between tasks',
  usage: 'home [reset] [--all] [--yes] [--json]',
  about:
    'With "home: project" or "home: ~/aihome" in the configuration, the tasks of a project have one home: caches, installed tools and the\nhistory of agents stay. Whatever one task leaves there, the next one finds. One task at a time has it; others that run meanwhile get an empty one. "ags home reset" removes everything in it.',
  examples: ['ags home', 'ags home --all', 'ags home reset', 'ags home reset --yes'],
  takes: 1,
  options: {
    all: { type: 'boolean', about: 'the homes of all projects' },
    yes: { type: 'boolean', short: 'y', about: 'reset: do not ask' },
    json: { type: 'boolean', about: 'print one JSON document' },
  },
  async run({ values, positionals }, ctx) {
    const [word] = positionals;
    if (word !== undefined && word !== 'reset')
      throw new AgsError('usage.invalid', `ags home has no "${visible(word)}".`, {
        hint: 'Did you mean: ags home reset',
      });
    const json = values['json'] === true;
    const all = values['all'] === true;
    const here = all ? null : await currentHome(ctx);
    const chosen = here === null ? listHomes(ctx.host) : homesOf(ctx.host, here.project, here.directory);
    if (word === 'reset') return reset(ctx, chosen, values['yes'] === true, json);
    if (json) {
      const list = await Promise.all(chosen.map(async (home) => ({ ...home, bytes: await sizeOf(home) })));
      ctx.stdout.write(
        `${JSON.stringify({ ...(here === null ? {} : { keep: here.keep, directory: here.directory }), homes: list }, null, 2)}\n`,
      );
      return EXIT.done;
    }
    if (here?.directory === null)
      ctx.stdout.write(
        'Each task of this project has an empty home of its own. To keep one: --home project, or home: project in your config.yaml\n',
      );
    else if (chosen.length === 0)
      ctx.stdout.write(here === null ? 'No home is kept.\n' : `${visible(here.directory)}\n  not used yet\n`);
    for (const home of chosen) ctx.stdout.write(await describe(home));
    return EXIT.done;
  },
};
export default verb;

async function currentHome(ctx: Context): Promise<{ keep: string; directory: string | null; project: string }> {
  const input = await configInput(ctx);
  const { home } = await loadConfig(input);
  const project = input.projectDir;
  return { keep: homeText(home), directory: keptHomeOf(ctx.host, home, project), project };
}

async function describe(home: KnownHome): Promise<string> {
  const bytes = await sizeOf(home);
  const use = home.inUse
    ? `in use by ${home.task || 'a task'}`
    : home.task === ''
      ? 'not used by a task'
      : `last used by ${home.task}, ${new Date(home.usedAtMs).toISOString().slice(0, 10)}`;
  return `${visible(home.directory)}\n  ${bytes === null ? 'size unknown' : readableSize(bytes)}, ${use}, for ${visible(home.project)}\n`;
}

/** null: a directory in it cannot be read. */
async function sizeOf({ directory }: KnownHome): Promise<number | null> {
  const everything = { pids: [], places: [], maxBytes: Number.POSITIVE_INFINITY, maxFiles: Number.POSITIVE_INFINITY };
  const used = await measureDisk({ directories: [directory], ...everything }, new AbortController().signal);
  return used?.isListed === true ? used.bytes : null;
}

async function reset(ctx: Context, homes: readonly KnownHome[], yes: boolean, json: boolean): Promise<number> {
  const busy = homes.find(({ inUse }) => inUse);
  // Before the question; resetHome looks again.
  if (busy !== undefined) resetHome(ctx.host, busy.directory);
  if (homes.length > 0 && !yes && (json || !ctx.stdin.isTTY))
    throw new AgsError('usage.no-terminal', 'This removes everything that tasks have left in the home.', {
      hint: 'To remove it without a prompt: ags home reset --yes',
    });
  for (const home of homes) {
    if (!json) ctx.stderr.write(await describe(home));
    if (!yes && !/^y(es)?$/i.test((await ctx.ask('Remove everything in it? [y/N] ')).trim())) {
      ctx.stderr.write('Kept.\n');
      return EXIT.failed;
    }
    resetHome(ctx.host, home.directory);
  }
  const removed = homes.map(({ directory }) => directory);
  if (json) ctx.stdout.write(`${JSON.stringify({ removed }, null, 2)}\n`);
  else
    ctx.stdout.write(
      removed.length === 0
        ? 'There is nothing to remove.\n'
        : removed.map((path) => `Removed ${visible(path)}\n`).join(''),
    );
  return EXIT.done;
}
