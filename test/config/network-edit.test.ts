// test/config/network-edit.test.ts: ags edits rules in a file as a person would and changes nothing else in it.
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { editRules, writeWhole, type RuleEdit } from '../../src/config/file/edit-file.ts';
import { configTemplate } from '../../src/config/file/template.ts';

function edit(text: string, change: Partial<RuleEdit>): string {
  const file = { kind: 'project', path: '/p/ags.yaml', label: 'ags.yaml', bytes: Buffer.from(text) } as const;
  return editRules(file, { list: 'allow', add: [], drop: [], ...change }).toString();
}

const ADD = { add: ['new.test', '*.new.test', 'GET,HEAD api.new.test/v1/*'] };
const ITEMS = (indent: string): string =>
  ['new.test', '"*.new.test"', '"GET,HEAD api.new.test/v1/*"'].map((item) => `${indent}- ${item}\n`).join('');
const FLOW = 'new.test, "*.new.test", "GET,HEAD api.new.test/v1/*"';

test.each<[string, string, string]>([
  ['an empty file', '', `network:\n  allow:\n${ITEMS('    ')}`],
  ['comments alone', '# mine\n\n#hide: [x]\n', `# mine\n\n#hide: [x]\n\nnetwork:\n  allow:\n${ITEMS('    ')}`],
  ['another key, without a last line end', 'hide: [x]  # c', `hide: [x]  # c\n\nnetwork:\n  allow:\n${ITEMS('    ')}`],
  [
    'a list, with comments around and behind',
    '# top\nnetwork: # n\n    # before\n    allow: # a\n      # one\n      - a.test # first\n\n      - b.test # last\n      # end\n    mode: on # m\nhide:\n- x\n',
    `# top\nnetwork: # n\n    # before\n    allow: # a\n      # one\n      - a.test # first\n\n      - b.test # last\n${ITEMS('      ')}      # end\n    mode: on # m\nhide:\n- x\n`,
  ],
  [
    'a list that is not indented',
    'network:\n  allow:\n  - a.test\n  mode: on\n',
    `network:\n  allow:\n  - a.test\n${ITEMS('  ')}  mode: on\n`,
  ],
  ['a list at the very end', 'network:\n  allow:\n  - a.test', `network:\n  allow:\n  - a.test\n${ITEMS('  ')}`],
  [
    'a list in brackets',
    'network:\n  allow: [a.test, "b.test"] # c\n',
    `network:\n  allow: [a.test, "b.test", ${FLOW}] # c\n`,
  ],
  [
    'a list in brackets over lines',
    'network:\n  allow: [\n    a.test, # x\n    b.test, # y\n  ]\n',
    `network:\n  allow: [\n    a.test, # x\n    b.test, ${FLOW}, # y\n  ]\n`,
  ],
  ['an empty list in brackets', 'network:\n  allow: []\n', `network:\n  allow: [${FLOW}]\n`],
  [
    'a list without entries',
    'network:\n  allow: # none yet\n  # - a.test\n  mode: on\n',
    `network:\n  allow: # none yet\n${ITEMS('    ')}  # - a.test\n  mode: on\n`,
  ],
  [
    'a section without that list',
    'network:\n    mode: on # m\n',
    `network:\n    allow:\n${ITEMS('      ')}    mode: on # m\n`,
  ],
  [
    'a section without anything',
    'network:\n#  mode: on\nhide: [x]\n',
    `network:\n  allow:\n${ITEMS('    ')}#  mode: on\nhide: [x]\n`,
  ],
  ['a section in braces', 'network: { mode: on }\n', `network: { mode: on, allow: [${FLOW}] }\n`],
  ['an empty section in braces', 'network: {}\n', `network: {allow: [${FLOW}]}\n`],
  ['JSON', '{"hide": ["x"]}\n', `{"hide": ["x"], network: { allow: [${FLOW}] }}\n`],
  [
    'Windows line ends',
    'hide: [x]\r\nnetwork:\r\n  allow:\r\n    - a.test\r\n',
    `hide: [x]\r\nnetwork:\r\n  allow:\r\n    - a.test\r\n${ITEMS('    ').replaceAll('\n', '\r\n')}`,
  ],
  ['a byte order mark', '\ufeffhide: [x]\n', `\ufeffhide: [x]\n\nnetwork:\n  allow:\n${ITEMS('    ')}`],
  [
    'a text with # in it',
    'env:\n  set: { A: "# network:" }\nnetwork:\n  allow:\n    - "a.test" #\n',
    `env:\n  set: { A: "# network:" }\nnetwork:\n  allow:\n    - "a.test" #\n${ITEMS('    ')}`,
  ],
])('%s', (_, before, after) => {
  expect(edit(before, ADD)).toBe(after);
});

test('editing the file of ags init keeps every line', () => {
  expect(edit(configTemplate(), { add: ['a.test'] })).toBe(`${configTemplate()}\nnetwork:\n  allow:\n    - a.test\n`);
});

test.each<[string, string, string]>([
  [
    'a line',
    'network:\n  deny:\n    - x.test\n    - a.test # why\n    - y.test\n',
    'network:\n  allow:\n    - a.test\n  deny:\n    - x.test\n    - y.test\n',
  ],
  ['the only line', 'network:\n  deny:\n    - a.test\n', 'network:\n  allow:\n    - a.test\n  deny:\n'],
  [
    'the last line',
    'network:\n  deny:\n    - x.test\n    - a.test',
    'network:\n  allow:\n    - a.test\n  deny:\n    - x.test\n',
  ],
  ['the first in brackets', 'network: { deny: [a.test, x.test] }\n', 'network: { deny: [x.test], allow: [a.test] }\n'],
  ['the last in brackets', 'network: { deny: [x.test, a.test] }\n', 'network: { deny: [x.test], allow: [a.test] }\n'],
  ['the only one in brackets', 'network: { deny: [ a.test ] }\n', 'network: { deny: [  ], allow: [a.test] }\n'],
])('%s of the opposite list is removed', (_, before, after) => {
  expect(edit(before, { add: ['a.test'], drop: ['a.test'] })).toBe(after);
});

test.each([
  ['an end of the document', 'hide: [x]\n...\n'],
  ['a file that is completely indented', '  hide: [x]\n'],
])('%s is refused with the line to write by hand', (_, text) => {
  expect(() => edit(text, { add: ['a.test'] })).toThrow('ags.yaml is written in a way that ags cannot change safely.');
});

test('a rule cannot inject other content into the file', () => {
  for (const rule of [
    'a.test\nmode: off',
    'a.test # x',
    '"',
    "a', 'b",
    'x: y',
    '- z',
    '[',
    '*a',
    '&a',
    '!a',
    '|',
    'on',
    'null',
    '1.5',
  ]) {
    const text = edit('network:\n  allow: [a.test]\n', { add: [rule] });
    expect(text).toBe(`network:\n  allow: [a.test, ${JSON.stringify(rule)}]\n`);
  }
});

test("a file keeps its mode and owner, a new file gets the directory's owner, and no link is followed", () => {
  const dir = fs.mkdtempSync(join(tmpdir(), 'ags-edit-'));
  try {
    const root = process.getuid?.() === 0;
    if (root) fs.chownSync(dir, 1234, 1235);
    const [file, link] = [join(dir, 'a'), join(dir, 'link')];
    writeWhole(file, 'one', 0o644);
    const made = fs.statSync(file);
    expect([made.mode & 0o777, ...(root ? [made.uid, made.gid] : [1234, 1235])]).toEqual([0o644, 1234, 1235]);
    fs.chmodSync(file, 0o640);
    if (root) fs.chownSync(file, 42, 43);
    fs.symlinkSync('a', link);
    writeWhole(file, 'two', 0o644);
    writeWhole(link, 'three', 0o644);
    const kept = fs.statSync(file);
    expect([kept.mode & 0o777, ...(root ? [kept.uid, kept.gid] : [42, 43])]).toEqual([0o640, 42, 43]);
    expect([fs.readFileSync(file, 'utf8'), fs.lstatSync(link).isFile(), fs.readdirSync(dir)]).toEqual([
      'two',
      true,
      ['a', 'link'],
    ]);
  } finally {
    fs.rmSync(dir, { recursive: true });
  }
});
