// test/scripts/runner.test.ts: which test files a command runs, their needs, and the report about skipped ones.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { allTestFiles, declared, describeFile, tierOf } from '../../scripts/needs.mjs';
import { sentence } from '../../scripts/sandbox-works.mjs';
import { addCounts, countsLine, selectFiles, skipLines, splitArgs } from '../../scripts/select.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FILES = allTestFiles().map(describeFile);
const of = (file: string): (typeof FILES)[number] | undefined => FILES.find((one) => one.file === file);

test("a file's name gives its tier", () => {
  expect(['a.test.ts', 'b/a.full.test.ts', 'a.proof.test.ts'].map(tierOf)).toEqual(['core', 'full', 'proof']);
});

test('needs and uses are read from their own lines, and an unknown name is an error', () => {
  const text = '// x.ts: for docker\n// needs: docker, curl\n// uses: openssl\nimport x;\n// needs curl too\n';
  expect([declared(text, 'needs'), declared(text, 'uses')]).toEqual([['docker', 'curl'], ['openssl']]);
  expect(() => declared('// needs: dokcer', 'needs')).toThrow('scripts/needs.mjs does not know dokcer');
});

test('needs of an imported helper count, and the caller matters only to files that use it', () => {
  expect(of('test/web/walk.test.ts')).toMatchObject({ tier: 'core', needs: ['chromium', 'sandbox'], callers: false });
  expect(of('test/conformance/docker.full.test.ts')?.uses).toContain('docker');
  expect(of('test/conformance/native.test.ts')).toMatchObject({ needs: ['sandbox'], callers: true });
  expect(of('test/review/lanes.test.ts')).toMatchObject({ needs: [], uses: [], callers: false });
});

test('npm test needs only what it may install, except for one browser test', () => {
  const core = FILES.filter(({ tier }) => tier === 'core');
  const more = core.filter(({ needs }) => needs.some((name) => name !== 'sandbox' && name !== 'low-ports'));
  expect(more.map(({ file }) => file)).toEqual(['test/web/walk.test.ts']);
});

/** Finds undeclared servers and engines of core tests by name. */
test('no core test uses an engine, a server or a browser that it does not declare', () => {
  const known = /'(?:\/usr\/bin\/)?(?:chromium|dockerd|redis-server|mariadbd|nats-server|memcached|sshd|javac|tmux)'/;
  const named = FILES.filter(
    ({ file, tier, needs, uses }) =>
      tier === 'core' && needs.length + uses.length === 0 && known.test(readFileSync(join(ROOT, file), 'utf8')),
  );
  expect(named.map(({ file }) => file).filter((file) => file !== 'test/scripts/runner.test.ts')).toEqual([]);
});

test("words in a file's path select files of any tier; the rest goes to vitest", () => {
  const files = ['test/a.test.ts', 'test/b/c.full.test.ts'];
  expect(splitArgs(['./test/b', '-t', 'some name'], files)).toEqual({
    named: ['test/b'],
    options: ['-t', 'some name'],
    unknown: [],
  });
  expect(splitArgs(['test/queries', '--bail'], files).unknown).toEqual(['test/queries']);
});

test('npm run test:all adds what npm test skips in the core', () => {
  const one = (file: string, more = {}): Parameters<typeof selectFiles>[0][number] => ({
    file,
    tier: tierOf(file),
    needs: [],
    uses: [],
    callers: false,
    ...more,
  });
  const all = [
    one('a.test.ts'),
    one('caller.test.ts', { needs: ['sandbox'], callers: true }),
    one('page.test.ts', { needs: ['chromium'] }),
    one('b.full.test.ts'),
    one('c.proof.test.ts'),
  ];
  const run = (tier: string, isRoot = true, named: string[] = []): string[] =>
    selectFiles(all, { tier, named, isRoot }).map(({ file }) => file);
  expect(run('core')).toEqual(['a.test.ts', 'caller.test.ts', 'page.test.ts']);
  expect(run('full')).toEqual(['caller.test.ts', 'page.test.ts', 'b.full.test.ts']);
  expect(run('full', false)).toEqual(['page.test.ts', 'b.full.test.ts']);
  expect(run('proof')).toEqual(['c.proof.test.ts']);
  expect(run('core', true, ['b.full', 'c.'])).toEqual(['b.full.test.ts', 'c.proof.test.ts']);
});

test('each reason for a skip has one line with the command that runs the tests', () => {
  expect(
    skipLines(
      [{ file: 'test/web/walk.test.ts', missing: ['chromium'] }],
      [
        { file: 'test/a.test.ts', why: 'needs openssl' },
        { file: 'test/b.test.ts', why: 'needs openssl' },
      ],
    ),
  ).toEqual([
    'skipped: 1 file (needs chromium); to try: npm run test:all -- test/web/walk.test.ts',
    'skipped: 2 tests (needs openssl); to try: npm run test:all',
  ]);
});

test('counts of several runs are added in one line', () => {
  const counts = addCounts([
    { passed: 3, failed: 0, skipped: 1 },
    { passed: 4, failed: 1, skipped: 0 },
  ]);
  expect(countsLine(counts)).toBe('7 passed, 1 failed, 1 skipped');
});

test("the reason why no sandbox starts is one sentence with doctor's fix and an alternative", () => {
  const doctor = JSON.stringify({
    checks: [
      { status: 'ok', message: 'Linux' },
      { status: 'missing', message: 'User namespaces are switched off.', fix: 'Run: sudo sysctl -w x=1' },
    ],
  });
  const words =
    'User namespaces are switched off; run: sudo sysctl -w x=1; or use containers instead: --backend docker.';
  expect(sentence(doctor)).toBe(`No sandbox can be started here: ${words}`);
  expect(sentence('')).toContain('see: ./ags doctor');
});
