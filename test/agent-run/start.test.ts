// test/agent-run/start.test.ts: an agent works on a goal; the user watches it, messages it, and takes its work.
// needs: sandbox
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readEvents } from '../../src/store/events.ts';
import { ONE, USUAL } from '../harness.ts';
import { createAgentMachine } from './place.ts';

describe.each(USUAL)('as %s', (caller) => {
  test("an agent's work, committed or not, is on its own branch, and nothing else of the user has changed", async () => {
    using machine = createAgentMachine(caller);
    machine.write('mine.txt', 'not committed\n');
    machine.git('config', 'core.hooksPath', '/nonexistent');
    const before = {
      status: machine.git('status', '--porcelain'),
      head: machine.git('rev-parse', 'HEAD'),
      config: machine.read('.git/config'),
    };
    const run = await machine.runDemo(
      'work',
      'write: a.txt one // commit: Own commit // write: sub/b.txt two // say: done',
    );
    expect(run).toMatchObject({
      state: 'ready',
      exitCode: 0,
      number: 1,
      turns: 1,
      result: { files: 2, added: 2, removed: 0 },
    });
    expect(machine.branch('work')).toEqual(expect.arrayContaining(['a.txt', 'sub/b.txt']));
    expect(machine.branch('work')).not.toContain('mine.txt');
    const log = machine
      .git('log', '--format=%s|%an|%(trailers:key=Ags-Run,valueonly)', 'ags/work', '-2')
      .trim()
      .split('\n')
      .filter((line) => line !== '');
    expect(log).toEqual([
      expect.stringMatching(/^write: a\.txt one.*\|Demo agent\|work\/1$/),
      expect.stringContaining('Own commit|'),
    ]);
    expect({
      status: machine.git('status', '--porcelain'),
      head: machine.git('rev-parse', 'HEAD'),
      config: machine.read('.git/config'),
    }).toEqual(before);
    expect(machine.has('a.txt')).toBe(false);
    expect(readEvents(join(machine.stateDir, 'tasks/work/events.jsonl')).brokenAt).toBe(null);
  });

  test('an agent sees the commit it was started from, whatever the user does meanwhile', async () => {
    using machine = createAgentMachine(caller);
    machine.write('tracked.txt', 'committed\n');
    machine.git('add', '-A');
    machine.git('commit', '-qm', 'more');
    machine.write('tracked.txt', 'edited later\n');
    machine.write('untracked.txt', 'never committed\n');
    const started = await machine.ags([
      'start',
      'look',
      'run: cat tracked.txt // wait: 1.5 // run: cat tracked.txt; ls',
      '-a',
      'demo',
      '-d',
    ]);
    expect(started).toMatchObject({ code: 0, stdout: 'look\n' });
    await machine.event('look', 'tool.finished');
    machine.git('checkout', '-q', '-f', 'HEAD~1');
    await machine.until('look', ['no-changes', 'ready', 'failed']);
    const outputs = machine
      .events('look')
      .filter(({ type }) => type === 'tool.finished')
      .map((event) => event['output']);
    expect(outputs[0]).toBe('committed\n');
    expect(outputs[1]).toContain('committed\n');
    expect(outputs[1]).not.toContain('untracked.txt');
  });

  test('a message after the end continues the same conversation in the same files', async () => {
    using machine = createAgentMachine(caller);
    const first = await machine.runDemo('talk', 'write: a.txt one');
    const sent = await machine.ags(['send', 'talk', 'append: a.txt two // run: cat a.txt']);
    expect(sent).toMatchObject({ code: 0, stderr: 'ags: talk continues with it. Follow it: ags logs -f talk\n' });
    await machine.event('talk', 'turn.ended', (event) => 'turn' in event && event.turn === 2);
    const run = await machine.until('talk', ['ready']);
    expect(run).toMatchObject({ turns: 2, session: first.session, number: 1 });
    expect(machine.git('show', 'ags/talk:a.txt')).toBe('one\ntwo\n');
  });

  test('a message to a busy agent waits for the end of its turn', async () => {
    using machine = createAgentMachine(caller);
    await machine.ags(['start', 'busy', 'say: here // wait: 8', '-a', 'demo', '-d']);
    await machine.event('busy', 'agent.said');
    expect((await machine.ags(['send', 'busy', 'write: later.txt x'])).stderr).toBe(
      'ags: busy receives it after this turn.\n',
    );
    expect(await machine.until('busy', ['ready', 'failed'])).toMatchObject({ state: 'ready', turns: 2 });
    expect(machine.branch('busy')).toContain('later.txt');
  });

  test('stopping keeps the work, and the task can continue', async () => {
    using machine = createAgentMachine(caller);
    await machine.ags(['start', 'long', 'write: a.txt one // say: written // wait: 600', '-a', 'demo', '-d']);
    await machine.event('long', 'agent.said');
    expect((await machine.ags(['stop', 'long'])).stderr).toBe('ags: long is being stopped.\n');
    expect(await machine.until('long', ['stopped', 'failed', 'ready'])).toMatchObject({
      state: 'stopped',
      reason: 'Stopped by you.',
    });
    expect(machine.branch('long')).toContain('a.txt');
    // The reason for the stop must not show on a merged or undone task.
    expect((await machine.ags(['merge', 'long', '--yes'])).code).toBe(0);
    expect([machine.run('long').state, machine.run('long').reason]).toEqual(['merged', undefined]);
    expect((await machine.ags(['undo', 'long'])).code).toBe(0);
    expect([machine.run('long').state, machine.run('long').reason]).toEqual(['ready', undefined]);
    await machine.ags(['continue', 'long']);
    await machine.event('long', 'run.started', (event) => event['turn'] === 2);
    expect(await machine.until('long', ['ready', 'failed'])).toMatchObject({ turns: 2 });
  });

  test('a restart begins from the same commit in a fresh workspace and keeps the earlier result', async () => {
    using machine = createAgentMachine(caller);
    await machine.runDemo('again', 'run: ls // write: made.txt x');
    expect((await machine.ags(['restart', 'again'])).code).toBe(0);
    const run = machine.run('again');
    expect(run).toMatchObject({ number: 2, turns: 1, state: 'ready' });
    const listed = machine.events('again').find(({ type }) => type === 'tool.finished');
    expect(listed?.['output']).not.toContain('made.txt');
    expect(
      machine
        .git('branch', '--list', 'ags/*')
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== ''),
    ).toEqual(['ags/again', 'ags/again.1']);
    expect((await machine.ags(['rm', '--yes', 'again'])).stdout).toMatch(
      /^Removed again and branch ags\/again, ags\/again\.1, /,
    );
    expect(machine.git('branch', '--list', 'ags/*')).toBe('');
    expect(machine.tasks()).toEqual([]);
  });

  test('goals from a file run within the parallel limit, and all finish', async () => {
    using machine = createAgentMachine(caller);
    machine.write(
      '../goals.md',
      '# Tonight\n\n- write: one.txt x\n- [ ] write: two.txt x // wait: 0.2\n1. write: three.txt x\n',
    );
    const started = await machine.ags(['start', '--file', '../goals.md', '-a', 'demo', '-d', '--max-parallel', '2']);
    expect(started.stdout.trim().split('\n')).toHaveLength(3);
    for (const name of started.stdout.trim().split('\n'))
      expect(await machine.until(name, ['ready', 'failed', 'no-changes', 'stopped'])).toMatchObject({ state: 'ready' });
    const spans = machine.tasks().map((name) => {
      const began = machine
        .events(name)
        .find(({ type, ...event }) => type === 'run.moved' && event['state'] === 'preparing');
      // The next task may start as soon as this file is written, before the event is.
      return [Date.parse(began?.at ?? ''), machine.run(name).endedAtMs ?? Infinity] as const;
    });
    const most = Math.max(...spans.map(([begin]) => spans.filter(([from, to]) => from <= begin && begin < to).length));
    expect(most).toBeLessThanOrEqual(2);
  });

  test('attempts at the same goal run in parallel', async () => {
    using machine = createAgentMachine(caller);
    const started = await machine.ags(['start', 'same', 'write: x.txt x', '-a', 'demo', '--attempts', '2', '-d']);
    expect(started.stdout).toBe('same-1\nsame-2\n');
    for (const name of ['same-1', 'same-2'])
      expect((await machine.until(name, ['ready', 'failed'])).state).toBe('ready');
  });

  test('an agent stops at its cost, turn and time limits', async () => {
    using machine = createAgentMachine(caller);
    expect(
      await machine.runDemo('dear', 'write: a.txt x // use: 1500000 // use: 2500000 // wait: 600', ['--max-cost', '2']),
    ).toMatchObject({
      state: 'failed',
      reason: 'Stopped: cost limit of $2.00 reached (--max-cost).',
      used: { costMicros: 2_500_000 },
      result: { files: 1 },
    });
    const eager = 'run: true // run: true // run: true // wait: 600';
    expect((await machine.ags(['start', 'eager', eager, '-a', 'demo', '--max-turns', '2'])).code).toBe(8);
    expect(machine.run('eager')).toMatchObject({
      state: 'failed',
      reason: 'Stopped: limit of 2 model turns reached (--max-turns).',
    });
    expect(await machine.runDemo('slow', 'write: a.txt x // wait: 600', ['--max-time', '10s'])).toMatchObject({
      state: 'failed',
      result: { files: 1 },
      reason: expect.stringContaining('time limit of 10s reached') as string,
    });
  });

  test('a failing agent reports its reason, and any program can be an agent', async () => {
    using machine = createAgentMachine(caller);
    expect(await machine.runDemo('no', 'write: a.txt x // fail: it is too hard')).toMatchObject({
      state: 'failed',
      reason: 'Demo agent: it is too hard.',
      result: { files: 1 },
    });
    const any = await machine.ags([
      'start',
      'any',
      'make it so',
      '-a',
      'sh -c "cat > goal.txt; echo plain words; echo trouble >&2; exit 4"',
    ]);
    expect(any.code).toBe(1);
    expect(any.stdout).toContain('  | plain words\n');
    expect(machine.run('any')).toMatchObject({ state: 'failed', exitCode: 4 });
    expect(machine.git('show', 'ags/any:goal.txt')).toBe('make it so');
    expect((await machine.ags(['logs', 'any', '--raw'])).stdout).toBe('plain words\ntrouble\n');
  });

  test('an agent that asks a question or waits for a host comes first in the list', async () => {
    using machine = createAgentMachine(caller);
    await machine.ags(['start', 'asks', 'ask: Redis or memory? // wait: 8 // say: went on', '-a', 'demo', '-d']);
    expect(await machine.until('asks', ['needs-you'])).toMatchObject({ reason: 'It asks: Redis or memory?' });
    const { tasks } = JSON.parse((await machine.ags(['list', '--json'])).stdout) as { tasks: object[] };
    expect(tasks).toEqual([expect.objectContaining({ name: 'asks', state: 'needs-you' })]);
    const end = await machine.until('asks', ['no-changes', 'failed']);
    expect(end.state).toBe('no-changes');
    expect(end).not.toHaveProperty('reason');
    await machine.ags([
      'start',
      'waits',
      'fetch: https://unknown.test/ // say: went on',
      '-a',
      'demo',
      '-d',
      '--network',
      'record',
    ]);
    expect(await machine.until('waits', ['needs-you'])).toMatchObject({
      reason: 'It wants to reach unknown.test: ags allow unknown.test',
    });
    await machine.ags(['deny', 'unknown.test']);
    expect((await machine.until('waits', ['no-changes', 'failed'])).state).toBe('no-changes');
  });

  test('kill -9 of the watching command does not affect the agent', async () => {
    using machine = createAgentMachine(caller);
    const watching = machine.start(['start', 'alone', 'wait: 1 // write: a.txt x', '-a', 'demo']);
    await machine.event('alone', 'agent.started');
    watching.kill('SIGKILL');
    expect((await machine.until('alone', ['ready', 'failed'])).state).toBe('ready');
  });

  test('kill -9 of the runner ends the sandbox, and the work so far can be brought out', async () => {
    using machine = createAgentMachine(caller);
    await machine.ags(['start', 'cut', 'write: a.txt x // say: written // wait: 600', '-a', 'demo', '-d']);
    await machine.event('cut', 'agent.said');
    process.kill(machine.run('cut').runner.pid, 'SIGKILL');
    const list = JSON.parse((await machine.ags(['list', '--json'])).stdout) as { tasks: unknown[] };
    expect(list.tasks).toEqual([
      expect.objectContaining({ name: 'cut', state: 'interrupted', changed: true, live: false }),
    ]);
    expect((await machine.ags(['diff', 'cut', '--name-only'])).stdout).toBe('a.txt\n');
    expect(machine.branch('cut')).toContain('a.txt');
    expect(machine.run('cut')).toMatchObject({
      state: 'stopped',
      reason: 'Its runner was killed. To go on: ags continue cut',
    });
    await machine.ags(['send', 'cut', 'append: a.txt more']);
    await machine.event('cut', 'run.started', (event) => event['turn'] === 2);
    expect((await machine.until('cut', ['ready', 'failed'])).state).toBe('ready');
    expect(machine.git('show', 'ags/cut:a.txt')).toBe('x\nmore\n');
  });

  test('agent output is sanitized on screen and stored unchanged', async () => {
    using machine = createAgentMachine(caller);
    const run = await machine.ags([
      'start',
      'bad',
      'x',
      '-a',
      String.raw`printf {"type":"agent.said","text":"\\u001b]52;c;aGk=\\u0007\\u001b[2Jhi"}\n\033]0;title\007raw\n`,
    ]);
    expect(run.stdout).not.toMatch(/[\u001b\u0007]/);
    expect(run.stdout).toContain('hi\n');
    expect((await machine.ags(['logs', 'bad'])).stdout).not.toMatch(/[\u001b\u0007]/);
    expect((await machine.ags(['logs', 'bad', '--raw'])).stdout).not.toMatch(/[\u001b\u0007]/);
    await machine.runDemo('worse', 'fail: \u001b]0;title\u0007 no');
    for (const args of [['show', 'worse'], ['list'], ['logs', 'worse']])
      expect((await machine.ags(args)).stdout, args.join(' ')).not.toMatch(/[\u001b\u0007]/);
  });

  test('removing a running task ends it and leaves nothing behind', async () => {
    using machine = createAgentMachine(caller);
    await machine.ags(['start', 'gone', 'write: a.txt x // say: written // wait: 600', '-a', 'demo', '-d']);
    await machine.event('gone', 'agent.said');
    const { pid } = machine.run('gone').runner;
    expect((await machine.ags(['rm', 'gone'])).code).toBe(7);
    expect((await machine.ags(['rm', '--force', '--yes', 'gone'])).code).toBe(0);
    expect(existsSync(`/proc/${pid}/fd/0`)).toBe(false);
    expect(readdirSync(join(machine.stateDir, 'tasks'))).toEqual([]);
  });
});

test('invalid arguments are reported before anything is created', async () => {
  using machine = createAgentMachine(ONE);
  const said = async (...args: string[]): Promise<[number | null, string]> => {
    const { code, stderr } = await machine.ags(['start', ...args]);
    return [code, stderr.split('\n')[0] ?? ''];
  };
  expect(await said()).toEqual([2, 'ags: What should the agent do?']);
  expect(await said('x')).toEqual([2, 'ags: No agent was chosen.']);
  expect(await said('x', '-a', 'nobody')).toEqual([2, 'ags: There is no agent called "nobody".']);
  expect(await said('x', '-a', 'claude')).toEqual([4, 'ags: Claude Code is not signed in.']);
  expect(await said('Not A Name', 'x', '-a', 'demo')).toEqual([
    2,
    'ags: "Not A Name" is not a valid name: use up to 40 lowercase letters, digits and hyphens.',
  ]);
  expect(await said('fix', 'the', 'tests', '-a', 'demo')).toEqual([
    2,
    'ags: ags start takes 2 arguments; not used: tests',
  ]);
  expect(await said('x', '-a', 'demo', '--base', 'nowhere')).toEqual([
    2,
    'ags: There is no commit "nowhere" in this repository.',
  ]);
  expect(await said('x', '-a', 'demo', '--max-time', 'soon')).toEqual([
    2,
    'ags: --max-time is a time such as 30m or 2h, not "soon".',
  ]);
  expect(await said('x', '-a', 'demo', '--max-cost', 'much')).toEqual([
    2,
    'ags: --max-cost is an amount in dollars such as 2.50, not "much".',
  ]);
  expect(await said('--file', '/nowhere.md', '-a', 'demo')).toEqual([
    3,
    'ags: /nowhere.md cannot be read: there is no such file.',
  ]);
  expect(machine.tasks()).toEqual([]);
  machine.git('branch', 'ags/taken');
  expect(await said('taken', 'x', '-a', 'demo')).toEqual([2, 'ags: A task or branch named taken already exists.']);
});

test('an empty goal is refused, and a dry run starts nothing', async () => {
  using machine = createAgentMachine('user');
  expect(await machine.ags(['start', ' ', '-a', 'demo'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('The goal is empty.') as string,
  });
  machine.write('../goals.md', '- [x] done already\n- one\n- two\n');
  expect(await machine.ags(['start', '--file', '../goals.md', '-a', 'demo', '--dry-run'])).toMatchObject({
    code: 0,
    stdout: 'NAME  AGENT  LIMITS  AFTER  GOAL\none   demo                  one\ntwo   demo                  two\n',
    stderr: 'ags: line 1 left out (done): done already\nags: 2 goals; nothing was started.\n',
  });
  expect(machine.tasks()).toEqual([]);
});
