// test/review/names.test.ts: names with another meaning on another file system (attacks A99, A103, A114, A118).
import { describe, expect, test } from 'vitest';
import { caseCollisions, foldPath, inspectName } from '../../src/review/names.ts';

describe('a name is refused', () => {
  const cases: readonly (readonly [path: string, refuse: string])[] = [
    ['', 'The name is empty.'],
    ['/etc/passwd', 'The path is absolute.'],
    ['a\0b', 'The name contains a NUL byte.'],
    ['a\ud800', 'The name is not valid UTF-8.'],
    ['a//b', 'The path has an empty name in it.'],
    ['a/', 'The path has an empty name in it.'],
    ['./a', 'The path contains ".".'],
    ['a/./b', 'The path contains ".".'],
    ['..', 'The path contains "..".'],
    ['a/../../b', 'The path contains "..".'],
    ['a\\..\\b', 'The path contains "..".'],
    ['n'.repeat(256), 'A name is longer than 255 bytes.'],
    ['é'.repeat(128), 'A name is longer than 255 bytes.'],
    [`${'a/'.repeat(2048)}b`, 'The path is longer than 4096 bytes.'],
  ];
  test.each(cases)('%j', (path, refuse) => {
    expect(inspectName(path)).toEqual({ refuse, warnings: [] });
  });

  test.each([
    '.git',
    '.GIT',
    '.Git',
    'a/.git',
    '.git/config',
    'lib/.git/hooks/post-checkout',
    'git~1',
    'GIT~1',
    'git~2',
    '.git ',
    '.git.',
    '.git . .',
    '.git...',
    '.git:stream',
    '.git::$INDEX_ALLOCATION',
    '.GIT::$index_allocation',
    '.git :x',
    '.g\u200cit',
    '.gi\u200dt',
    '\u200e.git',
    '.git\u200f',
    '.g\u202ait',
    '.g\u206fit',
    '\ufeff.git',
    '.git\ufeff',
    '.g\u00adit',
    '．ｇｉｔ',
    '.gıt',
    'a\\.git',
    '.git\\hooks',
    'git~1.',
    '.ｇit',
    '.git\ufe0f',
    '.g\u{e0069}it',
  ])('because a file system may read it as .git: %j', (path) => {
    expect(inspectName(path).refuse).toMatch(/^Some file systems read ".*" as \.git\.$/);
  });

  test('names that only contain the word are accepted', () => {
    const fine = '.github/x .gitignore git digit .gitx x.git agit~1x .git2 git~x ... a..b ..a'.split(' ');
    expect(fine.filter((path) => inspectName(path).refuse !== null)).toEqual([]);
  });

  test('names at exactly the limits are accepted', () => {
    expect(inspectName('n'.repeat(255))).toEqual({ refuse: null, warnings: [] });
    expect(inspectName(`${'a/'.repeat(2047)}ab`)).toEqual({ refuse: null, warnings: [] });
  });
});

describe('a reviewer is warned', () => {
  const cases: readonly (readonly [path: string, warnings: readonly string[]])[] = [
    ['src/app.ts', []],
    ['docs/café.md', []],
    ['資料/日本語.txt', []],
    ['a/new\nline', ['The name contains control characters.']],
    ['\u001b]0;x', ['The name contains control characters.']],
    ['x\u202egpj.exe', ['The name contains invisible or text-reordering characters.']],
    ['a\u200bb', ['The name contains invisible or text-reordering characters.']],
    ['é\u00a0b', ['The name contains a blank that is not a plain space.']],
    ['-rf', ['The name begins with a dash, so a program may take it for an option.']],
    ['src/--output=x', ['The name begins with a dash, so a program may take it for an option.']],
    [' a', ['The name begins with a space.']],
    ['dir /a', ['The name ends in a dot or a space, which Windows drops.']],
    ['a.', ['The name ends in a dot or a space, which Windows drops.']],
    ['NUL', ['The name is reserved on Windows.']],
    ['src/aux.ts', ['The name is reserved on Windows.']],
    ['com¹', ['The name is reserved on Windows.', 'The name can be read as com1, which is another file.']],
    ['a:b', ['The name contains a character that Windows does not allow.']],
    ['GITMOD~1', ['The name has the form of a Windows short name, which can stand for another file.']],
    ['a\ufffd', ['The name contains U+FFFD: its bytes may not be UTF-8.']],
    ['cafe\u0301', ['The name is not in composed Unicode form (NFC); other systems may store it differently.']],
    ['p\u0430ckage.json', ['The name mixes Latin letters with Cyrillic or Greek ones that can look the same.']],
    ['ｐackage.json', ['The name can be read as package.json, which is another file.']],
  ];
  test.each(cases)('%j', (path, warnings) => {
    expect(inspectName(path)).toEqual({ refuse: null, warnings });
  });
});

describe('names that collide on another file system', () => {
  test('are grouped', () => {
    expect(
      caseCollisions([
        'src/a.ts',
        'README.md',
        'readme.md',
        'src/b.ts',
        'caf\u00e9',
        'cafe\u0301',
        'x',
        'x.',
        'ß',
        'SS',
      ]),
    ).toEqual([
      ['README.md', 'readme.md'],
      ['caf\u00e9', 'cafe\u0301'],
      ['x', 'x.'],
      ['ß', 'SS'],
    ]);
  });

  test('include a link that collides with a directory', () => {
    expect(caseCollisions(['A', 'a/post-checkout', 'b/c', 'B/d', 'b/e'])).toEqual([
      ['A', 'a/post-checkout'],
      ['b/c', 'B/d', 'b/e'],
    ]);
  });

  test('do not occur among ordinary names', () => {
    expect(caseCollisions(['a', 'b/a', 'b/c', 'a', 'b'])).toEqual([]);
  });

  test('are found quickly', () => {
    const paths = Array.from(
      { length: 20_000 },
      (_, at) => `src/dir${(at >> 1) % 100}/${at % 2 ? 'File' : 'file'}${at >> 1}.ts`,
    );
    expect(caseCollisions(paths)).toHaveLength(10_000);
    expect(
      caseCollisions(paths.map((path) => path.replace('dir', path.includes('File') ? 'Dir' : 'dir'))),
    ).toHaveLength(100);
  });
});

test('folding maps all spellings of a name to one', () => {
  for (const path of [
    'package.json',
    'PACKAGE.JSON',
    './package.json',
    'package.json.',
    'package.json ',
    'package.json::$DATA',
    'pac\u212aage.json',
    'pack\u200bage.json',
    'ｐａｃｋａｇｅ.json',
    'pac\u212aage.j\u017fon',
  ]) {
    expect(foldPath(path)).toBe('package.json');
  }
  expect(foldPath('A\\b//./C.')).toBe('a/b/c');
  expect(foldPath('...')).toBe('...');
});
