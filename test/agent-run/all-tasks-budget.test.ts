// test/agent-run/all-tasks-budget.test.ts: `tasks.budget` holds for all tasks of a user together, whichever runs when.
// needs: sandbox
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { longest } from '../../src/agent-run/model/budget.ts';
import { openSpending } from '../../src/store/spending.ts';
import { USUAL } from '../harness.ts';
import { createMeteredMachine, type MeteredMachine } from './metered.ts';

const CALLER = USUAL[0] ?? 'user';
const CLOCK = fileURLToPath(new URL('../faults/clock.cjs', import.meta.url));
/** 1000 tokens in and 20 out, of gpt-5.5. */
const EACH = 1000 * 5 + 20 * 30;

function setBudget({ machine }: MeteredMachine, budget: string): void {
  machine.write(
    '../../.config/ags/config.yaml',
    machine.read('../../.config/ags/config.yaml').replace(/budget: .*/, `budget: ${budget}`),
  );
}

const costs = (place: MeteredMachine, name: string): number =>
  place.machine.events(name).filter(({ type }) => type === 'model.answered').length;

test('spending is counted by local day and month, by project and over all, and a cut line harms no other', () => {
  const dir = mkdtempSync(join(tmpdir(), 'ags-spending-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  let now = new Date(2026, 9, 31, 23, 59, 59);
  using one = openSpending(dir, () => now);
  using other = openSpending(dir, () => now);
  const spent = (): number[] => [one.spent('day', null), one.spent('month', null), one.spent('day', '/a')];
  expect(spent()).toEqual([0, 0, 0]);
  one.add({ project: '/a', task: 'x', costMicros: 5 });
  other.add({ project: '/b', task: 'y', costMicros: 7 });
  expect(spent()).toEqual([12, 12, 5]);
  now = new Date(2026, 10, 1);
  expect(spent()).toEqual([0, 0, 0]);
  other.add({ project: '/a', task: 'x', costMicros: 1 });
  writeFileSync(join(dir, 'spending/2026-11-01.jsonl'), '{"project":"/a","costMi', { flag: 'a' });
  now = new Date(2026, 10, 2);
  other.add({ project: '/a', task: 'x', costMicros: 2 });
  now = new Date(2026, 10, 1, 12);
  other.add({ project: '/a', task: 'x', costMicros: 4 });
  now = new Date(2026, 10, 2);
  expect(spent()).toEqual([2, 7, 2]);
  expect(readdirSync(join(dir, 'spending'))).toHaveLength(3);
});

test('of several used-up budgets the one that lasts longest counts, until the next local day or month', () => {
  const day = { costMicros: 2e6, per: 'day', of: 'user', origin: 'config.yaml:2' } as const;
  const month = { costMicros: 9e6, per: 'month', of: 'project', origin: 'ags.yaml:3' } as const;
  const now = new Date(2026, 11, 30, 12);
  expect(longest([{ ...day, spentMicros: 1_999_999 }], now)).toBe(null);
  expect(longest([{ ...day, spentMicros: 2e6 }], now)).toMatchObject({
    what: 'the budget of $2.00 a day is used up',
    untilMs: new Date(2026, 11, 31).getTime(),
    raise: 'tasks.budget (config.yaml:2)',
  });
  expect(
    longest(
      [
        { ...day, spentMicros: 3e6 },
        { ...month, spentMicros: 9e6 },
      ],
      now,
    ),
  ).toMatchObject({
    what: 'the budget of $9.00 a month of this project is used up',
    until: '2027-01-01 00:00',
  });
});

test('tasks at the same time spend one budget, wait when it is used up, and go on when it is raised', async () => {
  let asked = 0;
  let meet: () => void = () => undefined;
  const both = new Promise<void>((resolve) => (meet = resolve));
  await using place = await createMeteredMachine(CALLER, {
    scenario: [{ say: 'Go on.' }],
    config: 'tasks:\n  budget: 0.05/day\n',
    before() {
      if (++asked === 2) meet();
      return both;
    },
  });
  const { machine, model } = place;
  for (const name of ['one', 'two']) await place.ags('start', name, 'ask', '-a', 'sh ask.sh 9 once', '-d');
  for (const name of ['one', 'two']) await machine.event(name, 'run.waiting', ({ why }) => /budget/.test(String(why)));
  // Nine answers cost $0.05; one more can be on its way when the ninth comes.
  const before = model.requests.length;
  expect([9, 10]).toContain(before);
  expect(costs(place, 'one') + costs(place, 'two')).toBe(before);
  expect(machine.run('one')).toMatchObject({ state: 'queued', waitsUntilMs: expect.any(Number) as number });
  expect(machine.run('one').reason).toMatch(
    /^Waiting: the budget of \$0\.05 a day is used up; it goes on by itself at 20\d\d-\d\d-\d\d 00:00, or when you raise tasks\.budget \(.*config\.yaml:\d+\)$/,
  );

  // A task that was killed has spent what it has spent, and so has one that is removed.
  process.kill(machine.run('two').runner.pid, 'SIGKILL');
  await expect.poll(async () => (await place.ags('rm', 'two', '-y')).code).toBe(0);
  await place.ags('start', 'three', 'ask', '-a', 'sh ask.sh 1 once', '-d');
  await machine.event('three', 'run.waiting', ({ why }) => /budget/.test(String(why)));
  expect(machine.run('three')).not.toHaveProperty('turns');
  const listed = await place.ags('list');
  expect(listed.stdout).toMatch(/three +queued[^]*the budget of \$0\.05 a day is used up/);
  expect(listed.stderr).toMatch(/^Budget: \$0\.0[56] of \$0\.05 today, all tasks$/m);
  expect((await place.ags('show', 'one')).stdout).toMatch(/budget +\$0\.0[56] of \$0\.05 today, all tasks/);
  expect((await place.ags('plan', '--', 'true')).stdout).toMatch(/Budget +\$0\.0[56] of \$0\.05 today, all tasks/);
  expect(model.requests).toHaveLength(before);

  setBudget(place, '5/day');
  expect(await machine.until('three', ['no-changes', 'failed'])).toMatchObject({ state: 'no-changes' });
  expect(await machine.until('one', ['no-changes', 'failed'])).toMatchObject({ state: 'no-changes' });
  expect(machine.run('one')).not.toHaveProperty('waitsUntilMs');
  expect(model.requests.length * EACH).toBeGreaterThan(0.05e6);
});

test('on the next day a task goes on by itself', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'ags-clock-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  chmodSync(dir, 0o755);
  const clock = join(dir, 'clock');
  writeFileSync(clock, '0');
  await using place = await createMeteredMachine(CALLER, {
    scenario: [{ say: 'Go on.' }],
    config: 'tasks:\n  budget: 0.01/day\n',
    more: { NODE_OPTIONS: `--require "${CLOCK}"`, AGS_FAULT_CLOCK: clock },
  });
  const { machine, model } = place;
  await place.ags('start', 'one', 'ask', '-a', 'sh ask.sh 2 once', '-d');
  expect(await machine.until('one', ['no-changes', 'failed'])).toMatchObject({ state: 'no-changes' });
  await place.ags('start', 'two', 'ask', '-a', 'sh ask.sh 2 once', '-d');
  await machine.event('two', 'run.waiting', ({ why }) => /budget/.test(String(why)));
  expect(model.requests).toHaveLength(2);
  writeFileSync(clock, '86400');
  expect(await machine.until('two', ['no-changes', 'failed'])).toMatchObject({ state: 'no-changes' });
  expect(model.requests).toHaveLength(4);
  expect((await place.ags('list')).stderr).toContain('Budget: $0.01 of $0.01 today, all tasks\n');
});

test("a project's budget is for its own tasks, and does not replace the user's", async () => {
  await using place = await createMeteredMachine(CALLER, {
    scenario: [{ say: 'Go on.' }],
    config: 'tasks:\n  budget: 5/day\n',
  });
  const { machine } = place;
  machine.write('ags.yaml', 'tasks:\n  budget: 0.01/month\n');
  machine.git('add', '-A');
  machine.git('commit', '-qm', 'budget');
  await place.ags('start', 'one', 'ask', '-a', 'sh ask.sh 7 once', '-d');
  await machine.event('one', 'run.waiting', ({ why }) =>
    /^the budget of \$0\.01 a month of this project is used up.*\(ags\.yaml:2\)$/.test(String(why)),
  );
  expect(costs(place, 'one')).toBe(2);
  expect((await place.ags('config', 'tasks')).stdout).toMatch(
    /tasks\.budget +5\/day .*\ntasks\.budget +0\.01\/month +ags\.yaml:2\n/,
  );
  machine.write('../other/a.txt', 'one\n');
  machine.git('init', '-qb', 'main', '../other');
  machine.git('-C', '../other', 'add', '-A');
  machine.git('-C', '../other', 'commit', '-qm', 'first');
  const here = { cwd: join(machine.project, '../other') };
  expect((await machine.ags(['list'], here)).stderr).toContain('Budget: $0.01 of $5.00 today, all tasks\n');
  await place.ags('stop', 'one');
});

test('in a terminal requests are refused, the task needs the user, and both end when the budget is raised', async () => {
  await using place = await createMeteredMachine(CALLER, {
    scenario: [{ say: 'Go on.' }],
    config: 'tasks:\n  budget: 0.01/day\n',
  });
  const { machine, model } = place;
  await place.ags(
    'start',
    'one',
    'ask',
    '-a',
    'sh -c "while sh ask.sh 1 once || sleep 0.3; do true; done"',
    '-i',
    '-d',
  );
  expect(await machine.until('one', ['needs-you'])).toMatchObject({
    needs: 'model',
    reason: expect.stringMatching(
      /^No request is sent until 20\d\d-\d\d-\d\d 00:00: the budget of \$0\.01 a day is used up\. Raise tasks\.budget \(.*\)\.$/,
    ) as string,
  });
  expect(model.requests).toHaveLength(2);
  setBudget(place, '0.03/day');
  await machine.until('one', ['running']);
  await machine.until('one', ['needs-you']);
  expect(model.requests).toHaveLength(6);
  // The host of the model is not one that a rule refuses.
  expect((await place.ags('show', 'one')).stdout).not.toContain('refused');
  await place.ags('stop', 'one');
});
