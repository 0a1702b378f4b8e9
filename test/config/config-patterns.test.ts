import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ETC, HIDE } from '../../src/config/defaults.ts';
import { listEtc } from '../../src/config/etc.ts';
import { compileHidden, compilePatterns, type Matcher } from '../../src/config/patterns.ts';
import { formatDuration, formatSize, readableSize, parseDuration, parseShare, parseSize } from '../../src/lib/units.ts';
import { createFixture, GiB } from './config-fixture.ts';

/** A trailing slash marks a directory. */
const ask = (match: Matcher) => (path: string) => match(path.replace(/\/$/, ''), path.endsWith('/'));

describe('patterns', () => {
  const HIDDEN = [
    '.env',
    'a/.env',
    '.ENV',
    '.env.local',
    'deploy/prod.env',
    'server.pem',
    'x/y/SERVER.PEM',
    'id_rsa',
    '.npmrc',
    '.ssh/',
    'x/.aws/',
    'x/.docker/config.json',
    'terraform.tfstate',
    'terraform.tfstate.1.backup',
    'service-account-prod.json',
    'credentials',
    'config/secrets.yml',
    'auth.json',
    'kubeconfig',
    'wg0.conf',
  ];
  const SHOWN = [
    '.env.example',
    'a/.env.production.sample',
    '.env/',
    'x/certifi/cacert.pem',
    'src/environment.ts',
    'README.md',
    'config.json',
    'docker/config.json',
    'x/auth.json',
    'src/credentials/',
    'id_rsa.pub',
    'key',
    'pem',
    'pkg/kubeconfig/',
    '.ssh',
    'wg10.conf',
    'keys.ts',
    'package.json',
    'monkey',
  ];

  test('the built-in patterns hide secrets, and no files that tools need', () => {
    const hidden = ask(compilePatterns(HIDE));
    expect([...HIDDEN, ...SHOWN].filter(hidden)).toEqual(HIDDEN);
  });

  test.each<[string[], string[], string[]]>([
    [['a*c'], ['ac', 'abc', 'x/abbc'], ['abcd', 'a/c']],
    [['*.tar.gz'], ['x.tar.gz', 'd/.tar.gz'], ['x.gz', 'tar.gz']],
    [['?x'], ['ax', 'd/bx'], ['x', 'aax']],
    [['/a'], ['a'], ['b/a']],
    [['a/b'], ['a/b'], ['x/a/b', 'a/b/c', 'b']],
    [['a/*.ts'], ['a/x.ts'], ['a/b/x.ts', 'x.ts']],
    [['a/**/z'], ['a/z', 'a/b/c/z'], ['a', 'x/a/z']],
    [['**/z'], ['z', 'a/b/z'], ['zz']],
    [['a/**'], ['a', 'a/b', 'a/b/c'], ['b']],
    [['d/'], ['d/', 'x/d/'], ['d', 'x/d']],
    [['*', '!b', 'b.c'], ['a', 'b.c'], ['b']],
    [['x', '!x', 'x'], ['x'], []],
    [['!x', 'x'], ['x'], []],
    [[], [], ['a']],
  ])('%j', (patterns, yes, no) => {
    expect([...yes, ...no].filter(ask(compilePatterns(patterns)))).toEqual(yes);
  });

  test("a user's pattern overrides a built-in exception", () => {
    expect(compilePatterns([...HIDE, '.env.example'])('.env.example', false)).toBe(true);
  });

  test('revealing shows a file, a whole directory, or one path inside a hidden directory', () => {
    const paths = [
      '.env',
      'a/.env',
      'certs/',
      'certs/dev.pem',
      'certs/x/y.pem',
      'other.pem',
      '.aws/',
      '.aws/config',
      '.aws/credentials',
      '.aws/sso/',
      '.kube/',
      'src/x.ts',
    ];
    const hidden = (reveal: string[]): string[] => paths.filter(ask(compileHidden(HIDE, reveal)));
    const all = hidden([]);
    expect(all).toEqual([
      '.env',
      'a/.env',
      'certs/dev.pem',
      'certs/x/y.pem',
      'other.pem',
      '.aws/',
      '.aws/credentials',
      '.kube/',
    ]);
    expect(hidden(['/.env'])).toEqual(all.filter((path) => path !== '.env'));
    expect(hidden(['.env'])).toEqual(all.filter((path) => !path.endsWith('.env')));
    expect(hidden(['certs/'])).toEqual(all.filter((path) => !path.startsWith('certs/')));
    expect(hidden(['.aws/config'])).toEqual([
      '.env',
      'a/.env',
      'certs/dev.pem',
      'certs/x/y.pem',
      'other.pem',
      '.aws/credentials',
      '.aws/sso/',
      '.kube/',
    ]);
  });

  // Backtracking would never end here.
  test('no pattern makes matching slow', () => {
    const matches = compilePatterns([`${'*a'.repeat(60)}*b`, `${'**/a*/'.repeat(30)}b`]);
    expect(matches(`${'a/'.repeat(60)}${'a'.repeat(250)}`, false)).toBe(false);
  });
});

describe('etc', () => {
  test('names expand only to existing files of the directory', () => {
    using at = createFixture();
    const etc = join(at.dir, 'etc');
    for (const path of ['ssl/certs', 'ssl/private', 'java-17-openjdk', 'java-21-openjdk', 'php/8.2/cli', 'php/8.2/fpm'])
      fs.mkdirSync(join(etc, path), { recursive: true });
    fs.writeFileSync(join(etc, 'shadow'), '');
    fs.symlinkSync('../usr/lib/os-release', join(etc, 'os-release'));
    expect(listEtc(ETC, etc)).toEqual(['ssl/certs', 'os-release', 'java-17-openjdk', 'java-21-openjdk', 'php/8.2/cli']);
  });
});

describe('units', () => {
  test('sizes and shares are parsed and formatted', () => {
    expect(['0', '512', '512k', '2g', '1.5G', '4GiB', '4gb', ' 1m '].map(parseSize)).toEqual([
      0,
      512,
      524_288,
      2 * GiB,
      1.5 * GiB,
      4 * GiB,
      4 * GiB,
      2 ** 20,
    ]);
    expect(['', '-1', '1.5', '4x', '1e9', '4 g', '50%', '99999t', 'g', '0x10', 'NaN'].map(parseSize)).toEqual(
      Array<undefined>(11).fill(undefined),
    );
    expect(['50%', '12.5%', '1g', '0%', '101%', '%'].map((text) => parseShare(text, 8 * GiB))).toEqual([
      4 * GiB,
      GiB,
      GiB,
      undefined,
      undefined,
      undefined,
    ]);
    expect([4 * GiB, 1.5 * GiB, 512, 0].map(formatSize)).toEqual(['4g', '1.5g', '512', '0']);
    expect([4 * GiB, 1.25 * GiB, 435.22 * 2 ** 20, 208 * 2 ** 10, 1010, 512, 0].map(readableSize)).toEqual([
      '4 GB',
      '1.3 GB',
      '435 MB',
      '208 kB',
      '1 kB',
      '512 B',
      '0 B',
    ]);
  });

  test('durations are parsed and formatted', () => {
    expect(['90s', '5m', '2h', '1d', '1h30m', '1d1s'].map(parseDuration)).toEqual([
      90, 300, 7200, 86_400, 5400, 86_401,
    ]);
    expect(['', '90', '5 m', '30m1h', '-1s', '1.5h', 'none'].map(parseDuration)).toEqual(
      Array<undefined>(7).fill(undefined),
    );
    expect([5400, 90, 86_400, 0].map(formatDuration)).toEqual(['1h30m', '1m30s', '1d', '0s']);
  });
});
