// test/transfer/data.full.test.ts: a task's service data is exported, and services on the other machine continue with it.
// needs: sandbox, postgres, redis
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { type Caller, giveTo, ONE, USUAL } from '../harness.ts';
import { SEED, yaml } from '../services/place.ts';
import { createAgentMachine, type AgentMachine } from '../agent-run/place.ts';
import { readParts } from './parts.ts';

const FILES = {
  'README.md': '# project\n',
  'ags.yaml': yaml(['db: { preset: postgres, seed: [seed.sql] }', 'cache: redis']),
  'seed.sql': SEED,
};
const WRITE =
  'run: psql -Atqc "insert into item values (3, \'three\')" && redis-cli set who me // run: psql -Atc "select count(*) from item" > count.txt';
const READ =
  'run: psql -Atqc "insert into item values (4, \'four\')" // run: psql -Atc "select count(*) from item" > count.txt; redis-cli get who > who.txt';

type Source = AgentMachine & { readonly file: string };
const SOURCES = new Map<Caller, Source>();
afterAll(() => {
  for (const source of SOURCES.values()) source[Symbol.dispose]();
});

async function source(caller: Caller): Promise<Source> {
  const known = SOURCES.get(caller);
  if (known !== undefined) return known;
  const machine = createAgentMachine(caller, FILES);
  const made = Object.assign(machine, { file: join(machine.home, 'work.ags') });
  SOURCES.set(caller, made);
  const run = await machine.runDemo('work', WRITE);
  expect(run.state, JSON.stringify(machine.events('work'))).toBe('ready');
  const done = await machine.ags(['export', 'work', made.file, '--data']);
  expect(done, done.stderr).toMatchObject({ code: 0, stdout: `${made.file}\n` });
  return made;
}

async function send(machine: AgentMachine, cwd: string, text: string, turn: number): Promise<void> {
  const sent = await machine.ags(['send', 'work', text], { cwd });
  expect(sent, sent.stderr).toMatchObject({ code: 0 });
  await machine.event('work', 'turn.ended', (event) => event['turn'] === turn);
  await machine.until('work', ['ready', 'failed', 'no-changes']);
}

describe.each(USUAL)('as %s', (caller) => {
  test('PostgreSQL and Redis continue with their data, and start from the seed after a restart', async () => {
    const here = await source(caller);
    const { manifest, members } = readParts(here.file);
    expect(manifest).toMatchObject({
      format: 2,
      services: [
        { name: 'db', kind: 'postgres', version: '15' },
        { name: 'cache', kind: 'redis', version: expect.stringMatching(/^\d+\.\d+/) as string },
      ],
    });
    expect(Object.keys(members).slice(-2)).toEqual(['services/db.tar.gz', 'services/cache.tar.gz']);
    using there = createAgentMachine(caller);
    const cwd = join(there.home, 'fresh');
    const done = await there.ags(['import', here.file, '--into', cwd]);
    expect(done, done.stderr).toMatchObject({ code: 0, stdout: 'work\n' });
    expect(done.stderr).toContain('With data of db (postgres 15), cache (redis ');
    expect((await there.ags(['services', 'work'], { cwd })).stdout).toMatch(
      /work +db +postgres +stopped +\d+\.\d+ MB\n/,
    );
    // An imported task can be exported again before its first run.
    const again = join(there.home, 'again.ags');
    expect(await there.ags(['export', 'work', again, '--data'], { cwd })).toMatchObject({ code: 0 });
    expect(readParts(again).manifest.services).toEqual(manifest.services);
    await send(there, cwd, READ, 2);
    const git = (...args: string[]): string => there.git('-C', cwd, ...args);
    expect(there.run('work').state, JSON.stringify(there.events('work'))).toBe('ready');
    expect([git('show', 'ags/work:count.txt'), git('show', 'ags/work:who.txt')]).toEqual(['4\n', 'me\n']);
    expect((await there.ags(['restart', 'work'], { cwd })).code).toBe(0);
    // The goal adds a third item to the seed's two.
    await there.event('work', 'run.ended');
    expect(there.run('work')).toMatchObject({ state: 'ready', number: 2 });
    expect(git('show', 'ags/work:count.txt')).toBe('3\n');
  });
});

const CALLER: Caller = ONE;

test('without --data it is left out with a notice, and every version of ags can read the file', async () => {
  const here = await source(CALLER);
  const file = join(here.home, 'plain.ags');
  const done = await here.ags(['export', 'work', file]);
  expect(done).toMatchObject({ code: 0 });
  expect(done.stderr).toContain(
    'the data of its services (db, cache) is not in the file. To include it: ags export work --data',
  );
  const { manifest, members } = readParts(file);
  expect(manifest.format).toBe(1);
  expect('services' in manifest).toBe(false);
  expect(Object.keys(members).filter((name) => name.startsWith('services/'))).toEqual([]);
});

test('data of a running task is refused, and nothing is written', async () => {
  const here = await source(CALLER);
  await here.ags(['start', 'long', 'say: up // wait: 60', '-a', 'demo', '-d']);
  await here.event('long', 'agent.said');
  const file = join(here.home, 'long.ags');
  const done = await here.ags(['export', 'long', file, '--data']);
  expect(done).toMatchObject({ code: 7, stdout: '' });
  expect(done.stderr).toContain('long is running: its services are still writing their data.');
  expect(done.stderr).toContain('ags stop long');
  expect(existsSync(file)).toBe(false);
  await here.ags(['stop', 'long', '--force']);
  await here.until('long', ['stopped']);
  expect((await here.ags(['rm', 'long', '-y'])).code).toBe(0);
});

test('data of a version that is not installed is named when the service would start, and stays untouched', async () => {
  const here = await source(CALLER);
  using there = createAgentMachine(CALLER);
  const cwd = join(there.home, 'fresh');
  expect(await there.ags(['import', here.file, '--into', cwd])).toMatchObject({ code: 0 });
  const version = join(there.stateDir, 'tasks/work/services/tasks/db/run/copy/pg/PG_VERSION');
  expect(lstatSync(version).size).toBe(3);
  writeFileSync(version, '12\n');
  await send(there, cwd, 'say: on', 2);
  expect(there.events('work').find(({ type }) => type === 'service.failed')).toMatchObject({
    service: 'db',
    why: expect.stringMatching(
      /^The service db ended: its data is of PostgreSQL 12 and needs PostgreSQL 12; this is .*15\..*ags restart/,
    ) as string,
  });
  expect(readdirSync(join(version, '..'))).toContain('base');
});

test('cleanup removes everything that a killed export or import leaves', async () => {
  const here = await source(CALLER);
  const out = join(here.home, 'out');
  mkdirSync(out);
  giveTo(out, here.uid);
  const tasks = here.tasks().toSorted();
  let cutOff = 0;
  for (const args of [
    ['export', 'work', join(out, 'cut.ags'), '--data'],
    ['import', here.file],
  ])
    for (const look of [isBegun, hasData]) {
      const child = here.start(args);
      const ended = new Promise((resolve) => child.on('exit', resolve));
      for (const stream of [child.stdout, child.stderr]) stream?.resume();
      child.stdin?.end();
      while (child.exitCode === null && !look(here, out)) await sleep(1);
      if (child.kill('SIGKILL')) cutOff += 1;
      await ended;
      expect(existsSync(join(out, 'cut.ags'))).toBe(false);
      const cleaned = await here.ags(['cleanup', '--yes']);
      expect(cleaned.code, cleaned.stderr).toBe(0);
      expect([here.tasks().toSorted(), readdirSync(out)]).toEqual([tasks, []]);
      expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toContain(here.root);
    }
  expect(cutOff).toBe(4);
});

/** The temporary files of a running command. */
function made(machine: AgentMachine): string[] {
  return readdirSync(join(machine.stateDir, 'tasks')).filter((name) => name.startsWith('.new-'));
}

function isBegun(machine: AgentMachine, out: string): boolean {
  return made(machine).length > 0 || readdirSync(out).length > 0;
}

/** Whether some of the first service's data exists. */
function hasData(machine: AgentMachine, out: string): boolean {
  const [part] = readdirSync(out);
  if (part !== undefined) return lstatSync(join(out, part)).size > 500_000;
  return made(machine).some((name) =>
    existsSync(join(machine.stateDir, 'tasks', name, 'services/tasks/db/run/copy/pg/base')),
  );
}
