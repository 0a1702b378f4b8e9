// config/network/allow-list.ts: a list of hosts as people keep them beside their projects: one rule on a line, "#" begins a comment, "!" denies.
// Invariant: a line that is not understood completely makes the whole list invalid.
import { AgsError } from '../../protocol/errors.ts';
import { isNarrow, parseRule, RULE_WORDS } from '../../protocol/network-rule.ts';
import type { NetworkRule } from '../../protocol/network.ts';
import { quote } from '../file/layer.ts';
import { readLayerFile } from '../file/read.ts';

export function readAllowList(path: string): NetworkRule[] {
  const file = readLayerFile({ kind: 'user', path, label: path });
  if (file === undefined)
    throw new AgsError('config.invalid', `${path} does not exist.`, {
      hint: 'It has one host on each line, for example: github.com',
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
    // Requests can be told apart only by ending TLS, with an authority that nobody behind this list trusts.
    if (isNarrow(rule)) throw wrongLine(origin, written, 'methods and paths cannot be told apart here; name the host');
    return [{ action, ...rule, origin }];
  });
}

function wrongLine(origin: string, text: string, problem: string): AgsError {
  const problems = [`${origin}: ${quote(text)} is no rule: ${problem}`];
  const suffix = /^\.[\w.-]+$/.test(text)
    ? `Did you mean: *${text}`
    : `Expected is ${RULE_WORDS.replace(/ or .*/, '')}.`;
  return new AgsError('config.invalid', `${problems[0]}.`, { hint: suffix, details: { problems } });
}
