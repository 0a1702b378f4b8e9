// cli/terminal/plan-summary.ts: a plan on one screen. Pure.
// Invariant: lists are cut after a few lines and counted; what can weaken a sandbox and every source of settings has its line.
import { homeText } from '../../config/home.ts';
import { LIMIT_KINDS } from '../../config/limits.ts';
import { formatSource } from '../../config/network/asks.ts';
import { DEFAULT_LIST, formatGrant, formatPort, formatProxy } from '../../config/network/network.ts';
import { formatHookCommand } from '../../config/hook-asks.ts';
import { visible } from '../../lib/sanitize.ts';
import { formatRule } from '../../protocol/network-rule.ts';
import { hostAndPort } from '../../protocol/host-name.ts';
import { budgetText } from '../../queries/budgets.ts';
import type { PlanView } from '../../exec/plan-view.ts';
import type { LimitInForce } from '../../sandbox/watch/limits.ts';
import type { Paint } from './colour.ts';
import { count, cut, shellLine, shortPath, widthOf, wrap } from './format.ts';
import { head, NETWORK, WORKSPACE } from './plan-text.ts';

/** A list is cut if it is long, and a text never. */
type Fact = readonly [name: string, text: string | readonly string[]];

export function summarizePlan(
  view: PlanView,
  paint: Paint,
  screen: { readonly columns: number; readonly home: string },
): string {
  const texts = [3, 2, 1].map((lines) => summary(view, paint, { ...screen, lines }));
  return texts.find((text) => text.split('\n').length <= SCREEN) ?? texts.at(-1) ?? '';
}

const SCREEN = 38;

interface Screen {
  readonly columns: number;
  readonly home: string;
  /** For one list. */
  readonly lines: number;
}

function summary(view: PlanView, paint: Paint, screen: Screen): string {
  const { columns } = screen;
  const facts = [place, inside, network, rest].flatMap((part) => part(view, screen));
  const width = Math.max(...facts.map(([name]) => name.length));
  const lines = facts.map(([name, text]) => {
    const room = columns - width - 2;
    const body = Array.isArray(text) ? listLines(text as readonly string[], screen.lines, room) : visible(String(text));
    return `${name.padEnd(width)}  ${wrap(body, { width: columns, indent: width + 2 }).trimStart()}`;
  });
  const { mounts, env } = view.spec;
  const more = `ags plan --verbose: all ${count(mounts.length, 'mount')} in order, all ${count(Object.keys(env).length, 'variable')}, all hidden files, each limit, ${count(1 + view.beside.length, 'command line')}. ags config: each setting with its origin.`;
  return [
    wrap(visible(view.label), { width: columns }).replaceAll(/.+/g, (line) => paint('bold', line)),
    lines.join(''),
    wrap(more, { width: columns }),
  ].join('\n');
}

/** As many as fit, and how many more there are. */
function listLines(items: readonly string[], lines: number, room: number): string {
  const most = lines * room - lines * 8;
  const shown: string[] = [];
  let used = 0;
  for (const item of items) {
    used += widthOf(visible(item)) + 2;
    if (shown.length > 0 && used > most) break;
    shown.push(cut(item, most));
  }
  const more = items.length - shown.length;
  return `${shown.join(', ')}${more === 0 ? '' : `, and ${more} more`}`;
}

function listed(name: string, items: readonly string[]): Fact[] {
  return items.length === 0 ? [] : [[name, items]];
}

function place(view: PlanView, { home, columns }: Screen): Fact[] {
  const { spec, project, config } = view;
  return [
    ['Project', `${shortPath(project.root, home)} (${head(view)})`],
    ['Command', cut(shellLine(view.command), columns - 14)],
    ...(String(spec.workdir) === project.root ? [] : [['Starts in', spec.workdir] as const]),
    ['Workspace', WORKSPACE[view.workspace]],
    [
      'Home',
      config.home.keep === 'task' || view.keptHome === null
        ? 'empty, removed with the task'
        : `kept for the next task: ${shortPath(view.keptHome, home)} (home: ${homeText(config.home)})`,
    ],
    ['User', `${spec.user.name}, uid ${spec.user.uid}, gid ${spec.user.gid}`],
    ...(spec.root.kind === 'host' ? [] : [['Image', `${spec.root.reference}, read-only`] as const]),
    ...(view.docker === null ? [] : [['Docker', view.docker] as const]),
    ...(view.compose === null ? [] : [['Compose', view.compose] as const]),
    ...listed(
      'Services',
      view.services.map(
        ({ name, kind, ports, problem }) =>
          `${name}${kind === name ? '' : ` (${kind})`} at ${name}:${ports.join(',')}${problem === null ? '' : `: ${problem}`}`,
      ),
    ),
    ...view.models.map((model): Fact => ['Model of', model]),
    ...view.budgets.map((one): Fact => ['Budget', `${budgetText(one)} (${one.origin})`]),
    ...view.notices.map((notice): Fact => ['Note', notice]),
  ];
}

function inside({ spec, hidden, trackedSecrets, config }: PlanView, { home }: Screen): Fact[] {
  const paths = (why: (text: string) => boolean): string[] =>
    spec.mounts.filter((mount) => why(mount.why) && mount.kind !== 'symlink').map(({ to }) => shortPath(to, home));
  const tools = paths((why) => why === 'tool directory of the home');
  const own = config.mounts.filter(({ optional }) => !optional).map(({ path }) => path);
  return [
    ['Read-only', [...paths((why) => why === 'the system'), '/etc (a copy of parts)'].join(', ')],
    ...listed('  tools', tools),
    ...listed(
      '  mounts',
      own.map((path) => shortPath(path, home)),
    ),
    ...listed(
      '  agents',
      paths((why) => why === 'a program of the agent' || why === 'settings that it cannot change'),
    ),
    ['Writable', 'project, home, /tmp; nothing of this machine'],
    ...listed('Hidden', hidden),
    ...listed(
      'Not hidden',
      trackedSecrets.map((path, i) => (i === 0 ? `because git tracks them: ${path}` : path)),
    ),
  ];
}

function network({ spec, config }: PlanView): Fact[] {
  if (spec.network.kind === 'loopback') return [['Network', NETWORK.loopback]];
  const { mode, presets, rules, tcp, publish, addresses, upstreams } = config.network;
  const lists = presets.map((name) => (name === DEFAULT_LIST ? 'the default list' : `the list ${name}`));
  return [
    [
      'Network',
      `gateway only, to hosts of ${[...lists, ...(rules.length === 0 ? [] : ['your rules'])].join(', ') || 'no rule'}${mode === 'record' ? '; asks about others' : ''}`,
    ],
    ...listed(
      '  rules',
      rules.map((rule) => `${rule.action} ${formatRule(rule)}`),
    ),
    ...listed('  addresses', addresses),
    ...listed('  tcp', tcp.map(formatGrant)),
    ...listed('  publish', publish.map(formatPort)),
    ...listed('  proxies', upstreams.map(formatProxy)),
    ...listed(
      '  sends',
      config.secrets.map(
        ({ name, from, host, port }) =>
          `${name} (${formatSource(from)}) to ${port === 443 ? host : hostAndPort(host, port)}`,
      ),
    ),
  ];
}

function rest({ limits, spec, config, privateNames }: PlanView): Fact[] {
  const given = Object.keys(config.envSet).filter((name) => Object.hasOwn(spec.env, name));
  const named = (held: LimitInForce['held']): string[] =>
    limits
      .filter((limit) => limit.held === held)
      .map(({ name, allowed }) =>
        held === 'no' ? LIMIT_KINDS[name].name : `${LIMIT_KINDS[name].name} ${LIMIT_KINDS[name].format(allowed)}`,
      );
  return [
    ...listed('Variables', [
      ...privateNames.map((name) => `${name} (passed on)`),
      ...given.map((name) => `${name} (set)`),
    ]),
    ['Limits', named('kernel').join(', ') || 'none held by the kernel'],
    ...listed('  watched', named('watched')),
    ...listed('  none for', named('no')),
    [
      'Kernel',
      `own namespaces, no capabilities, system calls filtered; ptrace ${spec.kernel.ptrace ? 'allowed' : 'refused'}, Unix sockets ${spec.kernel.unixSockets ? 'allowed' : 'refused'}`,
    ],
    ...listed('Hooks', [...config.hooks.use, ...config.hooks.commands.map(formatHookCommand)]),
    ...settings(config),
  ];
}

/** "mounts (3), limits (ags.yaml)": whatever is not the default, by its file or flag. */
function settings({ origins, network: { rules, tcp, upstreams }, secrets, hooks }: PlanView['config']): Fact[] {
  const byOrigin = new Map<string, Map<string, number>>();
  const own = (key: string, list: readonly { readonly origin: string }[]): [string, string][] =>
    list.map(({ origin }) => [key, origin]);
  const all = [
    ...Object.entries(origins),
    ...own('network', [...rules, ...tcp, ...upstreams]),
    ...own('secrets', secrets),
    ...own('hooks', hooks.commands),
  ];
  for (const [key, origin] of all) {
    if (origin === 'built-in' || origin === '') continue;
    const from = origin.replace(/^.*\/(?=[^/]+:\d+$)/, '').replace(/:\d+$/, '');
    const keys = byOrigin.get(from) ?? new Map<string, number>();
    const name = key.replace(/[.[].*$/, '');
    byOrigin.set(from, keys.set(name, (keys.get(name) ?? 0) + 1));
  }
  const texts = [...byOrigin].map(
    ([from, keys]) => `${[...keys].map(([key, n]) => (n === 1 ? key : `${key} (${n})`)).join(', ')} (${from})`,
  );
  return texts.length === 0 ? [] : [['Not default', texts.join('; ')]];
}
