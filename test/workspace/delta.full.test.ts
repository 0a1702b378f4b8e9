// test/workspace/delta.full.test.ts: an incremental snapshot equals a fresh checkout after any change, and an interrupted or concurrent one is
// complete or absent.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openMerged, type LowerDirectory } from '../../src/lib/merged.ts';
import { inspectRepository } from '../../src/git/inspect.ts';
import type { Repository } from '../../src/git/repository.ts';
import { ensureSnapshot, layerGitOf } from '../../src/workspace/snapshots.ts';
import { checkoutGit } from '../../src/git/host-git.ts';
import type { HostContext } from '../../src/run/host-context.ts';
import { createMachine, USUAL } from '../harness.ts';
import { layersDirOf, listen, runTask, startTask } from './task.ts';

describe('the files of a snapshot', () => {
  // Few names and every kind of entry, so that most steps replace something.
  test.each([1, 2, 3, 4, 5, 6])(
    'equal a fresh checkout after random changes (seed %i)',
    async (seed) => {
      using at = await createProject();
      const pick = chance(seed);
      for (let step = 0; step < 12; step++) {
        at.commit(() => mutate(at.root, pick, seed % 3 === 0 && step % 4 === 3));
        const snapshot = await ensureSnapshot(at.input());
        using merged = openMerged(snapshot.files);
        expect(listing(merged)).toEqual(at.fresh());
        expect(await at.indexListing(snapshot.layer.index)).toEqual(at.git('ls-files', '-s'));
      }
    },
    240_000,
  );

  test('use a short chain of layers, without rewriting the whole snapshot for it', async () => {
    using at = await createProject();
    for (let i = 0; i < 40; i++) writeFileSync(join(at.root, `f${i}`), `${i}\n`);
    const lengths: number[] = [];
    const steps: string[] = [];
    for (let step = 0; step < 20; step++) {
      at.commit(() => writeFileSync(join(at.root, `f${step}`), 'changed\n'));
      lengths.push((await ensureSnapshot(at.input((text) => steps.push(text)))).files.length);
    }
    expect(lengths.slice(0, 3)).toEqual([1, 2, 3]);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(17);
    expect(steps.filter((text) => text.endsWith('all files'))).toHaveLength(1);
  }, 120_000);

  test('are rewritten completely when attributes change their stored form', async () => {
    using at = await createProject();
    at.commit(() => writeFileSync(join(at.root, 'a.txt'), 'one\ntwo\n'));
    await ensureSnapshot(at.input());
    at.commit(() => writeFileSync(join(at.root, '.gitattributes'), '*.txt text eol=crlf\n'));
    const snapshot = await ensureSnapshot(at.input());
    expect(readFileSync(join(snapshot.files[0] ?? '', 'a.txt'), 'utf8')).toBe('one\r\ntwo\r\n');
  });

  test('are written without running any filter, hook or setting of the repository', async () => {
    using at = await createProject();
    const ran = join(at.root, '../ran');
    at.git('config', 'filter.evil.smudge', `touch ${ran}; cat`);
    at.git('config', 'filter.evil.required', 'true');
    at.git('config', 'core.fsmonitor', `touch ${ran}; true`);
    mkdirSync(join(at.root, '../hooks'));
    writeFileSync(join(at.root, '../hooks/post-checkout'), `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 });
    writeFileSync(join(at.root, '../hooks/post-index-change'), `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 });
    at.commit(() => {
      writeFileSync(join(at.root, '.gitattributes'), '*.bin filter=evil\n');
      writeFileSync(join(at.root, 'a.txt'), 'a\n');
    });
    at.git('config', 'core.hooksPath', join(at.root, '../hooks'));
    const blob = execFileSync('git', ['hash-object', '-w', '--stdin'], {
      cwd: at.root,
      input: 'raw\n',
      encoding: 'utf8',
    }).trim();
    at.git(
      '-c',
      'core.hooksPath=/dev/null',
      '-c',
      'core.fsmonitor=false',
      'update-index',
      '--add',
      '--cacheinfo',
      `100644,${blob},x.bin`,
    );
    const tree = at.git('-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false', 'write-tree').trim();
    const commit = at.git('commit-tree', '-m', 'x', '-p', 'HEAD', tree).trim();
    rmSync(ran, { force: true });
    const first = await ensureSnapshot(at.input());
    const second = await ensureSnapshot({ ...at.input(), commit });
    expect(readFileSync(join(second.files[0] ?? '', 'x.bin'), 'utf8')).toBe('raw\n');
    expect([existsSync(ran), first.files.length]).toEqual([false, 1]);
  });
});

describe.each(USUAL)('as %s', (caller) => {
  const files = Object.fromEntries(
    Array.from({ length: 400 }, (_, i) => [`d${i % 20}/f${i}.txt`, `${i}\n`.repeat(50)]),
  );
  const CHECK =
    'find . -path ./.git -prune -o -type f -print | wc -l; git status --short; git diff HEAD --stat | tail -1';

  test('a snapshot killed at any moment is complete or absent, and the next task gets all files', async () => {
    using machine = createMachine(caller, { files, disk: true });
    await runTask(machine, { task: 'warm' });
    const pick = chance(7);
    for (let round = 0; round < 6; round++) {
      // Every other round starts without layers: a whole snapshot takes longer than a delta.
      if (round % 2 === 0) rmSync(layersDirOf(machine), { recursive: true });
      machine.write(`d1/new${round}.txt`, 'new\n');
      machine.git('add', '-A');
      machine.git('commit', '-qm', `round ${round}`);
      const child = startTask(machine, { task: `killed-${round}` });
      const said = listen(child);
      const begun = () => existsSync(layersDirOf(machine)) && readdirSync(layersDirOf(machine)).length > 0;
      while (!begun() && child.exitCode === null) await pause(1);
      await pause(pick(120));
      child.kill('SIGKILL');
      await said;
      const next = await runTask(machine, { task: `next-${round}`, commands: [CHECK] });
      expect(next).toMatchObject({ error: null, ran: [{ code: 0, stdout: `${401 + round}\n`, stderr: '' }] });
    }
    const [dir = ''] = readdirSync(layersDirOf(machine));
    expect(readdirSync(join(layersDirOf(machine), dir)).filter((name) => name.startsWith('.'))).toEqual([]);
  }, 240_000);

  test('two tasks that need the same snapshot share one: the second waits', async () => {
    using machine = createMachine(caller, { files, disk: true });
    await runTask(machine, { task: 'warm' });
    rmSync(layersDirOf(machine), { recursive: true });
    const all = await Promise.all(
      ['a', 'b', 'c'].map((task) =>
        runTask(machine, {
          task,
          commands: ['find . -path ./.git -prune -o -type f -print | wc -l; git status --short'],
        }),
      ),
    );
    expect(all.map(({ error }) => error)).toEqual([null, null, null]);
    expect(all.flatMap(({ steps }) => steps.filter(({ text }) => text.startsWith('Snapshot of')))).toHaveLength(1);
    for (const { ran } of all) expect(ran).toEqual([{ code: 0, stdout: '400\n', stderr: '' }]);
  }, 120_000);
});

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Returns reproducible random numbers below `n`. */
function chance(seed: number): (n: number) => number {
  let state = seed * 2_654_435_761;
  return (n) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 374_761_393) >>> 0;
    return state % n;
  };
}

const NAMES = [
  'a',
  'b',
  'c d',
  'é',
  '-x',
  '.hidden',
  'line\nbreak',
  '"q"',
  'UPPER',
  '.wh.a',
  '[glob]*',
  ':(top)',
  'deep',
];

function mutate(root: string, pick: (n: number) => number, everything: boolean): void {
  const some = everything ? 60 : 1 + pick(12);
  for (let i = 0; i < some; i++) {
    const depth = 1 + pick(4);
    const names = Array.from({ length: depth }, () => NAMES[pick(NAMES.length)] ?? 'a');
    if (pick(9) === 0) names.push(...Array.from({ length: 30 }, () => 'deep'));
    let dir = root;
    for (const name of names.slice(0, -1)) {
      dir = join(dir, name);
      if (lstatSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true) {
        rmSync(dir, { force: true });
        mkdirSync(dir);
      }
    }
    const path = join(dir, names.at(-1) ?? 'a');
    const kind = pick(7);
    if (kind !== 6) rmSync(path, { recursive: true, force: true });
    if (kind === 0 || kind === 1) continue;
    if (kind === 2) symlinkSync(['a', '../..', '/etc/passwd', 'nowhere'][pick(4)] ?? 'a', path);
    else if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true) rmSync(path, { recursive: true });
    else if (kind === 6 && lstatSync(path, { throwIfNoEntry: false })?.isFile() === true)
      chmodSync(path, lstatSync(path).mode ^ 0o111);
    else if (lstatSync(path, { throwIfNoEntry: false }) === undefined)
      writeFileSync(path, `content ${pick(5)}\n`.repeat(pick(4)), { mode: pick(3) === 0 ? 0o755 : 0o644 });
  }
}

/** One line per entry: its type, executable bit and content. */
function listing(directory: LowerDirectory, at = ''): string[] {
  return directory
    .list(100_000)
    .toSorted((a, b) => Buffer.compare(a.name, b.name))
    .flatMap(({ name }) => {
      const path = `${at}/${name.toString('utf8')}`;
      const stats = directory.lstat(name);
      if (stats?.isDirectory() === true) {
        using child = directory.child(name);
        return [`d ${path}`, ...listing(child, path)];
      }
      return [`${stats?.isSymbolicLink() === true ? 'l' : 'f'} ${Number(stats?.mode) & 0o777} ${stats?.size} ${path}`];
    });
}

interface Project extends Disposable {
  readonly root: string;
  git(...args: string[]): string;
  commit(change: () => void): void;
  input(onStep?: (text: string) => void): Parameters<typeof ensureSnapshot>[0];
  fresh(): string[];
  indexListing(index: string): Promise<string>;
}

async function createProject(): Promise<Project> {
  const top = mkdtempSync('/var/tmp/ags-delta-');
  const root = join(top, 'project');
  mkdirSync(root);
  const env = { PATH: process.env['PATH'] ?? '', HOME: top, GIT_CONFIG_NOSYSTEM: '1' };
  const who = ['-c', 'user.name=Dev', '-c', 'user.email=dev@example.test', '-c', 'core.quotePath=true'];
  const git = (...args: string[]): string =>
    execFileSync('git', [...who, ...args], { cwd: root, env, encoding: 'utf8' });
  git('init', '-q', '-b', 'main');
  git('commit', '-q', '--allow-empty', '-m', 'empty');
  const context = { stateDir: join(top, 'state'), cacheDir: join(top, 'cache'), now: () => new Date() } as HostContext;
  let repository = (await inspectRepository(root, { home: top, cacheDir: top })) as Repository;
  const input = (onStep: (text: string) => void = () => undefined) => ({
    context,
    repository,
    shown: [],
    commit: git('rev-parse', 'HEAD').trim(),
    onStep,
    signal: new AbortController().signal,
  });
  return {
    root,
    git,
    commit(change) {
      change();
      git('add', '-A');
      git('commit', '-q', '--allow-empty', '-m', 'step');
      repository = { ...repository };
    },
    input,
    fresh() {
      const to = mkdtempSync(join(top, 'fresh-'));
      git('checkout-index', '-a', '-f', `--prefix=${to}/`);
      using directory = openMerged([to]);
      const found = listing(directory);
      rmSync(to, { recursive: true });
      return found;
    },
    async indexListing(index) {
      const { directory } = layerGitOf(input());
      const place = { gitDir: directory, workTree: root, index, settings: ['-c', 'core.quotePath=true'] };
      return (await checkoutGit(place, ['ls-files', '-s'])).stdout.toString('utf8');
    },
    [Symbol.dispose]: () => rmSync(top, { recursive: true, force: true }),
  };
}
