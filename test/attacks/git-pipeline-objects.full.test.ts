// test/attacks/git-pipeline-objects.full.test.ts: an agent writes git objects that no git would write. They are put into its git directory
// by hand. One clean commit with its files comes out, or nothing.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, describe, expect, test } from 'vitest';
import { AgsError } from '../../src/protocol/errors.ts';
import { BROUGHT_LIMITS, judgeHistory, requireWhole, type BroughtLimits } from '../../src/git/staging/brought.ts';
import { createStaging, receivePack } from '../../src/git/staging/staging.ts';
import { agentTask, runAgent, type AgentTask } from '../agent-run/agent-task.ts';
import { createMachine, type Machine, USUAL } from '../harness.ts';
import { blob, commit, makePack, objectId, tree, type PackObject } from '../git/hostile-pack.ts';

/** Runs git in the agent's own git directory, which has another path to the user's objects than inside. */
function inside(machine: Machine, task: AgentTask, args: readonly string[], input: Buffer | string = ''): string {
  return execFileSync('git', args, {
    cwd: '/',
    env: {
      ...machine.env,
      GIT_DIR: join(task.directory, 'run/git'),
      GIT_ALTERNATE_OBJECT_DIRECTORIES: join(machine.project, '.git/objects'),
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
      GIT_AUTHOR_NAME: 'A',
      GIT_AUTHOR_EMAIL: 'a@b',
      GIT_COMMITTER_NAME: 'A',
      GIT_COMMITTER_EMAIL: 'a@b',
    },
    input,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'pipe'],
    maxBuffer: 2 ** 28,
  }).trim();
}

/** Sets the agent's HEAD to a new commit of this tree on top of `parent`. */
function setHead(machine: Machine, task: AgentTask, treeId: string, parent = task.base): string {
  const text = `tree ${treeId}\nparent ${parent}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nhostile\n`;
  const id = inside(machine, task, ['hash-object', '--literally', '-w', '-t', 'commit', '--stdin'], text);
  writeFileSync(join(task.directory, 'run/git/HEAD'), `${id}\n`);
  return id;
}

function store(machine: Machine, task: AgentTask, object: PackObject): string {
  return inside(machine, task, ['hash-object', '--literally', '-w', '-t', object.type, '--stdin'], object.data);
}

const octal = (text: string): string =>
  [...Buffer.from(text)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');

const NAMES = [
  '.git',
  '.GIT',
  '.git ',
  '.git.',
  'git~1',
  '.g\u200cit',
  '.git::$INDEX_ALLOCATION',
  '..',
  '.',
  'a/../../b',
  '/etc/x',
  'x\\.git',
  'bad\x01name'.replace('\x01', '\\..\\'),
];

describe.each(USUAL)('as %s', (caller) => {
  test('A99: trees with names that some file system reads as .git, or as a way out, never reach the repository', async () => {
    using machine = createMachine(caller);
    const task = await runAgent(machine, 'echo work > work.txt');
    const file = blob('#!/bin/sh\n');
    store(machine, task, file);
    const dir = tree([['100755', 'config', file]]);
    store(machine, task, dir);
    const twice = tree([
      ['100644', 'f', file],
      ['40000', 'f', dir],
    ]);
    const hostile = NAMES.map((name, i): [string, PackObject] => [
      name,
      i % 2 === 0 ? tree([['100755', name, file]]) : tree([['40000', name, dir]]),
    ]);
    for (const [what, object] of [...hostile, ['two of one name', twice] as [string, PackObject]]) {
      // At the top, below a directory, and only in a commit before the last one.
      const id = store(machine, task, object);
      const below = store(machine, task, tree([['40000', 'sub', id]]));
      const heads = [() => setHead(machine, task, below)];
      if (what.includes('\u200c') || what === '.git')
        heads.push(
          () => setHead(machine, task, id),
          () =>
            setHead(
              machine,
              task,
              inside(machine, task, ['rev-parse', `${task.base}^{tree}`]),
              setHead(machine, task, id),
            ),
        );
      for (const head of heads) {
        head();
        const brought = await task.bringOut();
        expect([what, brought.error]).toEqual([what, undefined]);
        expect([what, machine.git('diff', '--name-only', task.base, task.branch)]).toEqual([what, 'work.txt\n']);
        expect([what, machine.git('rev-parse', `${task.branch}^`).trim()]).toEqual([what, task.base]);
        expect(() => machine.git('cat-file', '-e', id)).toThrow();
      }
    }
    expect(machine.git('fsck', '--strict', '--full')).not.toMatch(/error|warning/);
  }, 240_000);

  test('A101 A102 A103: links, nested repositories and strange names are shown, flagged and left out of a merge', async () => {
    using machine = createMachine(caller, { files: { 'README.md': 'x\n', 'Case.txt': 'x\n', 'dir/x': 'x\n' } });
    const ESC = '\u001b';
    const task = await runAgent(
      machine,
      `git config user.name A; git config user.email a@b
      ln -s /etc/passwd abs; ln -s ../../../../etc escape; rm -f .gitattributes; ln -s README.md .gitattributes; ln -s README.md .gitignore; ln -s README.md harmless
      echo n > "$(printf 'new\\nline')"; echo e > "$(printf 'esc\\033]0;owned\\007')"; echo b > "$(printf 'bidi\\342\\200\\256gpj.exe')"; echo d > ./-rf; echo u > "$(printf 'bad\\377')"; echo c > case.TXT; mkdir DIR; echo l > DIR/y; echo w > con.txt
      git add -A; git commit -qm all`,
    );
    inside(machine, task, ['update-index', '--add', '--cacheinfo', `160000,${'12'.repeat(20)},link`]);
    const committed = inside(machine, task, ['write-tree']);
    setHead(machine, task, committed, inside(machine, task, ['rev-parse', 'HEAD']));
    const brought = await task.bringOut();
    expect(brought.error).toBe(undefined);
    const { refused } = JSON.parse(readFileSync(join(task.directory, 'capture.json'), 'utf8')) as {
      refused: { path: string }[];
    };
    const never = refused.map(({ path }) => path).filter((path) => path !== '.ags-kept');
    expect(never.toSorted()).toEqual(expect.arrayContaining(['link']) as string[]);
    expect(machine.git('ls-tree', '-r', task.branch)).not.toMatch(/^160000/m);
    expect(machine.git('ls-tree', '-r', '-z', '--name-only', task.branch)).not.toContain('bad');
    const shown = await machine.ags(['diff', task.id, '--json']);
    const { changes } = JSON.parse(shown.stdout) as { changes: { path: string; lane: string; reasons: string[] }[] };
    const said = (path: string): string =>
      [changes.find((one) => one.path === path)].map((one) => `${one?.lane}: ${one?.reasons.join(' ')}`).join('');
    expect(said('abs')).toMatch(/^host: .*outside the project/);
    expect(said('escape')).toMatch(/^host: .*outside the project/);
    expect(said('.gitattributes')).toMatch(/^host: .*expects it not to be a link/);
    expect(said('.gitignore')).toMatch(/^host: .*expects it not to be a link/);
    expect(said('new\nline')).toMatch(/control characters/);
    expect(said(`esc${ESC}]0;owned\u0007`)).toMatch(/control characters/);
    expect(said('bidi\u202egpj.exe')).toMatch(/text-reordering/);
    expect(said('-rf')).toMatch(/begins with a dash/);
    expect(said('con.txt')).toMatch(/reserved on Windows/);
    expect(said('case.TXT')).toMatch(/differs from it in case only/);
    expect(said('DIR/y')).toMatch(/differs from it in case only/);
    for (const args of [
      ['diff', task.id],
      ['diff', task.id, '--stat'],
      ['merge', task.id, '--dry-run'],
      ['merge', task.id],
    ]) {
      const run = await machine.ags(args);
      expect([run.code, `${run.stdout}${run.stderr}`.includes(ESC), run.stderr.includes('\u202e')]).toEqual([
        0,
        false,
        false,
      ]);
    }
    const merged = machine.git('show', '--name-only', '--format=', '-z').split('\0');
    for (const path of ['abs', 'escape', '.gitattributes', '.gitignore', 'link']) expect(merged).not.toContain(path);
    expect(merged).toContain('-rf');
    expect(machine.git('status', '--porcelain')).toBe('');
  }, 120_000);

  test('A150: with too much history, too many refs or too deep a tree, the files still come out', async () => {
    using machine = createMachine(caller);
    const task = await runAgent(machine, 'echo work > work.txt');
    // 5100 commits.
    const stream = [`reset refs/heads/many\nfrom ${task.base}\n\n`];
    for (let i = 0; i < 5100; i++) stream.push(`commit refs/heads/many\ncommitter A <a@b> ${i} +0000\ndata 1\nx\n`);
    inside(machine, task, ['fast-import', '--quiet'], stream.join(''));
    // 100,000 refs.
    const one = inside(machine, task, ['rev-parse', 'refs/heads/many']);
    const refs = Array.from({ length: 100_000 }, (_, i) => `${one} refs/heads/r${String(i).padStart(6, '0')}`);
    writeFileSync(
      join(task.directory, 'run/git/packed-refs'),
      `# pack-refs with: peeled fully-peeled sorted \n${refs.join('\n')}\n`,
    );
    writeFileSync(join(task.directory, 'run/git/HEAD'), 'ref: refs/heads/many\n');
    const many = await task.bringOut();
    expect(many.error).toBe(undefined);
    expect(machine.git('rev-list', '--count', `${task.base}..${task.branch}`).trim()).toBe('1');
    // 5000 directories in each other.
    const objects: PackObject[] = [blob('deep\n')];
    objects.push(tree([['100644', 'f', objects[0] ?? blob('')]]));
    for (let i = 0; i < 5000; i++) objects.push(tree([['40000', 'd', objects.at(-1) ?? blob('')]]));
    inside(machine, task, ['unpack-objects', '-q'], makePack(objects));
    setHead(machine, task, objectId(objects.at(-1) ?? blob('')));
    const deep = await task.bringOut();
    expect(deep.error).toBe(undefined);
    expect(machine.git('diff', '--name-only', task.base, task.branch)).toBe('work.txt\n');
    expect(machine.git('rev-list', '--count', `${task.base}..${task.branch}`).trim()).toBe('1');
  }, 180_000);

  test('control characters in messages and forged headers cost the agent its commits', async () => {
    using machine = createMachine(caller);
    for (const [i, text] of ['a\u001b]0;owned\u0007b', 'a\u009b2Jb', 'a\rb'].entries()) {
      const task = await agentTask(
        machine,
        `git config user.name A; git config user.email a@b; echo ${i} > w${i}; git add -A; printf '${octal(text)}' > /tmp/m; git commit -q -F /tmp/m --cleanup=verbatim`,
        { name: `text${i}` },
      );
      const raw = machine.git('cat-file', 'commit', task.branch);
      expect(raw).toContain('\nDo the work\n');
      // eslint-disable-next-line no-control-regex
      expect(raw).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
    }
  });
});

describe("A150: limits on an agent's objects", () => {
  const scratch = realpathSync(mkdtempSync('/tmp/ags-limits-'));
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));
  const staging = (): string => {
    const directory = mkdtempSync(join(scratch, 's-'));
    createStaging(directory, 'sha1');
    return directory;
  };
  const base = [blob('a\n'), tree([['100644', 'a', blob('a\n')]])] as const;
  const root = commit(base[1], 'base');
  // A megabyte of zeros is packed into a thousand bytes.
  const bomb = blob(Buffer.alloc(2 ** 20));
  const big = tree([['100644', 'bomb', bomb]]);
  const top: PackObject = {
    type: 'commit',
    data: Buffer.from(
      `tree ${objectId(big)}\nparent ${objectId(root)}\nauthor a <a@b> 0 +0000\ncommitter a <a@b> 0 +0000\n\ntop\n`,
    ),
  };
  const whole = makePack([...base, root, bomb, big, top]);
  const refused = async (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'taken',
      (error: unknown) =>
        error instanceof AgsError && error.code === 'capture.refused' ? error.message : String(error),
    );

  test('the number of objects is checked before they are unpacked', async () => {
    const directory = staging();
    expect(await refused(receivePack(directory, Readable.from([whole]), 2 ** 30, 20_000, 5))).toMatch(
      /more than 5 objects/,
    );
    expect(await refused(receivePack(directory, Readable.from([whole]), 2 ** 30, 20_000, 6))).toBe('taken');
  });

  test('the size of a file, the size of all, the number of objects and missing objects are checked', async () => {
    const directory = staging();
    await receivePack(directory, Readable.from([whole]), 2 ** 30, 20_000);
    const look = (limits: Partial<BroughtLimits>): Promise<string> =>
      refused(requireWhole(directory, objectId(top), objectId(root), { ...BROUGHT_LIMITS, ...limits }));
    expect(await look({})).toBe('taken');
    expect(await look({ fileBytes: 2 ** 19 })).toMatch(/a file in it is larger than 512 kB/);
    expect(await look({ totalBytes: 2 ** 19 })).toMatch(/more than 512 kB in all/);
    expect(await look({ objects: 2 })).toMatch(/more than 2 objects/);
    // On a busy machine git may finish before the deadline is checked.
    await expect.poll(() => look({ timeoutMs: 1 })).toMatch(/takes too long/);
    expect(await look({ memoryBytes: 2 ** 16 })).toMatch(/missing or cannot be read/);
    expect(await refused(requireWhole(directory, 'ab'.repeat(20), objectId(root)))).toMatch(/missing/);
  });

  test('commits beside the base, too many commits and commits with a wrong file are not kept', async () => {
    const directory = staging();
    await receivePack(directory, Readable.from([whole]), 2 ** 30, 20_000);
    const judge = (tip: PackObject, wrong = false, commits = 10): Promise<boolean> =>
      judgeHistory(directory, objectId(tip), objectId(root), () => wrong, {
        ...BROUGHT_LIMITS,
        commits,
      }).then(({ keep }) => keep);
    expect(await judge(top)).toBe(true);
    expect(await judge(top, true)).toBe(false);
    expect(await judge(top, false, 0)).toBe(false);
    const signed: PackObject = {
      type: 'commit',
      data: Buffer.from(top.data.toString().replace('\n\n', '\ngpgsig x\n\n')),
    };
    const orphan = commit(big, 'orphan');
    await receivePack(directory, Readable.from([makePack([signed, orphan])]), 2 ** 30, 20_000);
    expect([await judge(signed), await judge(orphan)]).toEqual([false, false]);
  });
});
