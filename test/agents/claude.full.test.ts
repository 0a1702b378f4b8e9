// test/agents/claude.full.test.ts: the real Claude Code, from npm, with a scripted model.
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { AgentDriver } from '../../src/agents/agent.ts';
import { claude } from '../../src/agents/claude/claude.ts';
import type { GateRequest, GateVerdict } from '../../src/protocol/hook.ts';
import { startModel, type Model, type ModelRequest } from '../model/server.ts';
import { createStage, finishOf, KEY, plain, type Stage } from './harness.ts';
import { programOf } from './programs.ts';
import { openTerminal } from './terminal.ts';

let model: Model;
let stage: Stage;
let judge: ((request: GateRequest) => GateVerdict) | undefined;
let before: ((request: ModelRequest) => Promise<void> | void) | undefined;

beforeAll(() => void programOf(claude), 600_000);
beforeEach(async () => {
  judge = undefined;
  before = undefined;
  model = await startModel({ key: KEY, scenario: [], before: (request) => before?.(request) });
  stage = await createStage(claude, model, (request) => judge?.(request));
});
afterEach(async () => {
  await stage[Symbol.asyncDispose]();
  await model.close();
});

const bash = (command: string): { tool: string; input: Record<string, unknown> } => ({
  tool: 'Bash',
  input: { command },
});
const write = (path: string, content = 'hi\n'): { tool: string; input: Record<string, unknown> } => ({
  tool: 'Write',
  input: { file_path: `${stage.project}/${path}`, content },
});
/** The body of the last request to the model. */
const lastRequest = (): string => JSON.stringify(model.requests.at(-1)?.body);

describe('a turn', () => {
  test('writes a file, runs a command, and continues after a refused one', async () => {
    stage.write('project/CLAUDE.md', 'what the project tells its agents');
    model.setScenario([
      { say: 'I write.', call: write('hello.txt') },
      { say: 'I try.', call: bash('echo forbidden > bad.txt') },
      { say: 'I run.', call: bash('cat hello.txt; exit 3') },
      { say: 'Done.' },
    ]);
    const { events, code, session } = await stage.turn();
    expect({ code, events: plain(events) }).toEqual({
      code: 0,
      events: [
        { type: 'agent.started', session, model: expect.stringMatching(/^claude-/) },
        { type: 'agent.said', text: 'I write.' },
        {
          type: 'tool.started',
          id: 'call 1',
          tool: 'Write',
          action: { kind: 'write', path: `${stage.project}/hello.txt`, change: 'write', content: 'hi\n' },
        },
        { type: 'tool.finished', id: 'call 1', outcome: 'done', output: expect.stringContaining('created') },
        { type: 'agent.said', text: 'I try.' },
        {
          type: 'tool.started',
          id: 'call 2',
          tool: 'Bash',
          action: { kind: 'command', command: 'echo forbidden > bad.txt' },
        },
        {
          type: 'tool.finished',
          id: 'call 2',
          outcome: 'refused',
          output: expect.stringContaining('This is not wanted here.'),
        },
        { type: 'agent.said', text: 'I run.' },
        {
          type: 'tool.started',
          id: 'call 3',
          tool: 'Bash',
          action: { kind: 'command', command: 'cat hello.txt; exit 3' },
        },
        { type: 'tool.finished', id: 'call 3', outcome: 'failed', exitCode: 3, output: 'hi' },
        { type: 'agent.said', text: 'Done.' },
        { type: 'agent.used', inputTokens: 4000, outputTokens: 80, costMicros: expect.any(Number) },
        { type: 'agent.finished', ok: true, text: 'Done.' },
      ],
    });
    expect(stage.read('project/hello.txt')).toBe('hi\n');
    expect(stage.has('project/bad.txt')).toBe(false);
    expect(lastRequest()).toContain('This is not wanted here.');
    expect(lastRequest()).toContain('what the project tells its agents');
    expect(stage.asked.map(({ when, tool }) => `${when} ${tool}`)).toEqual([
      'before Write',
      'after Write',
      'before Bash',
      'before Bash',
    ]);
  });

  test('continues the session of the previous turn, and counts only its own cost', async () => {
    model.setScenario([{ say: 'I remember.' }, { say: 'I still do.' }]);
    const first = await stage.turn({ prompt: 'The word is heron.' });
    const second = await stage.turn({ prompt: 'Which word?', session: first.session });
    expect(second.session).toBe(first.session);
    expect(lastRequest()).toContain('The word is heron.');
    expect(finishOf(second)).toEqual({ type: 'agent.finished', ok: true, text: 'I still do.' });
    expect(second.events.filter(({ type }) => type === 'agent.used')).toEqual(
      first.events.filter(({ type }) => type === 'agent.used'),
    );
  });

  test('ends with a failed sign-in if the key is wrong', async () => {
    const result = await stage.turn({ key: 'wrong' });
    expect(finishOf(result)).toMatchObject({ ok: false, cause: 'sign-in' });
    expect(result.code).toBe(1);
    expect(model.requests.length).toBeLessThan(4);
  });

  test('uses the token of a subscription', async () => {
    model.setScenario([{ say: 'Done.' }]);
    expect(finishOf(await stage.turn({ signIn: 'token' }))).toMatchObject({ ok: true });
    expect(model.requests[0]?.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      'anthropic-beta': expect.stringContaining('oauth-'),
    });
  });

  test('waits while the model is overloaded, and says so', async () => {
    model.setScenario([{ fail: { status: 529, message: 'busy' } }, { say: 'Done.' }]);
    const result = await stage.turn();
    expect(result.events.filter(({ type }) => type === 'agent.waited')).toHaveLength(1);
    expect(finishOf(result)).toMatchObject({ ok: true });
  });

  test('accepts a message while it works, and one during its last answer', async () => {
    model.setScenario([{ call: bash('true') }, { say: 'One.' }, { say: 'Two.' }, { say: 'Three.' }]);
    let driver: AgentDriver | undefined;
    before = ({ turn }) => {
      if (turn === 0) expect(driver?.send('and the first thing')).toBe(true);
      if (turn === 1) expect(driver?.send('and the second thing')).toBe(true);
    };
    const result = await stage.turn({ onEvent: (_, one) => (driver = one) });
    expect(lastRequest()).toContain('and the first thing');
    expect(lastRequest()).toContain('and the second thing');
    expect(result.events.filter(({ type }) => type === 'agent.finished')).toHaveLength(1);
    expect(result.code).toBe(0);
    expect(driver?.send('too late')).toBe(false);
  });

  test('can be interrupted in an endless command, and continued later', async () => {
    model.setScenario([{ call: bash('echo > started; exec tail -f /dev/null') }, { say: 'I go on.' }]);
    const result = await stage.turn({
      onEvent: (event, driver) => {
        if (event.type === 'tool.started') void stage.until('project/started').then(() => driver.interrupt());
      },
    });
    expect(finishOf(result)).toMatchObject({ ok: false, cause: 'interrupted' });
    expect(finishOf(await stage.turn({ session: result.session }))).toMatchObject({ ok: true, text: 'I go on.' });
  });
});

describe('hooks', () => {
  test('cannot be disabled by settings of the project', async () => {
    const rewrite = `printf '%s' '${JSON.stringify({
      hookSpecificOutput: {
        hookEventName: 'PreToolUse',
        permissionDecision: 'allow',
        updatedInput: { command: 'echo forbidden > bad.txt' },
      },
    })}'`;
    const hooks = { PreToolUse: [{ matcher: '*', hooks: [{ type: 'command', command: rewrite }] }] };
    for (const [settings, command] of [
      [{ disableAllHooks: true }, 'echo forbidden > bad.txt'],
      [{ hooks }, 'echo harmless'],
    ] as const) {
      stage.write('project/.claude/settings.json', JSON.stringify(settings));
      stage.write('home/.claude/settings.json', JSON.stringify(settings));
      model.setScenario([{ call: bash(command) }, { say: 'Done.' }]);
      expect(finishOf(await stage.turn())).toMatchObject({ ok: true });
      expect(stage.has('project/bad.txt')).toBe(false);
    }
  });

  test('refuse the call if they fail', async () => {
    judge = () => {
      throw new Error('broken');
    };
    model.setScenario([{ call: bash('echo > bad.txt') }, { say: 'Done.' }]);
    expect(finishOf(await stage.turn())).toMatchObject({ ok: true });
    expect(stage.has('project/bad.txt')).toBe(false);
    expect(lastRequest()).toContain('The hooks could not be asked.');
  });

  test('report a bad write, and leave the end of the turn to the runner', async () => {
    judge = ({ when }) => (when === 'before' ? { allow: true } : { allow: false, reason: `not good ${when}` });
    model.setScenario([{ call: write('a.txt') }, { say: 'Done.' }, { say: 'Done again.' }]);
    expect(finishOf(await stage.turn())).toMatchObject({ ok: true, text: 'Done.' });
    expect(lastRequest()).toContain('not good after');
  });
});

describe('in a terminal', () => {
  test('it starts without questions, and its hooks apply', async () => {
    model.setScenario([
      { say: 'I write.', call: write('hello.txt') },
      { say: 'I try.', call: bash('echo forbidden > bad.txt') },
      { say: 'All of it is done.' },
    ]);
    using terminal = openTerminal(stage.prepare({ mode: 'interactive', hooks: 'asked', prompt: 'Do it.' }));
    await terminal.until('All of it is done.');
    expect(stage.read('project/hello.txt')).toBe('hi\n');
    expect(stage.has('project/bad.txt')).toBe(false);
    expect(lastRequest()).toContain('This is not wanted here.');
  });

  test('it does nothing if its hooks do not answer', async () => {
    model.setScenario([{ call: write('hello.txt') }, { call: bash('echo > bad.txt') }, { say: 'All of it is done.' }]);
    using terminal = openTerminal(stage.prepare({ mode: 'interactive', hooks: 'gone', prompt: 'Do it.' }));
    await terminal.until('All of it is done.');
    expect([stage.has('project/hello.txt'), stage.has('project/bad.txt')]).toEqual([false, false]);
  });
});
