// cli/verbs/diff.ts: `ags diff [task] [paths...]`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'show what a sandbox changed',
  usage: 'diff [task] [paths...]',
  takes: 'any',
  about:
    'For a command, compares the files of the sandbox with your current files; for an agent, with the commit it started from. Changes nothing.\nOn a terminal, a long diff goes to the pager that you chose: GIT_PAGER, core.pager of your git settings, or PAGER.',
  examples: [
    'ags diff',
    'ags diff npm-test-4kd2 src/',
    'ags diff @ --stat',
    'ags diff --name-only',
    'ags diff @ --tool meld',
  ],
  options: {
    stat: { type: 'boolean', about: 'one line per file, with added and removed lines' },
    'name-only': { type: 'boolean', about: 'print file names only' },
    tool: {
      type: 'string',
      value: 'name',
      about: 'show copies of the files in this diff tool, such as meld or vimdiff',
    },
    difftool: { type: 'boolean', about: 'show copies of the files in the diff tool of your git settings (diff.tool)' },
    'no-pager': { type: 'boolean', about: 'print everything at once' },
    json: { type: 'boolean', about: 'print the changes as JSON' },
  },
  async run(args, ctx) {
    const { findWork } = await import('../../agent-run/find-work.ts');
    const { changeLine, paintDiff, readDiff, reasonLines } = await import('../review/show-change.ts');
    const { createPaint } = await import('../terminal/colour.ts');
    const { visible } = await import('../../lib/sanitize.ts');
    const task = await findWork(ctx.host, args.positionals[0], {
      say: (text) => void ctx.stderr.write(`ags: ${text}\n`),
    });
    const { LOOKING, meanwhile } = await import('../terminal/meanwhile.ts');
    const { openChanges } = await import('../review/open-changes.ts');
    using review = await meanwhile(ctx, LOOKING, openChanges(ctx, task));
    const wanted = args.positionals.slice(1);
    const changes = review.compared.changeSet.changes.filter(
      (change) =>
        wanted.length === 0 ||
        wanted.some((path) =>
          [change.path, change.from].some(
            (name) => name === path || name?.startsWith(path.endsWith('/') ? path : `${path}/`),
          ),
        ),
    );
    if (wanted.length > 0 && changes.length === 0)
      throw new AgsError('path.not-found', `${wanted.join(', ')}: not among the changes.`, {
        hint: `List them: ags diff ${task.task.name} --name-only`,
      });
    const paint = createPaint(ctx.colour);
    if (args.values['json'] === true) {
      ctx.stdout.write(`${JSON.stringify({ task: task.task.name, ...review.compared.changeSet, changes })}\n`);
      return EXIT.done;
    }
    if (changes.length === 0) ctx.stderr.write(`${task.task.name} changed nothing.\n`);
    if (args.values['stat'] === true && args.values['name-only'] !== true) {
      const { statLines } = await import('../review/show-change.ts');
      ctx.stdout.write((await statLines(review, changes, paint)).map((line) => `${line}\n`).join(''));
      return EXIT.done;
    }
    if (args.values['tool'] !== undefined || args.values['difftool'] === true) {
      const { findDiffTool, showInTool } = await import('../review/diff-tool.ts');
      const tool = await findDiffTool(ctx, args.values['tool'] as string | undefined);
      if (changes.length > 0) await showInTool(ctx, tool, review, changes);
      return EXIT.done;
    }
    const { openPager } = await import('../terminal/pager.ts');
    const pager = args.values['no-pager'] === true || changes.length === 0 ? null : await openPager(ctx);
    for (const change of changes) {
      const lines =
        args.values['name-only'] === true
          ? [visible(change.path)]
          : [
              changeLine(change, paint),
              ...reasonLines(change, paint),
              ...paintDiff((await readDiff(review, change)).lines, paint),
              '',
            ];
      const text = `${lines.join('\n')}\n`;
      if (pager === null) ctx.stdout.write(text);
      else await pager.write(text);
    }
    await pager?.end();
    return EXIT.done;
  },
};
export default verb;
