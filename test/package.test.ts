// test/package.test.ts: the packed tarball, installed in a temporary directory.
// uses: sandbox
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMachine, HAS_SANDBOX } from './harness.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
let dir = '';

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'ags-package-'));
  const quiet = { cwd: ROOT, encoding: 'utf8' as const, stdio: 'pipe' as const };
  // The scripts have built dist/; packing must not rebuild it while other tests use it.
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', dir], quiet),
  ) as { filename: string }[];
  execFileSync(
    'npm',
    [
      'install',
      '--global',
      '--prefix',
      join(dir, 'prefix'),
      '--prefer-offline',
      '--no-audit',
      '--no-fund',
      join(dir, packed?.filename ?? ''),
    ],
    quiet,
  );
}, 120_000);

afterAll(() => rmSync(dir, { recursive: true, force: true }));

const installed = (): string => join(dir, 'prefix/lib/node_modules/@ags/cli');

test.runIf(HAS_SANDBOX)('the installed command runs a sandbox', async () => {
  using machine = createMachine('root');
  const out = execFileSync(
    join(dir, 'prefix/bin/ags'),
    ['exec', '--', 'sh', '-c', 'echo "$AGS_SANDBOX"; cat README.md'],
    { cwd: machine.project, env: machine.env, encoding: 'utf8' },
  );
  expect(out).toBe('1\n# project\n');
});

test('the package knows its version and its commands', () => {
  const run = (...args: string[]): string => execFileSync(join(dir, 'prefix/bin/ags'), args, { encoding: 'utf8' });
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  expect(run('--version')).toBe(`${version}\n`);
  expect(run('help')).toContain('review');
});

test('the package has the command and no source, tests or machine-specific files', () => {
  expect(readdirSync(installed()).toSorted()).toEqual([
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'SECURITY.md',
    'bin',
    'dist',
    'node_modules',
    'package.json',
  ]);
  expect(readdirSync(join(installed(), 'dist'))).toEqual(['bundle', 'web']);
});

test('ags exec first loads neither zod nor yaml', () => {
  const bundle = join(installed(), 'dist/bundle');
  const hot = readdirSync(bundle).filter((name) => name === 'hot.cjs' || name === 'main.cjs');
  const text = hot.map((name) => readFileSync(join(bundle, name), 'utf8')).join('');
  expect({ files: hot.length, zod: /ZodType|\$ZodObject/.test(text), yaml: /parseDocument/.test(text) }).toEqual({
    files: 2,
    zod: false,
    yaml: false,
  });
});
