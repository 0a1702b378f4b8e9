// test/workspace/agent-run.mjs: sets up an agent's task as the runner does, from built code and without the agent, so that any user can run
// it. In: one JSON argument. Out: one JSON line per step.
import { mkdirSync, writeFileSync } from 'node:fs';
import { makeHostContext } from '../../dist/cli/make-context.js';
import { createAgentRun, describeAgentRun } from '../../dist/workspace/agent-workspace.js';
import { prepareLayers } from '../../dist/setup/layers.js';
import { planRun } from '../../dist/run/plan-run.js';
import { nativeOptions } from '../../dist/run/native-options.js';
import { NOTHING_MORE } from '../../dist/sandbox/spec/plan-sandbox.js';
import { createNative } from '../../dist/sandbox/native/native.js';
import { taskPaths } from '../../dist/store/layout.js';

const { task, commit, commands = [], workspace, again } = JSON.parse(process.argv[2] ?? '{}');
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
const context = makeHostContext(process.env);

try {
  const plan = await planRun(context, workspace === undefined ? {} : { workspace });
  const begun = performance.now();
  const wish = {
    commit: commit ?? plan.project.repository.headCommit,
    task,
    onStep: (step) => say({ step }),
    onOutput: (output) => say({ output }),
    signal: new AbortController().signal,
  };
  const prepared = await prepareLayers(context, plan, wish);
  const layersMs = performance.now() - begun;
  const paths = taskPaths(context.stateDir, task);
  mkdirSync(paths.root, { recursive: true, mode: 0o700 });
  await createAgentRun(plan, paths, task, prepared);
  const spec = describeAgentRun(context, plan, paths, task, prepared, NOTHING_MORE);
  say({ ready: { ...prepared, layersMs, readyMs: performance.now() - begun } });
  writeFileSync(
    paths.task,
    JSON.stringify({
      version: 1,
      id: task,
      name: task,
      kind: 'agent',
      project: plan.project.root,
      git: true,
      command: [],
      createdAt: new Date().toISOString(),
    }),
  );
  writeFileSync(
    paths.run,
    JSON.stringify({
      version: 1,
      state: 'ready',
      startedAtMs: Date.now(),
      endedAtMs: Date.now(),
      exitCode: 0,
      label: '',
      workspace: plan.workspace,
      hidden: prepared.hidden,
      revealed: [],
      base: prepared.commit,
      objectFormat: plan.project.repository.objectFormat,
      runner: { pid: 1, startTicks: '' },
      user: { uid: plan.user.uid, gid: plan.user.gid },
      settled: [],
      ignoredDiscarded: false,
      number: 1,
      layers: prepared.layers,
    }),
  );
  const options = await nativeOptions(context, plan, spec, paths.runDir, task, { files: [], prefix: [], env: {} });
  for (const command of commands) {
    const sandbox = await createNative(options).start(spec, ['sh', '-c', command], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
      terminal: null,
    });
    const text = async (stream) => {
      let all = '';
      for await (const chunk of stream) all += chunk;
      return all;
    };
    const [stdout, stderr, code] = await Promise.all([text(sandbox.stdout), text(sandbox.stderr), sandbox.done]);
    say({ ran: { code, stdout, stderr } });
    // The test acts between two commands.
    if (again) await new Promise((resolve) => process.stdin.once('data', resolve));
  }
} catch (error) {
  say({
    error: {
      code: error.code,
      message: error.message,
      hint: error.hint,
      stack: error.code === undefined ? error.stack : undefined,
    },
  });
  process.exitCode = 1;
}
process.stdin.destroy();
