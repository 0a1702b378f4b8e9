// cli/verbs/config.ts: `ags config`: the effective configuration, each value with its origin.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { imageText } from '../../config/asks.ts';
import type { ConfigInput, EffectiveConfig } from '../../config/effective.ts';
import { describeEndpoint } from '../../config/agent-asks.ts';
import { formatHookCommand } from '../../config/hook-asks.ts';
import { homeText } from '../../config/home.ts';
import { LIMIT_FIELDS, LIMIT_KINDS } from '../../config/limits.ts';
import { loadConfig } from '../../config/load.ts';
import { formatSource } from '../../config/network/asks.ts';
import { formatGrant, formatPort, formatProxy, DEFAULT_LIST } from '../../config/network/network.ts';
import { suggest } from '../../config/file/suggest.ts';
import { commandTitle } from '../../lib/command-title.ts';
import { visible } from '../../lib/sanitize.ts';
import { formatDuration, formatSize } from '../../lib/units.ts';
import { AgsError, EXIT, flat } from '../../protocol/errors.ts';
import { hostAndPort } from '../../protocol/host-name.ts';
import { formatRule } from '../../protocol/network-rule.ts';
import type { NetworkRule } from '../../protocol/network.ts';
import { configInput as hostConfigInput } from '../../run/host-context.ts';
import { findProject } from '../../run/project.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'show the effective configuration and the origin of each value',
  usage: 'config [path | <key>] [--all] [--json]',
  takes: 1,
  about:
    'Layers, later ones win: built-in, your config.yaml, the project\'s ags.yaml, AGS_ALLOW, flags. "ags config path" prints the file names.',
  examples: ['ags config', 'ags config limits', 'ags config hide --all', 'ags config path'],
  options: {
    all: { type: 'boolean', about: 'also list every entry of the built-in lists' },
    json: { type: 'boolean', about: 'print JSON' },
  },
  async run({ values, positionals }, ctx) {
    const [key] = positionals;
    const input = await configInput(ctx);
    if (key === 'path') return showPaths(input, values['json'] === true, ctx);
    const config = await loadConfig(input);
    const rows = rowsOf(config).filter(({ name }) => key === undefined || isBelow(name, key));
    if (key !== undefined && rows.length === 0) throw await unknownKey(key);
    if (values['json'] === true) ctx.stdout.write(`${JSON.stringify(jsonOf(config, rows, key), null, 2)}\n`);
    else ctx.stdout.write(tableOf(values['all'] === true ? rows : folded(rows)));
    return EXIT.done;
  },
};

export default verb;

export async function configInput(ctx: Context, cwd = ctx.cwd): Promise<ConfigInput> {
  const { root } = await findProject({
    cwd,
    home: ctx.home,
    stateDir: ctx.stateDir,
    cacheDir: ctx.cacheDir,
    configHome: ctx.env['XDG_CONFIG_HOME'],
  });
  return hostConfigInput(ctx.host, root);
}

interface Row {
  /** "hide[3]" */
  readonly name: string;
  readonly value: string;
  readonly origin: string;
}

function rowsOf(config: EffectiveConfig): Row[] {
  const one = (name: string, value: string | number | boolean): Row => ({
    name,
    value: String(value),
    origin: config.origins[name] ?? 'built-in',
  });
  const many = (name: string, list: readonly string[]): Row[] => list.map((value, i) => one(`${name}[${i}]`, value));
  return [
    one('user', config.user),
    one('backend', config.backend),
    one('image', imageText(config.image)),
    one('runtime', config.runtime ?? 'the default'),
    one('workspace', config.workspace),
    one('home.keep', homeText(config.home)),
    ...(config.home.keep === 'directory' ? [one('home.shared', config.home.shared)] : []),
    one('tools.defaults', config.toolDefaults),
    ...many('tools', config.toolDirs),
    ...many(
      'mounts',
      config.mounts.map(({ path }) => path),
    ),
    ...many('etc', config.etc),
    ...many('env.pass', config.envPass),
    ...Object.entries(config.envSet).map(([name, value]) => one(`env.set.${name}`, value)),
    ...many('hide', config.hide),
    ...many('reveal', config.reveal),
    ...LIMIT_FIELDS.map((field) =>
      one(`limits.${LIMIT_KINDS[field].name}`, LIMIT_KINDS[field].format(config.limits[field])),
    ),
    one('kernel.ptrace', config.kernel.ptrace),
    one('kernel.unixSockets', config.kernel.unixSockets),
    ...networkRows(config, one, many),
    ...config.secrets.map((secret, i): Row => ({
      name: `secrets[${i}]`,
      value: `${secret.name}: ${formatSource(secret.from)}, for ${hostAndPort(secret.host, secret.port)}`,
      origin: secret.origin,
    })),
    ...many('hooks.use', config.hooks.use),
    one('hooks.timeout', formatDuration(config.hooks.timeoutSeconds)),
    ...config.hooks.commands.map((command): Row => ({
      name: `hooks.${command.point}[0]`,
      value: `${formatHookCommand(command)}${command.inside ? ', inside' : ''}`,
      origin: command.origin,
    })),
    ...programRows(config, one, many),
    ...taskRows(config, one),
    ...agentRows(config, one),
    ...Object.entries(config.prices).map(([model, { input, output, cached }]) =>
      one(`prices.${model}`, [input, output, ...(cached === undefined ? [] : [cached])].join('/')),
    ),
    ...config.checks.run.map(({ name, run }, i): Row => ({
      name: `checks[${i}]`,
      value: name === commandTitle(run) ? run : `${name}: ${run}`,
      origin: config.origins[`checks[${i}]`] ?? '',
    })),
    one(
      'checks.timeout',
      config.checks.timeoutSeconds === null ? 'none' : formatDuration(config.checks.timeoutSeconds),
    ),
    one('merge.check', config.mergeCheck),
    ...many('review.risky', config.risky),
  ];
}

/** What runs beside a task, and before it. */
function programRows(
  { docker, compose, services, setup }: EffectiveConfig,
  one: (name: string, value: string | number | boolean) => Row,
  many: (name: string, list: readonly string[]) => Row[],
): Row[] {
  const limit = (seconds: number | null): string => (seconds === null ? 'none' : formatDuration(seconds));
  return [
    ...(docker.enabled ? [one('docker.enabled', true)] : []),
    ...many('docker.registries', docker.registries),
    ...(compose === null
      ? []
      : [
          one('compose.enabled', true),
          ...many('compose.files', compose.files),
          ...many('compose.profiles', compose.profiles),
          ...many('compose.services', compose.services),
          one('compose.timeout', limit(compose.timeoutSeconds)),
        ]),
    ...services.map(({ name, preset, image, run, version, origin }): Row => ({
      name: `services.${name}`,
      value: `${preset ?? image ?? (typeof run === 'string' ? run : (run ?? []).join(' '))}${version === null ? '' : ` ${version}`}`,
      origin,
    })),
    ...many('setup.run', setup.run),
    ...many('setup.inputs', setup.inputs ?? []),
    ...(setup.run.length === 0 ? [] : [one('setup.timeout', limit(setup.timeoutSeconds))]),
  ];
}

function taskRows({ tasks }: EffectiveConfig, one: (name: string, value: string | number) => Row): Row[] {
  return [
    ...(tasks.agent === null ? [] : [one('tasks.agent', tasks.agent)]),
    ...(tasks.model === null ? [] : [one('tasks.model', tasks.model)]),
    ...(tasks.parallel === null ? [] : [one('tasks.parallel', tasks.parallel)]),
    ...(tasks.seconds === null ? [] : [one('tasks.time', formatDuration(tasks.seconds))]),
    ...(tasks.costMicros === null ? [] : [one('tasks.cost', tasks.costMicros / 1e6)]),
    ...tasks.budgets.map(({ costMicros, per, origin }): Row => ({
      name: 'tasks.budget',
      value: `${costMicros / 1e6}/${per}`,
      origin,
    })),
    ...(tasks.tokens === null ? [] : [one('tasks.tokens', tasks.tokens)]),
    ...(tasks.turns === null ? [] : [one('tasks.turns', tasks.turns)]),
  ];
}

function agentRows({ agents }: EffectiveConfig, one: (name: string, value: string) => Row): Row[] {
  return Object.entries(agents).flatMap(([name, { endpoint, model, settings }]) => [
    ...settings.map(({ path, origin }): Row => ({ name: `agents.${name}.settings[0]`, value: `~/${path}`, origin })),
    ...(endpoint === null ? [] : [one(`agents.${name}.url`, describeEndpoint(endpoint))]),
    ...(model === null ? [] : [one(`agents.${name}.model`, model)]),
  ]);
}

function networkRows(
  { network }: EffectiveConfig,
  one: (name: string, value: string | number | boolean) => Row,
  many: (name: string, list: readonly string[]) => Row[],
): Row[] {
  const own = <T extends { origin: string }>(name: string, list: readonly T[], text: (value: T) => string): Row[] =>
    list.map((value, i) => ({ name: `network.${name}[${i}]`, value: text(value), origin: value.origin }));
  const rules = (action: NetworkRule['action']): NetworkRule[] =>
    network.rules.filter((rule) => rule.action === action);
  const named = network.presets.filter((name) => name !== DEFAULT_LIST);
  return [
    one('network.mode', network.mode),
    one('network.defaults', named.length < network.presets.length),
    ...many('network.presets', named),
    ...own('allow', rules('allow'), formatRule),
    ...own('deny', rules('deny'), formatRule),
    ...many('network.addresses', network.addresses),
    ...own('tcp', network.tcp, formatGrant),
    ...many('network.publish', network.publish.map(formatPort)),
    ...own('upstream', network.upstreams, formatProxy),
    ...many('network.dns', network.dns),
    one('network.askSeconds', network.askSeconds),
    one('network.limits.connections', network.limits.connections),
    one('network.limits.perSecond', network.limits.perSecond),
    one('network.limits.bytesOut', network.limits.bytesOut === null ? 'none' : formatSize(network.limits.bytesOut)),
  ];
}

function isBelow(name: string, key: string): boolean {
  return name === key || name.startsWith(`${key}.`) || name.startsWith(`${key}[`);
}

/** Folds the built-in part of a list into one row. */
function folded(rows: readonly Row[]): Row[] {
  const listOf = (row: Row): string | undefined =>
    row.origin === 'built-in' ? /^(.*)\[\d+\]$/.exec(row.name)?.[1] : undefined;
  const counts = new Map<string, number>();
  for (const row of rows) {
    const list = listOf(row);
    if (list !== undefined) counts.set(list, (counts.get(list) ?? 0) + 1);
  }
  const seen = new Set<string>();
  return rows.flatMap((row) => {
    const list = listOf(row);
    if (list === undefined) return [row];
    if (seen.has(list)) return [];
    seen.add(list);
    return [
      {
        name: list,
        value: `(${counts.get(list)} entries; see them with: ags config ${list} --all)`,
        origin: row.origin,
      },
    ];
  });
}

function tableOf(rows: readonly Row[]): string {
  const cells = rows.map(
    ({ name, value, origin }) => [name.replace(/\[\d+\]$/, ''), visible(flat(value)) || '""', visible(origin)] as const,
  );
  const width = (column: 0 | 1): number => Math.min(60, Math.max(0, ...cells.map((row) => row[column].length)));
  return cells
    .map(([name, value, origin]) => `${name.padEnd(width(0))}  ${value.padEnd(width(1))}  ${origin}\n`)
    .join('');
}

function jsonOf(config: EffectiveConfig, rows: readonly Row[], key: string | undefined): unknown {
  return key === undefined ? config : rows.map(({ name, value, origin }) => ({ key: name, value, origin }));
}

async function unknownKey(key: string): Promise<AgsError> {
  const { listKeys } = await import('../../config/file/keys.ts');
  const known = listKeys().map(({ path }) => path);
  if (known.some((path) => fits(key, path)))
    return new AgsError('usage.invalid', `${key} is not set.`, {
      hint: `To set it, write it into ags.yaml. Every key with its meaning: ags init --full --print`,
    });
  const near = suggest(key, known);
  return new AgsError('usage.invalid', `There is no key "${visible(key)}".`, {
    hint: near ? `Did you mean: ags config ${near}` : 'All keys: ags config',
  });
}

/** "services.db.port" is the key "services.<name>.port". */
function fits(key: string, path: string): boolean {
  const parts = path.split('.');
  const given = key.split('.');
  return parts.length === given.length && parts.every((part, i) => part === '<name>' || part === given[i]);
}

function showPaths(input: ConfigInput, json: boolean, ctx: Context): number {
  const files = [
    { layer: 'user', path: input.userConfigFile },
    { layer: 'project', path: join(input.projectDir, 'ags.yaml') },
  ].map((file) => ({ ...file, exists: existsSync(file.path) }));
  if (json) ctx.stdout.write(`${JSON.stringify({ files }, null, 2)}\n`);
  else
    for (const { layer, path, exists } of files)
      ctx.stdout.write(`${layer.padEnd(7)}  ${visible(path)}${exists ? '' : '  (does not exist)'}\n`);
  return EXIT.done;
}
