// cli/verbs/logs.ts: `ags logs [task...]`.
import { createReadStream, existsSync } from 'node:fs';
import { EXIT } from '../../protocol/errors.ts';
import type { StoredTask } from '../../store/tasks.ts';
import type { Named } from '../several.ts';
import type { FollowOptions } from '../terminal/follow-task.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'show the log of agents',
  usage: 'logs [task...] [-f]',
  takes: 'any',
  examples: [
    'ags logs -f',
    'ags logs -f fix-date-tests index-help',
    'ags logs fix-date-tests --verbose',
    'ags logs @2 --json | jq .type',
    'ags logs @ --raw | less',
  ],
  options: {
    follow: {
      type: 'boolean',
      short: 'f',
      about: 'follow until the end; several at once, each line with the name; Ctrl-C detaches',
    },
    verbose: { type: 'boolean', short: 'v', about: 'show thoughts and command output' },
    raw: { type: 'boolean', about: 'the unchanged output of the agent, made safe for a terminal' },
    json: { type: 'boolean', about: 'print events as JSON, one per line' },
  },
  async run(args, ctx) {
    const { eachTask, findTasks } = await import('../several.ts');
    const { values, positionals } = args;
    const json = values['json'] === true;
    const tasks = await findTasks(ctx, positionals.length === 0 ? ['@'] : positionals);
    const options = { after: 0, verbose: values['verbose'] === true, json };
    if (values['follow'] === true && values['raw'] !== true && tasks.length > 1) return followAll(tasks, options, ctx);
    return eachTask(ctx, tasks, json, async (task) => {
      if (tasks.length > 1 && !json) ctx.stdout.write(`==> ${task.task.name} <==\n`);
      return {
        exit: await print(task, values['raw'] === true, values['follow'] === true, options, ctx),
        word: 'shown',
      };
    });
  },
};
export default verb;

async function print(task: StoredTask, raw: boolean, follow: boolean, options: FollowOptions, ctx: Context) {
  const { followTask, printEvents } = await import('../terminal/follow-task.ts');
  const { isLive } = await import('../../agent-run/control.ts');
  if (raw) {
    if (!existsSync(task.paths.agentLog)) return EXIT.done;
    const { createSanitizer } = await import('../../lib/sanitize.ts');
    const clean = createSanitizer({ maxLine: 2 ** 20 });
    for await (const chunk of createReadStream(task.paths.agentLog, 'utf8'))
      if (!ctx.stdout.write(clean.push(chunk as string)))
        await new Promise((resolve) => ctx.stdout.once('drain', resolve));
    ctx.stdout.write(clean.end());
    return EXIT.done;
  }
  if (follow && isLive(task)) return followTask(task, options, ctx);
  printEvents(task, options, ctx);
  return EXIT.done;
}

/** All at once, each line with the name of its task. Ctrl-C leaves them all running. */
async function followAll(tasks: readonly Named[], options: FollowOptions, ctx: Context): Promise<number> {
  const { eachTask } = await import('../several.ts');
  const { followTask, printEvents } = await import('../terminal/follow-task.ts');
  const { isLive } = await import('../../agent-run/control.ts');
  const leave = new AbortController();
  const abort = (): void => leave.abort();
  process.once('SIGINT', abort);
  const width = Math.max(...tasks.map(({ name }) => name.length));
  try {
    const ends = new Map<string, Promise<number>>();
    for (const { task } of tasks) {
      if (task === null) continue;
      const own = { ...options, prefix: `${task.task.name.padEnd(width)} | `, leave: leave.signal };
      if (!isLive(task)) printEvents(task, own, ctx);
      const end = isLive(task) ? followTask(task, own, ctx) : Promise.resolve(EXIT.done);
      // Awaited below, in the order of the names.
      end.catch(() => undefined);
      ends.set(task.task.id, end);
    }
    return await eachTask(ctx, tasks, options.json, async ({ task }) => {
      const exit = (await ends.get(task.id)) ?? EXIT.done;
      return { exit, word: exit === EXIT.done ? 'ended well' : leave.signal.aborted ? 'left running' : 'ended badly' };
    });
  } finally {
    process.off('SIGINT', abort);
  }
}
