// transfer/imported-task.ts: builds the files of an imported task from the manifest, as far as its claims can be true here.
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import type { CarriedEvent } from '../protocol/carried-event.ts';
import type { ExportManifest } from '../protocol/export.ts';
import { isUnderWay, type RunState } from '../protocol/run-state.ts';
import type { Goal, RunFile, TaskFile } from '../protocol/task.ts';
import { usualParallel } from '../config/tasks.ts';
import { ownerGit } from '../git/owner-git.ts';
import type { NetworkRun } from '../store/network-log.ts';
import type { Counted } from '../results/agent-tree.ts';
import { mainBranch, type ImportPlace } from './import-place.ts';
import { fromPortable, type Rewrite } from './portable-text.ts';
import { firstRun } from '../agent-run/start.ts';
import type { HostContext } from '../run/host-context.ts';
import type { ConfigFlags } from '../config/effective.ts';
import { type RuleWishes } from './carried-rules.ts';
import { type ExportFile } from './import-read.ts';

export interface Imported {
  readonly task: TaskFile;
  readonly run: RunFile;
  readonly here: Rewrite;
  readonly networkRun: NetworkRun;
  lastEvent(dropped: number): CarriedEvent;
}

export async function describeImported(
  context: HostContext,
  given: Given,
  made: { id: string; branched: boolean; counted: Counted | null },
): Promise<Imported> {
  const { place, path } = given;
  const { manifest } = given.file;
  const here = fromPortable(context, place.project);
  const at = context.now().toISOString();
  const file = basename(path);
  const goal = goalOf(given, here);
  const state = await stateHere(manifest, place, made.counted);
  return {
    here,
    networkRun: {
      task: made.id,
      project: place.project,
      startedAt: new Date(manifest.run.startedAtMs).toISOString(),
    },
    task: {
      version: 1,
      id: made.id,
      name: made.id,
      kind: 'agent',
      goal,
      project: place.project,
      git: true,
      command: goal.command ?? [goal.agent],
      createdAt: manifest.task.createdAt,
      imported: {
        at,
        file,
        format: manifest.format,
        name: manifest.task.name,
        exportedAt: manifest.exportedAt,
        merges: manifest.merges,
      },
    },
    run: runOf(context, manifest, state, made),
    lastEvent: (dropped) => ({
      type: 'run.imported',
      at,
      from: manifest.task.name,
      file,
      exportedAt: manifest.exportedAt,
      dropped,
    }),
  };
}

function goalOf({ file: { manifest }, place, flags, wishes }: Given, here: Rewrite): Goal {
  const { task, work } = manifest;
  const { tasks } = wishes.config;
  const least = (...bounds: readonly (number | null)[]): number | null =>
    bounds.reduce((a, b) => (a === null ? b : b === null ? a : Math.min(a, b)));
  return {
    text: here(task.goal),
    agent: task.agent,
    ...(task.command === undefined ? {} : { command: here(task.command) }),
    ...(task.model === undefined ? {} : { model: task.model }),
    interactive: task.interactive,
    base: work.base,
    ...(work.root === work.base ? {} : { origin: work.root }),
    baseRef: branchHere(manifest, place),
    // The user of this machine pays for further runs, so the file cannot raise a limit that is set here.
    maxSeconds: least(task.maxSeconds, tasks.seconds),
    maxCostMicros: least(task.maxCostMicros, tasks.costMicros),
    maxTurns: least(task.maxTurns, tasks.turns),
    maxTokens: least(task.maxTokens ?? null, tasks.tokens),
    parallel: tasks.parallel ?? usualParallel(availableParallelism()),
    flags: { ...flags },
  };
}

function branchHere({ work }: ExportManifest, place: ImportPlace): string | null {
  if (place.kind === 'new') return `refs/heads/${mainBranch(work)}`;
  const ref = `refs/heads/${work.branch ?? ''}`;
  return place.repository.refs.some(({ name }) => name === ref) ? ref : null;
}

/** Keeps "merged" only if the work is on a branch of this repository too. */
async function stateHere(
  { run, merges }: ExportManifest,
  place: ImportPlace,
  counted: Counted | null,
): Promise<RunState> {
  if (isUnderWay(run.state)) return 'stopped';
  if (counted === null) return run.state === 'ready' || run.state === 'merged' ? 'no-changes' : run.state;
  if (run.state === 'no-changes') return 'ready';
  const last = merges.at(-1);
  if (run.state !== 'merged') return run.state;
  if (last?.kind !== 'merge' || place.kind === 'new') return 'ready';
  const there = await ownerGit(place.repository.commonDir, [
    'merge-base',
    '--is-ancestor',
    last.commit,
    `refs/heads/${last.branch}`,
  ]);
  return there.exitCode === 0 ? 'merged' : 'ready';
}

function runOf(
  context: HostContext,
  { run, work }: ExportManifest,
  state: RunState,
  { branched, counted }: { branched: boolean; counted: Counted | null },
): RunFile {
  const reason = isUnderWay(run.state) ? 'It was running when it was exported.' : run.reason;
  return {
    ...firstRun(work.base, run.startedAtMs, run.number),
    state,
    ...(reason === undefined ? {} : { reason }),
    endedAtMs: run.endedAtMs ?? context.now().getTime(),
    exitCode: run.exitCode,
    label: run.label,
    // The conversation stays on the other machine; the events have its messages.
    session: null,
    ...(run.turns === undefined ? {} : { turns: run.turns, begins: branched ? work.commit : work.base }),
    ...(run.used === undefined ? {} : { used: run.used }),
    result: counted === null ? null : { ...counted, risky: null },
  };
}

export interface Given {
  readonly file: ExportFile;
  readonly place: ImportPlace;
  readonly wishes: RuleWishes;
  readonly path: string;
  readonly flags: ConfigFlags;
}
