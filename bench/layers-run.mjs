// bench/layers-run.mjs: prepares an agent's workspace as its runner does, and prints the time.
// Arguments: the directory of the built code, then one JSON value: { tasks, commit }.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

const [code, wish] = process.argv.slice(2);
const load = (file) => import(join(code, file));
const { makeHostContext } = await load('cli/make-context.js');
const { createAgentRun } = await load('workspace/agent-workspace.js');
const { prepareLayers } = await load('setup/layers.js');
const { planRun } = await load('run/plan-run.js');
const { taskPaths } = await load('store/layout.js');
const { tasks, commit } = JSON.parse(wish);
const context = makeHostContext(process.env);
const plan = await planRun(context, {});
const times = [];
for (const task of tasks) {
  const began = performance.now();
  const signal = new AbortController().signal;
  const prepared = await prepareLayers(context, plan, { commit, task, onStep() {}, onOutput() {}, signal });
  const layersMs = performance.now() - began;
  const paths = taskPaths(context.stateDir, task);
  mkdirSync(paths.root, { recursive: true, mode: 0o700 });
  await createAgentRun(plan, paths, task, prepared);
  times.push({ layersMs, readyMs: performance.now() - began });
}
process.stdout.write(JSON.stringify(times));
