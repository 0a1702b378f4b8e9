// test/docs-links.test.ts: links, anchors and file paths in the documentation are valid, and the index names every page.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const inDocs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).map((path) => join('docs', path));
const PAGES = [...readdirSync(ROOT), ...inDocs].filter((path) => path.endsWith('.md'));

const textOf = (page: string): string => readFileSync(join(ROOT, page), 'utf8');
const withoutCode = (text: string): string => text.replaceAll(/^```[^]*?^```/gm, '');

/** Targets of links and pictures as written, without web addresses. */
function linksOf(text: string): string[] {
  return [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"/g)]
    .map(([, link, picture]) => link ?? picture ?? '')
    .filter((target) => !/^[a-z]+:/.test(target));
}

/** The anchors that GitHub makes from headings. */
function anchorsOf(text: string): Set<string> {
  const headings = [...withoutCode(text).matchAll(/^#{1,6} (.*)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(/\s/g, '-'),
    ),
  );
}

function isBroken(page: string, target: string): boolean {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : join(dirname(page), path);
  if (!existsSync(join(ROOT, file))) return true;
  return anchor !== undefined && file.endsWith('.md') && !anchorsOf(textOf(file)).has(anchor);
}

test.each(PAGES)('the links of %s lead to existing files and headings', (page) => {
  expect(linksOf(textOf(page)).filter((target) => isBroken(page, target))).toEqual([]);
});

test('where-to-change names existing files', () => {
  const named = [
    ...textOf('docs/reference/where-to-change.md').matchAll(/`((?:src|web|test|bench|docs|scripts)\/[\w./-]+)`/g),
  ].map(([, path = '']) => path);
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test('the index names every page', () => {
  const index = new Set(linksOf(textOf('docs/README.md')));
  const pages = PAGES.filter((page) => page.startsWith('docs/') && !/^docs\/(README\.md|decisions\/)/.test(page));
  expect(pages.map((page) => relative('docs', page)).filter((page) => !index.has(page))).toEqual([]);
});

test('the checks find a link to a missing file and to a missing heading', () => {
  expect(isBroken('docs/README.md', 'start/tasks.md')).toBe(false);
  expect(isBroken('docs/README.md', 'start/no-such.md')).toBe(true);
  expect(isBroken('docs/README.md', 'start/tasks.md#no-such')).toBe(true);
});
