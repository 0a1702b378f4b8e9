// cli/verbs/import.ts: `ags import <file>`.
import { resolve } from 'node:path';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Import } from '../../transfer/import.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'bring a task back from a file that ags export wrote',
  usage: 'import <file> [--into <directory>] [--trust]',
  about:
    'Into the repository of this directory, which must have the commit that the task started from; or into another, which is made if it is not there. The file is checked like anything hostile. Rights that the task had elsewhere are shown, and it gets them if you say yes. Nothing is started.',
  examples: [
    'ags import fix-login.ags',
    'ags import fix-login.ags --into ~/code/app',
    'ags import fix-login.ags --trust',
  ],
  options: {
    into: { type: 'string', value: 'directory', about: 'the repository; an empty or new directory becomes one' },
    trust: { type: 'boolean', about: 'give it the rights that it asks for, without being asked' },
    json: { type: 'boolean', about: 'what was made, as JSON; asks nothing' },
  },
  async run({ values, positionals }, ctx) {
    const [path] = positionals;
    if (path === undefined || positionals.length > 1)
      throw new AgsError('usage.invalid', path === undefined ? 'Which file?' : 'One file at a time.', {
        hint: 'ags import <file>',
      });
    const { openImport } = await import('../../transfer/import.ts');
    const { visible } = await import('../../lib/sanitize.ts');
    const { meanwhile } = await import('../terminal/meanwhile.ts');
    const into = values['into'] as string | undefined;
    using found = await openImport(ctx.world, resolve(ctx.cwd, path), into);
    const { asks } = found.wishes;
    const trust = asks.length === 0 || (await isTrusted(values['trust'] === true, values['json'] === true, found, ctx));
    const stored = await meanwhile(ctx, `Checking ${visible(path)}`, found.carryOut({ trust }));
    const { task, run } = stored;
    if (values['json'] === true) {
      const { project, name } = task;
      ctx.stdout.write(`${JSON.stringify({ name, project, state: run.state, trusted: trust, asks })}\n`);
      return EXIT.done;
    }
    ctx.stdout.write(`${task.name}\n`);
    if (!trust)
      ctx.stderr.write(
        `ags: these rights were not taken over:\n${lines(asks, visible)}     To give them: ags rm ${task.name}, and import it again with --trust\n`,
      );
    const { tellCarried } = await import('../../services/view.ts');
    for (const line of await tellCarried(ctx.world, stored, found.file.manifest.services ?? []))
      ctx.stderr.write(`ags: ${line}\n`);
    const { nextSteps } = await import('./show.ts');
    ctx.stderr.write(`ags: ${task.name} is a task of ${visible(task.project)} now.\n${nextSteps(stored)}`);
    return EXIT.done;
  },
};
export default verb;

async function isTrusted(flag: boolean, quiet: boolean, found: Import, ctx: Context): Promise<boolean> {
  const { visible } = await import('../../lib/sanitize.ts');
  const { cut } = await import('../terminal/format.ts');
  if (flag) return true;
  if (quiet || !ctx.terminal.stdin || !ctx.terminal.stderr) return false;
  const { task } = found.file.manifest;
  ctx.stderr.write(
    `${task.name}: ${cut(task.goal.split('\n')[0] ?? '', 200)}\nWhere it comes from, its sandbox had rights that it would not have here:\n${lines(found.wishes.asks, visible)}`,
  );
  return /^y(es)?$/i.test((await ctx.ask('Give them to it? [y/N] ')).trim());
}

function lines(asks: readonly string[], visible: (text: string) => string): string {
  return asks.map((ask) => `     ${visible(ask)}\n`).join('');
}
