// transfer/carried-rules.ts: the rules that a task takes along: what it was allowed on one machine, and what of that is a question on the next.
// Invariant: what comes with a file gives no right. Only what narrows holds without a yes.
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { CarriedRules } from '../protocol/export.ts';
import { formatRule } from '../protocol/network-rule.ts';
import { asksOf } from '../config/asks.ts';
import type { ConfigFlags, EffectiveConfig } from '../config/effective.ts';
import { flagLayer } from '../config/flags.ts';
import { loadConfig } from '../config/load.ts';
import { refusedFile } from './import-read.ts';
import { configInput, type World } from '../run/host-context.ts';

/** Variables and paths of the machine, and where secrets are, stay where they are. */
export function rulesOf(config: EffectiveConfig, flags: ConfigFlags): CarriedRules {
  const { mode, rules } = config.network;
  const texts = (action: 'allow' | 'deny'): string[] => [
    ...new Set(rules.filter((rule) => rule.action === action).map(formatRule)),
  ];
  return {
    network: mode,
    allow: texts('allow'),
    deny: texts('deny'),
    tcp: [...(flags.tcp ?? [])],
    publish: [...(flags.publish ?? [])],
    reveal: [...(flags.reveal ?? [])],
    envPass: [...(flags.envPass ?? [])],
    limits: { ...flags.limits },
  };
}

export interface RuleWishes {
  /** What would be granted, one line for each; none: nothing has to be asked. */
  readonly asks: readonly string[];
  /** With everything, and with what narrows alone. */
  readonly all: ConfigFlags;
  readonly narrow: ConfigFlags;
  readonly config: EffectiveConfig;
}

/** `project` need not be there yet. */
export async function judgeRules(world: World, project: string, rules: CarriedRules): Promise<RuleWishes> {
  const { config, at } = await configHere(world, project);
  const known = new Set(config.network.rules.map((rule) => `${rule.action} ${formatRule(rule)}`));
  const fresh = (action: 'allow' | 'deny'): string[] => rules[action].filter((text) => !known.has(`${action} ${text}`));
  const list = (name: 'tcp' | 'publish' | 'reveal' | 'envPass'): Partial<ConfigFlags> =>
    rules[name].length === 0 ? {} : { [name]: rules[name] };
  const deny = fresh('deny').length === 0 ? {} : { deny: fresh('deny') };
  const allow = fresh('allow').length === 0 ? {} : { allow: fresh('allow') };
  const off = rules.network === 'off' && config.network.mode !== 'off' ? { network: 'off' } : {};
  const mode = rules.network === config.network.mode ? {} : { network: rules.network };
  const limits = Object.keys(rules.limits).length === 0 ? {} : { limits: rules.limits };
  const all: ConfigFlags = {
    ...mode,
    ...allow,
    ...deny,
    ...list('tcp'),
    ...list('publish'),
    ...list('reveal'),
    ...list('envPass'),
    ...limits,
  };
  try {
    const asked = await loadConfig({ ...at, flags: all });
    return { asks: asksOf(flagLayer(all), config, asked).map(withoutOrigin), all, narrow: { ...off, ...deny }, config };
  } catch (error) {
    if (error instanceof AgsError) throw refusedFile(`its rules cannot be read (${error.message})`);
    throw error;
  }
}

/** Before the user has looked at what a project's own file wants, their own configuration is what counts. */
async function configHere(
  world: World,
  project: string,
): Promise<{ config: EffectiveConfig; at: ReturnType<typeof configInput> }> {
  const at = configInput(world, project);
  try {
    return { config: await loadConfig(at), at };
  } catch (error) {
    if (!(error instanceof AgsError) || error.code !== 'config.untrusted') throw error;
    const without = configInput(world, join(world.stateDir, 'no-project'));
    return { config: await loadConfig(without), at: without };
  }
}

/** "--allow: network.allow: reach example.com": no flag was given. */
function withoutOrigin(ask: string): string {
  return ask.replace(/^[^:]*: /, '');
}
