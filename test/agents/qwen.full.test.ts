// test/agents/qwen.full.test.ts: Qwen Code: the plan, how its lines are read, and the real program, from npm, with a scripted model,
// also against a project and a home that try to switch its hooks off.
import { beforeAll, describe, expect, test } from 'vitest';
import { qwen } from '../../src/agents/qwen/qwen.ts';
import { startModel } from '../model/server.ts';
import type { Turn } from '../model/scenario.ts';
import { MISSES_RIPGREP } from './driven.ts';
import { LISTENER, eventsOf, inputFor, recorded, recordedRuns } from './given.ts';
import { createStage, KEY } from './harness.ts';
import { expectToWithstand } from './mangle.ts';
import { OWN_SEEN, ownTurn } from './own.ts';
import { programOf } from './programs.ts';

describe('the plan of Qwen Code', () => {
  test('of a headless turn with hooks', () => {
    const plan = qwen.plan(inputFor(qwen, { hooks: LISTENER }));
    expect({ ...plan, files: plan.files.map(({ to, content }) => [to, JSON.parse(content)]) }).toMatchInlineSnapshot(`
      {
        "argv": [
          "/opt/agent",
          "--yolo",
          "--safe-mode=false",
          "--auth-type",
          "openai",
          "--output-format",
          "stream-json",
          "--session-id",
          "0f8f4b3e-7a55-4c1e-9a3c-3f1b1c2d4e5f",
        ],
        "env": {
          "OPENAI_BASE_URL": "http://127.0.0.1:3129/agent-it/compatible-mode/v1",
          "OPENAI_MODEL": "qwen3-coder-plus",
          "QWEN_CODE_RELAUNCH_ARGS": "",
          "QWEN_CODE_SAFE_MODE": "0",
          "QWEN_CODE_SIMPLE": "0",
          "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
          "QWEN_CODE_SYSTEM_DEFAULTS_PATH": "/etc/qwen-code/system-defaults.json",
          "QWEN_CODE_SYSTEM_SETTINGS_PATH": "/etc/qwen-code/settings.json",
          "QWEN_HOME": "/home/agent/.qwen",
        },
        "files": [
          [
            "/etc/qwen-code/settings.json",
            {
              "disableAllHooks": false,
              "general": {
                "checkForUpdates": false,
                "enableAutoUpdate": false,
              },
              "hooks": {
                "PostToolUse": [
                  {
                    "hooks": [
                      {
                        "command": "timeout -k 1 3600 /usr/bin/perl -T /run/ags/hook PostToolUse >&2 || { echo 'Refused by a hook.' >&2; exit 2; }",
                        "timeout": 3660,
                        "type": "command",
                      },
                    ],
                    "matcher": "*",
                  },
                ],
                "PreToolUse": [
                  {
                    "hooks": [
                      {
                        "command": "timeout -k 1 3600 /usr/bin/perl -T /run/ags/hook PreToolUse >&2 || { echo 'Refused by a hook.' >&2; exit 2; }",
                        "timeout": 3660,
                        "type": "command",
                      },
                    ],
                    "matcher": "*",
                  },
                ],
              },
              "memory": {
                "enableManagedAutoDream": false,
                "enableManagedAutoMemory": false,
              },
              "privacy": {
                "usageStatisticsEnabled": false,
              },
              "telemetry": {
                "enabled": false,
              },
              "tools": {
                "shell": {
                  "enableInteractiveShell": false,
                },
              },
            },
          ],
        ],
        "homeFiles": [],
      }
    `);
  });

  test('of a session resumed in a terminal, without an account', () => {
    const plan = qwen.plan(inputFor(qwen, { mode: 'interactive', session: 'a-session', prompt: '-v', signIn: null }));
    expect(plan.argv).toEqual([
      '/opt/agent',
      '--yolo',
      '--safe-mode=false',
      '--resume',
      'a-session',
      '--prompt-interactive=-v',
    ]);
    expect(plan.env).not.toHaveProperty('OPENAI_BASE_URL');
  });

  test.each(qwen.signIns)('with an $title selects the model of that account', (signIn) => {
    const { env } = qwen.plan(inputFor(qwen, { signIn, endpoint: null }));
    expect(env['OPENAI_BASE_URL']).toMatch(new RegExp(`^https://${signIn.secret.host}/.*v1$`));
    expect(qwen.plan(inputFor(qwen, { signIn, model: 'another' })).env['OPENAI_MODEL']).toBe('another');
  });
});

describe('the lines of Qwen Code', () => {
  test('of real runs', () => {
    const [work, again, wrong] = recordedRuns('qwen');
    expect(eventsOf(qwen, work ?? [])).toMatchInlineSnapshot(`
      [
        {
          "model": "qwen/qwen3-coder-plus",
          "session": "890ce53c-9d10-464c-b9a3-9d3f2369cb51",
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
            "path": "/work/it/project/hello.txt",
          },
          "id": "call_2",
          "tool": "write_file",
          "type": "tool.started",
        },
        {
          "id": "call_2",
          "outcome": "done",
          "output": "Successfully created and wrote to new file: /work/it/project/hello.txt.",
          "type": "tool.finished",
        },
        {
          "action": {
            "command": "echo forbidden > bad.txt",
            "kind": "command",
          },
          "id": "call_4",
          "tool": "run_shell_command",
          "type": "tool.started",
        },
        {
          "id": "call_4",
          "outcome": "refused",
          "output": "This is not wanted here.
      Refused by a hook.",
          "type": "tool.finished",
        },
        {
          "action": {
            "command": "echo fine; echo $XDG_CONFIG_HOME; exit 3",
            "kind": "command",
          },
          "id": "call_6",
          "tool": "run_shell_command",
          "type": "tool.started",
        },
        {
          "exitCode": 3,
          "id": "call_6",
          "outcome": "failed",
          "output": "Command: echo fine; echo $XDG_CONFIG_HOME; exit 3
      Directory: (root)
      Output: fine
      Error: (none)
      Exit Code: 3
      Signal: (none)
      Process Group PGID: 99",
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
    expect(eventsOf(qwen, again ?? []).slice(-2)).toEqual([
      { type: 'agent.used', inputTokens: 100, outputTokens: 10 },
      { type: 'agent.finished', ok: true, text: 'More done.' },
    ]);
    expect(eventsOf(qwen, wrong ?? [], { code: 1 }).at(-1)).toEqual({
      type: 'agent.finished',
      ok: false,
      reason: '[API Error: 401 the key is wrong]',
      cause: 'sign-in',
    });
  });

  test('unknown lines are kept', () => {
    const odd = ['{"type":"new_thing"}', 'no JSON at all', '{"type":"system","subtype":"news"}'];
    expect(eventsOf(qwen, odd, { code: 1, errors: ['It broke.'] })).toEqual([
      ...odd.map((text) => ({ type: 'agent.printed', stream: 'stdout', text })),
      { type: 'agent.printed', stream: 'stderr', text: 'It broke.' },
      { type: 'agent.finished', ok: false, reason: 'It broke.' },
    ]);
  });

  test('malformed lines do no harm', () => expectToWithstand(qwen, recorded('qwen'), 200));
});

const shell = (command: string): Turn => ({
  call: { tool: 'run_shell_command', input: { command, description: 'a command', is_background: false } },
});

describe('the real Qwen Code', () => {
  beforeAll(() => void programOf(qwen), 600_000);

  test('writes, runs a command, continues after one that a hook refused, and resumes its session', async () => {
    await using model = await startModel({ key: KEY, scenario: [] });
    await using stage = await createStage(qwen, model);
    const hello = `${stage.project}/hello.txt`;
    model.setScenario([
      { say: 'I write.', call: { tool: 'write_file', input: { file_path: hello, content: 'hi\n' } } },
      shell('echo forbidden > bad.txt'),
      shell('cat hello.txt; echo ran > ran.txt; exit 3'),
      { say: 'All done.' },
      { say: 'More done.' },
    ]);
    const first = await stage.turn({ hooks: 'asked' });
    expect(first.code).toBe(0);
    const events = first.events.filter((event) => !('text' in event && MISSES_RIPGREP.test(event.text ?? '')));
    expect(events).toMatchObject([
      { type: 'agent.started', session: expect.stringMatching(/^[0-9a-f-]{36}$/), model: 'qwen3-coder-plus' },
      { type: 'agent.said', text: 'I write.' },
      { type: 'tool.started', tool: 'write_file', action: { kind: 'write', path: hello, content: 'hi\n' } },
      { type: 'tool.finished', outcome: 'done' },
      { type: 'tool.started', action: { kind: 'command', command: 'echo forbidden > bad.txt' } },
      { type: 'tool.finished', outcome: 'refused', output: 'This is not wanted here.\nRefused by a hook.' },
      { type: 'tool.started', action: { kind: 'command' } },
      { type: 'tool.finished', outcome: 'failed', exitCode: 3 },
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

    // The second turn is at an endpoint and with settings of the user's own.
    const second = await stage.turn({ ...ownTurn(qwen, stage, 'my/model'), session: first.session });
    expect(second.session).toBe(first.session);
    expect(second.events.at(-1)).toEqual({ type: 'agent.finished', ok: true, text: 'More done.' });
    expect(new Set(model.requests.map(({ keyOk, path }) => `${path} ${keyOk}`))).toEqual(
      new Set(['/compatible-mode/v1/chat/completions true', '/chat/completions true']),
    );
    for (const one of OWN_SEEN) expect(JSON.stringify(model.requests.at(-1)?.body)).toContain(one);
    expect(model.requests.at(-1)?.body).toMatchObject({ model: 'my/model' });
  }, 240_000);

  test('a wrong key is a failed sign-in', async () => {
    await using model = await startModel({ key: KEY, scenario: [{ say: 'Never said.' }] });
    await using stage = await createStage(qwen, model);
    const { events } = await stage.turn({ key: 'wrong' });
    expect(events.at(-1)).toMatchObject({ type: 'agent.finished', ok: false, cause: 'sign-in' });
  }, 240_000);

  test('no file of the project or of an earlier turn, and no command of the agent, switches the hooks off', async () => {
    const off = JSON.stringify({ disableAllHooks: true, hooks: {} });
    await using model = await startModel({
      key: KEY,
      scenario: [
        shell(`printf '%s' '${off}' | tee .qwen/settings.json > ~/.qwen/settings.json`),
        shell('echo forbidden > bad.txt'),
        { say: 'Done.' },
      ],
    });
    await using stage = await createStage(qwen, model);
    for (const place of ['project/.qwen', 'home/.qwen']) stage.write(`${place}/settings.json`, off);
    for (const place of ['project/.env', 'project/.qwen/.env', 'home/.env', 'home/.qwen/.env'])
      stage.write(
        place,
        'QWEN_CODE_SAFE_MODE=1\nQWEN_CODE_SIMPLE=1\nQWEN_CODE_SYSTEM_SETTINGS_PATH=/tmp/none\nQWEN_HOME=/tmp/other\n',
      );
    const { events } = await stage.turn({ hooks: 'asked' });
    expect(events.filter(({ type }) => type === 'tool.finished')).toMatchObject([
      { outcome: 'done' },
      { outcome: 'refused' },
    ]);
    expect(stage.has('project/bad.txt')).toBe(false);
  }, 240_000);

  test('without an answer from the hooks no call runs', async () => {
    await using model = await startModel({ key: KEY, scenario: [shell('echo ran > ran.txt'), { say: 'Done.' }] });
    await using stage = await createStage(qwen, model);
    const { events } = await stage.turn({ hooks: 'gone' });
    expect(events).toContainEqual(expect.objectContaining({ type: 'tool.finished', outcome: 'refused' }));
    expect(stage.has('project/ran.txt')).toBe(false);
  }, 240_000);
});
