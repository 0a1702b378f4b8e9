// test/e2e/many-files.full.test.ts: a repository of a hundred thousand files is as usable as a small one, and so are many changes.
import { execFileSync } from 'node:child_process';
import { chownSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createMachine, type Machine, ONE } from '../harness.ts';

const FILES = 100_000;
const CHANGED = 1000;

test('with a hundred thousand files a sandbox starts fast, three changes are reviewed, and thousands are accepted', async () => {
  using machine = createMachine(ONE, { git: false, files: {} });
  makeRepository(machine);
  expect((await machine.ags(['exec', '--', 'true'])).code).toBe(0);

  const small = await machine.ags([
    'exec',
    '--review',
    'later',
    '--name',
    'one',
    '--',
    'sh',
    '-c',
    'GIT_TRACE2_EVENT=/tmp/trace git status --short | wc -l; find . -name .git -prune -o -type f -print | wc -l; echo changed > d7/77.txt; rm d8/88.txt; echo new > d9/new.txt; git status --short; grep -o \'"refresh/sum_scan","value":"[0-9]*"\' /tmp/trace',
  ]);
  // git compared the times of the files and read none of them.
  expect(small).toMatchObject({
    code: 0,
    stdout: `0\n${FILES}\n M d7/77.txt\n D d8/88.txt\n?? d9/new.txt\n"refresh/sum_scan","value":"0"\n`,
  });
  const { changes } = JSON.parse((await machine.ags(['review', '--json'])).stdout) as {
    changes: { path: string; kind: string }[];
  };
  expect(changes.map(({ path, kind }) => `${kind} ${path}`)).toEqual([
    'modified d7/77.txt',
    'deleted d8/88.txt',
    'new d9/new.txt',
  ]);
  expect(await machine.ags(['review', '--accept-all'])).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('3 taken, 0 thrown away, 0 left.\n') as string,
  });
  expect([machine.read('d7/77.txt'), machine.has('d8/88.txt'), machine.read('d9/new.txt')]).toEqual([
    'changed\n',
    false,
    'new\n',
  ]);

  const many = await machine.ags(
    ['exec', '--name', 'many', '--', 'sh', '-c', `for f in $(seq 0 999); do echo new > d3/$f.txt; done; rm -r d5`],
    { timeoutMs: 100_000 },
  );
  expect(many).toMatchObject({ code: 0, stderr: expect.stringContaining(`${CHANGED + 1000} files changed`) as string });
  const review = await machine.ags(['review', '--accept-all'], { timeoutMs: 100_000 });
  expect(review).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`${CHANGED + 1000} taken, 0 thrown away, 0 left.\n`) as string,
  });
  expect(machine.git('status', '--short', '--untracked-files=no').trim().split('\n').length).toBe(CHANGED + 1000 + 2);
  expect([machine.read('d3/999.txt'), machine.has('d5'), machine.tasks()]).toEqual(['new\n', false, []]);
}, 240_000);

/** Creates the files with git, which is the fastest way. */
function makeRepository(machine: Machine): void {
  machine.git('init', '-q', '-b', 'main');
  const rows = Array.from(
    { length: FILES },
    (_, i) => `M 100644 inline d${Math.floor(i / 1000)}/${i % 1000}.txt\ndata ${String(i).length}\n${i}\n`,
  );
  const stream = `commit refs/heads/main\ncommitter Dev <dev@example.test> 0 +0000\ndata 5\nfirst\n${rows.join('')}`;
  const identity = process.getuid?.() === 0 ? { uid: machine.uid, gid: machine.uid } : {};
  if (process.getuid?.() === 0) chownSync(machine.project, machine.uid, machine.uid);
  execFileSync('git', ['fast-import', '--quiet'], {
    cwd: machine.project,
    env: machine.env,
    input: stream,
    ...identity,
  });
  machine.git('reset', '-q', '--hard');
}
