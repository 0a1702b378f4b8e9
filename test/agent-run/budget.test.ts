// test/agent-run/budget.test.ts: budgets hold for any agent, whatever it reports of itself.
// needs: sandbox
import { expect, test } from 'vitest';
import { USUAL } from '../harness.ts';
import { createMeteredMachine } from './metered.ts';

const CALLER = USUAL[0] ?? 'user';
const ANSWER = { say: 'Go on.' };

test('turns, tokens and cost are counted by the gateway: the request beyond a budget is never sent', async () => {
  await using place = await createMeteredMachine(CALLER, { scenario: [ANSWER] });
  const { machine, model } = place;
  const stops = async (name: string, flag: string, value: string, requests: number, reason: string): Promise<void> => {
    const before = model.requests.length;
    const { code } = await place.ags('start', name, 'ask', '-a', 'sh ask.sh 9', flag, value);
    expect([code, machine.run(name).reason]).toEqual([8, reason]);
    expect(model.requests.length - before).toBe(requests);
  };
  await stops('turns', '--max-turns', '3', 3, 'Stopped: limit of 3 model turns reached (--max-turns).');
  expect(machine.run('turns').used).toEqual({
    inputTokens: 3000,
    outputTokens: 60,
    costMicros: 3 * (1000 * 5 + 20 * 30),
    by: 'gateway',
  });
  // The refusal may still be seen inside before the sandbox has ended.
  expect(machine.texts('turns').slice(0, 3)).toEqual(['200', '200', '200']);
  await stops('tokens', '--max-tokens', '2k', 2, 'Stopped: limit of 2000 tokens reached (--max-tokens).');
  await stops('cost', '--max-cost', '0.01', 2, 'Stopped: cost limit of $0.01 reached (--max-cost).');
  expect((await place.ags('show', 'cost')).stdout).toContain('$0.01, 2000 tokens in, 40 out, counted by the gateway');
});
