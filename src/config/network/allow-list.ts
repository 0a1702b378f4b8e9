// config/network/allow-list.ts: a host list in a file: one rule per line, "#" begins a comment, "!" denies.
// Invariant: one line that cannot be parsed completely makes the whole list invalid.
import { AgsError } from '../../protocol/errors.ts';
import { isNarrow, parseRule, RULE_WORDS } from '../../protocol/network-rule.ts';
import type { NetworkRule } from '../../protocol/network.ts';
import { quote } from '../file/layer.ts';
import { readLayerFile } from '../file/read.ts';

export function readAllowList(path: string): NetworkRule[] {
  const file = readLayerFile({ kind: 'user', path, label: path });
  if (file === undefined)
    throw new AgsError('config.invalid', `${path} does not exist.`, {
      hint: 'Create it with one host per line, for example: github.com',
    });
  return parseAllowList(file.bytes.toString('utf8'), path);
}

export function parseAllowList(text: string, label: string): NetworkRule[] {
  return text.split('\n').flatMap((line, i): NetworkRule[] => {
    const words = line.replace(/(^|\s)#.*/, '').trim();
    if (words === '') return [];
    const origin = `${label}:${i + 1}`;
    const [action, written] = words.startsWith('!')
      ? (['deny', words.slice(1).trim()] as const)
      : (['allow', words] as const);
    const rule = parseRule(written);
    if ('problem' in rule) throw wrongLine(origin, written, rule.problem);
    // Methods and paths need TLS interception, and the clients of this list do not trust its authority.
    if (isNarrow(rule))
      throw wrongLine(origin, written, 'methods and paths are not supported here; name only the host');
    return [{ action, ...rule, origin }];
  });
}

function wrongLine(origin: string, text: string, problem: string): AgsError {
  const problems = [`${origin}: ${quote(text)} is no rule: ${problem}`];
  const suffix = /^\.[\w.-]+$/.test(text) ? `Did you mean: *${text}` : `Expected: ${RULE_WORDS.replace(/ or .*/, '')}.`;
  return new AgsError('config.invalid', `${problems[0]}.`, { hint: suffix, details: { problems } });
}
