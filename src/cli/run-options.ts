// cli/run-options.ts: the options and the run that `exec`, `shell`, `plan` and `start` share.
import { AgsError } from '../protocol/errors.ts';
import type { ConfigFlags } from '../config/effective.ts';
import { hostAndPort } from '../protocol/host-name.ts';
import { runCommand, type RunResult } from '../exec/run-command.ts';
import type { Arguments, Context, Option } from './verb.ts';

export const RUN_OPTIONS = {
  project: { type: 'string', value: 'directory', about: 'use this directory instead of the current one' },
  name: { type: 'string', value: 'name', about: 'name of the task' },
  reveal: {
    type: 'string',
    multiple: true,
    value: 'path',
    about: 'make a file visible that is hidden by default, such as .env',
  },
  mount: {
    type: 'string',
    multiple: true,
    value: 'path',
    about: 'make a directory or file of this machine visible inside, read-only',
  },
  env: { type: 'string', multiple: true, short: 'e', value: 'NAME[=value]', about: 'pass a variable on, or set it' },
  limit: {
    type: 'string',
    multiple: true,
    value: 'name=value',
    about: 'memory=4g, processes=512, disk=5g, time=30m, cpu=10m, fileSize=1g, openFiles=4096, tmp=2g, cpus=1.5',
  },
  network: {
    type: 'string',
    value: 'on|off|record',
    about: 'on: hosts that rules allow; off: no network; record: also ask about other hosts',
  },
  allow: {
    type: 'string',
    multiple: true,
    value: 'rule',
    about: 'allow a host: github.com, "*.example.com", example.com:8443, "GET api.example.com/v1/*"',
  },
  deny: { type: 'string', multiple: true, value: 'rule', about: 'deny a host; wins over every allow' },
  tcp: {
    type: 'string',
    multiple: true,
    value: 'grant',
    about: 'make one TCP address reachable under a name: db=localhost:5432',
  },
  publish: {
    type: 'string',
    multiple: true,
    value: 'port',
    about: 'make a port inside available on your loopback: 3000, or 8080:3000 (outside:inside)',
  },
  backend: { type: 'string', value: 'auto|native|docker|podman', about: 'how the sandbox is built' },
  image: {
    type: 'string',
    value: 'image',
    about: 'use the programs of this image instead of those of this machine (containers only): debian:12, none',
  },
  runtime: { type: 'string', value: 'name', about: 'another container runtime of the engine, such as runsc' },
  docker: { type: 'boolean', about: 'add a private Docker daemon: docker build, run and compose work inside' },
  compose: { type: 'boolean', about: "start the project's compose files beside it, in a private Docker daemon" },
  'no-compose': { type: 'boolean', about: 'do not start compose files, even if configured' },
  service: {
    type: 'string',
    multiple: true,
    value: 'name',
    about: 'start only this one of the configured services (ags help service-presets)',
  },
  'no-services': { type: 'boolean', about: 'start none of the configured services' },
  workspace: { type: 'string', value: 'auto|overlay|copy', about: 'how the repository is made copy-on-write' },
  home: {
    type: 'string',
    value: 'task|project|directory',
    about: 'the home inside: empty for each task, or kept for the next one (ags help home)',
  },
  review: {
    type: 'string',
    value: 'ask|later',
    about: 'review changes at the end (default on a terminal), or later with "ags review"',
  },
} as const satisfies Record<string, Option>;

/** For commands that people start themselves; `start` has an --agent of its own. */
export const AGENT_OPTION = {
  agent: {
    type: 'string',
    multiple: true,
    short: 'a',
    value: 'agent',
    about:
      'sign this agent in for the command; none: no agent. Default: the command itself; in "ags shell" all of them',
  },
} as const satisfies Record<string, Option>;

export function agentNames(args: Arguments): string[] {
  return [...((args.values['agent'] as string[] | undefined) ?? [])];
}

export function runFlags(args: Arguments): ConfigFlags {
  const list = (name: string): string[] => (args.values[name] as string[] | undefined) ?? [];
  const env = list('env').map((item) => ({ name: item.split('=')[0] ?? '', at: item.indexOf('='), item }));
  return {
    ...(args.values['backend'] === undefined ? {} : { backend: String(args.values['backend']) }),
    ...(args.values['image'] === undefined ? {} : { image: String(args.values['image']) }),
    ...(args.values['runtime'] === undefined ? {} : { runtime: String(args.values['runtime']) }),
    ...(args.values['docker'] === true ? { docker: true } : {}),
    ...composeFlag(args),
    ...(args.values['workspace'] === undefined ? {} : { workspace: String(args.values['workspace']) }),
    ...(args.values['home'] === undefined ? {} : { home: String(args.values['home']) }),
    ...(args.values['network'] === undefined ? {} : { network: String(args.values['network']) }),
    allow: list('allow'),
    deny: list('deny'),
    tcp: list('tcp'),
    publish: list('publish'),
    ...serviceFlags(args),
    mounts: list('mount'),
    reveal: list('reveal'),
    envPass: env.filter((e) => e.at < 0).map((e) => e.name),
    envSet: Object.fromEntries(env.filter((e) => e.at >= 0).map((e) => [e.name, e.item.slice(e.at + 1)])),
    limits: Object.fromEntries(list('limit').map(splitLimit)),
  };
}

function composeFlag(args: Arguments): Pick<ConfigFlags, 'compose'> {
  const [yes, no] = [args.values['compose'] === true, args.values['no-compose'] === true];
  if (yes && no) throw new AgsError('usage.invalid', '--compose and --no-compose exclude each other.');
  return yes || no ? { compose: yes } : {};
}

function serviceFlags(args: Arguments): Pick<ConfigFlags, 'services'> {
  const named = args.values['service'] as string[] | undefined;
  if (args.values['no-services'] !== true) return named === undefined ? {} : { services: named };
  if (named !== undefined) throw new AgsError('usage.invalid', '--service and --no-services exclude each other.');
  return { services: [] };
}

function splitLimit(item: string): [string, string] {
  const at = item.indexOf('=');
  if (at < 1)
    throw new AgsError('usage.invalid', `--limit needs a name and a value, not "${item}".`, {
      hint: 'For example: --limit memory=4g --limit time=30m',
    });
  return [item.slice(0, at), item.slice(at + 1)];
}

export async function runInSandbox(
  kind: 'exec' | 'shell',
  command: readonly string[],
  flags: ConfigFlags,
  args: Arguments,
  ctx: Context,
): Promise<number> {
  const review = args.values['review'] ?? 'ask';
  if (review !== 'ask' && review !== 'later')
    throw new AgsError('usage.invalid', `--review is ask or later, not "${String(review)}".`);
  const say = (text: string): void => void ctx.stderr.write(`ags: ${text}\n`);
  const anyTerminal = Object.values(ctx.terminal).some(Boolean);
  const result = await runCommand(inProject(args, ctx), {
    kind,
    command,
    flags,
    agents: agentNames(args),
    name: args.values['name'] as string | undefined,
    notice: say,
    async openStdio() {
      if (!anyTerminal)
        return { stdio: { stdin: 0, stdout: 1, stderr: 2, terminal: null }, close: async () => undefined };
      const { openTerminal } = await import('../exec/terminal.ts');
      return openTerminal(ctx);
    },
  });
  if (result.ended !== null) say(result.ended);
  if (result.notFound !== null) say(result.notFound);
  if (result.denied.length > 0) say(deniedHosts(result.denied));
  if (result.changed) {
    const { afterRun } = await import('./review/after-run.ts');
    await afterRun(result.taskId, review, ctx);
  }
  return result.exitCode;
}

const NAMED = 5;

/** One line with the refused hosts and the command that allows them. */
function deniedHosts(denied: RunResult['denied']): string {
  const counts = new Map<string, number>();
  for (const { host, port, count } of denied) {
    const name = port === 0 || port === 443 ? host : hostAndPort(host, port);
    counts.set(name, (counts.get(name) ?? 0) + count);
  }
  const all = [...counts];
  const named = all.slice(0, NAMED).map(([name, count]) => `${name}${count === 1 ? '' : ` (${count} times)`}`);
  const more = all.length > NAMED ? ` and ${all.length - NAMED} more (ags net log --denied)` : '';
  return `Network: refused ${named.join(', ')}${more}. To allow it in this project: ags allow ${all[0]?.[0]} --project`;
}

export function inProject(args: Arguments, ctx: Context): Context['host'] {
  const project = args.values['project'];
  return typeof project === 'string' ? { ...ctx.host, cwd: project } : ctx.host;
}
