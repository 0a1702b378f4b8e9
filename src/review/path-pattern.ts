// review/path-pattern.ts: the small pattern language of lane-rules.ts.
// `*` stands for any characters within one name, also none. `**`, only as a whole name, stands for any number of names,
// also none: `.husky/**` is .husky itself and all below it, because .husky may be a link instead of a directory.
// Every pattern holds at any depth, and is compared with folded paths, so spelling tricks do not step around it.
import { foldPath } from './names.ts';

export interface PathMatcher {
  /** `folded` must come from foldPath. */
  test(folded: string): boolean;
}

export function compilePatterns(patterns: readonly string[]): PathMatcher {
  const names = new Set(patterns.filter((pattern) => !/[*/]/.test(pattern)).map(foldPath));
  const rest = patterns.filter((pattern) => /[*/]/.test(pattern)).map(toSource);
  // A lookbehind, so that a match may begin at every name and the search stays linear.
  const expression = rest.length > 0 ? new RegExp(`(?<![^/])(?:${rest.join('|')})$`, 'u') : null;
  return {
    test: (folded) => names.has(folded.slice(folded.lastIndexOf('/') + 1)) || (expression?.test(folded) ?? false),
  };
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
