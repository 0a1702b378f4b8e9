// cli/verbs/import.ts: `ags import <file>`.
import { resolve } from 'node:path';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Import } from '../../transfer/import.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'read a task from a file that ags export wrote',
  usage: 'import <file> [--into <directory>] [--trust]',
  takes: 1,
  about:
    'Imports into the repository of this directory, which must have the base commit of the task, or into another one (--into). ags checks the file as untrusted input. It shows rights that the task had elsewhere, and grants them only if you agree. It starts nothing.',
  examples: [
    'ags import fix-login.ags',
    'ags import fix-login.ags --into ~/code/app',
    'ags import fix-login.ags --trust',
  ],
  options: {
    into: { type: 'string', value: 'directory', about: 'the repository; ags creates one in an empty or new directory' },
    trust: { type: 'boolean', about: 'grant the rights that the task asks for, without a prompt' },
    json: { type: 'boolean', about: 'print the task as JSON; asks nothing' },
  },
  async run({ values, positionals }, ctx) {
    const [path] = positionals;
    if (path === undefined) throw new AgsError('usage.invalid', 'Which file?', { hint: 'ags import <file>' });
    const { openImport } = await import('../../transfer/import.ts');
    const { visible } = await import('../../lib/sanitize.ts');
    const { meanwhile } = await import('../terminal/meanwhile.ts');
    const into = values['into'] as string | undefined;
    using found = await openImport(ctx.host, resolve(ctx.cwd, path), into);
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
        `ags: these rights were not granted:\n${lines(asks, visible)}     To grant them: ags rm ${task.name}, then import it again with --trust\n`,
      );
    const { tellCarried } = await import('../../services/view.ts');
    for (const line of await tellCarried(ctx.host, stored, found.file.manifest.services ?? []))
      ctx.stderr.write(`ags: ${line}\n`);
    const { nextSteps } = await import('../terminal/next-steps.ts');
    ctx.stderr.write(`ags: Imported ${task.name} into ${visible(task.project)}.\n${nextSteps(stored)}`);
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
    `${task.name}: ${cut(task.goal.split('\n')[0] ?? '', 200)}\nOn the other machine, its sandbox had rights that it does not have here:\n${lines(found.wishes.asks, visible)}`,
  );
  return /^y(es)?$/i.test((await ctx.ask('Grant them? [y/N] ')).trim());
}

function lines(asks: readonly string[], visible: (text: string) => string): string {
  return asks.map((ask) => `     ${visible(ask)}\n`).join('');
}
