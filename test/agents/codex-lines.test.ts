// test/agents/codex-lines.test.ts: Codex CLI without its program: the plan, and how its lines are read.
import { describe, expect, test } from 'vitest';
import { codex } from '../../src/agents/codex/codex.ts';
import type { AgentEvent } from '../../src/protocol/agent-event.ts';
import { LISTENER, eventsOf, inputFor, recorded } from './given.ts';
import { expectToWithstand } from './mangle.ts';

const COMMON = [
  '--dangerously-bypass-approvals-and-sandbox',
  '--disable',
  'plugins',
  '--disable',
  'unified_exec_tty',
  '-c',
  'analytics.enabled=false',
  '-c',
  'check_for_update_on_startup=false',
  '-c',
  'feedback.enabled=false',
  '-c',
  'notice.hide_rate_limit_model_nudge=true',
  '-c',
  expect.stringMatching(/^notice\.model_migrations=\{"gpt-5\.5"="gpt-[\w.-]+",.*\}$/),
  '-c',
  'model_provider="ags"',
  '-c',
];
const provider = (path: string): string =>
  `model_providers.ags={name="OpenAI",base_url="http://127.0.0.1:3129/agent-it${path}",wire_api="responses"}`;

describe('the plan of Codex CLI', () => {
  test('of a headless turn', () => {
    expect(codex.plan(inputFor(codex, { model: 'gpt-5.5', session: 'old' }))).toEqual({
      argv: [
        '/opt/agent',
        'exec',
        '--json',
        '--skip-git-repo-check',
        ...COMMON,
        provider('/v1'),
        '-m',
        'gpt-5.5',
        'resume',
        'old',
        '-',
      ],
      env: { CODEX_HOME: '/home/agent/.codex', RUST_LOG: 'error,codex_core::tools::router=off' },
      files: [],
      homeFiles: [{ path: '.codex/config.toml', content: '[projects."/work/it"]\ntrust_level = "trusted"\n' }],
    });
  });

  test('of a terminal, with the log-in of a subscription', () => {
    const signIn = codex.signIns.find(({ kind }) => kind === 'login') ?? null;
    expect(codex.plan(inputFor(codex, { mode: 'interactive', signIn })).argv).toEqual([
      '/opt/agent',
      ...COMMON,
      provider('/backend-api/codex'),
      '--',
      'Fix the "bug"\nin $HOME',
    ]);
  });

  test('with hooks has them in a read-only file', () => {
    for (const [mode, events] of [
      ['headless', ['PreToolUse', 'PostToolUse']],
      ['interactive', ['PreToolUse', 'PostToolUse', 'Stop']],
    ] as const) {
      const [file] = codex.plan(inputFor(codex, { hooks: LISTENER, mode })).files;
      expect(file?.to).toBe('/etc/codex/requirements.toml');
      expect(file?.content).toContain('allow_managed_hooks_only = true\n\n[features]\nhooks = true\n');
      for (const event of events)
        expect(file?.content).toMatch(
          new RegExp(`\\[\\[hooks\\.${event}\\.hooks\\]\\]\ntype = "command"\ncommand = ".*/run/ags/hook ${event} `),
        );
      expect(file?.content.match(/^type = "command"$/gm)).toHaveLength(events.length);
    }
  });
});

describe('the output of Codex CLI', () => {
  test('of a whole turn becomes events', () => {
    expect(eventsOf(codex, recorded('codex')).filter(({ type }) => type !== 'agent.said')).toEqual([
      { type: 'agent.started', session: expect.any(String) },
      ...[
        ['item_1', 'hello.txt'],
        ['item_1.1', 'two.txt'],
      ].map(([id, name]) => ({
        type: 'tool.started',
        id,
        tool: 'apply_patch',
        action: { kind: 'write', path: `/home/dev/project/${name}`, change: 'write' },
      })),
      { type: 'tool.finished', id: 'item_1', outcome: 'done' },
      { type: 'tool.finished', id: 'item_1.1', outcome: 'done' },
      {
        type: 'tool.started',
        id: 'item_4',
        tool: 'exec_command',
        action: { kind: 'command', command: "cat hello.txt 'hello.txt'; exit 3" },
      },
      { type: 'tool.finished', id: 'item_4', outcome: 'failed', exitCode: 3, output: 'hi\nhi\n' },
      { type: 'agent.used', inputTokens: 4000, outputTokens: 80 },
      { type: 'agent.finished', ok: true, text: 'Done.' },
    ]);
  });

  test.each([
    ['codex-wrong-key', 'sign-in', 5],
    ['codex-rate', 'rate-limit', 0],
  ])('of a failed turn gives the cause: %s', (name, cause, waits) => {
    const events = eventsOf(codex, recorded(name), { code: 1 });
    expect(events.at(-1)).toMatchObject({ type: 'agent.finished', ok: false, cause });
    expect(events.filter(({ type }) => type === 'agent.waited')).toHaveLength(waits);
  });

  test.each([
    [`/bin/bash -lc 'cat a'`, 'cat a'],
    [`/bin/bash -lc "echo 'a' \\"b\\" \\$c"`, `echo 'a' "b" $c`],
    [`/bin/bash -lc "grep 'x' \\""'$HOME" | sh -c '"'ls'"`, `grep 'x' "$HOME" | sh -c 'ls'`],
    ['/bin/bash -lc pwd', 'pwd'],
    ['/bin/sh -c cat a', 'cat a'],
    [`/bin/sh -c 'cat a`, `'cat a`],
    ['make -j2 "all"', 'make -j2 "all"'],
  ])('of a command shows the model’s command: %s', (command, plain) => {
    const item = { id: 'item_1', type: 'command_execution', command, status: 'in_progress' };
    expect(eventsOf(codex, [JSON.stringify({ type: 'item.started', item })])[0]).toMatchObject({
      action: { kind: 'command', command: plain },
    });
  });

  test('is kept unchanged if it is unknown', () => {
    const odd = [
      'plain text',
      '{"type":"news"}',
      '{"type":"item.completed","item":{"type":"news"}}',
      '{"half":',
      '[1]',
    ];
    expect(eventsOf(codex, odd).slice(0, -1)).toEqual(
      odd.map((text): AgentEvent => ({ type: 'agent.printed', stream: 'stdout', text })),
    );
  });

  test('can be malformed in any way', () => {
    for (const name of ['codex', 'codex-wrong-key', 'codex-rate']) expectToWithstand(codex, recorded(name), 500);
  });

  test('with the end of a call but not its start becomes both events', () => {
    const item = {
      id: 'i',
      type: 'mcp_tool_call',
      server: 's',
      tool: 't',
      arguments: { a: 1 },
      status: 'failed',
      error: { message: 'no' },
    };
    expect(eventsOf(codex, [JSON.stringify({ type: 'item.completed', item })]).slice(0, -1)).toEqual([
      { type: 'tool.started', id: 'i', tool: 's.t', action: { kind: 'other', input: '{"a":1}' } },
      { type: 'tool.finished', id: 'i', outcome: 'failed', output: 'no' },
    ]);
  });
});

describe('the hooks of Codex CLI', () => {
  const ask = (tool: string, command: string): unknown =>
    codex.readHook?.('PreToolUse', { tool_name: tool, tool_input: { command } })?.actions;

  test('see every file of a patch', () => {
    const patch = [
      '*** Begin Patch',
      '*** Add File: new.txt',
      '+one',
      '*** Update File: old.txt',
      '*** Move to: moved.txt',
      '@@',
      '-a',
      '+b',
      ' *** update file:  odd.txt ',
      '*** Delete File: gone.txt',
      '*** End Patch',
    ].join('\n');
    expect(ask('apply_patch', patch)).toEqual([
      { kind: 'write', path: 'new.txt', change: 'write', content: '*** Add File: new.txt\n+one' },
      { kind: 'write', path: 'old.txt', change: 'delete' },
      { kind: 'write', path: 'moved.txt', change: 'edit', content: '*** Move to: moved.txt\n@@\n-a\n+b' },
      { kind: 'write', path: 'odd.txt', change: 'edit', content: ' *** update file:  odd.txt ' },
      { kind: 'write', path: 'gone.txt', change: 'delete' },
    ]);
  });

  test('see a patch inside a command, and calls they do not understand', () => {
    const command = "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: gone.txt\n*** End Patch\nEOF";
    expect(ask('Bash', command)).toEqual([
      { kind: 'command', command },
      { kind: 'write', path: 'gone.txt', change: 'delete' },
    ]);
    expect(ask('apply_patch', 'nonsense')).toEqual([{ kind: 'other', input: '{"command":"nonsense"}' }]);
    expect(codex.readHook?.('PreToolUse', null)).toMatchObject({ when: 'before', tool: '' });
  });
});

test('only a valid log-in file of Codex CLI is read', () => {
  const read = codex.signIns.find(({ kind }) => kind === 'login')?.login?.read;
  const access = `h.${Buffer.from('{"exp":5}').toString('base64url')}.s`;
  expect(read?.(JSON.stringify({ tokens: { access_token: access, refresh_token: 'r' } }))).toEqual({
    access,
    refresh: 'r',
    expiresAtMs: 5000,
  });
  for (const odd of ['', '{', '{}', '{"tokens":{"access_token":7}}']) expect(() => read?.(odd)).toThrow();
});
