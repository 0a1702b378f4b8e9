// test/agents/whole-road.test.ts: a goal, a real agent, a real sandbox, a real gateway, and the branch that comes out.
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Agent } from '../../src/agents/agent.ts';
import { claude } from '../../src/agents/claude.ts';
import { codex } from '../../src/agents/codex.ts';
import { gemini } from '../../src/agents/gemini.ts';
import { opencode } from '../../src/agents/opencode.ts';
import { CALLERS } from '../harness.ts';
import type { Turn } from '../model/scenario.ts';
import { programOf } from './programs.ts';
import { openRoad, REAL_KEY } from './whole-road.ts';

type Call = NonNullable<Turn['call']>;

const AGENTS: readonly {
  agent: Agent;
  write(project: string, path: string): Call;
  run(command: string): Call;
}[] = [
  {
    agent: claude,
    write: (project, path) => ({ tool: 'Write', input: { file_path: `${project}/${path}`, content: 'hi\n' } }),
    run: (command) => ({ tool: 'Bash', input: { command } }),
  },
  {
    agent: codex,
    write: (_, path) => ({
      tool: 'apply_patch',
      input: { input: `*** Begin Patch\n*** Add File: ${path}\n+hi\n*** End Patch\n` },
    }),
    run: (cmd) => ({ tool: 'exec_command', input: { cmd } }),
  },
  {
    agent: gemini,
    write: (_, path) => ({ tool: 'write_file', input: { file_path: path, content: 'hi\n' } }),
    run: (command) => ({ tool: 'run_shell_command', input: { command, description: 'a command' } }),
  },
  {
    agent: opencode,
    write: (project, path) => ({ tool: 'write', input: { filePath: `${project}/${path}`, content: 'hi\n' } }),
    run: (command) => ({ tool: 'bash', input: { command, description: 'a command' } }),
  },
];

beforeAll(() => {
  for (const { agent } of AGENTS) programOf(agent);
}, 600_000);

describe.each(CALLERS)('as %s', (caller) => {
  test.each(AGENTS)(
    '$agent.title works on a goal, is refused a command, and is told more',
    { timeout: 240_000 },
    async ({ agent, write, run }) => {
      await using road = await openRoad(agent, caller, (project) => [
        { say: 'I write.', call: write(project, 'hello.txt') },
        { say: 'I try.', call: run('echo forbidden > bad.txt') },
        { say: 'I run.', call: run('cat hello.txt > copy.txt; env > env.txt; ls -A ~ > home.txt; exit 3') },
        { say: 'The first part is done.' },
        { say: 'I go on.', call: write(project, 'second.txt') },
        { say: 'The second part is done.' },
      ]);
      const { machine, model } = road;
      const started = await road.ags('start', 'first', 'Do the thing.', '--agent', agent.name);
      expect(started, started.stdout + started.stderr).toMatchObject({ code: 0 });
      expect(started.stdout).toContain('The first part is done.');
      const files = (): string[] => machine.git('ls-tree', '-r', '--name-only', 'ags/first').trim().split('\n');
      expect(files()).toEqual(['README.md', 'copy.txt', 'env.txt', 'hello.txt', 'home.txt', 'src/a.txt']);
      expect(machine.git('show', 'ags/first:copy.txt')).toBe('hi\n');
      expect(machine.git('show', 'ags/first:env.txt')).not.toContain(REAL_KEY);
      expect(JSON.stringify(model.requests.at(-1)?.body)).toContain('This is not wanted here.');
      expect(model.requests.filter(({ keyOk, shape }) => !keyOk && shape !== null)).toEqual([]);

      const sent = await road.ags('send', 'first', 'And the second thing.');
      expect(sent, sent.stdout + sent.stderr).toMatchObject({ code: 0 });
      while (!files().includes('second.txt')) await sleep(200);
      expect(JSON.stringify(model.requests.at(-1)?.body)).toContain('Do the thing.');
    },
  );

  test.each(AGENTS)(
    '$agent.title works in a terminal of its own',
    { timeout: 240_000 },
    async ({ agent, write, run }) => {
      await using road = await openRoad(agent, caller, (project) => [
        { say: 'I write.', call: write(project, 'hello.txt') },
        { say: 'I try.', call: run('echo forbidden > bad.txt') },
        { say: 'All of it is done.' },
      ]);
      const { machine, model } = road;
      const started = await road.ags(
        'start',
        'first',
        'Do the thing.',
        '--agent',
        agent.name,
        '--interactive',
        '--detach',
      );
      expect(started, started.stdout + started.stderr).toMatchObject({ code: 0 });
      while (!model.requests.some(({ turn }) => turn === 2)) await sleep(200);
      const last = model.requests.find(({ turn }) => turn === 2);
      expect(JSON.stringify(last?.body)).toContain('This is not wanted here.');
      expect(await road.ags('stop', 'first')).toMatchObject({ code: 0 });
      while (machine.git('branch', '--list', 'ags/first') === '') await sleep(200);
      expect(machine.git('ls-tree', '-r', '--name-only', 'ags/first').trim().split('\n')).toEqual([
        'README.md',
        'hello.txt',
        'src/a.txt',
      ]);
    },
  );
});

test.each(AGENTS)('$agent.title is told that its key is wrong', { timeout: 240_000 }, async ({ agent }) => {
  await using road = await openRoad(agent, 'user', () => [{ fail: { status: 401, message: 'no such key' } }]);
  const started = await road.ags('start', 'first', 'Do the thing.', '--agent', agent.name);
  expect(started.code).not.toBe(0);
  expect(started.stdout + started.stderr, started.stdout + started.stderr).toContain(`ags auth ${agent.name}`);
});
