// cli/net/rule-verb.ts: the code that `ags allow` and `ags deny` share.
import { loopbackHint } from '../../config/network/loopback.ts';
import { visible } from '../../lib/sanitize.ts';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { formatRule } from '../../protocol/network-rule.ts';
import type { NetworkRule } from '../../protocol/network.ts';
import type { RuleChange, RuleScope } from '../../network/change-rules.ts';
import { shortPath } from '../terminal/format.ts';
import type { Arguments, Context, Option, Verb } from '../verb.ts';

export const RULE_OPTIONS = {
  run: { type: 'string', value: 'task', about: 'only in this running sandbox' },
  project: { type: 'boolean', about: 'write the rule into ags.yaml, for this project' },
  always: { type: 'boolean', about: 'write the rule into your config.yaml, for all projects' },
  json: { type: 'boolean', about: 'print one JSON document' },
} as const satisfies Record<string, Option>;

export function ruleVerb(action: NetworkRule['action'], words: Pick<Verb, 'summary' | 'about' | 'examples'>): Verb {
  return {
    ...words,
    usage: `${action} <rule>... [--run <name> | --project | --always] [--json]`,
    takes: 'any',
    options: RULE_OPTIONS,
    async run(args, ctx) {
      if (args.positionals.length === 0)
        throw new AgsError('usage.invalid', `Which host should be ${action === 'allow' ? 'allowed' : 'denied'}?`, {
          hint: `For example: ags ${action} example.com`,
        });
      const { changeRules } = await import('../../network/change-rules.ts');
      const scope = scopeOf(args);
      const change = await changeRules(ctx.host, action, args.positionals, scope);
      ctx.stdout.write(
        args.values['json'] === true
          ? `${JSON.stringify(changeDocument(change, scope), null, 2)}\n`
          : changeText(change, scope, action, ctx),
      );
      return EXIT.done;
    },
  };
}

function scopeOf({ values }: Arguments): RuleScope {
  const given = ['run', 'project', 'always'].filter((name) => values[name] !== undefined);
  if (given.length > 1)
    throw new AgsError('usage.invalid', `${given.map((name) => `--${name}`).join(' and ')} exclude each other.`, {
      hint: '--project and --always also change running sandboxes.',
    });
  if (typeof values['run'] === 'string') return { kind: 'task', name: values['run'] };
  if (values['project'] === true) return { kind: 'project' };
  return values['always'] === true ? { kind: 'always' } : { kind: 'running' };
}

function changeText(change: RuleChange, scope: RuleScope, action: NetworkRule['action'], ctx: Context): string {
  const { rules, reached, file, off } = change;
  const done = action === 'allow' ? 'Allowed' : 'Denied';
  const names = rules.map(formatRule).join(', ');
  const lines =
    file === null
      ? [`${done} ${names} in ${reached.join(', ')}, until it ends.`]
      : [
          file.added.length === 0 && file.dropped.length === 0
            ? `${names} ${rules.length === 1 ? 'is' : 'are'} in ${visible(shortPath(file.label, ctx.home))} already.`
            : `${done} ${names} in ${visible(shortPath(file.label, ctx.home))}.`,
          ...(file.dropped.length === 0
            ? []
            : [`Removed from the ${action === 'allow' ? 'denied' : 'allowed'} rules: ${file.dropped.join(', ')}`]),
          ...(reached.length === 0 ? [] : [`Changed in running sandboxes: ${reached.join(', ')}`]),
        ];
  if (file !== null && action === 'allow' && file.dropped.length > 0 && reached.length > 0)
    lines.push('In these sandboxes, the earlier deny rules stay in force until they end.');
  if (file?.trust === 'pending') lines.push('ags.yaml asks for more that you have not approved. Review it: ags trust');
  if (off && action === 'allow')
    lines.push(
      scope.kind === 'running' || scope.kind === 'task'
        ? 'The network of this sandbox is off, so the rule has no effect.'
        : 'The network is off (network.mode), so the rule has no effect yet.',
    );
  lines.push(...rules.flatMap((rule) => loopbackHint({ ...rule, action }) ?? []));
  if (file === null && action === 'allow' && !off)
    lines.push(`To keep it: ags allow --project ${rules.map(formatRule).map(quoted).join(' ')}`);
  return lines.map((line) => `${line}\n`).join('');
}

function quoted(rule: string): string {
  return /^[\w.:/-]+$/.test(rule) ? rule : `'${rule}'`;
}

function changeDocument({ rules, reached, file, off }: RuleChange, scope: RuleScope): unknown {
  return {
    scope: scope.kind,
    rules: rules.map((rule) => ({ action: rule.action, rule: formatRule(rule) })),
    reached,
    file,
    networkOff: off,
  };
}
