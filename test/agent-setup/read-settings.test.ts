// test/agent-setup/read-settings.test.ts: the user's own settings that an agent may see, and what it may never see.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readSettings } from '../../src/agent-setup/read-settings.ts';
import type { SettingsFile } from '../../src/agents/settings.ts';
import { AGENTS, agentNamed } from '../../src/agents/agents.ts';
import { AgsError } from '../../src/protocol/errors.ts';

let home = '';
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'ags-settings-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function write(path: string, content: string | Buffer): void {
  mkdirSync(dirname(join(home, path)), { recursive: true });
  writeFileSync(join(home, path), content);
}

function read(name: string, ...paths: string[]): SettingsFile[] {
  const agent = agentNamed(name);
  if (agent === undefined) throw new Error(name);
  const settings = paths.map((path) => ({ path, origin: 'config.yaml:3' }));
  return readSettings(home, agent, { agents: { [name]: { endpoint: null, model: null, settings } } });
}

function problem(name: string, ...paths: string[]): string {
  try {
    read(name, ...paths);
  } catch (error) {
    if (error instanceof AgsError) return `${error.message} ${error.hint ?? ''}`;
    throw error;
  }
  throw new Error('expected an error');
}

test('files and directories are read, without pictures and what programs leave', () => {
  write('.claude/CLAUDE.md', 'Be brief.\n');
  write('.claude/skills/pdf/SKILL.md', 'a skill');
  write('.claude/skills/pdf/picture.png', Buffer.from([0x89, 0, 1]));
  write('.claude/skills/pdf/latin.txt', Buffer.from([0x66, 0xfc]));
  write('.claude/skills/pdf/node_modules/x.js', 'x');
  write('.claude/skills/pdf/__pycache__/x', 'x');
  expect(read('claude', '.claude/CLAUDE.md', '.claude/skills')).toEqual([
    { path: '.claude/CLAUDE.md', content: 'Be brief.\n' },
    { path: '.claude/skills/pdf/SKILL.md', content: 'a skill' },
  ]);
});

test('of a file with more in it, only the settings are taken', () => {
  const servers = { it: { command: 'npx', args: ['it'] } };
  write('.claude.json', JSON.stringify({ oauthAccount: { emailAddress: 'me' }, projects: {}, mcpServers: servers }));
  write('.claude/settings.json', JSON.stringify({ hooks: { Stop: [] }, apiKeyHelper: 'x', outputStyle: 'Learning' }));
  expect(
    read('claude', '.claude.json', '.claude/settings.json').map(({ content }) => JSON.parse(content) as unknown),
  ).toEqual([{ mcpServers: servers }, { outputStyle: 'Learning' }]);
  write(
    '.codex/config.toml',
    'model = "x"\n[mcp_servers.a]\ncommand = "npx"\nargs = [\n  "a",\n]\n[mcp_servers.a.env]\nX = "1"\n[[hooks]]\nrun = "x"\n[mcp_servers."b"] # b\nurl = "http://localhost:1"\n',
  );
  expect(read('codex', '.codex/config.toml')[0]?.content).toBe(
    '[mcp_servers.a]\ncommand = "npx"\nargs = [\n  "a",\n]\n[mcp_servers.a.env]\nX = "1"\n[mcp_servers."b"] # b\nurl = "http://localhost:1"\n\n',
  );
  write('.gemini/settings.json', '{"theme": "dark"}');
  expect(problem('gemini', '.gemini/settings.json')).toContain('it has none of: mcpServers');
  write('.gemini/settings.json', '{"mcpServers": {"a": "sk-canary');
  expect(problem('gemini', '.gemini/settings.json')).toMatch(
    /~\/.gemini\/settings.json cannot be used: it is not valid JSON/,
  );
});

test.each([
  ['claude', '.claude/.credentials.json'],
  ['claude', '.claude'],
  ['claude', '.claude/projects'],
  ['codex', '.codex/auth.json'],
  ['codex', '.codex'],
  ['gemini', '.gemini/oauth_creds.json'],
  ['qwen', '.qwen/.env'],
  ['opencode', '.local/share/opencode/auth.json'],
  ['opencode', '.config/opencode/plugin/x.js'],
  ['claude', '.ssh/id_ed25519'],
  ['claude', '.codex/AGENTS.md'],
])('%s does not get ~/%s', (name, path) => {
  write(path.includes('.', 1) || path.includes('id_') ? path : `${path}/some.txt`, 'text');
  expect(problem(name, path)).toMatch(
    /^config.yaml:3: ~\/\S+ is not among the settings .* gets from you. It gets: ~\//,
  );
});

test('no agent takes a place where credentials are', () => {
  const places = AGENTS.flatMap(({ settings }) => settings.map(({ path }) => path));
  expect(places.filter((path) => /cred|auth|token|\.env|oauth|plugin|extension|hook/i.test(path))).toEqual([]);
});

test.each([
  [
    '.claude/CLAUDE.md',
    `a\nb\nUse ghp_${'a1B2'.repeat(9)} for it\n`,
    '~/.claude/CLAUDE.md:3 holds what looks like a GitHub token',
  ],
  [
    '.claude.json',
    `{\n "mcpServers": {\n  "a": { "command": "x",\n   "env": { "ACME_TOKEN": "canary12345" } } } }`,
    '~/.claude.json:4 holds what looks like a secret, by its name',
  ],
  [
    '.claude/skills/x/run.sh',
    'curl https://me:canary12345@host/\n',
    '~/.claude/skills/x/run.sh:1 holds what looks like an address with a password in it',
  ],
])('a secret in %s is refused with its line, and not repeated', (path, content, message) => {
  write(path, content);
  const said = problem('claude', path.includes('skills') ? '.claude/skills' : path);
  expect(said).toContain(message);
  expect(said).not.toMatch(/canary|ghp_/);
});

test.each([
  { args: ['--api-key', 'canary12345'] },
  { args: ['--token=canary12345'] },
  { args: ['-c', "curl -H 'Authorization: Bearer canary12345' x"] },
  { url: 'https://mcp.example.com/sse?api_key=canary12345' },
  { url: 'https://mcp.example.com/sse?x=1&key=canary12345' },
  { headers: { 'X-Key': 'canary12345' } },
  { headers: { Authorization: 'Bearer canary12345' } },
  { env: { OPENAI_KEY: 'canary12345' } },
  { env: { GITHUB_PAT: 'canary12345' } },
  { env: { DB_PASS: 'canary12345' } },
  { env: { dbPassword: '$1$canary12345' } },
])('a secret of an MCP server is refused wherever it stands: %j', (server) => {
  write('.claude.json', JSON.stringify({ mcpServers: { a: { command: 'x', ...server } } }));
  const said = problem('claude', '.claude.json');
  expect(said).toContain('~/.claude.json:1 holds what looks like a secret, by its name');
  expect(said).not.toContain('canary');
});

test.each([
  { env: { ACME_TOKEN: '${ACME_TOKEN}' } },
  { env: { ACME_TOKEN: '$ACME_TOKEN' } },
  { headers: { Authorization: 'Bearer ${ACME_TOKEN}', 'X-Key': 'Bearer $ACME_TOKEN' } },
  { args: ['--token=${ACME_TOKEN}', '--api-key', '${ACME_TOKEN}', '--token-file', '/run/acme/token'] },
  { url: 'https://mcp.example.com/sse?api_key=${ACME_TOKEN}' },
  { env: { MONKEY: 'keyboard-layout', CONFIG_PATH: '/home/me/config', KEYMAP: 'keyboard-layout' } },
  { args: ['--required', 'password', 'username'] },
])('a secret that a variable holds is none, nor is a name like one: %j', (server) => {
  write('.claude.json', JSON.stringify({ mcpServers: { a: { command: 'x', ...server } } }));
  expect(read('claude', '.claude.json')).toHaveLength(1);
});

test('no link is followed, not even a directory on the way', () => {
  write('elsewhere/CLAUDE.md', 'text');
  write('.claude/skills/x/SKILL.md', 'text');
  symlinkSync('../elsewhere/CLAUDE.md', join(home, '.claude/CLAUDE.md'));
  symlinkSync('/etc/passwd', join(home, '.claude/skills/x/passwd'));
  symlinkSync('elsewhere', join(home, '.codex'));
  expect(problem('claude', '.claude/CLAUDE.md')).toContain(
    '~/.claude/CLAUDE.md is a link, and links are not followed.',
  );
  expect(problem('claude', '.claude/skills')).toContain('~/.claude/skills/x/passwd is a link');
  expect(problem('codex', '.codex/AGENTS.md')).toContain('~/.codex is a link');
  expect(problem('claude', '.claude/rules')).toContain('~/.claude/rules does not exist.');
});
