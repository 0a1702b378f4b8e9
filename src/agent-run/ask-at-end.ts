// agent-run/ask-at-end.ts: asks the post-stop hooks when a headless turn has ended: in the runner, out of the agent's reach.
// Invariant: null only if every hook said yes.
import type { ControlServer } from './control-server.ts';
import type { Refusal } from './run-hooks.ts';
import { runTurnSandbox, type TurnSandboxInput } from './turn-sandbox.ts';

/** Hooks with `inside` get a sandbox over the same workspace, in which nothing of the agent runs any more. */
export async function askAtEnd(input: TurnSandboxInput, control: ControlServer): Promise<Refusal | null> {
  const { hooks } = input;
  if (!hooks.endsInside) return await hooks.atEnd(control.stopped);
  let answer: Promise<Refusal | null> = Promise.reject(new Error('the hooks were not asked'));
  answer.catch(() => undefined);
  await runTurnSandbox(input, {
    agentPlan: null,
    command: [],
    onUp(sandbox, network) {
      control.up({ sandbox, network, driver: null, terminal: null });
      answer = hooks.atEnd(control.stopped).finally(() => sandbox.kill());
    },
  }).finally(() => control.down());
  return await answer;
}
