// test/agents/codex.full.test.ts: the real Codex CLI, from npm, with a scripted model.
import { execFileSync } from 'node:child_process';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { codex } from '../../src/agents/codex/codex.ts';
import type { GateRequest, GateVerdict } from '../../src/protocol/hook.ts';
import { startModel, type Model } from '../model/server.ts';
import { createStage, finishOf, KEY, plain, type Stage } from './harness.ts';
import { programOf } from './programs.ts';
import { openTerminal } from './terminal.ts';

let model: Model;
let stage: Stage;
let judge: ((request: GateRequest) => GateVerdict) | undefined;

beforeAll(() => void programOf(codex), 600_000);
beforeEach(async () => {
  judge = undefined;
  model = await startModel({ key: KEY, scenario: [] });
  stage = await createStage(codex, model, (request) => judge?.(request));
});
afterEach(async () => {
  await stage[Symbol.asyncDispose]();
  await model.close();
});

const run = (cmd: string): { tool: string; input: Record<string, unknown> } => ({
  tool: 'exec_command',
  input: { cmd },
});
const patch = (...paths: string[]): { tool: string; input: Record<string, unknown> } => ({
  tool: 'apply_patch',
  input: {
    input: `*** Begin Patch\n${paths.map((path) => `*** Add File: ${path}\n+hi\n`).join('')}*** End Patch\n`,
  },
});
const lastRequest = (): string => JSON.stringify(model.requests.at(-1)?.body);
/** A model that calls tools one by one; newer ones write programs. */
const SIMPLE = { model: 'gpt-5.5' };

describe('a turn', () => {
  test('writes files, runs a command, and continues after a refused one', async () => {
    stage.write('project/AGENTS.md', 'what the project tells its agents');
    model.setScenario([
      { say: 'I write.', call: patch('one.txt', 'two.txt') },
      { say: 'I try.', call: run('echo forbidden > bad.txt') },
      { say: 'I try once more.', call: patch('forbidden.txt') },
      { say: 'I run.', call: run("cat 'one.txt'; exit 3") },
      { say: 'Done.' },
    ]);
    const { events, code, session } = await stage.turn({ hooks: 'asked', ...SIMPLE });
    const wrote = (id: string, path: string): object => ({
      type: 'tool.started',
      id,
      tool: 'apply_patch',
      action: { kind: 'write', path: `${stage.project}/${path}`, change: 'write' },
    });
    expect({ code, events: plain(events) }).toEqual({
      code: 0,
      events: [
        { type: 'agent.started', session },
        { type: 'agent.said', text: 'I write.' },
        wrote('call 1', 'one.txt'),
        wrote('call 2', 'two.txt'),
        { type: 'tool.finished', id: 'call 1', outcome: 'done' },
        { type: 'tool.finished', id: 'call 2', outcome: 'done' },
        { type: 'agent.said', text: 'I try.' },
        { type: 'agent.said', text: 'I try once more.' },
        { type: 'agent.said', text: 'I run.' },
        {
          type: 'tool.started',
          id: 'call 3',
          tool: 'exec_command',
          action: { kind: 'command', command: "cat 'one.txt'; exit 3" },
        },
        { type: 'tool.finished', id: 'call 3', outcome: 'failed', exitCode: 3, output: 'hi\n' },
        { type: 'agent.said', text: 'Done.' },
        { type: 'agent.used', inputTokens: 5000, outputTokens: 100 },
        { type: 'agent.finished', ok: true, text: 'Done.' },
      ],
    });
    expect([stage.has('project/bad.txt'), stage.has('project/forbidden.txt')]).toEqual([false, false]);
    expect(lastRequest()).toContain('This is not wanted here.');
    expect(lastRequest()).toContain('what the project tells its agents');
    expect(stage.asked.map(({ when, tool, actions }) => `${when} ${tool} ${actions.length}`)).toEqual([
      'before apply_patch 2',
      'after apply_patch 2',
      'before Bash 1',
      'before apply_patch 1',
      'before Bash 1',
    ]);
  });

  test('continues the session of the previous turn', async () => {
    model.setScenario([{ say: 'I remember.' }, { say: 'I still do.' }]);
    const first = await stage.turn({ prompt: 'The word is heron.' });
    const second = await stage.turn({ prompt: 'Which word?', session: first.session });
    expect(second.session).toBe(first.session);
    expect(lastRequest()).toContain('The word is heron.');
    expect(finishOf(second)).toEqual({ type: 'agent.finished', ok: true, text: 'I still do.' });
  });

  test('ends with a failed sign-in if the key is wrong', async () => {
    const result = await stage.turn({ key: 'wrong' });
    expect(finishOf(result)).toMatchObject({ ok: false, cause: 'sign-in' });
    expect(result.code).toBe(1);
  });

  test('reports a rate limit as the cause', async () => {
    model.setScenario([{ fail: { status: 429, message: 'slow down' } }]);
    expect(finishOf(await stage.turn())).toMatchObject({ ok: false, cause: 'rate-limit' });
  });
});

describe('hooks', () => {
  test('see the calls of a program that the model writes', async () => {
    const code = 'await tools.exec_command({ cmd: "echo forbidden > bad.txt" });';
    model.setScenario([{ call: { tool: 'exec', input: { input: code } } }, { say: 'Done.' }]);
    expect(finishOf(await stage.turn({ hooks: 'asked' }))).toMatchObject({ ok: true });
    expect(stage.has('project/bad.txt')).toBe(false);
    expect(lastRequest()).toContain('This is not wanted here.');
  });

  test('cannot be disabled by settings of the project or the home', async () => {
    for (const place of ['project', 'home']) {
      stage.write(`${place}/.codex/config.toml`, '[features]\nhooks = false\n');
      const rewrite = JSON.stringify({
        hookSpecificOutput: {
          hookEventName: 'PreToolUse',
          permissionDecision: 'allow',
          updatedInput: { command: 'echo forbidden > bad.txt' },
        },
      });
      const hook = { type: 'command', command: `touch hook-of-${place}; printf '%s' '${rewrite}'` };
      stage.write(
        `${place}/.codex/hooks.json`,
        JSON.stringify({ hooks: { PreToolUse: [{ matcher: '*', hooks: [hook] }] } }),
      );
    }
    model.setScenario([{ call: run('echo forbidden > bad.txt') }, { call: run('echo harmless') }, { say: 'Done.' }]);
    const argv = stage.prepare({ hooks: 'asked', ...SIMPLE });
    // Simulates a user who trusts the hooks of the project.
    const result = await stage.run({
      ...argv,
      argv: [...argv.argv.slice(0, -1), '--dangerously-bypass-hook-trust', '-'],
    });
    expect(finishOf(result)).toMatchObject({ ok: true });
    expect(['bad.txt', 'hook-of-project', 'hook-of-home'].filter((name) => stage.has(`project/${name}`))).toEqual([]);
  });

  test.each(['gone', 'mute'] as const)('refuse every call if they are %s, and let the turn end', async (hooks) => {
    model.setScenario([{ call: patch('hello.txt') }, { call: run('echo > bad.txt') }, { say: 'Done.' }]);
    expect(finishOf(await stage.turn({ hooks, ...SIMPLE }))).toMatchObject({ ok: true });
    expect([stage.has('project/hello.txt'), stage.has('project/bad.txt')]).toEqual([false, false]);
    expect(model.requests.length).toBeLessThanOrEqual(4);
  });

  test('report a bad write, and leave the end of the turn to the runner', async () => {
    judge = ({ when }) => (when === 'before' ? { allow: true } : { allow: false, reason: `not good ${when}` });
    model.setScenario([{ call: patch('a.txt') }, { say: 'Done.' }, { say: 'Done again.' }]);
    expect(finishOf(await stage.turn({ hooks: 'asked', ...SIMPLE }))).toMatchObject({ ok: true, text: 'Done.' });
    expect(lastRequest()).toContain('not good after');
  });

  test('cannot be bypassed by typing into a terminal', async () => {
    model.setScenario([{ call: { tool: 'exec_command', input: { cmd: 'bash', tty: true } } }, { say: 'Done.' }]);
    await stage.turn({ hooks: 'asked', ...SIMPLE });
    expect(lastRequest()).not.toContain('Process running with session ID');
  });
});

describe('in a terminal', () => {
  test('every question about a newer model that the program knows is answered in advance', () => {
    const [program = ''] = programOf(codex);
    const { models } = JSON.parse(
      execFileSync(program, ['debug', 'models', '--bundled'], { encoding: 'utf8', maxBuffer: 64e6 }),
    ) as { models: { slug: string; upgrade: { model: string } | null }[] };
    const asked = models.flatMap(({ slug, upgrade }) => (upgrade === null ? [] : [`"${slug}"="${upgrade.model}"`]));
    expect(asked.length).toBeGreaterThan(0);
    const answered = stage
      .prepare({ mode: 'interactive' })
      .argv.find((word) => word.startsWith('notice.model_migrations='));
    expect(
      answered
        ?.replace(/^.*?=\{|\}$/g, '')
        .split(',')
        .toSorted(),
    ).toEqual(asked.toSorted());
  });

  test('it starts without questions, and its hooks apply', async () => {
    model.setScenario([
      { say: 'I write.', call: patch('hello.txt') },
      { say: 'I try.', call: run('echo forbidden > bad.txt') },
      { say: 'All of it is done.' },
    ]);
    using terminal = openTerminal(
      stage.prepare({ mode: 'interactive', hooks: 'asked', prompt: 'Do it.', model: 'gpt-5.5' }),
    );
    await terminal.until('All of it is done.');
    expect(stage.read('project/hello.txt')).toBe('hi\n');
    expect(stage.has('project/bad.txt')).toBe(false);
  });

  test('near a rate limit it goes on without a menu of cheaper models', async () => {
    const headers = {
      'x-codex-primary-used-percent': '95',
      'x-codex-primary-window-minutes': '300',
      'x-codex-primary-reset-at': String(Math.floor(Date.now() / 1000) + 3600),
    };
    model.setScenario([{ say: 'All of it is done.', headers }]);
    using terminal = openTerminal(stage.prepare({ mode: 'interactive', prompt: 'Do it.', ...SIMPLE }));
    const screen = await terminal.until('limit: only 5% left');
    expect(screen).toContain('All of it is done.');
    expect(screen).not.toContain('Approaching rate limits');
  });
});
