// test/attacks/mutation/anchors.test.ts: every source fragment in the tables of mutants matches exactly one place, and its replacement
// still parses. A rename that breaks a proof fails here, in seconds.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parseSync } from 'rolldown/utils';
import { findTests, openSource, type Piece } from '../../../scripts/anchors.mjs';
import { MUTATIONS } from '../../../scripts/mutations.mjs';
import { perlProgram } from '../../../src/lib/perl.ts';
import { BESIDE_MUTANTS } from './beside-mutants.ts';
import { GROUPS, LET_GO, SEEN } from './engine-mutants.ts';
import { LIMIT_ATTACKS } from './gateway-limits.ts';
import { MUTANTS } from './gateway-mutants.ts';
import { STAY } from './gateway-stage.ts';
import { IMPORT_MUTANTS } from './import-mutants.ts';
import { SOURCE } from './mutated-source.ts';
import { changedProgram, GATE_STEPS, LAUNCHER_STEPS } from './perl-steps.ts';
import { PIPELINE_GROUPS, PIPELINE_PART_MUTANTS } from './pipeline-mutants.ts';
import { SERVICE_MUTANTS } from './service-mutants.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const LAUNCHER = perlProgram('sandbox/perl/launcher.pl');
const GATE = perlProgram('sandbox/perl/gate.pl');

interface Row {
  readonly name: string;
  readonly pieces: readonly Piece[];
}

const TABLES: Readonly<Record<string, readonly Row[]>> = {
  'scripts/mutations.mjs': MUTATIONS.map(({ name, piece }) => ({ name, pieces: [piece] })),
  'beside-mutants.ts': BESIDE_MUTANTS,
  'engine-mutants.ts': [
    ...GROUPS.flat(),
    ...SEEN.map(({ says, pieces }) => ({ name: says, pieces })),
    { name: 'all of them go on', pieces: [LET_GO] },
    ...GROUPS.map((group) => ({ name: group[0]?.name ?? '', pieces: group.flatMap(({ pieces }) => pieces) })),
  ],
  'gateway-limits.ts': LIMIT_ATTACKS.map(({ id, setting }) => ({ name: id, pieces: setting.given ?? [] })),
  'gateway-mutants.ts': [...MUTANTS, { name: 'nothing leaves this machine', pieces: STAY }],
  'import-mutants.ts': IMPORT_MUTANTS,
  'pipeline-mutants.ts': [...PIPELINE_PART_MUTANTS, ...PIPELINE_GROUPS.flat()],
  'service-mutants.ts': SERVICE_MUTANTS,
};

/** The file in which a fragment was found, if it is another one than the row names: code that only looks like it. */
function elsewhere([file, from]: Piece): string[] {
  const { path } = SOURCE.find(file, from);
  return path.endsWith(`/${file}`) || !SOURCE.files.some((one) => one.endsWith(`/${file}`)) ? [] : [path];
}

/** Identifiers that exist only in replacements. */
const NEW: readonly string[] = ['asked', 'noimg'];

test.for(Object.entries(TABLES))('every fragment in %s matches exactly one place', ([, rows]) => {
  const wrong = rows.flatMap(({ name, pieces }) => {
    try {
      const edited = SOURCE.edit(pieces);
      const broken = [...edited].filter(([path, text]) => text === SOURCE.read(path) || !isCode(path, text));
      return [
        ...pieces.filter((p) => !SOURCE.lasts(p)).map(([file, from]) => `${name}: ${file}: no whole tokens: ${from}`),
        ...pieces.flatMap((piece) => elsewhere(piece)).map((path) => `${name}: found in ${path} alone`),
        ...broken.map(([path]) => `${name}: ${path} is the same, or no source code any more`),
        ...pieces
          .flatMap((piece) => SOURCE.strangers(piece))
          .filter((word) => !NEW.includes(word))
          .map((word) => `${name}: nothing is called ${word}`),
      ];
    } catch (error) {
      return [`${name}: ${(error as Error).message}`];
    }
  });
  expect(wrong).toEqual([]);
});

test('every step of the Perl programs matches exactly one place', () => {
  for (const step of Object.values(LAUNCHER_STEPS)) expect(changedProgram(LAUNCHER, step)).not.toBe(LAUNCHER);
  for (const step of Object.values(GATE_STEPS)) expect(changedProgram(GATE, step)).not.toBe(GATE);
});

test('the tests that a mutation must break exist', () => {
  for (const name of new Set(MUTATIONS.flatMap(({ tests }) => tests))) expect(findTests(ROOT, name)).not.toEqual([]);
});

/** Replaces a fragment in a source of one file. */
function replaced(path: string, source: string, [from, to]: readonly [string, string]): string {
  const root = mkdtempSync(join(tmpdir(), 'ags-anchors-'));
  try {
    mkdirSync(join(root, 'src', dirname(path)), { recursive: true });
    writeFileSync(join(root, 'src', path), source);
    return openSource(root)
      .edit([['tasks/rules.ts', from, to]])
      .get(join('src', path)) as string;
  } catch (error) {
    return (error as Error).message.replaceAll('\n', ' ');
  } finally {
    rmSync(root, { recursive: true });
  }
}

// One row for each case, as a table.
// oxfmt-ignore
test.for<[what: string, path: string, source: string, piece: readonly [string, string], expected: string]>([
  ['a file that was moved', 'gateway/rules.ts', 'f(a); g(b);', ['f(a);', ''], ' g(b);'],
  ['a file that was renamed', 'gateway/policy.ts', 'f(a); g(b);', ['f(a);', ''], ' g(b);'],
  ['a rename', 'rules.ts', 'if (port >= most.port) f(port);', ['if (p >= m.q)', 'if (p < 0 || m.q)'], 'if (port < 0 || most.port) f(port);'],
  ['other white space and comments', 'rules.ts', 'if (a)\n  // why\n  f(a);', ['if (a) f(a);', 'f(a);'], 'f(a);'],
  ['another message', 'rules.ts', 'if (a) throw no(`${a} is (wrong)`, 400);', ['if (a) throw no(…, 400);', 'no(…);'], 'no(`${a} is (wrong)`);'],
  ['a rename in Perl', 'perl/rules.pl', "sub f { $x }\nclose $y or fail('words');", ['close $z or fail(…);', 'close $z;'], 'sub f { $x }\nclose $y;'],
  ['one name for two', 'rules.ts', 'f(a, b);', ['f(x, x);', ''], 'tasks/rules.ts does not have: f(x, x); nearest, src/rules.ts:1: f(a, b);'],
  ['the beginning of a name', 'rules.ts', 'f(bytesOut);', ['f(bytes', 'g(bytes'], 'g(bytesOut);'],
  ['what is built in', 'rules.ts', 'a.push(b);', ['a.pop(b);', ''], 'tasks/rules.ts does not have: a.pop(b); nearest, src/rules.ts:1: a.push(b);'],
  ['two places', 'rules.ts', 'f(a);\nf(b);', ['f(c);', ''], 'src/rules.ts:1, src/rules.ts:2 all have: f(c);'],
])('a fragment is found despite %s, or not at all', ([, path, source, piece, expected]) => {
  expect(replaced(path, source, piece)).toBe(expected);
});

function isCode(path: string, text: string): boolean {
  return path.endsWith('.pl') || parseSync(path, text).errors.length === 0;
}
