// test/projects/open-task.test.ts: `ags open`: what an agent did, in an editor: with an editor that writes down how it was started.
// needs: sandbox
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runAgent } from '../agent-run/agent-task.ts';
import { createMachine, giveTo, type Machine, USUAL } from '../harness.ts';

interface Desk extends Disposable {
  readonly machine: Machine;
  readonly branch: string;
  readonly directory: string;
  open(...args: string[]): ReturnType<Machine['ags']>;
  /** How the editor was started. */
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

async function createDesk(caller: 'root' | 'user', script: string, files?: Record<string, string>): Promise<Desk> {
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
  test('a task is opened from its branch, in a directory of its own, and nothing makes the editor trust it', async () => {
    using desk = await createDesk(caller, SCRIPT);
    const { machine, directory } = desk;
    const result = await desk.open('--ide', 'code');
    expect([result.code, result.stdout]).toEqual([0, `${directory}\n`]);
    expect(await desk.started()).toEqual([machine.home, '--new-window', directory]);
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
    expect(git('rev-parse', '--abbrev-ref', 'HEAD')).toBe(desk.branch);
    expect(git('rev-parse', 'HEAD')).toBe(machine.git('rev-parse', desk.branch).trim());
    // What an editor would act on outside of any container is not the agent's.
    for (const path of ['.devcontainer', '.devcontainer.json']) {
      expect([path, existsSync(join(directory, path))]).toEqual([path, false]);
      expect(result.stderr).toContain(`${path} was left out: it was changed by the agent`);
    }
    expect(git('status', '--porcelain').split('\n')).toEqual([
      'D .devcontainer.json',
      ' D .devcontainer/devcontainer.json',
    ]);
    // The user's own files are as they were.
    expect(machine.git('status', '--porcelain')).toBe('');
    expect(machine.read('README.md')).toBe('# project\n');
  });
});

test.each([
  ['{"dockerComposeFile":"../docker-compose.yml","service":"app"}'],
  ['{"image":"x","initializeCommand":"sh docker/init.sh"}'],
])("a dev container of the user's own that leads to files of the agent's is not there: %s", async (text) => {
  using desk = await createDesk('user', 'echo "services: { app: { privileged: true } }" > docker-compose.yml', {
    'docker-compose.yml': 'services: {}\n',
    '.devcontainer/devcontainer.json': `${text}\n`,
  });
  const { code, stderr } = await desk.open('--print');
  expect([code, stderr]).toEqual([
    0,
    expect.stringContaining(".devcontainer was left out: it refers to files that are the agent's"),
  ]);
  expect([
    existsSync(join(desk.directory, '.devcontainer')),
    existsSync(join(desk.directory, 'docker-compose.yml')),
  ]).toEqual([false, true]);
});

test('it is opened as it is when it is there already, anew, in a dev container of ours, and thrown away', async () => {
  using desk = await createDesk('user', 'echo changed >> README.md', {
    'README.md': '# project\n',
    '.devcontainer/devcontainer.json': '{"image":"the-users-own"}\n',
    '.devcontainer/docker-compose.yaml': 'volumes: ["..:/workspaces/x", "../.git:/workspaces/x/.git:ro"]\n',
  });
  const { directory } = desk;
  const has = (path: string): boolean => existsSync(join(directory, path));
  const container = (): string => readFileSync(join(directory, '.devcontainer/devcontainer.json'), 'utf8');
  await desk.open('--print');
  // The same as on the user's own branch.
  expect(container()).toContain('the-users-own');
  writeFileSync(join(directory, 'mine.txt'), 'mine');
  expect([(await desk.open('--print')).code, has('mine.txt')]).toEqual([0, true]);
  expect([(await desk.open('--print', '--fresh')).code, has('mine.txt')]).toEqual([0, false]);

  writeFileSync(join(directory, '.devcontainer.json'), '{"initializeCommand":"touch /tmp/owned"}');
  const opened = await desk.open('--ide', 'code', '--devcontainer');
  expect(opened.code).toBe(0);
  const inside = `/workspaces/${directory.split('/').at(-1) ?? ''}`;
  expect((await desk.started()).slice(1)).toEqual([
    '--new-window',
    '--folder-uri',
    `vscode-remote://dev-container+${Buffer.from(directory).toString('hex')}${inside}`,
  ]);
  expect(container()).toContain(`"workspaceFolder": "${inside}"`);
  expect([has('.devcontainer.json'), has('.devcontainer/docker-compose.yaml')]).toEqual([false, true]);

  const idea = await desk.machine.ags(['open', 'work', '--ide', 'idea']);
  expect([idea.code, idea.stderr.includes(`The command would be: idea ${directory}`)]).toEqual([9, true]);
  const unknown = await desk.open('--ide', 'ed');
  expect([unknown.code, unknown.stderr.includes('ags knows no editor "ed"')]).toEqual([2, true]);
  expect([(await desk.open('--remove')).code, existsSync(directory)]).toEqual([0, false]);
  await desk.open('--print');
  const removed = await desk.machine.ags(['rm', '--yes', 'work']);
  expect([removed.stderr, has('README.md')]).toEqual([`ags: Its opened directory was kept: ${directory}\n`, true]);
});
