// test/exec/agents-inside.test.ts: installed agents are in the PATH of a sandbox, signed in by the gateway where the sandbox is for them.
// needs: sandbox
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { AGENTS } from '../../src/agents/agents.ts';
import { PROGRAM_NAMES } from '../../src/agents/names.ts';
import { createPlace, type Place } from '../agent-setup/fixture.ts';
import { ORIGIN } from '../gateway/fixture.ts';
import { giveTo, ONE, type Result } from '../harness.ts';

const FAKE = `#!/bin/sh
echo "$(basename "$0")" "$@"
case $* in *ask) curl -sS -m 20 "$ANTHROPIC_BASE_URL/v1/models" ;; esac
`;

/** As if ags had installed it. */
function install(place: Place, name: string): void {
  const { install: wanted } = AGENTS.find((agent) => agent.name === name) ?? {};
  const home = join(place.machine.home, '.local/share/ags/agents', name);
  const put = (path: string, content: string): void => {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), content, { mode: 0o755 });
  };
  put(`1.0.0/node_modules/${wanted?.entry.x64 ?? ''}`, FAKE);
  put(`1.0.0/node_modules/${wanted?.entry.arm64 ?? ''}`, FAKE);
  put('current.json', JSON.stringify({ version: '1.0.0', node: null, installedAt: '2026-01-01' }));
  giveTo(join(place.machine.home, '.local'), place.machine.uid);
}

const inside = (place: Place, args: readonly string[], env: Record<string, string> = {}): Promise<Result> =>
  place.machine.ags(args, { env: { ...place.env, ...env } });

test('every agent with a program is known by its name alone', () => {
  const named = AGENTS.flatMap(({ name, install: wanted }) => (wanted === null ? [] : [[name, wanted.program]]));
  expect(PROGRAM_NAMES.map((name) => [name, name])).toEqual(named);
});

test('an agent as the command is signed in by the gateway, and the key is not inside', async () => {
  await using place = await createPlace(ONE);
  const key = `sk-CANARY-${randomBytes(12).toString('hex')}`;
  install(place, 'claude');
  place.context.names.set('api.anthropic.com', [ORIGIN]);
  const env = { ANTHROPIC_API_KEY: key };
  const direct = await inside(place, ['exec', '--', 'claude', 'ask'], env);
  expect(direct).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('hello world') });
  expect(direct.stdout).toMatch(/^claude --settings \{.*\} ask\n/);
  expect(place.requests.map((head) => /^x-api-key: (.*)$/im.exec(head)?.[1])).toEqual([key]);

  // A script gets the endpoint only if the user names the agent.
  const script = 'claude ask; env; cat /run/ags/bin/*';
  const other = await inside(place, ['exec', '--', 'sh', '-c', script], env);
  expect(other.stdout).not.toContain('hello world');
  expect(other.stderr).toContain('To sign it in: ags exec --agent claude -- <command>');
  expect(place.requests).toHaveLength(1);
  const named = await inside(place, ['exec', '--agent', 'claude', '--', 'sh', '-c', script], env);
  expect(named.stdout).toContain('hello world');
  expect(named.stdout).not.toContain(key.slice(3));
  expect(place.requests).toHaveLength(2);
}, 60_000);

test('without a sign-in it starts all the same, and says how to sign in', async () => {
  await using place = await createPlace(ONE);
  install(place, 'codex');
  const run = await inside(place, ['exec', '--', 'codex', 'exec', 'a "goal"']);
  expect(run).toMatchObject({ code: 0, stderr: 'ags: Codex CLI is not signed in. Sign in once: ags auth codex\n' });
  expect(run.stdout).toMatch(/^codex -c .* exec a "goal"\n$/);
  // A key that the user passes inside is not replaced, and needs no note.
  const own = await inside(place, ['exec', '-e', 'OPENAI_API_KEY=sk-mine', '--', 'codex', 'login']);
  expect(own).toMatchObject({ code: 0, stderr: '' });
  expect(await inside(place, ['exec', '--', 'codex', '--version'])).toMatchObject({ code: 0, stderr: '' });
}, 60_000);

test('the plan names the agents that a shell signs in, and --agent none signs in none', async () => {
  await using place = await createPlace(ONE);
  install(place, 'claude');
  const env = { ANTHROPIC_API_KEY: 'sk-one-of-the-user', OPENAI_API_KEY: 'sk-two-of-the-user' };
  const plan = async (...args: string[]): Promise<{ label: string; spec: { env: Record<string, string> } }> =>
    JSON.parse((await inside(place, ['plan', '--json', ...args], env)).stdout);
  const shell = await plan();
  expect(shell.label).toContain('signed in: claude, codex');
  expect(shell.spec.env['PATH']).toMatch(/^\/run\/ags\/bin:/);
  expect(Object.keys(shell.spec.env).filter((name) => /ANTHROPIC|OPENAI/.test(name))).toEqual([]);
  expect((await plan('--', 'make')).label).not.toContain('signed in');
  expect((await plan('--', 'claude')).label).toContain('signed in: claude ');
  expect((await plan('--agent', 'none')).label).not.toContain('signed in');
  const wrong = await inside(place, ['exec', '--agent', 'cluade', '--', 'true']);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('No agent "cluade"') });
}, 60_000);

test('a key that cannot be read is an error before the agent starts, and nothing that a rule would allow', async () => {
  await using place = await createPlace(ONE);
  install(place, 'claude');
  const config = join(place.machine.home, '.config/ags/config.yaml');
  mkdirSync(dirname(config), { recursive: true });
  const model = 'agents: { claude: { url: "http://localhost:9", key: { env: NOT_SET } } }\n';
  writeFileSync(config, model, { flag: 'a' });
  giveTo(join(place.machine.home, '.config'), place.machine.uid);
  const refused = await inside(place, ['exec', '--', 'claude', 'ask']);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toMatch(/^ags: The variable NOT_SET is not set\.\n/);
  expect(await inside(place, ['exec', '--', 'echo', 'hi'])).toMatchObject({ code: 0, stdout: 'hi\n' });
  // A key that is gone later: no rule of the user would change the answer.
  const once = join(place.machine.home, 'once');
  const command = `{ command: [sh, -c, 'mkdir ${once} && echo a-key'] }`;
  writeFileSync(config, model.replace('{ env: NOT_SET }', command));
  const gone = await inside(place, ['exec', '--', 'claude', 'ask']);
  expect(gone.stdout).toContain('ags cannot sign this request in');
  expect(gone.stderr).not.toContain('ags allow');
});
