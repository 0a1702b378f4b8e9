// test/transfer/secrets.test.ts: secrets of the machine are not in an exported task, wherever they were.
// needs: sandbox
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { giveTo, ONE } from '../harness.ts';
import { createAgentMachine, type AgentMachine } from '../agent-run/place.ts';
import { packText, readParts } from './parts.ts';

const CALLER = ONE;

/** The unpacked content: files of ags, and git objects. */
function contentOf(file: string): { words: string; objects: string } {
  const { manifest, members } = readParts(file);
  const read = (end: string, how: (content: Buffer) => string): string =>
    Object.entries(members)
      .filter(([name]) => name.endsWith(end))
      .map(([, content]) => how(content))
      .join('\n');
  return {
    words: JSON.stringify(manifest) + read('.gz', (content) => gunzipSync(content).toString('utf8')),
    objects: read('.pack', packText),
  };
}

function configure(machine: AgentMachine, text: string): void {
  mkdirSync(join(machine.home, '.config/ags'), { recursive: true });
  writeFileSync(join(machine.home, '.config/ags/config.yaml'), text);
  giveTo(join(machine.home, '.config'), machine.uid);
}

test('the file contains no variable, credential, secret, hidden file or path of the machine', async () => {
  using machine = createAgentMachine(CALLER);
  mkdirSync(join(machine.home, 'shown'));
  machine.write('.env', 'KEY=planted-in-dotenv\n');
  machine.write('id.pem', 'planted-in-pem\n');
  writeFileSync(join(machine.home, 'token'), 'planted-in-token-file\n', { mode: 0o644 });
  configure(
    machine,
    `network: { allow: [user.example] }
secrets:
  - { name: api, host: api.example, header: authorization, env: API_KEY, from: { file: ~/token } }
`,
  );
  const env = { PLANTED: 'planted-in-environment', ANTHROPIC_API_KEY: 'planted-in-key' };
  const signedIn = await machine.ags(['auth', 'codex', '--key-stdin'], {
    input: 'sk-planted-in-credentials-0123456789\n',
  });
  expect(signedIn, signedIn.stderr).toMatchObject({ code: 0 });
  const goal = `write: a.txt x // run: pwd; echo $HOME; env; cat .env id.pem ~/token // fetch: https://api.example/ // read: ${machine.home}/token`;
  const flags = ['--env', 'SET=planted-in-flag', '--mount', join(machine.home, 'shown'), '--allow', 'flag.example'];
  const started = await machine.ags(['start', 'work', goal, '-a', 'demo', '--max-parallel', '64', ...flags], { env });
  expect(started.stdout + started.stderr).toContain('\nready\n');
  const file = join(machine.home, 'work.ags');
  const done = await machine.ags(['export', 'work', file], { env });
  expect(done, done.stderr).toMatchObject({ code: 0 });
  expect(done.stderr).toContain('are not in the file: --env SET, --mount');
  const { words, objects } = contentOf(file);
  expect(words).toContain('/ags/project\\n');
  // The agent printed it.
  expect(words).toContain('SET=<SET>');
  expect(words).toContain('user.example');
  expect(words).toContain('flag.example');
  for (const planted of ['environment', 'key', 'credentials', 'dotenv', 'pem', 'token-file', 'flag'])
    expect(words + objects, planted).not.toContain(`planted-in-${planted}`);
  expect(words).not.toContain(machine.home);
  expect(words).not.toContain(machine.root);
  expect(readFileSync(file).includes(machine.root)).toBe(false);
});

test('a tracked file that the user hides is not in the file, in no commit of its history', async () => {
  using machine = createAgentMachine(CALLER, { 'a.txt': 'a\n', 'deep/prod.key': 'planted-in-history\n' });
  machine.git('rm', '-q', 'deep/prod.key');
  machine.git('commit', '-qm', 'gone from the tip');
  configure(machine, "hide: ['*.key']\n");
  expect(await machine.runDemo('work', 'write: b.txt x')).toMatchObject({ state: 'ready' });
  const file = join(machine.home, 'work.ags');
  const refused = await machine.ags(['export', 'work', file]);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('deep/prod.key');
  expect(refused.stderr).toContain('--thin');
  expect(await machine.ags(['export', 'work', file, '--thin'])).toMatchObject({ code: 0 });
  const { words, objects } = contentOf(file);
  expect(objects).toContain('b.txt');
  expect(words + objects).not.toContain('planted-in-history');
  configure(machine, '');
  expect(await machine.ags(['export', 'work', file, '--force'])).toMatchObject({ code: 0 });
  expect(contentOf(file).objects).toContain('planted-in-history');
});
