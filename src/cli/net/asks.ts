// cli/net/asks.ts: `ags net asks`: connections of running sandboxes that wait for an answer.
import { EXIT } from '../../protocol/errors.ts';
import { formatRule } from '../../protocol/network-rule.ts';
import { ask, runningTask, runningTasks, type Ask } from '../../queries/running.ts';
import { age, count, shellQuote, table } from '../terminal/format.ts';
import type { Arguments, Context } from '../verb.ts';

export async function showAsks({ values, positionals }: Arguments, ctx: Context): Promise<number> {
  const [name] = positionals;
  const tasks = name === undefined ? await runningTasks(ctx.host, 'here') : [await runningTask(ctx.host, name)];
  const answers = await Promise.all(
    tasks.map(async (task) => ({ task: task.task.name, asks: (await ask(task, { do: 'asks' }))?.asks ?? [] })),
  );
  const rows = answers.flatMap(({ task, asks }) => asks.map((one) => ({ task, ...one })));
  ctx.stdout.write(
    values['json'] === true
      ? `${JSON.stringify({ running: tasks.map(({ task }) => task.name), asks: rows }, null, 2)}\n`
      : asksText(rows, tasks.length, ctx.now().getTime()),
  );
  return EXIT.done;
}

function asksText(rows: readonly (Ask & { task: string })[], running: number, nowMs: number): string {
  if (running === 0) return 'No sandbox of this project is running.\n';
  const [first] = rows;
  if (first === undefined)
    return `No connection waits for an answer in ${count(running, 'running sandbox', 'running sandboxes')}.\n`;
  return [
    table(rows.map((row) => [nameOf(row), count(row.count, 'time'), `since ${age(nowMs - row.sinceMs)}`, row.task])),
    `\nTo allow it: ags allow ${shellQuote(nameOf(first))}\n`,
  ].join('');
}

function nameOf({ host, port }: Ask): string {
  return formatRule({ host, port, methods: null, path: null });
}
