// test/attacks/mutation/pipeline-parts-files.ts: attempts against the parts of the pipeline that read names, texts and files of an agent, and
// those that write into the user's tree. See parts.ts.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Change } from '../../../src/protocol/changes.ts';
import type * as Lanes from '../../../src/review/lanes.ts';
import type * as Upper from '../../../src/review/upper.ts';
import type * as AgentIndex from '../../../src/results/agent-index.ts';
import { allowed, type PartAttempt } from './parts.ts';

const HOSTILE_NAMES =
  '|/etc/x|a\0b|\uD800|a//b|a/./b|../x|x/../../y|.git|a/.GIT/hooks/x|git~1|.git |.git.|.g\u200Cit|.git::$INDEX_ALLOCATION|x\\..\\.git|\uFF0Egit|.g\u0131t'
    .split('|')
    .concat('x'.repeat(256), `${'a/'.repeat(2100)}x`);

const names: PartAttempt = async (use) => {
  const { inspectName } = await use(() => import('../../../src/review/names.ts'));
  return HOSTILE_NAMES.filter((name) => inspectName(name).refuse === null).map((name) => JSON.stringify(name));
};

const ESC = '\u001B';

const words: PartAttempt = async (use) => {
  const { visible, createSanitizer } = await use(() => import('../../../src/lib/sanitize.ts'));
  const text = `a${ESC}]0;owned\u0007b\u202Ec\r\u009B2Jd`;
  const pieces = createSanitizer({ maxLine: 100 });
  const shown = [...text, 'x'.repeat(500)].map((piece) => pieces.push(piece)).join('') + pieces.end();
  const whole = createSanitizer({ maxLine: 100 });
  const all = whole.push(text) + whole.end();
  const coloured = createSanitizer({ keepColour: true });
  const long = coloured.push(`${ESC}[${'1;'.repeat(200)}m`) + coloured.end();
  return [
    ...[visible(text), shown, all].filter((one) => /[\u001B\u0007\u202E\r\u009B]/.test(one)).map(() => 'obeyed'),
    ...(visible('a\nb').includes('\n') ? ['a name of two lines'] : []),
    ...(shown.length > 400 ? ['a line without an end'] : []),
    ...(long.includes(`${ESC}[1;1;`) ? ['a colour without an end'] : []),
  ];
};

/** A directory with links that lead out of it, and the directory that they lead to. */
function linked(dir: string): { inside: string; outside: string } {
  const [inside, outside] = [join(dir, 'inside'), join(dir, 'outside')];
  for (const path of [inside, outside, join(outside, 'sub')]) mkdirSync(path);
  writeFileSync(join(outside, 'secret'), 'secret');
  symlinkSync('../outside', join(inside, 'directory'));
  symlinkSync('../outside/secret', join(inside, 'file'));
  symlinkSync('../outside/new', join(inside, 'dangling'));
  return { inside, outside };
}

const links: PartAttempt = async (use, dir) => {
  const { openDirectory } = await use(() => import('../../../src/lib/descend.ts'));
  const { inside, outside } = linked(dir);
  execFileSync('mkfifo', [join(inside, 'pipe')]);
  using here = openDirectory(inside);
  return [
    ...(await allowed('entered a link', () => here.child('directory')[Symbol.dispose]())),
    ...(await allowed('opened through a link', () => openDirectory(join(inside, 'directory/sub'))[Symbol.dispose]())),
    ...(await allowed('read through a link', () => here.readFile('file', 100))),
    ...(await allowed('wrote through a link', () => here.writeNew('dangling', Buffer.from('x'), 0o644))),
    ...(await allowed('read a pipe', () => here.readFile('pipe', 100))),
    ...(await allowed('left by a name', () => here.child('..')[Symbol.dispose]())),
    ...(await allowed('left by a path', () => here.readFile('../outside/secret', 100))),
    ...(existsSync(join(outside, 'new')) ? ['made a file outside'] : []),
  ];
};

const apply: PartAttempt = async (use, dir) => {
  const { applyChange, hostState } = await use(() => import('../../../src/review/apply.ts'));
  const { inside, outside } = linked(dir);
  mkdirSync(join(inside, '.git'));
  writeFileSync(join(inside, 'mine.txt'), 'mine\n');
  writeFileSync(join(inside, 'strong'), 'mine\n');
  chmodSync(join(inside, 'strong'), 0o4755);
  const write = (path: string, expect = hostState(inside, path)): ReturnType<typeof applyChange> =>
    applyChange({ project: inside, op: { kind: 'write', path, mode: '100755', bytes: Buffer.from('x') }, expect });
  for (const path of ['.git/hook', 'directory/new', '../outside/new']) await allowed(path, () => write(path, null));
  await write('strong');
  await write('mine.txt', null);
  return [
    ...readdirSync(join(inside, '.git')).map(() => 'wrote into .git'),
    ...readdirSync(outside).filter((name) => name === 'new'),
    ...(readFileSync(join(inside, 'mine.txt'), 'utf8') === 'mine\n' ? [] : ['wrote over what it was not shown']),
    ...((lstatSync(join(inside, 'strong')).mode & 0o6000) === 0 ? [] : ['its text got a set-user-id bit']),
  ];
};

const journal: PartAttempt = async (use, dir) => {
  const { recover } = await use(() => import('../../../src/review/journal.ts'));
  const [project, place] = [join(dir, 'project'), join(dir, 'journal')];
  for (const path of [project, place]) mkdirSync(path);
  writeFileSync(join(project, 'mine.txt'), 'mine\n');
  const step = { path: 'x', temporary: 'mine.txt', made: [], before: null, copy: '0', after: null, outcome: null };
  writeFileSync(
    join(place, 'journal.json'),
    JSON.stringify({ version: 1, state: 'applying', project, steps: [{ ...step }] }),
  );
  await allowed('', () => recover(place));
  return existsSync(join(project, 'mine.txt')) ? [] : ['a file of the user is gone'];
};

const upper: PartAttempt = async (use, dir) => {
  const { listUpper } = await use(() => import('../../../src/review/upper.ts'));
  const [root, lower] = [join(dir, 'upper'), join(dir, 'lower')];
  for (const path of ['.Git/hooks', 'closed', 'a/b/c', 'linked'].map((one) => join(root, one)))
    mkdirSync(path, { recursive: true });
  for (const path of ['.Git/hooks/x', 'closed/x', 'unreadable', 'suid', 'a/b/c/deep', 'plain'])
    writeFileSync(join(root, path), 'x');
  writeFileSync(Buffer.concat([Buffer.from(`${root}/bad`), Buffer.from([0xff])]), 'x');
  execFileSync('mkfifo', [join(root, 'pipe')]);
  symlinkSync('../outside', join(root, 'out'));
  for (const [path, mode] of Object.entries({ closed: 0o300, unreadable: 0o200, suid: 0o4755 }))
    chmodSync(join(root, path), mode);
  // The user's own directory under this name is a link: an agent cannot delete what it leads to.
  for (const path of [lower, join(dir, 'outside')]) mkdirSync(path);
  writeFileSync(join(dir, 'outside/mine'), 'x');
  symlinkSync('../outside', join(lower, 'linked'));
  const list = (limits = { entries: 1000, depth: 50 }, isOpaque = (path: string): boolean => path === 'linked') =>
    listUpper({ upper: root, lower, hidden: () => false, isOpaque, limits });
  let entries: Upper.UpperListing['entries'];
  try {
    ({ entries } = list());
  } catch (error) {
    return [String(error)];
  } finally {
    chmodSync(join(root, 'closed'), 0o700);
  }
  const seen = new Map(entries.map((entry) => [`${entry.kind} ${entry.path}`, entry]));
  return [
    ...[...seen.keys()].filter((line) =>
      /\.git|pipe|unreadable|closed|bad|out\/|deleted linked\//i.test(line.slice(0, 200)),
    ),
    ...((seen.get('written suid')?.mode ?? 0) > 0o777 ? ['a set-user-id bit'] : []),
    ...(await allowed('more than so many', () => list({ entries: 5, depth: 50 }))),
    ...(await allowed('deeper than so deep', () => list({ entries: 1000, depth: 3 }))),
  ];
};

const longPaths: PartAttempt = async (use, dir) => {
  const { listUpper } = await use(() => import('../../../src/review/upper.ts'));
  const [root, lower] = [join(dir, 'upper'), join(dir, 'lower')];
  for (const path of [root, lower]) mkdirSync(path);
  execFileSync('perl', ['-e', 'for (1 .. 21) { mkdir "d" x 200; chdir "d" x 200 or die }'], { cwd: root });
  const all = { upper: root, lower, hidden: () => false, isOpaque: () => false, limits: { entries: 100, depth: 100 } };
  const found = await allowed('a path that no program can open', () => listUpper(all));
  execFileSync('rm', ['-rf', root]);
  return found;
};

/** A member of an archive, with extended headers before it. */
function member(name: string, records: readonly string[] = [], type = '5'): Buffer[] {
  const header = (text: string, kind: string, bytes: number): Buffer => {
    const block = Buffer.alloc(512);
    block.write(text, 0, 'latin1');
    block.write(`${bytes.toString(8).padStart(11, '0')}\0`, 124, 'latin1');
    block.write(' '.repeat(8), 148, 'latin1');
    block.write(kind, 156, 'latin1');
    block.write('ustar\x0000', 257, 'latin1');
    const sum = block.reduce((total, byte) => total + byte, 0);
    block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    return block;
  };
  const lines = records.map((record) => {
    const length = record.length + 2;
    const whole = length + String(length + 2).length;
    return `${whole} ${record}\n`;
  });
  const body = Buffer.from(lines.join(''), 'latin1');
  const extended = body.length === 0 ? [] : [header('pax', 'x', body.length), pad(body)];
  return [...extended, header(name, type, 0)];
}

const pad = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)]);
const archive = (...members: readonly Buffer[][]): Buffer => Buffer.concat([...members.flat(), Buffer.alloc(1024)]);

const marks: PartAttempt = async (use) => {
  const { parseOpaque } = await use(() => import('../../../src/review/opaque.ts'));
  const mark = (name: string): string => `SCHILY.xattr.user.overlay.${name}`;
  const good = archive(member('./a/', [mark('opaque=y')]));
  if (!parseOpaque(good, ['a']).has('a')) return ['the archive is not read'];
  const HOSTILE: readonly (readonly [string, Buffer, string[]?])[] = [
    ['a redirect', archive(member('./a/', [mark('redirect=/etc')]))],
    ['another record', archive(member('./a/', ['linkpath=/etc/passwd']))],
    ['a directory twice', archive(member('./a/'), member('./a/'))],
    ['one too many', archive(member('./a/'), member('./b/')), ['a']],
    ['a file', archive(member('./a', [], '0'))],
    ['a way out', archive(member('./../a/'))],
    ['half an answer', good.subarray(0, 1024)],
  ];
  return (
    await Promise.all(HOSTILE.map(([what, bytes, asked]) => allowed(what, () => parseOpaque(bytes, asked))))
  ).flat();
};

const file = (text: string | null, mode: '100644' | '100755' | '120000' = '100644'): Lanes.Content => ({
  mode,
  text,
  bytes: 10,
});

const lanes: PartAttempt = async (use) => {
  const { classify } = await use(() => import('../../../src/review/lanes.ts'));
  const RISKY: readonly Lanes.ClassifyInput[] = [
    { path: '.GitHub/Workflows/x.yml', before: null, after: file('x') },
    { path: 'sub/.hus\u200Cky/pre-commit.txt', before: null, after: file('x') },
    { path: 'harmless.txt', from: '.husky/pre-commit', before: file('x'), after: file('x') },
    { path: 'run.txt', before: file('x'), after: file('x', '100755') },
    { path: 'mixed.txt', before: file('x'), after: file('x\u202E', '100755') },
    { path: 'link.txt', before: null, after: file('../../outside', '120000') },
    { path: 'unknown.txt', before: null, after: file(null) },
    { path: 'script', before: null, after: file('#!/bin/sh\n') },
    { path: 'package.json', before: null, after: file('{"description":"plain"}') },
  ];
  return RISKY.filter((one) => classify(one).lane === 'inert').map(({ path }) => path);
};

const selection: PartAttempt = async (use) => {
  const { select } = await use(() => import('../../../src/review/selection.ts'));
  const change = (path: string, lane: Change['lane'], conflict: Change['conflict']): Change =>
    ({ path, lane, conflict }) as Change;
  const all = [change('a', 'host', 'none'), change('b', 'inert', 'conflicts'), change('c', 'ci', 'none')];
  const none = { accept: [], acceptAll: false, discard: [], discardAll: false, risky: [] };
  return [
    ...select(all, { ...none, acceptAll: true }).take,
    ...select(all, { ...none, accept: ['*', 'a', 'b', 'c'] }).take,
  ].map(({ path }) => path);
};

const index: PartAttempt = async (use) => {
  const { planIndex } = await use(() => import('../../../src/results/agent-index.ts'));
  const entry = (mode: string, digit: string): AgentIndex.Entry => ({ mode, oid: digit.repeat(40) });
  const [link, plain] = [entry('160000', '1'), entry('100644', '2')];
  const base = new Map([['module', link]]);
  const never = ['repository', 'bad\u00FF', 'git~1/x', 'notes'];
  const tip = new Map([
    ['module', entry('160000', '3')],
    ...never.map((path) => [path, path === 'repository' ? link : plain] as const),
  ]);
  const written = ['module/x', 'git~1/y', 'notes', 'plain.txt'].map((path) => ({
    path,
    kind: 'written' as const,
    type: 'file' as const,
    mode: 0o644,
    bytes: 1,
  }));
  const { set, add } = planIndex({
    hidden: [],
    workspace: 'overlay',
    listing: { entries: written, directories: [], removed: [], refused: [] },
    facts: { head: null, headTree: null, tip, base, gone: new Set(), others: [] },
    isScratch: (path) => path === 'notes',
  });
  return [
    ...never.filter((path) => set.get(path) !== null).map((path) => `${path} stays`),
    ...(set.get('module') === link ? [] : ['a submodule was moved']),
    ...add.filter((path) => path !== 'plain.txt').map((path) => `${path} comes`),
  ];
};

export const FILE_PARTS = {
  names,
  words,
  links,
  apply,
  journal,
  upper,
  'long paths': longPaths,
  marks,
  lanes,
  selection,
  index,
} as const satisfies Record<string, PartAttempt>;
