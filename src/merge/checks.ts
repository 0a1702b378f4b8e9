// merge/checks.ts: runs a project's checks on the chosen changes of a task: makes a trial merge and runs each command over it in a fresh
// sandbox. Also decides whether the last checks allow a merge.
// Invariant: a result is stored with the id of the one tree it is about. However checks end, no process or file of a sandbox is left, and
// the record says how they ended. One process at a time runs checks of a task.
import { join } from 'node:path';
import { AgsError, inOneLine } from '../protocol/errors.ts';
import type { ChecksFile } from '../protocol/checks.ts';
import { serveControl } from '../lib/process/control.ts';
import { tryLock } from '../lib/process/lock.ts';
import { commandTitle } from '../lib/command-title.ts';
import { removeAside } from '../lib/files.ts';
import type { ChecksConfig, ConfigFlags } from '../config/effective.ts';
import { beginLayer, projectLayers, sweepUnfinished } from '../store/layers.ts';
import type { StoredTask } from '../store/tasks.ts';
import { prepareCheckLayers, type CheckLayers } from './check-layers.ts';
import { createRecorder, type ChecksListener, type CheckRecorder, runCheck } from './check-record.ts';
import { noChecks } from './check-suggestions.ts';
import { excludeLine } from '../setup/layers.ts';
import { explainDiskErrors } from '../run/disk-errors.ts';
import { findSides, mergeCommit, mergeIntoTree, type MergedBranch, type TreeRequest } from './merge-tree.ts';
import { planRun } from '../run/plan-run.ts';
import type { RunPlan } from '../run/run-plan.ts';
import { configInput, type HostContext } from '../run/host-context.ts';
import { readProject } from '../config/load.ts';
import { mergeLayers } from '../config/merge.ts';
import { readChecks } from '../store/checks.ts';

export interface ChecksRequest extends TreeRequest {
  /** Replace the configured commands; if empty, the configured ones run. */
  readonly commands: readonly string[];
}

export interface Checks {
  readonly merged: MergedBranch;
  readonly file: ChecksFile;
  /** Call once. Throws if the checks cannot run, and stores the reason in the record. */
  run(listener: ChecksListener, signal: AbortSignal): Promise<ChecksFile>;
}

/** Checks follow the project's rules, not the task's extra flags, but their sandboxes use the task's backend, image and runtime. */
function sameBuilder({ task }: StoredTask): ConfigFlags {
  const { backend, image, runtime } = (task.goal?.flags ?? {}) as ConfigFlags;
  return { ...(backend && { backend }), ...(image && { image }), ...(runtime && { runtime }) };
}

/** Checks count as running from here on. Conflicts, a lack of commands and other running checks are refused first. */
export function openChecks(context: HostContext, stored: StoredTask, request: ChecksRequest): Promise<Checks> {
  return explainDiskErrors(context, () => open(context, stored, request));
}

async function open(context: HostContext, stored: StoredTask, request: ChecksRequest): Promise<Checks> {
  const sides = await findSides(context, stored, request.into);
  const merged = await mergeIntoTree(context, stored, request, sides);
  const plan = await planRun({ ...context, cwd: stored.task.project }, sameBuilder(stored), { live: false });
  const config = checksOf(plan.config.checks, request.commands);
  if (config.run.length === 0) throw await noChecks(stored, merged);
  const lock = tryLock(stored.paths.checksLock);
  if (lock === null)
    throw new AgsError('task.busy', `Checks of ${stored.task.name} are already running.`, {
      hint: 'Wait until they end, or stop them where they were started.',
    });
  try {
    const recorder = createRecorder(context, stored, merged, config);
    return {
      merged,
      get file() {
        return recorder.now;
      },
      run: (listener, signal) =>
        explainDiskErrors(context, () =>
          runChecks({ context, stored, merged, plan, config, recorder, listener }, signal),
        ).finally(() => lock[Symbol.dispose]()),
    };
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

export function checksOf(configured: ChecksConfig, commands: readonly string[]): ChecksConfig {
  if (commands.length === 0) return configured;
  return { ...configured, run: commands.map((run) => ({ name: commandTitle(run), run })) };
}

interface ChecksRun {
  readonly context: HostContext;
  readonly stored: StoredTask;
  readonly merged: MergedBranch;
  readonly plan: RunPlan;
  readonly config: ChecksConfig;
  readonly recorder: CheckRecorder;
  readonly listener: ChecksListener;
}

async function runChecks(run: ChecksRun, signal: AbortSignal): Promise<ChecksFile> {
  const { context, stored, recorder } = run;
  const stopping = new AbortController();
  const all = AbortSignal.any([signal, stopping.signal, recorder.gone]);
  const control = serveControl(stored.paths.checksDir, async () => {
    stopping.abort();
    return { stopping: true };
  });
  recorder.listen(run.listener);
  try {
    await explainDiskErrors(context, () => inWorkDirectory(run, all));
    return recorder.end(all.aborted ? 'Stopped.' : null);
  } catch (error) {
    recorder.end(all.aborted ? 'Stopped.' : sentence(error));
    if (all.aborted) return recorder.now;
    throw error;
  } finally {
    control.close();
  }
}

/** Works where layers are built: the next build or `ags cleanup` removes what a killed process leaves there. */
async function inWorkDirectory(run: ChecksRun, signal: AbortSignal): Promise<void> {
  const dir = projectLayers(run.context.stateDir, run.merged.repository.root);
  sweepUnfinished(dir);
  const place = beginLayer(dir);
  try {
    await runAll(run, place, signal);
  } finally {
    await removeAside(place.root);
  }
}

async function runAll(
  run: ChecksRun,
  place: { readonly root: string; readonly files: string; readonly index: string },
  signal: AbortSignal,
): Promise<void> {
  const { context, stored, merged, plan, config, recorder, listener } = run;
  const { staging } = stored.paths;
  const commit = merged.isThere
    ? merged.from
    : await mergeCommit(context, stored, undefined, merged.repository, {
        tree: merged.tree,
        parents: [merged.from],
        authors: merged.authors,
      });
  const layers = await prepareCheckLayers(context, plan, { ...merged, commit, staging }, place, {
    task: stored.task.id,
    onStep: ({ text }) => listener.step(text),
    onOutput: () => undefined,
    signal,
  });
  recorder.set({ setup: layers.setup, layers: layers.layers });
  const over = layers.setup === 'private' ? await setUpHere(run, layers, place.root, signal) : layers;
  // The monotonic clock: the wall clock may be changed meanwhile.
  const endsAtMs = config.timeoutSeconds === null ? null : performance.now() + config.timeoutSeconds * 1000;
  for (const [n, check] of recorder.now.checks.entries()) {
    if (signal.aborted || over === null) return;
    if (check.state !== 'waiting') continue;
    const seconds = endsAtMs === null ? null : Math.ceil((endsAtMs - performance.now()) / 1000);
    if (seconds !== null && seconds <= 0) {
      recorder.skip(n, 'failed', 'Time limit of all checks reached (checks.timeout).');
      continue;
    }
    await recorder.during(n, async (printed) => {
      const end = await runCheck(context, plan, over, place.root, {
        n,
        run: check.run,
        task: stored.task.id,
        seconds,
        printed,
        seeds: merged.from,
        signal,
      });
      await removeAside(join(place.root, 'tasks'));
      return end;
    });
  }
}

/** Runs the project's setup commands as the first check; null if they failed, so no other check can run. */
async function setUpHere(
  { context, stored, plan, recorder }: ChecksRun,
  layers: CheckLayers,
  root: string,
  signal: AbortSignal,
): Promise<CheckLayers | null> {
  const [{ runSetup }, { harvest }, { mkdirSync }] = await Promise.all([
    import('../setup/setup-run.ts'),
    import('../workspace/harvest.ts'),
    import('node:fs'),
  ]);
  recorder.addFirst({ name: 'setup', run: plan.config.setup.run.join(' && ') });
  let over: CheckLayers | null = null;
  await recorder.during(0, async (printed) => {
    try {
      const paths = await runSetup(context, plan, layers, root, {
        commit: layers.commit,
        task: stored.task.id,
        onStep: ({ text }) => printed.text(`${text}\n`),
        onOutput: (line) => printed.text(`${line}\n`),
        signal,
      });
      const to = join(root, 'setup');
      mkdirSync(to, { mode: 0o755 });
      const found = harvest({
        from: plan.workspace === 'overlay' ? paths.upper : paths.copy,
        base: layers.layers,
        to,
        owner: context.uid === 0 ? plan.user : null,
      });
      over = { ...layers, layers: [to, ...layers.layers], exclude: found.roots.map(excludeLine) };
      return { exitCode: 0, why: null, denied: [] };
    } catch (error) {
      if (!(error instanceof AgsError) || error.code !== 'setup.failed') throw error;
      return { exitCode: Number(error.details['exitCode'] ?? 1) || 1, why: firstLine(error.message), denied: [] };
    } finally {
      await removeAside(join(root, 'tasks'));
    }
  });
  if (over === null) recorder.skipRest('The setup commands failed.');
  return over;
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? '';
}

function sentence(error: unknown): string {
  if (error instanceof AgsError) return inOneLine(error);
  return `This is a bug in ags: ${error instanceof Error ? error.message : String(error)}`;
}

// Checks count only for exactly the tree they ran on.

export interface MergeRules {
  /** If true, ags merges only after the checks have passed. */
  readonly required: boolean;
  readonly checks: ChecksConfig;
}

/** Neither setting needs approval: a check runs in a sandbox, and requiring checks only restricts merges. */
export async function mergeRules(context: HostContext, project: string): Promise<MergeRules> {
  const input = configInput(context, project);
  const { layers } = await readProject(input);
  const { mergeCheck, checks } = mergeLayers(layers, input);
  return { required: mergeCheck, checks };
}

/** Returns null if there is no result for this tree. */
export function checksFor(
  { paths }: Pick<StoredTask, 'paths'>,
  tree: string,
): (ChecksFile & { readonly state: 'passed' | 'failed' }) | null {
  const file = readChecks(paths);
  if (file === null || file.tree !== tree || (file.state !== 'passed' && file.state !== 'failed')) return null;
  return { ...file, state: file.state };
}

/** True if every currently configured check has passed. */
export function havePassed(stored: Pick<StoredTask, 'paths'>, tree: string, { run }: ChecksConfig): boolean {
  const file = checksFor(stored, tree);
  if (file?.state !== 'passed') return false;
  const ran = new Set(file.checks.map((one) => one.run));
  return run.length > 0 && run.every((one) => ran.has(one.run));
}

/** True if the rules require checks that have not passed on this tree. */
export function needsChecks(stored: Pick<StoredTask, 'paths'>, tree: string, rules: MergeRules): boolean {
  return rules.required && !havePassed(stored, tree, rules.checks);
}

export function requirePassed(stored: StoredTask, tree: string, rules: MergeRules): void {
  if (!needsChecks(stored, tree, rules)) return;
  throw new AgsError('checks.failed', `The checks of ${stored.task.name} have not passed for this merge.`, {
    hint: `Run them: ags check ${stored.task.name}\n(merge.check in the configuration requires it.)`,
  });
}
