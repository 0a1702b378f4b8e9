// review/link-facts.ts: judges where a symbolic link leads.
// Invariant: a link is in the host lane unless the text of its target alone proves that it stays inside the project.
import { visible } from '../lib/sanitize.ts';
import type { Content, Fact } from './fact.ts';
import { foldPath, inspectName } from './names.ts';
import { compileRules } from './path-pattern.ts';

export function linkFacts(path: string, before: Content | null, after: Content): Fact[] {
  const target = after.text;
  if (target === null) return [{ level: 'host', say: 'A symbolic link whose target cannot be shown.' }];
  const facts = [judge(path, target)];
  if (gitFile(foldPath(path)).length > 0)
    facts.push({ level: 'host', say: 'Git reads this file, and expects it not to be a link.' });
  if (before !== null && before.mode !== '120000') facts.push({ level: 'look', say: 'Was a file before.' });
  return facts;
}

function judge(path: string, target: string): Fact {
  const shown = visible(target);
  if (/^[\\/]|^[a-z]:/i.test(target))
    return { level: 'host', say: `A symbolic link to ${shown}, which is outside the project.` };
  const names = target.split(/[\\/]/).filter((name) => name !== '' && name !== '.');
  const climbs = [...names, ''].findIndex((name) => name !== '..');
  const below = names.slice(climbs);
  if (climbs > path.split('/').length - 1)
    return { level: 'host', say: `A symbolic link to ${shown}, which is outside the project.` };
  // If "x" is a link, "x/.." is not the directory that holds "x".
  if (below.includes('..'))
    return { level: 'host', say: `A symbolic link to ${shown}, which may lead outside the project.` };
  if (names.length === 0 || (below.length > 0 && inspectName(below.join('/')).refuse !== null)) {
    return { level: 'host', say: `A symbolic link to ${shown}, which reaches into .git or is not a valid path.` };
  }
  return { level: 'look', say: `A symbolic link to ${shown}.` };
}

const gitFile = compileRules([{ match: ['.gitattributes', '.gitignore', '.gitmodules', '.mailmap'] }]);
