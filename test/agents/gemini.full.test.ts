// test/agents/gemini.full.test.ts: Gemini CLI: the plan, how its lines are read, and the real program, from npm, with a scripted model,
// also against a project and a home that try to switch its hooks off.
import { beforeAll, describe, expect, test } from 'vitest';
import { gemini } from '../../src/agents/gemini/gemini.ts';
import { startModel } from '../model/server.ts';
import type { Turn } from '../model/scenario.ts';
import { LISTENER, eventsOf, inputFor, recorded, recordedRuns } from './given.ts';
import { createStage, KEY } from './harness.ts';
import { expectToWithstand } from './mangle.ts';
import { programOf } from './programs.ts';

describe('the plan of Gemini CLI', () => {
  test('of a headless turn with hooks', () => {
    const plan = gemini.plan(inputFor(gemini, { hooks: LISTENER }));
    expect({
      ...plan,
      homeFiles: plan.homeFiles.map(({ path, content }) => [path, content === '' ? '' : JSON.parse(content)]),
    }).toMatchInlineSnapshot(`
      {
        "argv": [
          "/opt/agent",
          "--skip-trust",
          "--yolo",
          "--output-format",
          "stream-json",
          "--session-id",
          "0f8f4b3e-7a55-4c1e-9a3c-3f1b1c2d4e5f",
        ],
        "env": {
          "GEMINI_CLI_HOME": "/home/agent",
          "GEMINI_CLI_NO_RELAUNCH": "true",
          "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": "/etc/gemini-cli/system-defaults.json",
          "GEMINI_CLI_SYSTEM_SETTINGS_PATH": "/etc/gemini-cli/settings.json",
          "GEMINI_CLI_TRUSTED_FOLDERS_PATH": "/etc/gemini-cli/trusted-folders.json",
          "GEMINI_RESTRICTED_MODE": "false",
        },
        "files": [
          {
            "content": "{}
      ",
            "to": "/etc/gemini-cli/trusted-folders.json",
          },
        ],
        "homeFiles": [
          [
            ".gemini/settings.json",
            {
              "advanced": {
                "ignoreLocalEnv": true,
              },
              "general": {
                "enableAutoUpdate": false,
                "enableAutoUpdateNotification": false,
                "sessionRetention": {
                  "enabled": false,
                },
              },
              "hooks": {
                "AfterTool": [
                  {
                    "hooks": [
                      {
                        "command": "timeout -k 1 3600 /usr/bin/perl -T /run/ags/hook AfterTool >&2 || { echo 'Refused by a hook.' >&2; exit 2; }",
                        "name": "AfterTool-0f8f4b3e-7a55-4c1e-9a3c-3f1b1c2d4e5f",
                        "timeout": 3660000,
                        "type": "command",
                      },
                    ],
                    "matcher": ".*",
                  },
                ],
                "BeforeTool": [
                  {
                    "hooks": [
                      {
                        "command": "timeout -k 1 3600 /usr/bin/perl -T /run/ags/hook BeforeTool >&2 || { echo 'Refused by a hook.' >&2; exit 2; }",
                        "name": "BeforeTool-0f8f4b3e-7a55-4c1e-9a3c-3f1b1c2d4e5f",
                        "timeout": 3660000,
                        "type": "command",
                      },
                    ],
                    "matcher": ".*",
                  },
                ],
              },
              "hooksConfig": {
                "disabled": [],
                "enabled": true,
                "notifications": false,
              },
              "privacy": {
                "usageStatisticsEnabled": false,
              },
              "security": {
                "auth": {
                  "selectedType": "gemini-api-key",
                },
                "folderTrust": {
                  "enabled": true,
                },
              },
              "telemetry": {
                "enabled": false,
              },
            },
          ],
          [
            ".gemini/.env",
            "",
          ],
        ],
      }
    `);
  });

  test('of a session resumed in a terminal, without an account', () => {
    const { argv, homeFiles } = gemini.plan(
      inputFor(gemini, {
        mode: 'interactive',
        session: 'a-session',
        model: 'gemini-3-pro',
        prompt: '-v',
        signIn: null,
      }),
    );
    expect(argv).toEqual([
      '/opt/agent',
      '--skip-trust',
      '--yolo',
      '--model',
      'gemini-3-pro',
      '--resume',
      'a-session',
      '--prompt-interactive=-v',
    ]);
    expect(JSON.parse(homeFiles[0]?.content ?? '').security).toEqual({ folderTrust: { enabled: true } });
  });

  test('with a Google account takes the token from its variable', () => {
    const signIn = gemini.signIns.find(({ kind }) => kind === 'login') ?? null;
    const { env, homeFiles } = gemini.plan(inputFor(gemini, { signIn }));
    expect(env['GOOGLE_GENAI_USE_GCA']).toBe('true');
    expect(JSON.parse(homeFiles[0]?.content ?? '').security.auth).toEqual({ selectedType: 'oauth-personal' });
    expect(signIn?.login?.read('{"access_token":"a","refresh_token":"r","expiry_date":5}')).toEqual({
      access: 'a',
      refresh: 'r',
      expiresAtMs: 5,
    });
    for (const odd of ['', '{}', '[]', '{"access_token":1}']) expect(() => signIn?.login?.read(odd)).toThrow();
  });
});

describe('the lines of Gemini CLI', () => {
  test('of real runs', () => {
    const [work, again, wrong] = recordedRuns('gemini');
    expect(eventsOf(gemini, work ?? [])).toMatchInlineSnapshot(`
      [
        {
          "model": "gemini-2.5-pro",
          "session": "434722f5-bb35-44cf-a753-296b7e981cdf",
          "type": "agent.started",
        },
        {
          "text": "I write.",
          "type": "agent.said",
        },
        {
          "action": {
            "change": "write",
            "content": "hi
      ",
            "kind": "write",
            "path": "hello.txt",
          },
          "id": "write_file__call_1",
          "tool": "write_file",
          "type": "tool.started",
        },
        {
          "id": "write_file__call_1",
          "outcome": "done",
          "type": "tool.finished",
        },
        {
          "action": {
            "command": "echo forbidden > bad.txt",
            "kind": "command",
          },
          "id": "run_shell_command__call_3",
          "tool": "run_shell_command",
          "type": "tool.started",
        },
        {
          "id": "run_shell_command__call_3",
          "outcome": "refused",
          "output": "Tool execution blocked: This is not wanted here.
      Refused by a hook.",
          "type": "tool.finished",
        },
        {
          "action": {
            "command": "echo fine; exit 3",
            "kind": "command",
          },
          "id": "run_shell_command__call_5",
          "tool": "run_shell_command",
          "type": "tool.started",
        },
        {
          "id": "run_shell_command__call_5",
          "outcome": "done",
          "output": "fine",
          "type": "tool.finished",
        },
        {
          "text": "All done.",
          "type": "agent.said",
        },
        {
          "inputTokens": 400,
          "outputTokens": 40,
          "type": "agent.used",
        },
        {
          "ok": true,
          "text": "All done.",
          "type": "agent.finished",
        },
      ]
    `);
    expect(eventsOf(gemini, again ?? []).at(-1)).toEqual({ type: 'agent.finished', ok: true, text: 'More done.' });
    expect(eventsOf(gemini, wrong ?? [], { code: 145 }).at(-1)).toEqual({
      type: 'agent.finished',
      ok: false,
      reason: 'the key is wrong',
      cause: 'sign-in',
    });
  });

  test('pieces of a message are joined, and unknown lines are kept', () => {
    const piece = (content: string): string =>
      JSON.stringify({ type: 'message', role: 'assistant', content, delta: true });
    const odd = ['{"type":"new_thing"}', 'no JSON at all', '{"type":"tool_use"}', ''];
    expect(eventsOf(gemini, [piece('Hello '), piece('world'), ...odd])).toEqual([
      { type: 'agent.said', text: 'Hello world' },
      ...odd.slice(0, 3).map((text) => ({ type: 'agent.printed', stream: 'stdout', text })),
      { type: 'agent.finished', ok: false, reason: 'it ended with exit code 0' },
    ]);
  });

  test.each([
    [41, [], 'sign-in'],
    [53, [], 'turns'],
    [429 - 256, [], 'rate-limit'],
    [404 - 256, [], 'api'],
    [130, [], 'interrupted'],
    [1, ['something broke'], undefined],
  ] as const)('exit code %i becomes a reason and a cause', (code, errors, cause) => {
    const end = eventsOf(gemini, [], { code, errors }).at(-1);
    expect(end).toMatchObject({
      type: 'agent.finished',
      ok: false,
      reason: errors[0] ?? `it ended with exit code ${code}`,
    });
    expect(end?.type === 'agent.finished' && end.cause).toBe(cause);
  });

  test('malformed lines do no harm', () => expectToWithstand(gemini, recorded('gemini'), 200));

  test.each([
    ['Command exited with code: 3', { outcome: 'failed', exitCode: 3 }],
    ['Blocked: command substitution detected in shell command.', { outcome: 'refused' }],
    ['It says: Command exited with code: 3', { outcome: 'done' }],
  ])('the outcome of a command that the tool reports as a success is read from its output: %s', (output, judged) => {
    const line = JSON.stringify({ type: 'tool_result', tool_id: 'a', status: 'success', output });
    expect(eventsOf(gemini, [line])[0]).toEqual({ type: 'tool.finished', id: 'a', ...judged, output });
  });

  test('a long output is cut', () => {
    const line = JSON.stringify({ type: 'tool_result', tool_id: 'a', status: 'success', output: 'x'.repeat(100_000) });
    const [event] = eventsOf(gemini, [line]);
    expect(event?.type === 'tool.finished' && event.output?.length).toBeLessThan(66_000);
  });
});

test('the hooks of Gemini CLI become gate requests', () => {
  const command = { tool_name: 'run_shell_command', tool_input: { command: 'ls' } };
  const write = { tool_name: 'replace', tool_input: { file_path: 'a', new_string: 'b' } };
  const read = gemini.readHook;
  expect(read?.('BeforeTool', command)).toEqual({
    when: 'before',
    tool: 'run_shell_command',
    actions: [{ kind: 'command', command: 'ls' }],
    input: { command: 'ls' },
  });
  expect(read?.('AfterTool', write)?.actions).toEqual([{ kind: 'write', path: 'a', change: 'edit', content: 'b' }]);
  expect(read?.('AfterTool', command)).toBeNull();
  expect(read?.('AfterAgent', {})?.when).toBe('stop');
  expect(read?.('AfterAgent', { stop_hook_active: true })).toBeNull();
  for (const odd of [null, 5, 'x', [], { tool_name: 7 }]) expect(read?.('BeforeTool', odd)?.when).toBe('before');
  for (const event of ['PreToolUse', 'toString', '']) expect(read?.(event, command)).toBeNull();
});

const MODEL = 'gemini-2.5-pro';
const shell = (command: string): Turn => ({
  call: { tool: 'run_shell_command', input: { command, description: 'a command' } },
});

describe('the real Gemini CLI', () => {
  beforeAll(() => void programOf(gemini), 600_000);

  test('writes, runs a command, continues after one that a hook refused, and resumes its session', async () => {
    await using model = await startModel({
      key: KEY,
      scenario: [
        { say: 'I write.', call: { tool: 'write_file', input: { file_path: 'hello.txt', content: 'hi\n' } } },
        shell('echo forbidden > bad.txt'),
        shell('cat hello.txt; echo ran > ran.txt'),
        { say: 'All done.' },
        { say: 'More done.' },
      ],
    });
    await using stage = await createStage(gemini, model);
    const first = await stage.turn({ hooks: 'asked', model: MODEL });
    expect(first.code).toBe(0);
    // Other output depends on the machine, for example a warning without ripgrep.
    expect(first.events.filter(({ type }) => type !== 'agent.printed')).toMatchObject([
      { type: 'agent.started', session: expect.stringMatching(/^[0-9a-f-]{36}$/), model: MODEL },
      { type: 'agent.said', text: 'I write.' },
      { type: 'tool.started', tool: 'write_file', action: { kind: 'write', path: 'hello.txt', content: 'hi\n' } },
      { type: 'tool.finished', outcome: 'done' },
      { type: 'tool.started', action: { kind: 'command', command: 'echo forbidden > bad.txt' } },
      { type: 'tool.finished', outcome: 'refused', output: expect.stringContaining('This is not wanted here.') },
      { type: 'tool.started', action: { kind: 'command' } },
      { type: 'tool.finished', outcome: 'done', output: 'hi' },
      { type: 'agent.said', text: 'All done.' },
      { type: 'agent.used', inputTokens: 400, outputTokens: 40 },
      { type: 'agent.finished', ok: true, text: 'All done.' },
    ]);
    expect([stage.read('project/hello.txt'), stage.has('project/ran.txt'), stage.has('project/bad.txt')]).toEqual([
      'hi\n',
      true,
      false,
    ]);
    expect(JSON.stringify(model.requests[2]?.body)).toContain('This is not wanted here.');
    expect(stage.asked.map(({ when, tool }) => `${when} ${tool}`)).toEqual([
      'before write_file',
      'after write_file',
      'before run_shell_command',
      'before run_shell_command',
    ]);

    const second = await stage.turn({ session: first.session, model: MODEL });
    expect(second.session).toBe(first.session);
    expect(second.events.at(-1)).toEqual({ type: 'agent.finished', ok: true, text: 'More done.' });
    expect(model.requests.every(({ keyOk, path }) => keyOk && path.startsWith('/v1beta/models/'))).toBe(true);
  }, 120_000);

  test('a wrong key is a failed sign-in, and a Google account works as well', async () => {
    await using model = await startModel({ key: KEY, scenario: [shell('echo ran > ran.txt'), { say: 'Done.' }] });
    await using stage = await createStage(gemini, model);
    const wrong = await stage.turn({ key: 'wrong', model: MODEL });
    expect(wrong.events.at(-1)).toEqual({
      type: 'agent.finished',
      ok: false,
      reason: 'the key is wrong',
      cause: 'sign-in',
    });
    const account = await stage.turn({ signIn: 'login', model: MODEL });
    expect(account.events.at(-1)).toEqual({ type: 'agent.finished', ok: true, text: 'Done.' });
    expect(stage.has('project/ran.txt')).toBe(true);
    expect(model.requests.at(-1)).toMatchObject({ path: '/v1internal:streamGenerateContent', turn: 1 });
  }, 120_000);

  test('no file of the project or of an earlier turn, and no command of the agent, switches the hooks off', async () => {
    const off = JSON.stringify({ hooksConfig: { enabled: false }, hooks: {} });
    await using model = await startModel({
      key: KEY,
      scenario: [
        shell(`printf '%s' '${off}' | tee .gemini/settings.json > ~/.gemini/settings.json`),
        shell('echo forbidden > bad.txt'),
        { say: 'Done.' },
      ],
    });
    await using stage = await createStage(gemini, model);
    stage.write('project/.gemini/settings.json', off);
    stage.write('home/.gemini/settings.json', off);
    stage.write('home/.gemini/trustedFolders.json', JSON.stringify({ [stage.project]: 'TRUST_FOLDER' }));
    for (const place of ['project/.env', 'project/.gemini/.env', 'home/.env', 'home/.gemini/.env'])
      stage.write(place, 'GEMINI_CLI_TRUST_WORKSPACE=true\nGEMINI_CLI_HOME=/tmp\nGEMINI_RESTRICTED_MODE=true\n');
    const { events } = await stage.turn({ hooks: 'asked', model: MODEL });
    expect(events.filter(({ type }) => type === 'tool.finished')).toMatchObject([
      { outcome: 'done' },
      { outcome: 'refused' },
    ]);
    expect(stage.has('project/bad.txt')).toBe(false);
  }, 120_000);

  test('without an answer from the hooks no call runs', async () => {
    await using model = await startModel({ key: KEY, scenario: [shell('echo ran > ran.txt'), { say: 'Done.' }] });
    await using stage = await createStage(gemini, model);
    const { events } = await stage.turn({ hooks: 'gone', model: MODEL });
    expect(events).toContainEqual(expect.objectContaining({ type: 'tool.finished', outcome: 'refused' }));
    expect(stage.has('project/ran.txt')).toBe(false);
  }, 120_000);
});
