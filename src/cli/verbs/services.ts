// cli/verbs/services.ts: `ags services [list|logs|open]`: the databases and similar programs that run beside tasks.
import { visible } from '../../lib/sanitize.ts';
import { readableSize } from '../../lib/units.ts';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { ServiceState } from '../../protocol/service.ts';
import type { StoredTask } from '../../store/tasks.ts';
import { createPaint, type Paint } from '../terminal/colour.ts';
import { seen, table, type Cell } from '../terminal/format.ts';
import { refuseSurplus } from '../parse.ts';
import type { Arguments, Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'show the services of tasks: state, logs, URLs, a client',
  usage: 'services [list [task] | logs <task> <service> | open <task> <service>]',
  takes: 'any',
  about:
    'Without a task, lists the services of all running tasks of this project; if none runs, the configured services and whether they can run here. open: starts the client of the service (psql, redis-cli, mariadb) in the sandbox of the task, beside the agent. More about services: ags help service-presets',
  examples: [
    'ags services',
    'ags services fix-login',
    'ags services logs fix-login db -f',
    'ags services open fix-login db',
    "ags services --json | jq -r '.services[].url'",
  ],
  options: {
    follow: { type: 'boolean', short: 'f', about: 'logs: follow it until the task ends' },
    json: { type: 'boolean', about: 'list: print one JSON document' },
  },
  async run(args, ctx) {
    const [word, ...rest] = args.positionals;
    if (word === 'logs') return showLog(await named(rest, ctx), args, ctx);
    if (word === 'open') return openClient(await named(rest, ctx), ctx);
    const tasks = word === 'list' ? rest : args.positionals;
    refuseSurplus('services', tasks, { ...verb, takes: 1 });
    return list(tasks[0], args, ctx);
  },
};
export default verb;

async function list(name: string | undefined, args: Arguments, ctx: Context): Promise<number> {
  const { dataBytes, servicesOf } = await import('../../services/view.ts');
  const { findTask } = await import('../../queries/find-task.ts');
  const { runningTasks } = await import('../../queries/running.ts');
  const tasks = name === undefined ? await runningTasks(ctx.host, 'here') : [await findTask(ctx.host, name)];
  const rows = await Promise.all(
    tasks.flatMap((task) =>
      servicesOf(task).map(async ({ layer: _layer, ...one }) => ({
        task: task.task.name,
        ...one,
        dataBytes: await dataBytes(task, one.name),
      })),
    ),
  );
  if (args.values['json'] === true) {
    ctx.stdout.write(`${JSON.stringify({ services: rows }, null, 2)}\n`);
    return EXIT.done;
  }
  if (rows.length === 0) return listConfigured(name, ctx);
  const paint = createPaint(ctx.colour);
  const head = ['TASK', 'SERVICE', 'KIND', 'STATE', 'ADDRESS', 'URL', 'DATA'];
  ctx.stdout.write(
    table([
      head,
      ...rows.map((row): Cell[] => [
        row.task,
        row.name,
        row.kind,
        stateCell(row.state, paint),
        // The address is empty for a service of an imported task that has not started here.
        row.address === '' ? '' : `${row.address}:${row.ports.join(',')}`,
        row.url,
        readableSize(row.dataBytes),
      ]),
    ]),
  );
  for (const { why, lines } of rows)
    if (why !== null) ctx.stderr.write(`\n${visible(why)}\n${lines.map((line) => `  ${visible(line)}\n`).join('')}`);
  return EXIT.done;
}

async function listConfigured(name: string | undefined, ctx: Context): Promise<number> {
  const { bringsUpCompose, configuredServices } = await import('../../services/view.ts');
  const compose = name === undefined && (await bringsUpCompose(ctx.host));
  const all = name === undefined ? await configuredServices(ctx.host) : [];
  if (name !== undefined) ctx.stderr.write(`${visible(name)} has no services.\n`);
  else if (all.length === 0 && compose) ctx.stderr.write(COMPOSE_NOTE);
  else if (all.length === 0)
    ctx.stderr.write('This project has no services. For example, in ags.yaml: services: { db: postgres }\n');
  else {
    ctx.stdout.write(
      table([
        ['SERVICE', 'KIND', 'URL INSIDE', 'HERE', 'FROM'],
        ...all.map(({ problem, ...one }) => [
          one.name,
          one.kind,
          one.url,
          problem === null ? 'can run' : 'cannot run',
          one.origin,
        ]),
      ]),
    );
    for (const { problem, hint } of all)
      if (problem !== null) ctx.stderr.write(`\n${seen([problem, hint ?? ''].join('\n').trimEnd())}\n`);
    ctx.stderr.write('\nThey run beside a task: ags start, ags exec, ags shell.\n');
    if (compose) ctx.stderr.write(COMPOSE_NOTE);
  }
  return EXIT.done;
}

const COMPOSE_NOTE = "The project's compose files start beside a task: ags start, ags exec, ags shell.\n";

const COLOURS = { starting: 'yellow', healthy: 'green', failed: 'red', stopped: 'dim' } as const;

function stateCell(state: ServiceState, paint: Paint): Cell {
  return { text: state, paint: (text) => paint(COLOURS[state], text) };
}

async function named(words: readonly string[], ctx: Context): Promise<{ task: StoredTask; service: string }> {
  const [task, service, ...more] = words;
  if (task === undefined || service === undefined || more.length > 0)
    throw new AgsError('usage.invalid', 'Which service of which task?', {
      hint: 'For example: ags services logs fix-login db. To list them: ags services',
    });
  const { findTask } = await import('../../queries/find-task.ts');
  return { task: await findTask(ctx.host, task), service };
}

async function showLog(
  { task, service }: { task: StoredTask; service: string },
  args: Arguments,
  ctx: Context,
): Promise<number> {
  const { serviceOf } = await import('../../services/view.ts');
  const { followFile } = await import('../../lib/stream/follow-file.ts');
  const { createSanitizer } = await import('../../lib/sanitize.ts');
  const { isLive } = await import('../../agent-run/control.ts');
  const { readTask } = await import('../../store/tasks.ts');
  const { setTimeout: sleep } = await import('node:timers/promises');
  const { log } = serviceOf(task, service);
  // The log was sanitized when it was written; it is sanitized again for the terminal.
  const clean = createSanitizer();
  const decoder = new TextDecoder();
  const follower = followFile(
    log,
    (chunk) => void ctx.stdout.write(clean.push(decoder.decode(chunk, { stream: true }))),
  );
  for (let live = args.values['follow'] === true; ;) {
    follower.readOn();
    if (!live) break;
    await sleep(LOOK_MS);
    const now = await readTask(ctx.stateDir, task.task.id);
    live = now !== null && isLive(now);
  }
  follower.close();
  ctx.stdout.write(clean.end());
  return EXIT.done;
}

const LOOK_MS = 200;

async function openClient({ task, service }: { task: StoredTask; service: string }, ctx: Context): Promise<number> {
  const { serviceOf } = await import('../../services/view.ts');
  const { openGuest } = await import('../terminal/guest-terminal.ts');
  const { client, state, kind } = serviceOf(task, service);
  if (state === 'stopped' || state === 'failed')
    throw new AgsError(
      'usage.invalid',
      `${service} of ${task.task.name} is ${state === 'failed' ? 'not running' : 'stopped'}.`,
      {
        hint: `Its log: ags services logs ${task.task.name} ${service}`,
      },
    );
  if (task.task.goal === undefined)
    throw new AgsError('usage.invalid', `${task.task.name} is a command; only the sandbox of an agent can be joined.`, {
      hint: `Run the client in its own sandbox: ags exec -- ${client?.[0] ?? '<client>'}`,
    });
  if (client === null)
    throw new AgsError('usage.invalid', `ags knows no client for ${kind}.`, {
      hint: `Open a shell in the sandbox instead: ags shell ${task.task.name}`,
    });
  return (await openGuest(ctx, task, { do: 'shell', argv: client })) ?? EXIT.done;
}
