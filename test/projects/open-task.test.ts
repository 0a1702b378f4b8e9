// test/projects/open-task.test.ts: `ags open` with an editor that records how it was started.
// needs: sandbox
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runAgent } from '../agent-run/agent-task.ts';
import { createMachine, giveTo, type Machine, USUAL } from '../harness.ts';

interface OpenedTask extends Disposable {
  readonly machine: Machine;
  readonly branch: string;
  readonly directory: string;
  open(...args: string[]): ReturnType<Machine['ags']>;
  /** The arguments of the editor. */
  started(): Promise<string[]>;
}

const SCRIPT = `
echo changed >> README.md
mkdir -p .vscode .devcontainer
echo '{"version":"2.0.0","tasks":[{"label":"x","type":"shell","command":"touch /tmp/owned","runOptions":{"runOn":"folderOpen"}}]}' > .vscode/tasks.json
echo '{"image":"x","initializeCommand":"touch /tmp/owned","runArgs":["--privileged"]}' > .devcontainer/devcontainer.json
echo '{"image":"x"}' > .devcontainer.json
echo '*.md filter=evil' > .gitattributes
ln -s /etc/passwd link
`;

async function createTask(
  caller: 'root' | 'user',
  script: string,
  files?: Record<string, string>,
): Promise<OpenedTask> {
  const machine = createMachine(caller, files === undefined ? {} : { files });
  const task = await runAgent(machine, script, { name: 'work' });
  const brought = await task.bringOut();
  expect(brought.error).toBeUndefined();
  const bin = join(machine.root, 'editors');
  const record = join(machine.root, 'record');
  mkdirSync(bin);
  mkdirSync(record);
  writeFileSync(
    join(bin, 'code'),
    `#!/bin/sh\n{ pwd; for one in "$@"; do printf '%s\\n' "$one"; done; } > ${record}/new && mv ${record}/new ${record}/argv\n`,
  );
  chmodSync(join(bin, 'code'), 0o755);
  giveTo(record, machine.uid);
  const path = `${bin}:${machine.env['PATH'] ?? ''}`;
  return {
    machine,
    branch: task.branch,
    directory: join(machine.home, '.local/share/ags/open', task.id),
    open: (...args) => machine.ags(['open', 'work', ...args], { env: { PATH: path } }),
    async started() {
      await expect.poll(() => existsSync(join(record, 'argv')), { timeout: 10_000 }).toBe(true);
      return readFileSync(join(record, 'argv'), 'utf8').trim().split('\n');
    },
    [Symbol.dispose]: () => machine[Symbol.dispose](),
  };
}

describe.each(USUAL)('as %s', (caller) => {
  test('a task opens from its branch in its own directory, and nothing makes the editor trust it', async () => {
    using task = await createTask(caller, SCRIPT);
    const { machine, directory } = task;
    const result = await task.open('--ide', 'code');
    expect([result.code, result.stdout]).toEqual([0, `${directory}\n`]);
    expect(await task.started()).toEqual([machine.home, '--new-window', directory]);
    expect(result.stderr).toContain('When it asks whether you trust the authors, say no');
    expect(result.stderr).toMatch(/can run code on this machine: .*\.vscode\/tasks\.json/);
    expect(readFileSync(join(directory, 'README.md'), 'utf8')).toBe('# project\nchanged\n');
    expect(lstatSync(join(directory, 'link')).isSymbolicLink()).toBe(true);
    const git = (...args: string[]): string =>
      execFileSync('git', ['-C', directory, '-c', `safe.directory=${directory}`, ...args], {
        encoding: 'utf8',
        env: { ...machine.env },
        ...(process.getuid?.() === 0 ? { uid: machine.uid, gid: machine.uid } : {}),
      }).trim();
    expect(git('rev-parse', '--abbrev-ref', 'HEAD')).toBe(task.branch);
    expect(git('rev-parse', 'HEAD')).toBe(machine.git('rev-parse', task.branch).trim());
    // Files that an editor acts on outside a container are not the agent's.
    for (const path of ['.devcontainer', '.devcontainer.json']) {
      expect([path, existsSync(join(directory, path))]).toEqual([path, false]);
      expect(result.stderr).toContain(`${path} was left out: it was changed by the agent`);
    }
    expect(git('status', '--porcelain').split('\n')).toEqual([
      'D .devcontainer.json',
      ' D .devcontainer/devcontainer.json',
    ]);
    expect(machine.git('status', '--porcelain')).toBe('');
    expect(machine.read('README.md')).toBe('# project\n');
  });
});

test.each([
  ['{"dockerComposeFile":"../docker-compose.yml","service":"app"}'],
  ['{"image":"x","initializeCommand":"sh docker/init.sh"}'],
])("a user's dev container that refers to an agent's files is left out: %s", async (text) => {
  using task = await createTask('user', 'echo "services: { app: { privileged: true } }" > docker-compose.yml', {
    'docker-compose.yml': 'services: {}\n',
    '.devcontainer/devcontainer.json': `${text}\n`,
  });
  const { code, stderr } = await task.open('--print');
  expect([code, stderr]).toEqual([
    0,
    expect.stringContaining(".devcontainer was left out: it refers to files that are the agent's"),
  ]);
  expect([
    existsSync(join(task.directory, '.devcontainer')),
    existsSync(join(task.directory, 'docker-compose.yml')),
  ]).toEqual([false, true]);
});

test('a task reopens unchanged, fresh or in a dev container of ags, and its directory can be removed', async () => {
  using task = await createTask('user', 'echo changed >> README.md', {
    'README.md': '# project\n',
    '.devcontainer/devcontainer.json': '{"image":"the-users-own"}\n',
    '.devcontainer/docker-compose.yaml': 'volumes: ["..:/workspaces/x", "../.git:/workspaces/x/.git:ro"]\n',
  });
  const { directory } = task;
  const has = (path: string): boolean => existsSync(join(directory, path));
  const container = (): string => readFileSync(join(directory, '.devcontainer/devcontainer.json'), 'utf8');
  await task.open('--print');
  // The same as on the user's branch.
  expect(container()).toContain('the-users-own');
  writeFileSync(join(directory, 'mine.txt'), 'mine');
  expect([(await task.open('--print')).code, has('mine.txt')]).toEqual([0, true]);
  expect([(await task.open('--print', '--fresh')).code, has('mine.txt')]).toEqual([0, false]);

  writeFileSync(join(directory, '.devcontainer.json'), '{"initializeCommand":"touch /tmp/owned"}');
  const opened = await task.open('--ide', 'code', '--devcontainer');
  expect(opened.code).toBe(0);
  const inside = `/workspaces/${directory.split('/').at(-1) ?? ''}`;
  expect((await task.started()).slice(1)).toEqual([
    '--new-window',
    '--folder-uri',
    `vscode-remote://dev-container+${Buffer.from(directory).toString('hex')}${inside}`,
  ]);
  expect(container()).toContain(`"workspaceFolder": "${inside}"`);
  expect([has('.devcontainer.json'), has('.devcontainer/docker-compose.yaml')]).toEqual([false, true]);

  const idea = await task.machine.ags(['open', 'work', '--ide', 'idea']);
  expect([idea.code, idea.stderr.includes(`The command would be: idea ${directory}`)]).toEqual([9, true]);
  const unknown = await task.open('--ide', 'ed');
  expect([unknown.code, unknown.stderr.includes('ags knows no editor "ed"')]).toEqual([2, true]);
  expect([(await task.open('--remove')).code, existsSync(directory)]).toEqual([0, false]);
  await task.open('--print');
  const removed = await task.machine.ags(['rm', '--yes', 'work']);
  expect([removed.stderr, has('README.md')]).toEqual([`ags: Its opened directory was kept: ${directory}\n`, true]);
});
