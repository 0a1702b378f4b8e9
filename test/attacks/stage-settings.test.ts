// test/attacks/stage-settings.test.ts: `ags doctor --attack` configures the neighbouring task and the agents that it attacks like the user's
// own sandboxes, also if the project has the configuration.
// needs: sandbox
import { expect, test } from 'vitest';
import { approve } from '../../src/config/trust.ts';
import { readProject } from '../../src/config/load.ts';
import { makeHostContext } from '../../src/cli/make-context.ts';
import { makeProject } from '../../src/attack/git-pipeline.ts';
import { notAttacked } from '../../src/attack/settings.ts';
import { openStage } from '../../src/attack/attacked-project.ts';
import { planRun } from '../../src/run/plan-run.ts';
import { sandboxKey } from '../../src/run/sandbox-key.ts';
import { configInput } from '../../src/run/host-context.ts';
import { createMachine } from '../harness.ts';

const SETTINGS = {
  workspace: 'copy',
  backend: 'native',
  limits: { memory: '700m', processes: 300, time: '9m' },
  hide: ['*.data'],
  reveal: ['.env'],
  env: { set: { COLOUR: 'blue' }, pass: ['SHAPE'] },
  kernel: { ptrace: false },
  network: { mode: 'on', allow: ['one.test'], deny: ['two.test'], tcp: ['db=localhost:5432'] },
  // Programs of the user, and services beside the sandbox, are not used in the attacked project.
  setup: { run: ['false'] },
  checks: { run: ['false'] },
  hooks: { use: ['log'] },
  secrets: [{ name: 'x', host: 'one.test', header: 'authorization', env: 'X', from: { command: ['false'] } }],
};

test('the neighbouring task and the attacked agents have the same sandbox as tasks of the project', async () => {
  using machine = createMachine(process.getuid?.() === 0 ? 'root' : 'user', {
    files: { 'ags.yaml': JSON.stringify(SETTINGS) },
  });
  const context = { ...makeHostContext({ ...machine.env }), cwd: machine.project, self: [] };
  const { asks, bytes } = await readProject(configInput(context, machine.project));
  approve({ stateDir: context.stateDir, projectDir: machine.project, bytes, asks, now: new Date() });
  await using stage = await openStage(context, {});
  const { project } = await makeProject(stage, 'attacker-1');
  // Read as the commands that start there read it.
  for (const cwd of [stage.context.cwd, project]) {
    const plan = await planRun({ ...stage.context, cwd }, {}, { live: false });
    expect(plan.workspace).toBe('copy');
    expect(plan.configured).toMatchObject({
      limits: stage.own.configured.limits,
      hide: stage.own.configured.hide,
      reveal: ['.env'],
      setup: { run: [] },
      checks: { run: [] },
      secrets: [],
    });
    expect(sandboxKey(stage.context, plan)).toBe(sandboxKey(context, stage.own));
  }
  expect(notAttacked(stage.own.configured)).toEqual(['secrets (ours in their place)', 'setup', 'checks', 'hooks']);
  expect(stage.plan.config.limits).toEqual(stage.own.configured.limits);
});
