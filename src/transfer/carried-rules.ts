// transfer/carried-rules.ts: the rules in an export file: which rights the task had on one machine, and which of them the next must approve.
// Invariant: an imported file grants no right. Only rules that restrict apply without approval.
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { CarriedRules } from '../protocol/export.ts';
import { formatRule } from '../protocol/network-rule.ts';
import { asksOf } from '../config/asks.ts';
import type { ConfigFlags, EffectiveConfig } from '../config/effective.ts';
import { flagLayer } from '../config/flags.ts';
import { loadConfig } from '../config/load.ts';
import { refusedFile } from './import-read.ts';
import { configInput, type HostContext } from '../run/host-context.ts';

/** Leaves out variables, paths of this machine, and the sources of secrets. */
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
  /** The rights that need approval, one line each; empty if none do. */
  readonly asks: readonly string[];
  /** The flags with every right, and with restrictions only. */
  readonly all: ConfigFlags;
  readonly narrow: ConfigFlags;
  readonly config: EffectiveConfig;
}

/** `project` need not exist yet. */
export async function judgeRules(context: HostContext, project: string, rules: CarriedRules): Promise<RuleWishes> {
  const { config, at } = await configHere(context, project);
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

/** Until the user has approved the project's own configuration file, only the user's configuration counts. */
async function configHere(
  context: HostContext,
  project: string,
): Promise<{ config: EffectiveConfig; at: ReturnType<typeof configInput> }> {
  const at = configInput(context, project);
  try {
    return { config: await loadConfig(at), at };
  } catch (error) {
    if (!(error instanceof AgsError) || error.code !== 'config.untrusted') throw error;
    const without = configInput(context, join(context.stateDir, 'no-project'));
    return { config: await loadConfig(without), at: without };
  }
}

/** Removes "--allow: " from "--allow: network.allow: reach example.com", because the user gave no flag. */
function withoutOrigin(ask: string): string {
  return ask.replace(/^[^:]*: /, '');
}
