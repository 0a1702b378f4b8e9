// test/attacks/mutation/pipeline-parts-git.ts: attempts against the parts of the pipeline that start git. See parts.ts.
import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type * as Belonging from '../../../src/git/belonging.ts';
import type * as Brought from '../../../src/git/staging/brought.ts';
import { blob, commit, makePack, objectId, tree, type PackObject } from '../../git/hostile-pack.ts';
import type { Use } from './mutated-source.ts';
import { allowed, type PartAttempt } from './parts.ts';

const plain = blob('a\n');
const top = tree([['100644', 'a', plain]]);
const root = commit(top, 'base');
const on = (of: PackObject, parent: PackObject, message: string): PackObject => ({
  type: 'commit',
  data: Buffer.from(
    `tree ${objectId(of)}\nparent ${objectId(parent)}\nauthor a <a@b> 0 +0000\ncommitter a <a@b> 0 +0000\n\n${message}\n`,
  ),
});
const next = on(top, root, 'next');

/** A staging repository of ags with these objects in it. */
async function stagingWith(use: Use, dir: string, objects: readonly PackObject[]): Promise<string> {
  const { createStaging } = await use(() => import('../../../src/git/staging/staging.ts'));
  const staging = join(dir, 'staging.git');
  createStaging(staging, 'sha1');
  const input = makePack(objects);
  execFileSync('git', ['--git-dir', staging, 'unpack-objects', '-q'], { input, stdio: ['pipe', 'ignore', 'ignore'] });
  return staging;
}

const ESC = '\u001B';

const texts: PartAttempt = async (use) => {
  const { readCommit, signature, withTrailers, oneLine } = await use(() => import('../../../src/git/commit-text.ts'));
  const text = (header: string, message: string): Buffer =>
    Buffer.from(
      `tree ${'1'.repeat(40)}\nauthor a <a@b> 0 +0000\ncommitter a <a@b> 0 +0000\n${header}\n${message}`,
      'latin1',
    );
  const HOSTILE: Readonly<Record<string, Buffer>> = {
    'a text that a terminal obeys': text('', `x${ESC}]0;owned\u0007`),
    'another header': text('gpgsig x\n', 'x'),
    'an encoding': text('encoding utf-7\n', 'x'),
    'no text': text('', 'x\xff'),
    'a text without an end': text('', 'x'.repeat(300 * 1024)),
  };
  return [
    ...Object.entries(HOSTILE).flatMap(([what, bytes]) => (readCommit(bytes) === null ? [] : [what])),
    ...(signature({ name: 'a\nparent b <', email: 'x>\n' }, new Date(0)).split(/[\n<>]/).length > 3 ? ['a name'] : []),
    ...(/other/.test(withTrailers('x\n\nAgs-Task: other', [['Ags-Task', 'this']])) ? ['a word of ours'] : []),
    ...(withTrailers(`x${ESC}[2J`, []).includes(ESC) ? ['a text of ours that a terminal obeys'] : []),
    ...(/[\n\u202E]/.test(oneLine('a\nAgs-Task: other\u202E')) ? ['a line of two'] : []),
  ];
};

const history: PartAttempt = async (use, dir) => {
  const { judgeHistory, BROUGHT_LIMITS } = await use(() => import('../../../src/git/staging/brought.ts'));
  const wrong = tree([['120000', 'wrong', plain]]);
  const unreadable: PackObject = {
    type: 'tree',
    data: Buffer.concat([Buffer.from('100644 bad\xff\0', 'latin1'), Buffer.from(objectId(plain), 'hex')]),
  };
  const [hidden, odd] = [on(wrong, root, 'hidden'), on(unreadable, root, 'odd')];
  const signed: PackObject = {
    type: 'commit',
    data: Buffer.from(next.data.toString().replace('\n\n', '\ngpgsig x\n\n')),
  };
  const TIPS: Readonly<Record<string, PackObject>> = {
    'what does not build on the base': commit(top, 'orphan'),
    'a header of its own': on(top, signed, 'clean'),
    'a file that was there for a while': on(top, hidden, 'clean'),
    'a name that is no text': on(top, odd, 'clean'),
    'more than so many': on(top, on(top, next, 'more'), 'more'),
  };
  const below = [plain, top, root, wrong, unreadable, hidden, odd, signed, next, on(top, next, 'more')];
  const staging = await stagingWith(use, dir, [...below, ...Object.values(TIPS)]);
  const limits = { ...BROUGHT_LIMITS, commits: 2 };
  const isWrong = (path: string): boolean => path === 'wrong';
  const kept = (tip: PackObject): Promise<{ keep: boolean }> =>
    judgeHistory(staging, objectId(tip), objectId(root), isWrong, limits);
  if (!(await kept(next)).keep) return ['an ordinary history is not kept'];
  const judged = await Promise.all(
    Object.entries(TIPS).map(async ([what, tip]) => ((await kept(tip)).keep ? what : '')),
  );
  return judged.filter((what) => what !== '');
};

const whole: PartAttempt = async (use, dir) => {
  const { requireWhole, BROUGHT_LIMITS } = await use(() => import('../../../src/git/staging/brought.ts'));
  const large = blob(Buffer.alloc(2 ** 16));
  const big = tree([['100644', 'large', large]]);
  const hole = tree([['100644', 'missing', 'ab'.repeat(20)]]);
  const [tip, holed] = [on(big, root, 'large'), on(hole, root, 'hole')];
  const staging = await stagingWith(use, dir, [plain, top, root, large, big, tip, hole, holed]);
  const look = (of: PackObject, limits: Partial<Brought.BroughtLimits> = {}): Promise<void> =>
    requireWhole(staging, objectId(of), objectId(root), { ...BROUGHT_LIMITS, ...limits });
  await look(tip);
  return [
    ...(await allowed('a hole', () => look(holed))),
    ...(await allowed('a large file', () => look(tip, { fileBytes: 2 ** 15 }))),
    ...(await allowed('much in all', () => look(tip, { totalBytes: 2 ** 15 }))),
    ...(await allowed('many objects', () => look(tip, { objects: 1 }))),
    ...(await allowed('as much memory as there is', () => look(tip, { memoryBytes: 2 ** 16 }))),
    ...(await allowed('as long as it takes', async () => {
      // A single git may finish before the deadline.
      for (let n = 0; n < 20; n++) await look(tip, { timeoutMs: 1 });
    })),
  ];
};

const packs: PartAttempt = async (use, dir) => {
  const { receivePack, createStaging } = await use(() => import('../../../src/git/staging/staging.ts'));
  const evil = tree([['40000', '.git', top]]);
  const modules = blob('[submodule "../../x"]\n\tpath = x\n\turl = -oProxyCommand=evil\n\tupdate = !evil\n');
  const late = tree([['100644', '.gitmodules', modules]]);
  const noise = blob(randomBytes(20_000));
  const bad = makePack([plain, top, evil, commit(evil)]);
  const long = makePack([noise, tree([['100644', 'f', noise]])]);
  const bomb = makePack([{ type: 'tree', data: Buffer.alloc(2 ** 20), claims: 3 * 2 ** 30 }]);
  const take = (name: string, pack: Buffer, maxBytes = 2 ** 20, maxObjects = 100): Promise<void> => {
    const staging = join(dir, name);
    createStaging(staging, 'sha1');
    return receivePack(staging, Readable.from([pack]), maxBytes, 20_000, maxObjects);
  };
  await take('good', makePack([plain, top, root]));
  const why = await take('bomb', bomb).catch((error: unknown) => String(error));
  return [
    ...(await allowed('a tree with a .git', () => take('bad', bad))),
    ...(await allowed('a submodule that is a command', () => take('late', makePack([modules, late, commit(late)])))),
    ...readdirSync(join(dir, 'late/objects/pack')).filter((name) => name.endsWith('.pack')),
    ...(await allowed('more bytes', () => take('long', long, 4096))),
    ...(await allowed('more objects', () => take('many', makePack([plain, top, root]), 2 ** 20, 2))),
    ...(/[Oo]ut of memory/.test(why ?? '') ? [] : ['as much memory as it claims']),
  ];
};

/** Attempts by a git in a sandbox that answers as it likes. */
const answers: PartAttempt = async (use, dir) => {
  const { leftOut } = await use(() => import('../../../src/results/capture.ts'));
  const more = tree([
    ['100644', 'a', plain],
    ['100644', 'b', plain],
  ]);
  const link = tree([['120000', 'a', plain]]);
  const longer = blob('longer\n');
  const other = tree([['100644', 'a', longer]]);
  const staging = await stagingWith(use, dir, [plain, top, more, link, longer, other]);
  const wanted = [{ path: 'a', kind: 'written', type: 'file', mode: 0o644, bytes: 2 }] as const;
  const look = (of: PackObject): Promise<unknown> => leftOut(staging, objectId(of), wanted);
  await look(top);
  return [
    ...(await allowed('one file more', () => look(more))),
    ...(await allowed('a link in place of a file', () => look(link))),
    ...(await allowed('another size', () => look(other))),
  ];
};

/** The user's settings name a program and colours, and the changed file looks binary. */
const differences: PartAttempt = async (use, dir) => {
  const [staging, home] = [join(dir, 'staging.git'), join(dir, 'home')];
  mkdirSync(home);
  writeFileSync(join(home, '.gitconfig'), `[diff]\n\texternal = "touch ${dir}/ran; true"\n[color]\n\tui = always\n`);
  const before = process.env['HOME'];
  process.env['HOME'] = home;
  try {
    const { createStaging, diffBlobs, storeBlob } = await use(() => import('../../../src/git/staging/staging.ts'));
    createStaging(staging, 'sha1');
    const ids = [await storeBlob(staging, Buffer.from('a\n')), await storeBlob(staging, Buffer.from('\0EVIL\n'))];
    const shown = await diffBlobs(staging, ids[0] ?? '', ids[1] ?? '');
    return [
      ...(shown.includes('EVIL') ? [] : ['a change was not shown']),
      ...(shown.includes(ESC) ? ['it is coloured'] : []),
      ...(existsSync(join(dir, 'ran')) ? ['a program was run'] : []),
    ];
  } finally {
    process.env['HOME'] = before;
  }
};

const strangers: PartAttempt = async (use, dir) => {
  writeFileSync(join(dir, '.gitconfig'), '[diff]\n\texternal = evil\n');
  const before = process.env['HOME'];
  process.env['HOME'] = dir;
  try {
    const { stagingGit } = await use(() => import('../../../src/git/host-git.ts'));
    const staging = await stagingWith(use, dir, [plain]);
    const listed = await stagingGit(staging, ['config', '--list']);
    return listed.stdout.includes('evil') ? ['settings were read'] : [];
  } finally {
    process.env['HOME'] = before;
  }
};

const paths: PartAttempt = async (use, dir) => {
  const { writeHostTree } = await use(() => import('../../../src/git/staging/host-tree.ts'));
  const { listTree } = await use(() => import('../../../src/git/staging/staging.ts'));
  const staging = await stagingWith(use, dir, [plain]);
  const lie = `M 100644 ${objectId(plain)} planted`;
  const hostile = [`x\n${lie}`, `"x"\n${lie}`, 'back\\slash'];
  const content = { bytes: 1, chunks: [Buffer.from('x')] };
  try {
    const made = await writeHostTree(
      staging,
      hostile.map((path) => ({ path, mode: '100644' as const, content })),
    );
    const found = (await listTree(staging, made)).map(({ path }) => path).toSorted();
    return found.join('|') === hostile.toSorted().join('|') ? [] : [found.join('|')];
  } catch (error) {
    return [String(error)];
  }
};

const stores: PartAttempt = async (use, dir) => {
  const { objectStores } = await use(() => import('../../../src/git/object-stores.ts'));
  const [project, other, shown] = [join(dir, 'project'), join(dir, 'other'), join(dir, 'shown')];
  for (const at of [project, other]) mkdirSync(join(at, '.git/objects/info'), { recursive: true });
  mkdirSync(join(shown, 'secrets'), { recursive: true });
  writeFileSync(join(shown, 'secrets/key'), 'x');
  const alternates = join(project, '.git/objects/info/alternates');
  const commonDir = join(project, '.git');
  const look = (): string[] =>
    objectStores(commonDir, { root: project, commonDir, shown: [shown] }).map(({ path }) => path);
  writeFileSync(alternates, `${other}/.git/objects\n`);
  const foreign = await allowed('objects of another project', look);
  writeFileSync(alternates, `${shown}/secrets\n`);
  return [...foreign, ...look().filter((path) => path.includes('secrets'))];
};

const belonging: PartAttempt = async (use, dir) => {
  const { requireBelonging } = await use(() => import('../../../src/git/belonging.ts'));
  const [mine, evil] = [join(dir, 'mine'), join(dir, 'evil')];
  mkdirSync(join(mine, '.git/worktrees/w'), { recursive: true });
  mkdirSync(join(mine, '.git/refs'));
  mkdirSync(evil);
  writeFileSync(join(mine, '.git/worktrees/w/gitdir'), `${mine}-w/.git\n`);
  writeFileSync(join(evil, '.git'), `gitdir: ${mine}/.git\n`);
  const claim = (gitDir: string, commonDir = gitDir): Belonging.Claim => ({
    root: evil,
    gitDir,
    commonDir,
    worktree: undefined,
  });
  const own = join(dir, 'own');
  mkdirSync(join(own, '.git'), { recursive: true });
  symlinkSync(join(mine, '.git/refs'), join(own, '.git/refs'));
  const ofOwn = { root: own, gitDir: join(own, '.git'), commonDir: join(own, '.git'), worktree: undefined };
  return [
    ...(await allowed('the repository of another', () => requireBelonging(claim(join(mine, '.git'))))),
    ...(await allowed('the worktree of another', () =>
      requireBelonging(claim(join(mine, '.git/worktrees/w'), join(mine, '.git'))),
    )),
    ...(await allowed('branches of another', () => requireBelonging(ofOwn))),
    ...(await allowed('files that are elsewhere', () =>
      requireBelonging({ ...ofOwn, gitDir: join(mine, '.git'), commonDir: join(mine, '.git') }),
    )),
  ];
};

const copies: PartAttempt = async (use, dir) => {
  const { copyReal } = await use(() => import('../../../src/git/copy-real.ts'));
  const [from, secret, to] = [join(dir, 'from'), join(dir, 'secret'), join(dir, 'to')];
  for (const path of [from, secret, to, join(to, 'info')]) mkdirSync(path);
  writeFileSync(join(secret, 'exclude'), 'secret');
  symlinkSync(join(secret, 'exclude'), join(from, 'index'));
  symlinkSync(secret, join(from, 'info'));
  for (const name of ['index', 'info/exclude']) copyReal(from, name, to);
  return readdirSync(to, { recursive: true, encoding: 'utf8' }).filter((name) => name !== 'info');
};

const settings: PartAttempt = async (use, dir) => {
  const { createPrivateGit } = await use(() => import('../../../src/git/private-git.ts'));
  const [project, directory] = [join(dir, 'project'), join(dir, 'private')];
  mkdirSync(join(project, '.git/objects/info'), { recursive: true });
  mkdirSync(directory);
  const all = new Map([
    ['http.extraheader', 'Authorization: SECRET'],
    ['core.sshcommand', 'SECRET'],
    ['user.name', 'a"\n[core]\n\thooksPath = "/SECRET'],
  ]);
  const repository = {
    root: project,
    gitDir: join(project, '.git'),
    commonDir: join(project, '.git'),
    objectFormat: 'sha1' as const,
    headRef: 'refs/heads/main',
    headCommit: null,
    refs: [],
    settings: all,
  };
  createPrivateGit({ repository, directory, checkStat: 'full', shown: [] });
  const given = ['config', '--file', join(directory, 'config'), '--list', '--name-only'];
  const found = execFileSync('git', given, { encoding: 'utf8' }).split('\n');
  return found.filter((key) => /hookspath|extraheader|sshcommand/i.test(key));
};

/** A foreign repository in which everything that can name a program does. */
function trapped(dir: string): string {
  const at = join(dir, 'trapped');
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: at, encoding: 'utf8' }).trim();
  mkdirSync(at);
  git('init', '-q', '-b', 'main', '--template=');
  const id = git('commit-tree', '-m', 'x', git('write-tree'));
  git('update-ref', 'refs/heads/main', id);
  git('update-ref', `refs/replace/${id}`, git('commit-tree', '-m', 'LIE', `${id}^{tree}`));
  mkdirSync(join(at, '.git/hooks'));
  writeFileSync(join(at, '.git/hooks/reference-transaction'), `#!/bin/sh\ntouch ${dir}/hook\n`, { mode: 0o755 });
  appendFileSync(
    join(at, '.git/config'),
    `[core]\n\trepositoryformatversion = 1\n\tfsmonitor = "touch ${dir}/fsmonitor; true"\n[extensions]\n\tpartialClone = evil\n[remote "evil"]\n\tpromisor = true\n\turl = "ext::touch ${dir}/fetched"\n[protocol "ext"]\n\tallow = always\n`,
  );
  return at;
}

const WHO = ['AUTHOR', 'COMMITTER'].flatMap((who) => [`GIT_${who}_NAME`, `GIT_${who}_EMAIL`]);

const programs: PartAttempt = async (use, dir) => {
  for (const name of WHO) process.env[name] = 'a@b';
  const at = trapped(dir);
  const { userGit } = await use(() => import('../../../src/git/host-git.ts'));
  const { moveRef, readRef } = await use(() => import('../../../src/git/owner-git.ts'));
  const gitDir = join(at, '.git');
  const id = (await readRef(gitDir, 'refs/heads/main')) ?? '';
  await userGit(['status'], { cwd: at, home: dir });
  await userGit(['cat-file', 'blob', 'ab'.repeat(20)], { cwd: at, home: dir });
  const text = await userGit(['cat-file', 'commit', id], { cwd: at, home: dir });
  await moveRef(gitDir, 'refs/heads/new', null, id, 'x');
  // The branch has moved meanwhile, and refs/tags exists.
  writeFileSync(join(gitDir, 'refs/heads/other'), `${id}\n`);
  mkdirSync(join(gitDir, 'refs/tags'), { recursive: true });
  const moved = await moveRef(gitDir, 'refs/heads/other', 'ab'.repeat(20), null, 'x').catch(() => null);
  return [
    ...['hook', 'fsmonitor', 'fetched'].filter((name) => existsSync(join(dir, name))),
    ...(text.stdout.includes('LIE') ? ['another commit was shown'] : []),
    ...(moved === 'moved' || !existsSync(join(gitDir, 'refs/heads/other')) ? ['what was moved meanwhile is gone'] : []),
    ...(readFileSync(join(gitDir, 'refs/heads/main'), 'utf8').trim() === id ? [] : ['a branch was moved']),
  ];
};

export const GIT_PARTS = {
  texts,
  history,
  whole,
  packs,
  answers,
  differences,
  strangers,
  paths,
  stores,
  belonging,
  copies,
  settings,
  programs,
} as const satisfies Record<string, PartAttempt>;
