// test/hooks/at-end.test.ts: the runner asks the post-stop hooks when an agent's turn has ended, and sends the agent back.
// needs: sandbox
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createAllowance } from '../../src/agent-run/allowance.ts';
import { createAgentMachine, type AgentMachine } from '../agent-run/place.ts';
import { USUAL } from '../harness.ts';

/** A hook of the user, which needs no approval. */
function ownHook(machine: AgentMachine, lines: string): void {
  machine.write('../../.config/ags/hooks/post-stop', `#!/bin/sh\n${lines}\n`, 0o755);
}

const asked = (machine: AgentMachine, name: string): string[] =>
  machine
    .events(name)
    .filter(({ type, point }) => type === 'hook.decided' && point === 'post-stop')
    .map(({ verdict, mode }) => `${String(verdict)} ${String(mode)}`);

const INSIDE = '[ -e fixed.txt ] && exit 0\necho "not fixed // write: fixed.txt yes" >&2\nexit 2\n';
/** The agent's own hook client, used early. */
const EARLY = `run: echo '{"tool":"","action":{}}' | perl -T /run/ags/hook stop`;

test.each(USUAL)('as %s: hooks outside and inside send an agent back until both say yes', async (caller) => {
  using machine = createAgentMachine(caller, { 'inside.sh': INSIDE });
  // The work is on the branch when the hook is asked.
  ownHook(
    machine,
    'git -C "$AGS_PROJECT" show "ags/$AGS_TASK:done.txt" >/dev/null 2>&1 && exit 0\necho "missing // write: done.txt yes" >&2; exit 2',
  );
  machine.write('../../.config/ags/hooks/pre-bash', '#!/bin/sh\nexit 0\n', 0o755);
  machine.write('ags.yaml', 'hooks:\n  post-stop:\n    - { run: [sh, inside.sh], inside: true }\n');
  const run = await machine.runDemo('back', EARLY);
  expect(run).toMatchObject({ state: 'ready', turns: 3, result: { files: 2 } });
  expect(asked(machine, 'back')).toEqual(
    ['refused', 'allowed', 'refused', 'allowed', 'allowed'].map((one) => `${one} enforced`),
  );
  const refusals = machine.events('back').filter(({ verdict }) => verdict === 'refused');
  expect(refusals.map(({ reason }) => reason)).toEqual([
    'Refused by the hook ~/.config/ags/hooks/post-stop: missing // write: done.txt yes',
    'Refused by the hook sh inside.sh (ags.yaml:3): not fixed // write: fixed.txt yes',
  ]);
  // They are not shown as messages of the user.
  const started = machine.events('back').filter(({ type }) => type === 'run.started');
  expect(started.map((event) => event['prompt'])).toEqual(['', '', '']);
  const sessions = machine
    .events('back')
    .flatMap((event) => (event.type === 'agent.started' ? [event['session']] : []));
  expect(new Set(sessions).size).toBe(1);
});

test('a hook that always refuses is asked six times, and then the task has failed', async () => {
  using machine = createAgentMachine('user');
  ownHook(machine, 'echo never >&2; exit 2');
  const any = await machine.ags(['start', 'any', 'make it so', '-a', 'sh -c "cat >> goals.txt"']);
  const hook = '~/.config/ags/hooks/post-stop';
  expect(any.code).toBe(1);
  expect(machine.run('any')).toMatchObject({
    state: 'failed',
    turns: 6,
    reason: `The hook ${hook} still refuses: never`,
  });
  expect(asked(machine, 'any')).toEqual(Array(6).fill('refused enforced'));
  // A program without a memory hears its goal again.
  const again = `make it so\n\nYou are not done yet. Refused by the hook ${hook}: never`;
  expect(machine.git('show', 'ags/any:goals.txt')).toBe(`make it so${again.repeat(5)}`);
});

test('turns after a refusal use up the same limits, and a message of the user renews them', async () => {
  using machine = createAgentMachine('user');
  ownHook(machine, 'echo "again // run: true" >&2; exit 2');
  expect(await machine.runDemo('steps', 'run: true', ['--max-turns', '1'])).toMatchObject({
    state: 'failed',
    turns: 2,
    reason: 'Stopped: limit of 1 model turn reached (--max-turns).',
  });

  const reason = await new Promise((stop) => {
    const allowance = createAllowance({ stop: (_force, why) => stop(why) }, 0.05);
    for (let times = 5; times > 0; times--) expect(allowance.sendBack()).toBe(true);
    expect(allowance.sendBack()).toBe(false);
    allowance.renew();
    expect(allowance.sendBack()).toBe(true);
  });
  expect(reason).toEqual({ failed: true, text: expect.stringMatching(/^Stopped: time limit of .* reached/) as string });
});

test('a runner that is killed or stopped while a hook is asked does not make the task ready, and asks again', async () => {
  using machine = createAgentMachine('user');
  ownHook(machine, `touch "${join(machine.root, 'asked')}"; [ -e "${join(machine.root, 'yes')}" ] || sleep 600`);
  await machine.ags(['start', 'cut', 'write: a.txt x', '-a', 'demo', '-d']);
  await expect.poll(() => machine.has('../../../asked')).toBe(true);
  process.kill(machine.run('cut').runner.pid, 'SIGKILL');
  expect((await machine.ags(['diff', 'cut', '--name-only'])).stdout).toBe('a.txt\n');
  expect(machine.run('cut').state).toBe('stopped');

  await machine.ags(['continue', 'cut']);
  await machine.event('cut', 'turn.ended', (event) => event['turn'] === 2);
  expect((await machine.ags(['stop', 'cut'])).code).toBe(0);
  expect(await machine.until('cut', ['stopped', 'ready', 'failed'])).toMatchObject({
    state: 'stopped',
    reason: 'Stopped by you.',
  });

  machine.write('../../../yes', '');
  await machine.ags(['continue', 'cut']);
  expect(await machine.until('cut', ['ready', 'failed'])).toMatchObject({ state: 'ready', turns: 3 });
  expect(asked(machine, 'cut').at(-1)).toBe('allowed enforced');
});
