// cli/verbs/apply.ts: `ags apply [task] [paths...]`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Change } from '../../protocol/changes.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'write the changes of a task into your files, uncommitted',
  usage: 'apply [task] [paths...]',
  takes: 'any',
  about:
    'Changes your working tree as if you had edited the files; nothing is committed. If you edited a file too, both edits are merged; if any file conflicts, nothing is written.\nFiles that can run code on this machine or in CI are left out unless you name them.',
  examples: ['ags apply', 'ags apply fix-login-4kd2 src/', 'ags apply @ --risky package.json'],
  options: {
    risky: { type: 'string', multiple: true, value: 'path', about: 'take this one file that can run code; exact path' },
    json: { type: 'boolean', about: 'print the written files as JSON' },
  },
  async run(args, ctx) {
    const { findWork } = await import('../../agent-run/find-work.ts');
    const { applyTask } = await import('../../merge/apply.ts');
    const { riskyPatterns } = await import('../../results/review.ts');
    const { count, shellQuote } = await import('../terminal/format.ts');
    const { visible } = await import('../../lib/sanitize.ts');
    const { meanwhile } = await import('../terminal/meanwhile.ts');
    const task = await findWork(ctx.host, args.positionals[0], {
      say: (text) => void ctx.stderr.write(`ags: ${text}\n`),
    });
    const applying = applyTask(ctx.host, task, {
      paths: args.positionals.slice(1),
      risky: (args.values['risky'] as string[] | undefined) ?? [],
      riskyPatterns: await riskyPatterns(ctx.host, task.task.project),
    });
    const { taken, failed, risky, left } = await meanwhile(ctx, `Writing the files of ${task.task.name}`, applying);
    if (failed.length > 0)
      throw new AgsError(
        'project.changed',
        `Nothing was written. These files cannot be written:\n${failed.map(({ path, why }) => `  ${visible(path)}: ${visible(why)}`).join('\n')}`,
        { details: { files: failed.map(({ path }) => path) } },
      );
    const names = (changes: readonly Change[]): string[] => changes.map((change) => change.path);
    if (args.values['json'] === true) {
      ctx.stdout.write(`${JSON.stringify({ task: task.task.name, taken: names(taken), risky: names(risky), left })}\n`);
      return EXIT.done;
    }
    const say = (text: string): void => void ctx.stderr.write(`${text}\n`);
    say(`${count(taken.length, 'file')} of ${task.task.name} written, ${left} left.`);
    if (risky.length === 0) return EXIT.done;
    say('Left out, because they can run code on this machine or in CI:');
    for (const change of risky) say(`  ${visible(change.path)}`);
    say(`Review them (ags diff ${task.task.name}), then name each: --risky ${shellQuote(risky[0]?.path ?? '')}`);
    return EXIT.done;
  },
};
export default verb;
