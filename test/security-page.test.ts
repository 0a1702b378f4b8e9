// test/security-page.test.ts: every claim of SECURITY.md names existing attempts or tests as its proof.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ATTACKS } from '../src/attack/table/table.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const page = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8');

/** The rows of the tables below a heading, without their heads. */
function rows(text: string, heading: string): string[] {
  const from = text.indexOf(`### ${heading}\n`);
  if (from < 0) return [];
  const section = text.slice(from, text.indexOf('\n#', from + 4));
  return section
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2);
}

/** The names in the last cell, and those that are neither an attempt nor a test. */
function proofs(row: string): { named: string[]; unknown: string[] } {
  const cell = row.split('|').at(-2) ?? '';
  const named = [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
  return { named, unknown: named.filter((name) => !exists(name)) };
}

function exists(name: string): boolean {
  if (name.startsWith('test/')) return existsSync(join(ROOT, name));
  const pattern = new RegExp(`^${name.replaceAll('*', '.+')}$`);
  return ATTACKS.some(({ id }) => pattern.test(id));
}

/** The errors in the claims of a page. */
function faults(text: string): string[] {
  const claims = ['Stopped', 'Limited', 'What each backend adds'].map((heading) => rows(text, heading));
  if (claims.some((list) => list.length === 0)) return ['a table is missing'];
  return claims.flat().flatMap((row) => {
    const { named, unknown } = proofs(row);
    if (named.length === 0) return [`no proof: ${row}`];
    return unknown.map((name) => `no such proof: ${name}`);
  });
}

test('every claim of SECURITY.md names an existing proof', () => {
  expect(faults(page)).toEqual([]);
});

test('the checks find a claim without a proof and one with a missing proof', () => {
  const [first = ''] = rows(page, 'Stopped');
  const without = `${first.split('|').slice(0, 2).join('|')}| |`;
  expect(faults(page.replace(first, without))).toEqual([`no proof: ${without}`]);
  const wrong = '| fly | `fs-no-such-thing` `test/no-such.test.ts` `nothing-*` |';
  expect(faults(page.replace(first, wrong))).toEqual(
    ['fs-no-such-thing', 'test/no-such.test.ts', 'nothing-*'].map((name) => `no such proof: ${name}`),
  );
  expect(faults(page.replace('### Limited', '### Gone'))).toEqual(['a table is missing']);
});

test('every attempt that is only limited is claimed as limited, not as stopped', () => {
  const limited = rows(page, 'Limited').flatMap((row) => proofs(row).named);
  const claimed = (id: string): boolean =>
    limited.some((name) => new RegExp(`^${name.replaceAll('*', '.+')}$`).test(id));
  expect(ATTACKS.filter(({ best, id }) => best === 'limited' && !claimed(id)).map(({ id }) => id)).toEqual([]);
});

test('other files that the page names exist', () => {
  const named = [...page.matchAll(/`(test\/[\w./-]+)`|\((docs\/[\w./-]+)/g)].map((match) => match[1] ?? match[2] ?? '');
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});
