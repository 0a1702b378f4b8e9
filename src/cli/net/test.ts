// cli/net/test.ts: `ags net test [hosts]`: tries each host from inside a sandbox and prints the result with its reason.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { formatRule, parsePlace } from '../../protocol/network-rule.ts';
import type { NetworkRule } from '../../protocol/network.ts';
import { expandRules } from '../../config/network/presets.ts';
import { insideDevContainer, rulesInside, testFromInside } from '../../images/devcontainer/inside.ts';
import { testNetwork, type Reached } from '../../exec/net-test.ts';
import { projectConfig } from '../../network/rule-files.ts';
import { createPaint, type Paint } from '../terminal/colour.ts';
import { count } from '../terminal/format.ts';
import type { Arguments, Context } from '../verb.ts';

export async function testHosts({ values, positionals }: Arguments, ctx: Context): Promise<number> {
  const inside = insideDevContainer(ctx.host);
  const rules = inside ? rulesInside() : expandRules((await projectConfig(ctx.host)).config.network);
  const places = positionals.length > 0 ? positionals.map(readPlace) : testable(rules);
  if (places.length === 0)
    throw new AgsError('usage.invalid', 'There is nothing to try: no rule names a complete host.', {
      hint: 'Name some: ags net test example.com',
    });
  const say = (text: string): void => void ctx.stderr.write(`ags: ${text}\n`);
  if (values['json'] !== true)
    say(`Trying ${count(places.length, 'host')} from inside ${inside ? 'this dev container' : 'a sandbox'}.`);
  const reached = inside ? await testFromInside(places) : await testNetwork(ctx.host, {}, places, say);
  ctx.stdout.write(
    values['json'] === true
      ? `${JSON.stringify({ hosts: reached }, null, 2)}\n`
      : reachedText(reached, createPaint(ctx.colour)),
  );
  return reached.every(({ verdict }) => verdict === 'reachable') ? EXIT.done : EXIT.failed;
}

function readPlace(text: string): { host: string; port: number } {
  const place = parsePlace(text);
  if ('problem' in place || place.host.startsWith('*'))
    throw new AgsError(
      'usage.invalid',
      `"${text}" is not one host${'problem' in place ? `: ${place.problem}` : ': name one below it'}.`,
      { hint: 'For example: ags net test github.com example.com:8443' },
    );
  return { host: place.host, port: place.port ?? 443 };
}

/** Rules with a wildcard name no single host, so they are left out. */
function testable(rules: readonly NetworkRule[]): { host: string; port: number }[] {
  const exact = rules.filter(({ action, host }) => action === 'allow' && !host.startsWith('*.'));
  const seen = new Map(exact.map(({ host, port }) => [`${host} ${port}`, { host, port }]));
  return [...seen.values()];
}

function reachedText(reached: readonly Reached[], paint: Paint): string {
  const name = ({ host, port }: Reached): string => formatRule({ host, port, methods: null, path: null });
  const width = Math.max(...reached.map((one) => name(one).length));
  const lines = reached.map((one) => {
    const why = one.verdict === 'reachable' ? `${one.ms} ms` : shorten(one.why);
    return `${name(one).padEnd(width)}  ${paint(COLOURS[one.verdict], one.verdict.padEnd(11))}  ${why}\n`;
  });
  const of = (verdict: Reached['verdict']): number => reached.filter((one) => one.verdict === verdict).length;
  return `${lines.join('')}\n${of('reachable')} reachable, ${of('refused')} refused, ${of('unreachable')} unreachable.\n`;
}

const COLOURS = { reachable: 'green', refused: 'red', unreachable: 'yellow' } as const;

/** Keeps only the reason; the host is in its own column, and the advice is for agents. */
function shorten(why: string): string {
  return (
    /\((.*)\)\. This is policy/.exec(why)?.[1] ?? why.replace(/^ags: \S+ is allowed, but could not be reached: /, '')
  );
}
