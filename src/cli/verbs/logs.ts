// cli/verbs/logs.ts: `ags logs [task]`.
import { createReadStream, existsSync } from 'node:fs';
import { EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'show the log of an agent',
  usage: 'logs [task] [-f]',
  takes: 'any',
  examples: [
    'ags logs -f',
    'ags logs fix-date-tests --verbose',
    'ags logs @2 --json | jq .type',
    'ags logs @ --raw | less',
  ],
  options: {
    follow: { type: 'boolean', short: 'f', about: 'follow it until it is done; Ctrl-C detaches' },
    verbose: { type: 'boolean', short: 'v', about: 'show thoughts and command output' },
    raw: { type: 'boolean', about: 'the unchanged output of the agent, made safe for a terminal' },
    json: { type: 'boolean', about: 'print events as JSON, one per line' },
  },
  async run(args, ctx) {
    const { findTask } = await import('../../queries/find-task.ts');
    const { followTask, printEvents } = await import('../terminal/follow-task.ts');
    const { isLive } = await import('../../agent-run/control.ts');
    const task = await findTask(ctx.host, args.positionals[0] ?? '@');
    if (args.values['raw'] === true) {
      if (!existsSync(task.paths.agentLog)) return EXIT.done;
      const { createSanitizer } = await import('../../lib/sanitize.ts');
      const clean = createSanitizer({ maxLine: 2 ** 20 });
      for await (const chunk of createReadStream(task.paths.agentLog, 'utf8'))
        if (!ctx.stdout.write(clean.push(chunk as string)))
          await new Promise((resolve) => ctx.stdout.once('drain', resolve));
      ctx.stdout.write(clean.end());
      return EXIT.done;
    }
    const options = { after: 0, verbose: args.values['verbose'] === true, json: args.values['json'] === true };
    if (args.values['follow'] === true && isLive(task)) return followTask(task, options, ctx);
    printEvents(task, options, ctx);
    return EXIT.done;
  },
};
export default verb;
