// review/inspectors.ts: reads facts from files of known formats, such as "Adds script postinstall: node x.js".
// Invariant: an inspector only adds facts and never lowers a lane. Quoted text is made visible and shortened, and every
// expression takes linear time on one line, because an agent chooses the text.
import type { AddedLine, Inspected } from './added-lines.ts';
import { bySeverity, type Fact, quote } from './fact.ts';
import type { InspectorId } from './host-rules.ts';
import { LINE_FACTS, type LineFact } from './line-facts.ts';
import { lockfileFacts } from './lockfile-facts.ts';
import { manifestFacts } from './manifest-facts.ts';

export function inspect(id: InspectorId, file: Inspected): Fact[] {
  const facts = bySeverity(byInspector(id, file));
  if (facts.length <= MOST) return facts;
  return [...facts.slice(0, MOST), { level: 'look', say: `And ${facts.length - MOST} more such changes.` }];
}

function byInspector(id: InspectorId, file: Inspected): Fact[] {
  switch (id) {
    case 'manifest':
      return manifestFacts(file);
    case 'lockfile':
      return lockfileFacts(file);
    case 'pyproject':
      return sectionFacts(file);
    case 'package-config':
    case 'attributes':
    case 'submodules':
    case 'workflow':
    case 'dependencies':
    case 'editor':
      return lineFacts(LINE_FACTS[id], file.added);
  }
}

function lineFacts(table: readonly LineFact[], added: readonly AddedLine[]): Fact[] {
  const facts: Fact[] = [];
  for (const { text } of added) {
    const line = text.slice(0, LONGEST_LINE);
    for (const { level, when, say } of table) {
      const match = when.exec(line);
      if (match)
        facts.push({ level, say: say.replace(/\$(\d)/g, (_, group: string) => quote(match[Number(group)] ?? '')) });
    }
  }
  return facts;
}

function sectionFacts({ after, added }: Inspected): Fact[] {
  const numbers = new Set(added.map((line) => line.number));
  const facts: Fact[] = [];
  let section = '';
  for (const [at, text] of after.split('\n').entries()) {
    const header = /^\s*\[{1,2}([^\]]{1,200})\]/.exec(text)?.[1]?.trim();
    section = header ?? section;
    if (header === undefined && numbers.has(at + 1) && text.trim() !== '' && RUNS_CODE.test(section)) {
      facts.push({ level: 'host', say: `Adds to [${quote(section)}]: ${quote(text)}` });
    }
  }
  return facts;
}

const MOST = 12;
const LONGEST_LINE = 2000;
const RUNS_CODE =
  /^(?:build-system|options\.entry_points|(?:project\.|tool\.poetry\.|tool\.pdm\.)?(?:gui-)?scripts|project\.entry-points.{0,100}|tool:pytest|(?:tool\.)?pytest.{0,50}|(?:tool\.)?(?:uv|pip).{0,50}|tool\.(?:hatch|setuptools|pdm|poetry|maturin|scikit-build|cibuildwheel|poe|taskipy|tox|nox|pixi).{0,100}|(?:envs|tasks|index|sources?).{0,100})$/;
