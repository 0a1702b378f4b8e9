// test/workspace/tasks.test.ts: an agent's workspace uses layers that never change, and no sandbox can write to them.
// needs: sandbox
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine, giveTo, IS_ROOT, type Machine } from '../harness.ts';
import { layersDirOf, runTask } from './task.ts';

describe.each(CALLERS)('as %s', (caller) => {
  test("a task is isolated from the user's later changes to the project", async () => {
    using machine = createMachine(caller, {
      disk: true,
      files: { '.gitignore': 'node_modules/\n', 'a.txt': 'one\n', 'dir/b.txt': 'two\n', 'dir/c.txt': 'three\n' },
    });
    machine.write('node_modules/dep/index.js', 'the user’s own\n');
    machine.write('a.txt', 'not committed\n');
    const look =
      'find . -path ./.git -prune -o -type f -print | sort; cat a.txt dir/b.txt; git status --short --branch';
    const said = await runTask(machine, {
      task: 'quiet',
      commands: [look, look, look, look],
      between(ran) {
        if (ran === 1) {
          write(machine, 'dir/b.txt', 'edited\n');
          rmSync(join(machine.project, 'dir/c.txt'));
          write(machine, 'new.txt', 'new\n');
        } else if (ran === 2) {
          machine.git('switch', '-q', '-c', 'other', '--discard-changes');
          machine.git('rm', '-rqf', 'dir');
          machine.git('commit', '-q', '-m', 'other');
        } else if (ran === 3) {
          rmSync(join(machine.project, 'node_modules/dep'), { recursive: true });
          write(machine, 'node_modules/other', 'installed again\n');
          write(machine, 'dir', 'a file now\n');
        }
      },
    });
    const seen = {
      code: 0,
      stdout: './.gitignore\n./a.txt\n./dir/b.txt\n./dir/c.txt\none\ntwo\n## ags/quiet\n',
      stderr: '',
    };
    expect(said).toMatchObject({ error: null, stderr: '', ran: [seen, seen, seen, seen] });
  });

  test('the next commit adds only the changed files, and each task sees its own commit', async () => {
    using machine = createMachine(caller, {
      disk: true,
      files: { 'a.txt': 'a1\n', 'b/c.txt': 'c\n', 'b/d.txt': 'd\n' },
    });
    const first = machine.git('rev-parse', 'HEAD').trim();
    const one = await runTask(machine, { task: 'one', commands: ['cat a.txt; ls b'] });
    machine.git('rm', '-rq', 'b');
    machine.write('a.txt', 'a2\n');
    machine.git('commit', '-qam', 'second');
    const two = await runTask(machine, { task: 'two', commands: ['cat a.txt; ls; git status --short'] });
    expect(two.steps).toEqual([
      {
        kind: 'snapshot',
        text: `Snapshot of ${machine.git('rev-parse', '--short=7', 'HEAD').trim()}: 3 files changed`,
      },
    ]);
    expect(two.ran).toEqual([{ code: 0, stdout: 'a2\na.txt\n', stderr: '' }]);
    expect(two.ready?.layers).toEqual([expect.stringContaining('/base-'), ...(one.ready?.layers ?? [])]);
    const back = await runTask(machine, { task: 'back', commit: first, commands: ['cat a.txt; ls b'] });
    expect(back).toMatchObject({ steps: [], ran: [{ code: 0, stdout: 'a1\nc.txt\nd.txt\n', stderr: '' }] });
    expect(back.ready?.layers).toEqual(one.ready?.layers);
  });

  test("git is on the task's branch, knows the others, and reports the status without reading unchanged files", async () => {
    using machine = createMachine(caller, {
      disk: true,
      files: Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`d${i % 7}/f${i}.txt`, `file ${i}\n`])),
    });
    machine.git('tag', 'v1');
    machine.git('branch', 'topic');
    await runTask(machine, { task: 'before' });
    machine.write('d1/f1.txt', 'changed\n');
    machine.git('commit', '-qam', 'second');
    const { ready } = await runTask(machine, { task: 'warm' });
    // git rereads files with the time of its index.
    execFileSync('sleep', ['1.1']);
    // Same size and time: git without a read misses the change. Another time: git reads the file and finds it.
    const bottom = ready?.layers.at(-1) ?? '';
    const { atime, mtime } = statSync(join(bottom, 'd2/f2.txt'));
    for (const name of ['d2/f2.txt', 'd3/f3.txt']) writeFileSync(join(bottom, name), 'FILE X\n');
    utimesSync(join(bottom, 'd2/f2.txt'), atime, mtime);
    const said = await runTask(machine, {
      task: 'named',
      commands: [
        'git for-each-ref --format="%(refname)"; git symbolic-ref HEAD; git log --format=%s',
        'cp .git/index /tmp/a; git status --short; git update-index --refresh; cmp .git/index /tmp/a && echo "index as it was"',
        'git config user.name A; git config user.email a@b.c; git checkout -q d3/f3.txt; echo more >> d1/f1.txt; git commit -qam third; git log --format=%s -1; git status --short',
      ],
    });
    expect(said.ran).toEqual([
      {
        code: 0,
        stdout:
          'refs/heads/ags/named\nrefs/heads/main\nrefs/heads/topic\nrefs/tags/v1\nrefs/heads/ags/named\nsecond\nfirst\n',
        stderr: '',
      },
      { code: 0, stdout: ' M d3/f3.txt\nd3/f3.txt: needs update\nindex as it was\n', stderr: '' },
      { code: 0, stdout: 'third\n', stderr: '' },
    ]);
    expect(machine.git('for-each-ref', '--format=%(refname)')).not.toContain('heads/ags/');
  });

  test('attack: a sandbox cannot write to a layer, even to files it copied up, moved or deleted', async () => {
    using machine = createMachine(caller, {
      disk: true,
      files: { 'a.txt': 'a\n', 'b/c.txt': 'c\n', 'b/run.sh': '#!/bin/sh\n' },
    });
    await runTask(machine, { task: 'first' });
    machine.write('a.txt', 'a2\n');
    machine.git('commit', '-qam', 'second');
    await runTask(machine, { task: 'second' });
    const before = print(machine);
    const script = [
      'echo x >> a.txt; chmod 777 b/c.txt b .; mv b/c.txt b/moved; rm b/run.sh; ln -f a.txt b/hard; truncate -s 0 a.txt',
      'mkdir new; mknod new/whiteout c 0 0 2>&1 | grep -c "not permitted"; touch -d 2001-01-01 a.txt .',
      // Tries every other path to the same directory.
      'for p in /proc/self/mountinfo; do cut -d" " -f4,5,10- $p | grep -o "[^ ,:=]*layers[^ ,:]*"; done',
      `ls -d ${machine.stateDir}/layers 2>&1 | grep -o "No such file.*"`,
      'for fd in /proc/self/fd/*; do case $(readlink $fd) in *layers*) echo "open: $fd";; esac; done; mount -o remount,rw . 2>/dev/null && echo remounted; true',
    ].join('\n');
    const said = await runTask(machine, { task: 'attack', commands: [script] });
    expect(said.ran).toEqual([{ code: 0, stdout: '1\nNo such file or directory\n', stderr: '' }]);
    expect(print(machine)).toEqual(before);
  });

  test('attack: a link that an agent plants at a mount point in its home leads nowhere in the next turn', async () => {
    using machine = createMachine(caller, { disk: true });
    mkdirSync(join(machine.home, '.local/bin'), { recursive: true });
    mkdirSync(join(machine.root, 'victim'));
    giveTo(machine.root, machine.uid);
    const said = await runTask(machine, {
      task: 'turns',
      commands: [`mv ~/.local ~/moved && ln -s ${machine.root}/victim ~/.local && echo done`, 'echo again'],
    });
    expect(said.ran).toEqual([{ code: 0, stdout: 'done\n', stderr: '' }]);
    expect(readdirSync(join(machine.root, 'victim'))).toEqual([]);
    expect(said.error).toMatchObject({
      code: 'backend.failed',
      message: `${machine.home}/.local/bin cannot be mounted: the sandbox's home has something else in its place.`,
    });
  });

  test('hidden files do not exist inside, even if git tracks them', async () => {
    using machine = createMachine(caller, {
      disk: true,
      files: {
        'ags.yaml': 'hide: [customers/, "*.sqlite"]\n',
        'a.txt': 'a\n',
        'x/data.sqlite': 's\n',
        'customers/1': 'c\n',
      },
    });
    const said = await runTask(machine, {
      task: 'hide',
      commands: ['find . -path ./.git -prune -o -type f -print | sort'],
    });
    expect(said).toMatchObject({
      error: null,
      ready: { hidden: ['customers', 'x/data.sqlite'] },
      ran: [{ code: 0, stdout: './a.txt\n./ags.yaml\n', stderr: '' }],
    });
  });

  test('without an overlay the layers are copied over each other', async () => {
    using machine = createMachine(caller, {
      disk: true,
      files: { 'a.txt': 'a\n', 'b/c.txt': 'c\n', 'd/e/f.txt': 'f\n', 'g.txt': 'g\n', 'ags.yaml': 'hide: [g.txt]\n' },
    });
    await runTask(machine, { task: 'first' });
    machine.git('rm', '-rqf', 'd', 'b');
    machine.write('b', 'a file now\n');
    machine.git('add', '-A');
    machine.git('commit', '-qm', 'second');
    const said = await runTask(machine, {
      task: 'copied',
      workspace: 'copy',
      commands: [
        'find . -path ./.git -prune -o -type f -print | sort; cat b; git status --short; echo x > a.txt; git status --short',
      ],
    });
    expect(said.ready?.layers.length).toBe(2);
    expect(said).toMatchObject({
      error: null,
      ran: [{ code: 0, stdout: './a.txt\n./ags.yaml\n./b\na file now\n D g.txt\n M a.txt\n D g.txt\n', stderr: '' }],
    });
  });

  test('a layer that was replaced meanwhile is not mounted', async () => {
    using machine = createMachine(caller, { disk: true });
    const { ready } = await runTask(machine, { task: 'good' });
    const [layer = ''] = ready?.layers ?? [];
    expect(existsSync(layer)).toBe(true);
    const said = await runTask(machine, {
      task: 'swapped',
      commands: ['ls', 'ls'],
      between(ran) {
        if (ran > 1) return;
        execFileSync('sh', ['-c', 'mv "$1" "$1.old"; mkdir "$1"; echo evil > "$1/evil"', 'sh', layer]);
        giveTo(layer, machine.uid);
      },
    });
    expect(said.ran).toEqual([{ code: 0, stdout: 'README.md\nsrc\n', stderr: '' }]);
    expect(said.error).toMatchObject({ code: 'backend.failed', message: expect.stringContaining('exit 96') });
  });

  test('a commit with missing objects is refused with a reason, and no incomplete layer is used', async () => {
    using machine = createMachine(caller, { disk: true, files: { 'a.txt': 'a\n', 'b.txt': 'b\n' } });
    const oid = machine.git('rev-parse', 'HEAD:b.txt').trim();
    rmSync(join(machine.project, '.git/objects', oid.slice(0, 2), oid.slice(2)));
    const said = await runTask(machine, { task: 'missing' });
    expect(said.error).toMatchObject({ code: 'project.unsuitable', hint: expect.stringContaining('git fsck') });
    const [dir = ''] = readdirSync(layersDirOf(machine));
    expect(readdirSync(join(layersDirOf(machine), dir))).toEqual(['git']);
  });
});

test.runIf(IS_ROOT)('in another user’s project, each layer made by root keeps its own owner', async () => {
  using machine = createMachine('root', {
    disk: true,
    files: { 'ags.yaml': 'setup: { run: ["mkdir d/new; echo s > d/new/s"] }\n', 'd/a.txt': 'a\n' },
  });
  giveTo(machine.project, 42_424);
  chmodSync(machine.project, 0o700);
  writeFileSync(join(machine.home, '.gitconfig'), `[safe]\n\tdirectory = ${machine.project}\n`);
  const said = await runTask(machine, {
    task: 'other',
    commands: [
      'stat -c "%U %n" . d d/a.txt d/new d/new/s; echo x >> d/a.txt; echo x >> d/new/s; git status --short; git log --format=%s',
    ],
  });
  const owned = ['.', 'd', 'd/a.txt', 'd/new', 'd/new/s'].map((path) => `agent ${path}\n`).join('');
  expect(said).toMatchObject({ error: null, ran: [{ code: 0, stdout: `${owned} M d/a.txt\nfirst\n`, stderr: '' }] });
});

/** Writes as the user without touching other files; machine.write changes the owner of the whole machine. */
function write(machine: Machine, path: string, content: string): void {
  writeFileSync(join(machine.project, path), content);
  if (process.getuid?.() === 0) chownSync(join(machine.project, path), machine.uid, machine.uid);
}

/** Every name, mode, time, size and content of all layers. */
function print(machine: Machine): string {
  writeFileSync(join(machine.root, 'mark'), '');
  const find =
    'find . -path "*/files*" -printf "%P %M %T@ %s %l\\n" | sort; find . -path "*/files/*" -type f | sort | xargs sha256sum';
  return execFileSync('sh', ['-c', find], { cwd: layersDirOf(machine), encoding: 'utf8' });
}
