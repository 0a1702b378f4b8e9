// review/lanes.ts: decides where a changed file acts once it is taken, and what the reviewer must know about it.
// Invariant: the most serious fact decides the lane. The content of a file can never lift a rule that its path matches.
// Reasons are safe to print, and the most serious comes first.
import { visible } from '../lib/sanitize.ts';
import type { Lane } from '../protocol/changes.ts';
import { addedLines } from './added-lines.ts';
import { contentFacts } from './content-facts.ts';
import { bySeverity, type ClassifyInput, type Content, type Fact } from './fact.ts';
import { inspect } from './inspectors.ts';
import type { InspectorId } from './host-rules.ts';
import { LANE_RULES } from './lane-rules.ts';
import { foldPath } from './names.ts';
import { compileRules } from './path-pattern.ts';

export type { ClassifyInput, Content } from './fact.ts';

export function classify(input: ClassifyInput): { lane: Lane; reasons: string[] } {
  const facts = bySeverity([...ruleFacts(input), ...contentFacts(input)]);
  const worst = facts[0]?.level ?? 'look';
  return { lane: worst === 'look' ? 'inert' : worst, reasons: [...new Set(facts.map((fact) => fact.say))] };
}

function ruleFacts({ path, from, before, after }: ClassifyInput): Fact[] {
  const now = rulesFor(foldPath(path));
  const then = from === undefined ? now : rulesFor(foldPath(from));
  const inspected: Fact[] = [];
  const general: Fact[] = [];
  for (const rule of now) {
    general.push({ level: rule.lane, say: rule.reason });
    // The content of a file that had another name before counts as new.
    if (rule.content && after) inspected.push(...inspectFile(rule.content, then.includes(rule) ? before : null, after));
  }
  for (const rule of then.filter((one) => !now.includes(one))) {
    general.push({ level: rule.lane, say: `${rule.reason} Its name was ${visible(from ?? path)}.` });
  }
  if (general.length > 0 && after === null) general.push({ level: 'look', say: 'It is deleted.' });
  return [...inspected, ...general];
}

function inspectFile(id: InspectorId, before: Content | null, after: Content): Fact[] {
  if (after.mode === '120000') return [];
  if (after.text === null) return [{ level: 'host', say: 'It could not be searched for changes that matter.' }];
  const earlier = before === null || before.mode === '120000' ? null : before.text;
  return inspect(id, { before: earlier, after: after.text, added: addedLines(earlier, after.text) });
}

const rulesFor = compileRules(LANE_RULES);
