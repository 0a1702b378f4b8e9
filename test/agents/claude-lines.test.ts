// test/agents/claude-lines.test.ts: Claude Code without its program: the plan, and how its lines are read and answered.
import { describe, expect, test } from 'vitest';
import type { AgentDriver } from '../../src/agents/agent.ts';
import { claude } from '../../src/agents/claude/claude.ts';
import type { AgentEvent } from '../../src/protocol/agent-event.ts';
import type { GateRequest, GateVerdict } from '../../src/protocol/hook.ts';
import { LISTENER, eventsOf, inputFor, recorded } from './given.ts';
import { plain } from './harness.ts';
import { expectToWithstand } from './mangle.ts';

describe('the plan of Claude Code', () => {
  test('of a headless turn has all settings on the command line, and no file', () => {
    const plan = claude.plan(inputFor(claude, { model: 'opus', hooks: LISTENER }));
    expect(plan).toEqual({
      argv: [
        '/opt/agent',
        '-p',
        '--input-format',
        'stream-json',
        '--output-format',
        'stream-json',
        '--verbose',
        '--dangerously-skip-permissions',
        '--setting-sources',
        '',
        '--add-dir',
        '/work/it',
        '--session-id',
        '0f8f4b3e-7a55-4c1e-9a3c-3f1b1c2d4e5f',
        '--model',
        'opus',
      ],
      env: {
        ANTHROPIC_API_KEY: 'ags-puts-it-in',
        CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD: '1',
        CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL: '1',
        CLAUDE_CODE_MAX_RETRIES: '8',
        CLAUDE_CONFIG_DIR: '/home/agent/.claude',
        DISABLE_AUTOUPDATER: '1',
        DISABLE_ERROR_REPORTING: '1',
        DISABLE_TELEMETRY: '1',
        IS_SANDBOX: '1',
      },
      files: [],
      homeFiles: [],
    });
  });

  test('of a terminal session answers first-run questions, and has its hooks in a read-only file', () => {
    const signIn = claude.signIns.find(({ kind }) => kind === 'token') ?? null;
    const plan = claude.plan(inputFor(claude, { mode: 'interactive', session: 'old', hooks: LISTENER, signIn }));
    expect(plan.argv.slice(1)).toEqual([
      '--settings',
      '{"skipDangerousModePermissionPrompt":true}',
      '--dangerously-skip-permissions',
      '--setting-sources',
      '',
      '--add-dir',
      '/work/it',
      '--resume',
      'old',
      '--',
      'Fix the "bug"\nin $HOME',
    ]);
    expect(plan.env).toMatchObject({ CLAUDE_CODE_OAUTH_TOKEN: 'ags-puts-it-in' });
    expect(plan.homeFiles.map(({ path }) => path)).toEqual(['.claude/.claude.json']);
    expect(plan.files.map(({ to }) => to)).toEqual(['/etc/claude-code/managed-settings.json']);
    expect(JSON.parse(plan.files[0]?.content ?? '')).toMatchObject({
      allowManagedHooksOnly: true,
      hooks: { PreToolUse: [{ matcher: '*', hooks: [{ type: 'command', onFailure: 'block' }] }] },
    });
  });

  test('without hooks has no file', () => {
    expect(claude.plan(inputFor(claude, { mode: 'interactive' })).files).toEqual([]);
  });
});

/** A driver, with its events and the JSON that it wrote. */
function driven(gate: (request: GateRequest) => Promise<GateVerdict> = () => Promise.resolve({ allow: true })): {
  driver: AgentDriver;
  events: AgentEvent[];
  wrote: Record<string, unknown>[];
  ended: () => boolean;
} {
  const events: AgentEvent[] = [];
  const wrote: Record<string, unknown>[] = [];
  let ended = false;
  const driver = claude.drive({
    write: (text) => void wrote.push(JSON.parse(text) as Record<string, unknown>),
    end: () => (ended = true),
    emit: (event) => void events.push(event),
    gate,
  });
  return { driver, events, wrote, ended: () => ended };
}

const ACCEPTED_HOOKS = {
  type: 'control_response',
  response: { subtype: 'success', request_id: 'ags-initialize', response: { hooks_applied: true } },
};
const askAbout = (callback: string, input: object): string =>
  JSON.stringify({
    type: 'control_request',
    request_id: 'c1',
    request: { subtype: 'hook_callback', callback_id: callback, input, tool_use_id: 't1' },
  });

describe('the output of Claude Code', () => {
  test('of a whole turn becomes events', () => {
    const events = plain(eventsOf(claude, recorded('claude')));
    expect(events.filter((event) => (event as AgentEvent).type !== 'agent.said')).toMatchObject([
      { type: 'agent.started', model: 'claude-opus-5-5' },
      { type: 'tool.started', id: 'call 1', action: { kind: 'write', change: 'write', content: 'hi\n' } },
      { type: 'tool.finished', id: 'call 1', outcome: 'done' },
      { type: 'tool.started', id: 'call 2', action: { kind: 'command', command: 'echo forbidden > bad.txt' } },
      { type: 'tool.finished', id: 'call 2' },
      { type: 'tool.started', id: 'call 3', action: { kind: 'command', command: 'cat hello.txt; exit 3' } },
      { type: 'tool.finished', id: 'call 3', outcome: 'failed', exitCode: 3, output: 'hi' },
      { type: 'tool.started', id: 'call 4', action: { kind: 'read', path: '/home/dev/project/hello.txt' } },
      { type: 'tool.finished', id: 'call 4', outcome: 'done' },
      { type: 'agent.waited', why: expect.stringContaining('529') },
      { type: 'agent.used', inputTokens: 5000, outputTokens: 100, costMicros: 22_000 },
      { type: 'agent.finished', ok: true, text: 'Done.' },
    ]);
  });

  test.each([
    ['claude-wrong-key', 'sign-in'],
    ['claude-interrupted', 'interrupted'],
    ['claude-turns', 'turns'],
    ['claude-budget', 'budget'],
    ['claude-api', 'api'],
  ])('of a failed turn gives the cause: %s', (name, cause) => {
    const events = eventsOf(claude, recorded(name), { code: 1 });
    expect(events.filter(({ type }) => type === 'agent.finished')).toMatchObject([{ ok: false, cause }]);
    expect(events.filter(({ type }) => type === 'agent.printed')).toEqual([]);
  });

  test('is kept unchanged if it is unknown', () => {
    const odd = ['plain text', '{"type":"news"}', '{"type":"system","subtype":"news"}', '{"half":', '[1]', '{}'];
    expect(eventsOf(claude, odd).slice(0, -1)).toEqual(
      odd.map((text) => ({ type: 'agent.printed', stream: 'stdout', text })),
    );
  });

  test('is cut if it is long', () => {
    const { driver, events } = driven();
    const long = 'x'.repeat(100_000);
    const use = { type: 'tool_use', id: 't1', name: 'Write', input: { file_path: '/a', content: long } };
    const result = { type: 'tool_result', tool_use_id: 't1', content: [{ type: 'text', text: long }] };
    driver.line(JSON.stringify({ type: 'assistant', message: { content: [use] } }));
    driver.line(JSON.stringify({ type: 'user', message: { content: [result] } }));
    expect(events.map((event) => JSON.stringify(event).length < 70_000)).toEqual([true, true]);
  });

  test('can be malformed in any way', () => {
    for (const name of ['claude', 'claude-wrong-key', 'claude-interrupted', 'claude-turns'])
      expectToWithstand(claude, recorded(name), 300);
  });

  test('without a result becomes a failure with the reason', () => {
    expect(eventsOf(claude, [], { code: 137 })).toMatchObject([{ type: 'agent.finished', ok: false }]);
    expect(eventsOf(claude, [], { code: 1, errors: ['No conversation found'] }).at(-1)).toMatchObject({
      reason: 'No conversation found',
    });
  });
});

describe('the hooks of Claude Code', () => {
  test('are accepted before it gets the goal', () => {
    const { driver, wrote } = driven();
    driver.start('the goal');
    expect(wrote).toMatchObject([{ request: { subtype: 'initialize', hooks: { PreToolUse: [{ matcher: '*' }] } } }]);
    driver.line(JSON.stringify(ACCEPTED_HOOKS));
    expect(wrote[1]).toMatchObject({ type: 'user', message: { content: 'the goal' } });
  });

  test.each([
    { ...ACCEPTED_HOOKS.response, response: { hooks_applied: false } },
    { subtype: 'error', request_id: 'ags-initialize', error: 'no' },
  ])('that are not accepted end the turn before it gets the goal', (response) => {
    const { driver, wrote, events, ended } = driven();
    driver.start('the goal');
    driver.line(JSON.stringify({ type: 'control_response', response }));
    expect(wrote).toHaveLength(1);
    expect(ended()).toBe(true);
    expect(events).toMatchObject([{ type: 'agent.finished', ok: false }]);
  });

  test('are denied on any error', async () => {
    const cut = askAbout('before', { tool_name: 'Write', tool_input: { content: 'x'.repeat(10_000) } }).slice(0, 5000);
    const broken = (): Promise<GateVerdict> => Promise.reject(new Error('broken'));
    for (const line of [
      askAbout('before', { tool_name: 'Bash', tool_input: { command: 'ls' } }),
      askAbout('before', []),
      askAbout('unknown', {}),
      cut,
    ]) {
      const { driver, wrote } = driven(broken);
      driver.line(line);
      await Promise.resolve();
      await new Promise((resolve) => setImmediate(resolve));
      expect(wrote).toMatchObject([
        {
          type: 'control_response',
          response: {
            subtype: 'success',
            request_id: 'c1',
            response: { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny' } },
          },
        },
      ]);
    }
  });

  test('ask about each call and after each write', async () => {
    const asked: GateRequest[] = [];
    const { driver, wrote } = driven((request) => {
      asked.push(request);
      return Promise.resolve({ allow: true });
    });
    const edit = { tool_name: 'Edit', tool_input: { file_path: '/a', old_string: 'x', new_string: 'y' } };
    driver.line(askAbout('before', edit));
    driver.line(askAbout('after', edit));
    driver.line(askAbout('after', { tool_name: 'Bash', tool_input: { command: 'ls' } }));
    await new Promise((resolve) => setImmediate(resolve));
    const actions = [{ kind: 'write', path: '/a', change: 'edit', content: 'y' }];
    expect(asked).toEqual([
      { when: 'before', tool: 'Edit', actions, input: edit.tool_input },
      { when: 'after', tool: 'Edit', actions, input: edit.tool_input },
    ]);
    expect(wrote).toHaveLength(3);
  });
});

test('only a valid log-in file of Claude Code is read', () => {
  const read = claude.signIns.find(({ kind }) => kind === 'login')?.login?.read;
  const tokens = { accessToken: 'a', refreshToken: 'r', expiresAt: 5, scopes: [] };
  expect(read?.(JSON.stringify({ claudeAiOauth: tokens }))).toEqual({ access: 'a', refresh: 'r', expiresAtMs: 5 });
  for (const odd of ['', '{', '[]', '{}', '{"claudeAiOauth":{"accessToken":7}}']) expect(() => read?.(odd)).toThrow();
});
