// test/services/task.full.test.ts: services beside agents: across turns, after a restart, in checks, and in `ags services`.
// needs: sandbox, postgres, redis
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CALLERS, USUAL } from '../harness.ts';
import { createAgentMachine } from '../agent-run/place.ts';
import { openScreen } from '../e2e/screen.ts';
import { SEED, yaml } from './place.ts';

const FILES = {
  'README.md': '# project\n',
  'ags.yaml': yaml(['db: { preset: postgres, seed: [seed.sql] }', 'cache: redis']),
  'seed.sql': SEED,
};

describe.each(USUAL)('as %s', (caller) => {
  test('data lasts across turns and is new after a restart; seeds come from the base commit, not from the working tree', async () => {
    using machine = createAgentMachine(caller, FILES);
    machine.write('seed.sql', 'syntax error;\n');
    const first = await machine.runDemo(
      'work',
      'run: psql -Atc "insert into item values (3, \'three\')" && redis-cli set who me // run: psql -Atc "select count(*) from item" > count.txt',
    );
    expect(first.state, JSON.stringify(machine.events('work'))).toBe('ready');
    expect(machine.git('show', 'ags/work:count.txt')).toBe('3\n');
    expect(
      machine
        .events('work')
        .filter(({ type }) => type.startsWith('service.'))
        .map(({ type, service }) => `${type} ${String(service)}`)
        .toSorted(),
    ).toEqual(['service.healthy cache', 'service.healthy db', 'service.seeding db']);
    // A second turn has a new runner.
    expect(
      (
        await machine.ags([
          'send',
          'work',
          'run: psql -Atc "select count(*) from item" > count.txt; redis-cli get who > who.txt',
        ])
      ).code,
    ).toBe(0);
    await machine.event('work', 'turn.ended', (event) => event['turn'] === 2);
    await machine.until('work', ['ready', 'failed']);
    expect([machine.git('show', 'ags/work:count.txt'), machine.git('show', 'ags/work:who.txt')]).toEqual([
      '3\n',
      'me\n',
    ]);
    const listed = await machine.ags(['services', 'work', '--json']);
    expect(JSON.parse(listed.stdout)).toMatchObject({
      services: [
        {
          task: 'work',
          name: 'db',
          kind: 'postgres',
          state: 'stopped',
          address: '127.77.0.1',
          url: 'postgres://app:app@db:5432/app',
        },
        { task: 'work', name: 'cache', kind: 'redis', state: 'stopped', address: '127.77.0.2' },
      ],
    });
    expect((await machine.ags(['services', 'logs', 'work', 'db'])).stdout).toContain(
      'database system is ready to accept connections',
    );
    machine.git('checkout', '-q', '--', 'seed.sql');
    expect((await machine.ags(['restart', 'work'])).code).toBe(0);
    await machine.event('work', 'run.ended');
    expect(machine.git('show', 'ags/work:count.txt')).toBe('3\n');
    expect(machine.run('work')).toMatchObject({ state: 'ready', number: 2 });
    expect((await machine.ags(['rm', '--yes', 'work'])).code).toBe(0);
    expect(existsSync(join(machine.stateDir, 'tasks/work'))).toBe(false);
  });
});

const [caller = 'user'] = CALLERS;

test('a client opens in the sandbox of the task, on a terminal', async () => {
  using machine = createAgentMachine(caller, FILES);
  using screen = await openScreen(machine);
  await machine.ags(['start', 'work', 'wait: 600', '-a', 'demo', '-d']);
  await machine.event('work', 'service.healthy', (event) => event['service'] === 'db');
  await machine.until('work', ['running']);
  screen.type('ags services open work db');
  screen.press('Enter');
  await screen.until('app=#');
  screen.type('select name from item order by id desc limit 1; ');
  screen.press('Enter');
  await screen.until('(1 row)');
  expect(screen.text()).toContain(' two');
  screen.type('exit');
  screen.press('Enter');
  expect(await screen.ended()).toMatchObject({ code: 0 });
  const listed = await screen.run('ags services');
  expect(listed.shown).toMatch(/work +db +postgres +healthy +127\.77\.0\.1:5432 +postgres:\/\/app:app@db:5432\/app/);
  await machine.ags(['stop', 'work']);
});

test('a failed service is shown in the task, and the agent continues', async () => {
  using machine = createAgentMachine(caller, {
    'README.md': '#\n',
    'ags.yaml': yaml([String.raw`bad: { run: "printf 'gone \\033]0;title\\007wrong\\n'; exit 4", ports: [4000] }`]),
  });
  await machine.ags([
    'start',
    'work',
    'wait: 2 // run: ! (echo > /dev/tcp/bad/4000) // write: a.txt x',
    '-a',
    'demo',
    '-d',
  ]);
  const failed = await machine.event('work', 'service.failed');
  expect(failed).toMatchObject({
    service: 'bad',
    why: 'The service bad ended with 4.',
    lines: [expect.stringContaining('gone') as string],
  });
  expect(JSON.stringify(failed)).not.toMatch(/\\u001b|\\u0007/);
  expect(await machine.until('work', ['ready', 'failed'])).toMatchObject({ state: 'ready' });
  const shown = await machine.ags(['services', 'work']);
  expect(shown.stdout).toMatch(/work +bad +command +failed /);
  expect(shown.stderr).toContain('The service bad ended with 4.');
  expect((await machine.ags(['logs', 'work'])).stdout).toContain('The service bad ended with 4.');
  expect((await machine.ags(['services', 'open', 'work', 'bad'])).code).toBe(2);
});

test('checks have services with separate data, seeded from the branch; setup has no services', async () => {
  using machine = createAgentMachine(caller, {
    ...FILES,
    'ags.yaml': `${FILES['ags.yaml']}setup: ['echo "[$DATABASE_URL]" > setup.log']\nchecks: ['cat setup.log; psql -Atc "select count(*) from item"; psql -qc "delete from item"', 'psql -Atc "select count(*) from item"']\n`,
  });
  await machine.runDemo('work', 'write: seed.sql drop table if exists nothing // write: a.txt x');
  const done = await machine.ags(['check', 'work']);
  expect(done.code, done.stdout + done.stderr).toBe(0);
  expect(done.stdout).toMatch(/^\[\]\n2\n2\n/);
});
