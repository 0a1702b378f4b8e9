// test/workspace/setup.full.test.ts: `setup:` commands run once in a sandbox, and later tasks start with their results.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { until } from '../exec/given.ts';
import { type Caller, createMachine, type Machine, USUAL } from '../harness.ts';
import { createAgentMachine } from '../agent-run/place.ts';
import { processes } from '../merge/checks/place.ts';
import { layersDirOf, listen, runTask, startTask } from './task.ts';

// A script with every effect of setup: new files beside and below tracked ones, links, special files, and files that must not stay.
const INSTALL = [
  'mkdir -p node_modules/dep src/generated',
  'echo "dep $(cat lock.txt)" > node_modules/dep/index.js',
  'ln -s ../node_modules/dep src/dep',
  'echo g > src/generated/g.txt',
  'echo changed > src/a.txt',
  'rm README.md',
  'mkfifo node_modules/pipe pipe',
  'mkdir -m 555 locked',
  'echo cached > ~/cache',
  'date +%s%N > node_modules/stamp',
].join(' && ');

function project(caller: Caller, run: readonly string[] = [INSTALL], more = ''): Machine {
  return createMachine(caller, {
    files: {
      'ags.yaml': `setup:\n  run: ${JSON.stringify(run)}\n  inputs: [lock.txt]\n${more}`,
      '.gitignore': 'node_modules/\n',
      'README.md': 'r\n',
      'lock.txt': '1\n',
      'src/a.txt': 'a\n',
    },
  });
}

const LOOK =
  'cat node_modules/dep/index.js src/dep/index.js src/a.txt README.md; ls; git status --short; ls -A ~ | grep -c cache';

describe.each(USUAL)('as %s', (caller) => {
  test('files added by setup are in every task, and its changes to committed files are not', async () => {
    using machine = project(caller);
    const one = await runTask(machine, { task: 'one', commands: [LOOK, 'cat node_modules/stamp'] });
    expect(one).toMatchObject({ error: null, stderr: '' });
    expect(one.steps.map(({ kind }) => kind)).toEqual(['snapshot', 'setup']);
    expect(one.ran[0]).toEqual({
      code: 1,
      stdout: 'dep 1\ndep 1\na\nr\nREADME.md\nags.yaml\nlock.txt\nlocked\nnode_modules\nsrc\n0\n',
      stderr: '',
    });
    const two = await runTask(machine, {
      task: 'two',
      commands: [
        'cat node_modules/stamp',
        'echo mine > node_modules/dep/index.js; rm -r src/generated; rm node_modules/stamp',
      ],
    });
    expect(two.steps).toEqual([]);
    expect(two.ran[0]).toEqual(one.ran[1]);
    const three = await runTask(machine, {
      task: 'three',
      commands: ['cat node_modules/stamp node_modules/dep/index.js'],
    });
    expect(three.ran[0]?.stdout).toBe(`${one.ran[1]?.stdout}dep 1\n`);
  });

  test('a directory of the PATH that this user may not enter is passed over', async () => {
    using machine = createAgentMachine(caller, { 'a.txt': 'a', 'ags.yaml': 'setup: [echo made > made]\n' });
    const closed = join(machine.root, 'closed');
    mkdirSync(closed, { mode: 0 });
    const env = { PATH: `${closed}/bin:${machine.env['PATH']}` };
    await machine.ags(['start', 'look', 'run: cat made', '-a', 'demo'], { env });
    const finished = await machine.event('look', 'tool.finished');
    expect(finished).toMatchObject({ output: 'made\n' });
  });

  test.each(['overlay', 'copy'])(
    'files added by setup are not part of the work of an agent, over %s',
    async (workspace) => {
      using machine = createAgentMachine(caller, {
        'ags.yaml': 'setup: ["mkdir -p gen/deep && echo made > gen/deep/kept.txt && echo made > gen/edited.txt"]\n',
        'a.txt': 'a\n',
      });
      const goal = 'write: own.txt 1 // write: gen/edited.txt more of it // write: gen/own.txt 2';
      const run = await machine.runDemo('work', goal, ['--workspace', workspace]);
      expect(run).toMatchObject({ state: 'ready', workspace });
      const { stdout } = await machine.ags(['diff', 'work', '--name-only']);
      expect(stdout.trim().split('\n').toSorted()).toEqual(['gen/edited.txt', 'gen/own.txt', 'own.txt']);
    },
  );

  test('setup runs again when one of its input files changes, and not for other files', async () => {
    using machine = project(caller);
    await runTask(machine, { task: 'one' });
    machine.write('src/a.txt', 'b\n');
    machine.git('commit', '-qam', 'other');
    const other = await runTask(machine, { task: 'two', commands: ['cat node_modules/dep/index.js src/a.txt'] });
    expect(other.steps.map(({ kind }) => kind)).toEqual(['snapshot']);
    expect(other.ran).toEqual([{ code: 0, stdout: 'dep 1\nb\n', stderr: '' }]);
    machine.write('lock.txt', '2\n');
    machine.git('commit', '-qam', 'lock');
    const again = await runTask(machine, { task: 'three', commands: ['cat node_modules/dep/index.js'] });
    expect(again.steps.map(({ kind }) => kind)).toEqual(['snapshot', 'setup']);
    expect(again.ran).toEqual([{ code: 0, stdout: 'dep 2\n', stderr: '' }]);
    // This commit has its own file at a path of the layer.
    machine.write('src/generated/g.txt', 'tracked\n');
    machine.git('add', '-A');
    machine.git('commit', '-qm', 'generated');
    const tracked = await runTask(machine, {
      task: 'four',
      commands: ['cat src/generated/g.txt node_modules/dep/index.js'],
    });
    expect(tracked.ran).toEqual([{ code: 0, stdout: 'tracked\ndep 2\n', stderr: '' }]);
  });

  test('a failing command is named with its code and last lines, nothing is kept, and the next start tries again', async () => {
    using machine = project(caller, ['echo fine', String.raw`echo one; printf "two\033[31m\n"; exit 7`, 'echo never']);
    const said = await runTask(machine, { task: 'fails' });
    expect(said.output).toEqual(['fine', 'one', 'two\u001b[31m']);
    expect(said.error).toMatchObject({ code: 'setup.failed' });
    expect(said.error?.message).toContain('failed. It exited with code 7.\n  fine\n  one\n  two\\x1b[31m');
    expect(layersOf(machine)).toEqual(['base']);
    const again = await runTask(machine, { task: 'again' });
    expect(again.output).toEqual(['fine', 'one', 'two\u001b[31m']);
  });

  test('a command that exceeds its time is ended', async () => {
    using machine = project(caller, ['echo started; sleep 600'], '  timeout: 2s\n');
    const said = await runTask(machine, { task: 'slow' });
    expect(said.error).toMatchObject({
      code: 'setup.failed',
      message: expect.stringContaining('time limit of 2s reached (setup.timeout)'),
    });
    expect(layersOf(machine)).toEqual(['base']);
  });

  test('two tasks that need the same setup share one run: the second waits', async () => {
    // The shared setup takes long enough for both tasks to start on a busy machine; the one before it does not.
    using machine = project(caller, ['[ "$(cat lock.txt)" = 1 ] || sleep 10; date +%s%N > made']);
    await runTask(machine, { task: 'ready', commit: machine.git('rev-parse', 'HEAD').trim(), commands: [] });
    machine.write('lock.txt', '2\n');
    machine.git('commit', '-qam', 'lock');
    const both = await Promise.all(['a', 'b'].map((task) => runTask(machine, { task, commands: ['cat made'] })));
    expect(both.map(({ error }) => error)).toEqual([null, null]);
    expect(both[0]?.ran).toEqual(both[1]?.ran);
    const texts = both.flatMap(({ steps }) => steps.filter(({ kind }) => kind === 'setup').map(({ text }) => text));
    expect(texts.filter((text) => text.startsWith('Setup: '))).toHaveLength(1);
    expect(texts.filter((text) => text.startsWith('Waiting '))).toHaveLength(1);
  });

  test('a runner killed during setup leaves no usable layer and no process', async () => {
    const sleeping = `sleep 6031.${process.pid}`;
    using machine = project(caller, [`echo "pid $$"; echo half > half; ${sleeping}`]);
    const child = startTask(machine, { task: 'killed' });
    const said = listen(child);
    const place = (): string => join(layersDirOf(machine), readdirSync(layersDirOf(machine))[0] ?? '');
    await until(
      () =>
        existsSync(layersDirOf(machine)) &&
        readdirSync(place()).some((name) => existsSync(join(place(), name, 'tasks/setup/run/upper/half'))),
    );
    child.kill('SIGKILL');
    await said;
    await until(() => !processes().includes(sleeping));
    expect(layersOf(machine)).toEqual(['base']);
    machine.write('ags.yaml', 'setup:\n  run: [echo whole > whole]\n');
    machine.git('commit', '-qam', 'other setup');
    const next = await runTask(machine, { task: 'next', commands: ['cat whole; ls half'] });
    expect(next.error).toBeNull();
    expect(next.ran).toMatchObject([{ stdout: 'whole\n' }]);
    expect(readdirSync(place()).filter((name) => name.startsWith('.'))).toEqual([]);
  });

  test('setup commands receive no secret and no placeholder', async () => {
    using machine = project(caller, ['env | sort > seen']);
    mkdirSync(join(machine.home, '.config/ags'), { recursive: true });
    writeFileSync(
      join(machine.home, '.config/ags/config.yaml'),
      'secrets:\n  - name: hub\n    host: api.github.com\n    env: HUB_TOKEN\n    from: { env: HUB_TOKEN }\n',
    );
    const said = await runTask(machine, {
      task: 'env',
      commands: ['echo ${HUB_TOKEN:+set}; grep -c "^https_proxy=" seen; grep -c HUB_TOKEN seen'],
    });
    expect(said.error).toBeNull();
    expect(said.ran).toMatchObject([{ stdout: 'set\n1\n0\n' }]);
  });
});

function layersOf(machine: Machine): string[] {
  const [dir = ''] = readdirSync(layersDirOf(machine));
  return readdirSync(join(layersDirOf(machine), dir)).flatMap((name) => /^(base|setup)(?=-)/.exec(name)?.[0] ?? []);
}
