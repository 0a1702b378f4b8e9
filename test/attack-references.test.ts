// test/attack-references.test.ts: docs/security/attack-references.md explains exactly the published flaws that attempts name, with the attempts
// and existing tests that cover them.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ATTACKS } from '../src/attack/table/table.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const page = readFileSync(join(ROOT, 'docs/security/attack-references.md'), 'utf8');
const FLAW = /^(CVE-\d{4}-\d{4,}|GHSA(-[0-9a-z]{4}){3})$/;

interface Row {
  readonly flaw: string;
  readonly address: string;
  readonly attempts: readonly string[];
  readonly tests: readonly string[];
}

/** The rows about covered flaws, without the table's head. */
function rows(text: string): Row[] {
  const [tried = ''] = text.split('\n## Not tried\n');
  return tried
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(1)
    .map((line) => {
      const [, name = '', , by = ''] = line.split('|');
      const [, flaw = name, address = ''] = /\[([^\]]+)\]\(([^)]+)\)/.exec(name) ?? [];
      const named = [...by.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
      return {
        flaw,
        address,
        attempts: named.filter((one) => !one.startsWith('test/')),
        tests: named.filter((one) => one.startsWith('test/')),
      };
    });
}

/** The attempts that name each flaw. */
function named(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { id, references } of ATTACKS)
    for (const flaw of references.filter((one) => FLAW.test(one))) found.set(flaw, [...(found.get(flaw) ?? []), id]);
  return found;
}

/** The errors of a page. */
function faults(text: string): string[] {
  const [tables, list] = [named(), rows(text)];
  const told = new Set(list.map(({ flaw }) => flaw));
  return [
    ...[...tables.keys()].filter((flaw) => !told.has(flaw)).map((flaw) => `not explained: ${flaw}`),
    ...list.flatMap(({ flaw, address, attempts, tests }) => {
      const wanted = tables.get(flaw) ?? [];
      return [
        ...(FLAW.test(flaw) && address.startsWith('https://') && address.endsWith(flaw) ? [] : [`no record: ${flaw}`]),
        ...(attempts.length + tests.length > 0 ? [] : [`without an attempt or a test: ${flaw}`]),
        ...wanted.filter((id) => !attempts.includes(id)).map((id) => `${flaw} is also tried by ${id}`),
        ...attempts.filter((id) => !wanted.includes(id)).map((id) => `${flaw} is not tried by ${id}`),
        ...tests.filter((path) => !existsSync(join(ROOT, path))).map((path) => `no such test: ${path}`),
      ];
    }),
  ];
}

test('the page explains every published flaw that an attempt names, and attempts cover every explained flaw', () => {
  expect(faults(page)).toEqual([]);
  expect(rows(page).length).toBeGreaterThan(60);
});

test('each flaw is listed once, in order', () => {
  const list = rows(page).map(({ flaw }) => flaw);
  const order = list.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  expect([...new Set(list)]).toEqual(order);
});

test('no attempt names a flaw that is listed as not covered', () => {
  const [, rest = ''] = page.split('\n## Not tried\n');
  const flaws = [...rest.matchAll(/CVE-\d{4}-\d{4,}/g)].map(([flaw]) => flaw);
  expect(flaws.filter((flaw) => named().has(flaw))).toEqual([]);
  expect(flaws.length).toBeGreaterThan(0);
});

test('a reference is a number of our list, a published flaw, or words', () => {
  const odd = ATTACKS.flatMap(({ references }) => references).filter(
    (one) => /^(cve|ghsa)\b/i.test(one) && !FLAW.test(one),
  );
  expect(odd).toEqual([]);
});

test('the checks find an unexplained flaw, one without an attempt, and one with the wrong attempt', () => {
  const line = page.split('\n').find((one) => one.startsWith('| [CVE-2019-5736]')) ?? '';
  expect(faults(page.replace(`${line}\n`, ''))).toEqual(['not explained: CVE-2019-5736']);
  expect(faults(page.replace(line, line.replace('fs-overwrite-runtime', 'fs-page-cache')))).toEqual([
    'CVE-2019-5736 is also tried by fs-overwrite-runtime',
    'CVE-2019-5736 is not tried by fs-page-cache',
  ]);
  const untried = '| [CVE-2000-0001](https://www.cve.org/CVERecord?id=CVE-2000-0001) | nothing | |';
  expect(faults(page.replace(line, `${line}\n${untried}`))).toEqual(['without an attempt or a test: CVE-2000-0001']);
});
