// merge/checks.ts: the checks of a project on exactly what somebody has chosen of a task: the trial merge is made, and each command runs over
// it in a fresh sandbox.
// Invariant: what they say is about one tree, by its id, and is kept with it. Whatever happens, no process and no file of a sandbox is left,
// and the record says how it ended; one process at a time runs checks of a task.
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { ChecksFile } from '../protocol/checks.ts';
import { serveControl } from '../lib/process/control.ts';
import { tryLock } from '../lib/process/lock.ts';
import { removeAside } from '../lib/files.ts';
import type { ChecksConfig } from '../config/effective.ts';
import { beginLayer, projectLayers, sweepUnfinished } from '../store/layers.ts';
import type { StoredTask } from '../store/tasks.ts';
import { prepareCheckLayers, type CheckLayers } from './check-layers.ts';
import { createKeeper, type ChecksListener, type Keeper } from './check-record.ts';
import { runCheck } from './check-run.ts';
import { noChecks } from './check-suggestions.ts';
import { excludeLine } from '../workspace/prepare-snapshot.ts';
import { tellDiskTrouble } from '../run/disk-errors.ts';
import { findSides, mergeCommit, mergeIntoTree, type MergedBranch, type TreeRequest } from './merge-tree.ts';
import type { ConfigFlags } from '../config/effective.ts';
import { planRun, type RunPlan } from '../run/plan-run.ts';
import type { World } from '../run/host-context.ts';

export interface ChecksRequest extends TreeRequest {
  /** In place of those that are configured; empty: these. */
  readonly commands: readonly string[];
}

export interface Checks {
  readonly merged: MergedBranch;
  readonly file: ChecksFile;
  /** To be called once. What keeps them from being run is thrown, and is in the record too. */
  run(listener: ChecksListener, signal: AbortSignal): Promise<ChecksFile>;
}

/** Checks have the project's rules, not what the task was given besides; but their sandboxes are built as the task's were. */
function sameBuilder({ task }: StoredTask): ConfigFlags {
  const { backend, image, runtime } = (task.goal?.flags ?? {}) as ConfigFlags;
  return { ...(backend && { backend }), ...(image && { image }), ...(runtime && { runtime }) };
}

/** From here on they count as running; what cannot be checked (conflicts, no commands, others that run) is refused before. */
export function openChecks(world: World, stored: StoredTask, request: ChecksRequest): Promise<Checks> {
  return tellDiskTrouble(world, () => open(world, stored, request));
}

async function open(world: World, stored: StoredTask, request: ChecksRequest): Promise<Checks> {
  const sides = await findSides(world, stored, request.into);
  const merged = await mergeIntoTree(world, stored, request, sides);
  const plan = await planRun({ ...world, cwd: stored.task.project }, sameBuilder(stored), { live: false });
  const config = checksOf(plan.config.checks, request.commands);
  if (config.run.length === 0) throw await noChecks(stored, merged);
  const lock = tryLock(stored.paths.checksLock);
  if (lock === null)
    throw new AgsError('task.busy', `Checks of ${stored.task.name} are running already.`, {
      hint: 'Wait for their end, or stop them where they were started.',
    });
  try {
    const keeper = createKeeper(world, stored, merged, config);
    return {
      merged,
      get file() {
        return keeper.now;
      },
      run: (listener, signal) =>
        tellDiskTrouble(world, () => travel({ world, stored, merged, plan, config, keeper, listener }, signal)).finally(
          () => lock[Symbol.dispose](),
        ),
    };
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

export function checksOf(configured: ChecksConfig, commands: readonly string[]): ChecksConfig {
  if (commands.length === 0) return configured;
  return { ...configured, run: commands.map((run) => ({ name: run, run })) };
}

interface Road {
  readonly world: World;
  readonly stored: StoredTask;
  readonly merged: MergedBranch;
  readonly plan: RunPlan;
  readonly config: ChecksConfig;
  readonly keeper: Keeper;
  readonly listener: ChecksListener;
}

async function travel(road: Road, signal: AbortSignal): Promise<ChecksFile> {
  const { world, stored, keeper } = road;
  const stopping = new AbortController();
  const all = AbortSignal.any([signal, stopping.signal, keeper.gone]);
  const desk = serveControl(stored.paths.checksDir, async () => {
    stopping.abort();
    return { stopping: true };
  });
  keeper.listen(road.listener);
  try {
    await tellDiskTrouble(world, () => inPlace(road, all));
    return keeper.end(all.aborted ? 'Stopped.' : null);
  } catch (error) {
    keeper.end(all.aborted ? 'Stopped.' : sentence(error));
    if (all.aborted) return keeper.now;
    throw error;
  } finally {
    desk.close();
  }
}

/** Where makers of layers work: what a process that is killed leaves there is removed by the next one, and by `ags cleanup`. */
async function inPlace(road: Road, signal: AbortSignal): Promise<void> {
  const dir = projectLayers(road.world.stateDir, road.merged.repository.root);
  sweepUnfinished(dir);
  const place = beginLayer(dir);
  try {
    await runAll(road, place, signal);
  } finally {
    await removeAside(place.root);
  }
}

async function runAll(
  road: Road,
  place: { readonly root: string; readonly files: string; readonly index: string },
  signal: AbortSignal,
): Promise<void> {
  const { world, stored, merged, plan, config, keeper, listener } = road;
  const { staging } = stored.paths;
  const commit = merged.isThere
    ? merged.from
    : await mergeCommit(world, stored, undefined, merged.repository, {
        tree: merged.tree,
        parents: [merged.from],
        authors: merged.authors,
      });
  const layers = await prepareCheckLayers(world, plan, { ...merged, commit, staging }, place, {
    task: stored.task.id,
    onStep: ({ text }) => listener.step(text),
    onOutput: () => undefined,
    signal,
  });
  keeper.set({ setup: layers.setup, layers: layers.layers });
  const over = layers.setup === 'private' ? await setUpHere(road, layers, place.root, signal) : layers;
  // Not by the clock, which somebody may move meanwhile.
  const endsAtMs = config.timeoutSeconds === null ? null : performance.now() + config.timeoutSeconds * 1000;
  for (const [n, check] of keeper.now.checks.entries()) {
    if (signal.aborted || over === null) return;
    if (check.state !== 'waiting') continue;
    const seconds = endsAtMs === null ? null : Math.ceil((endsAtMs - performance.now()) / 1000);
    if (seconds !== null && seconds <= 0) {
      keeper.skip(n, 'failed', 'The time of all checks together is over (checks.timeout).');
      continue;
    }
    await keeper.during(n, async (printed) => {
      const end = await runCheck(world, plan, over, place.root, {
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

/** The project's setup commands as the first check; null: they failed, so that nothing else can be tried. */
async function setUpHere(
  { world, stored, plan, keeper }: Road,
  layers: CheckLayers,
  root: string,
  signal: AbortSignal,
): Promise<CheckLayers | null> {
  const [{ runSetup }, { harvest }, { mkdirSync }] = await Promise.all([
    import('../setup/setup-run.ts'),
    import('../workspace/harvest.ts'),
    import('node:fs'),
  ]);
  keeper.addFirst({ name: 'setup', run: plan.config.setup.run.join(' && ') });
  let over: CheckLayers | null = null;
  await keeper.during(0, async (printed) => {
    try {
      const paths = await runSetup(world, plan, layers, root, {
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
        owner: world.uid === 0 ? plan.user : null,
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
  if (over === null) keeper.skipRest('The setup commands failed.');
  return over;
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? '';
}

function sentence(error: unknown): string {
  if (error instanceof AgsError) return error.hint === undefined ? error.message : `${error.message} ${error.hint}`;
  return `This is a bug in ags: ${error instanceof Error ? error.message : String(error)}`;
}
