// review/path-pattern.ts: the pattern language of lane-rules.ts.
// `*` matches any characters within one name, or none. `**`, only as a whole name, matches any number of names, or none:
// `.husky/**` matches .husky itself and everything below it, because .husky may be a link instead of a directory.
// Every pattern matches at any depth, and is compared with folded paths, so spelling tricks do not avoid it.
import { foldPath } from './names.ts';

/** Returns the rules that match a folded path (see foldPath), in their order. */
export function compileRules<Rule extends { readonly match: readonly string[] }>(
  rules: readonly Rule[],
): (folded: string) => Rule[] {
  // Common pattern shapes use a lookup, because trying a thousand patterns on every path is too slow.
  const names = new Map<string, Set<Rule>>();
  const trees = new Map<string, Set<Rule>>();
  const endings = new Map<string, Set<Rule>>();
  const others: { rule: Rule; expression: RegExp }[] = [];
  for (const rule of rules) {
    const rest: string[] = [];
    for (const pattern of rule.match) {
      if (/^[^*/]+$/.test(pattern)) put(names, foldPath(pattern), rule);
      else if (/^[^*/]+\/\*\*$/.test(pattern)) put(trees, foldPath(pattern.slice(0, -3)), rule);
      else if (/^\*\.[^*/]+$/.test(pattern)) put(endings, pattern.slice(1).toLowerCase(), rule);
      else rest.push(toSource(pattern));
    }
    // The lookbehind lets a match begin at every name, and keeps the search linear.
    if (rest.length > 0) others.push({ rule, expression: new RegExp(`(?<![^/])(?:${rest.join('|')})$`, 'u') });
  }
  return (folded) => {
    const segments = folded.split('/');
    const name = segments.at(-1) ?? '';
    const found = new Set(names.get(name));
    for (const segment of segments) for (const rule of trees.get(segment) ?? []) found.add(rule);
    for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      for (const rule of endings.get(name.slice(dot)) ?? []) found.add(rule);
    }
    for (const { rule, expression } of others) if (expression.test(folded)) found.add(rule);
    return found.size > 1 ? rules.filter((rule) => found.has(rule)) : [...found];
  };
}

/** Patterns from a text with blanks between them. */
export function paths(list: string): string[] {
  return list.trim().split(/\s+/);
}

function put<Rule>(map: Map<string, Set<Rule>>, key: string, rule: Rule): void {
  map.set(key, (map.get(key) ?? new Set<Rule>()).add(rule));
}

function toSource(pattern: string): string {
  const names = pattern.toLowerCase().split('/');
  return names
    .map((name, at) => {
      const last = at === names.length - 1;
      if (name === '**') return last ? '(?:/.*)?' : '(?:/[^/]+)*';
      const text = name.replace(/[.+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll('*', '[^/]*');
      return at === 0 ? text : `/${text}`;
    })
    .join('');
}
