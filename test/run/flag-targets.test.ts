// test/run/flag-targets.test.ts: flags that name what is not there are not silent.
// needs: sandbox
import { expect, test } from 'vitest';
import { createAgentMachine } from '../agent-run/place.ts';
import { createMachine, ONE } from '../harness.ts';

test('variables and files that flags name and that are not there are reported', async () => {
  using machine = createMachine(ONE);
  for (const path of ['a.txt', 'deep/er/.env']) machine.write(path, 'x');
  machine.write('.env', 'y');
  const said = async (...flags: string[]): Promise<string> => {
    const { code, stderr } = await machine.ags(['exec', ...flags, '--', 'true'], { env: { SET_HERE: '' } });
    expect(code).toBe(0);
    return stderr;
  };
  for (const there of ['.env', '/.env', '.ENV', 'deep/er/.env', 'deep/', 'er/', '**/*.env', 'a.txt'])
    expect(await said('--reveal', there), there).toBe('');
  for (const missing of ['nope.env', 'er/.env', '/a', 'deep/*.env', '*.nope'])
    expect(await said('--reveal', missing)).toBe(`ags: --reveal ${missing}: the project has no such file.\n`);
  expect(await said('--reveal', '/etc/passwd')).toContain(
    'it is not in the project; for other files: --mount /etc/passwd',
  );
  expect(await said('-e', 'SET_HERE', '-e', 'SET_*')).toBe('');
  expect(await said('-e', 'NOT_SET')).toBe('ags: --env NOT_SET: no such variable is set, so none is passed on.\n');
  expect(await machine.ags(['exec', '--mount', '/no/such', '--', 'true'])).toMatchObject({
    code: 2,
    stderr: 'ags: /no/such cannot be mounted: there is no such file or directory.\n     Correct --mount.\n',
  });
}, 120_000);

test('a task is not started with a mount that does not exist, and says which flags are in vain', async () => {
  using machine = createAgentMachine(ONE);
  machine.write('.env', 'y');
  const refused = await machine.ags(['start', 'one', 'go', '--agent', 'true', '--mount', '/no/such']);
  expect([refused.code, machine.tasks()]).toEqual([2, []]);
  const flags = ['--agent', 'sh -c true', '--reveal', '.env', '-e', 'NOT_SET'];
  const { stderr } = await machine.ags(['start', 'two', 'go', '-d', ...flags]);
  const words = [
    '--env NOT_SET: no such variable is set, so none is passed on.',
    '--reveal .env: it is not in a commit, and a task sees only committed files. Pass its values with --env.',
  ];
  for (const one of words) expect(stderr).toContain(`ags: ${one}\n`);
  await machine.until('two', ['no-changes']);
  const noticed = machine.events('two').filter(({ type }) => type === 'run.noticed');
  expect(noticed.map(({ text }) => text)).toEqual(words);
});
