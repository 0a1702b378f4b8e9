// transfer/export-manifest.ts: builds the manifest of an export file.
import type { CarriedService, ExportManifest } from '../protocol/export.ts';
import { isUnderWay } from '../protocol/run-state.ts';
import type { HashedMember } from '../lib/archive.ts';
import type { ConfigFlags, EffectiveConfig } from '../config/effective.ts';
import type { Repository } from '../git/repository.ts';
import { mergePaths, readMerges } from '../store/merges.ts';
import type { StoredTask } from '../store/tasks.ts';
import { rulesOf } from './carried-rules.ts';
import type { HostContext } from '../run/host-context.ts';

export type Work = Pick<ExportManifest['work'], 'root' | 'base' | 'commit' | 'notKept' | 'refused'>;

export function describeExport(
  context: HostContext,
  { task, run }: StoredTask,
  given: {
    version: string;
    work: Work;
    repository: Repository;
    config: EffectiveConfig;
    members: HashedMember[];
    /** The services whose data is in the file. */
    services: CarriedService[];
  },
): ExportManifest {
  const { goal } = task;
  if (goal === undefined) throw new Error('this task has no goal');
  const short = (ref: string): string => ref.replace(/^refs\/heads\//, '');
  return {
    format: given.services.length === 0 ? 1 : 2,
    ags: given.version,
    exportedAt: context.now().toISOString(),
    members: given.members as ExportManifest['members'],
    task: {
      name: task.name,
      createdAt: task.createdAt,
      goal: goal.text,
      agent: goal.agent,
      ...(goal.command === undefined ? {} : { command: goal.command }),
      ...(goal.model === undefined ? {} : { model: goal.model }),
      interactive: goal.interactive,
      maxSeconds: goal.maxSeconds,
      maxCostMicros: goal.maxCostMicros,
      maxTurns: goal.maxTurns,
    },
    run: {
      state: run.state,
      ...(run.reason === undefined || isUnderWay(run.state) ? {} : { reason: run.reason }),
      startedAtMs: run.startedAtMs,
      ...(run.endedAtMs === undefined ? {} : { endedAtMs: Math.round(run.endedAtMs) }),
      exitCode: run.exitCode,
      label: run.label.slice(0, 500),
      number: run.number ?? 1,
      ...(run.turns === undefined ? {} : { turns: run.turns }),
      ...(run.used === undefined ? {} : { used: run.used }),
    },
    work: {
      objectFormat: run.objectFormat,
      ...given.work,
      branch: goal.baseRef === null ? null : short(goal.baseRef),
    },
    merges: [
      ...(task.imported?.merges ?? []),
      ...readMerges(mergePaths(context.stateDir, given.repository.commonDir))
        .filter((one) => one.task === task.id)
        .map(({ kind, ref, to, at }) => ({ kind, branch: short(ref), commit: to, at })),
    ],
    rules: rulesOf(given.config, goal.flags),
    ...(given.services.length === 0 ? {} : { services: given.services }),
  };
}

/** Flags that are not exported: values may be secrets, and paths belong to this machine. */
export function leftOut({ envSet, mounts, workspace }: ConfigFlags): string[] {
  return [
    ...Object.keys(envSet ?? {}).map((name) => `--env ${name}`),
    ...(mounts ?? []).map((path) => `--mount ${path}`),
    ...(workspace === undefined ? [] : [`--workspace ${workspace}`]),
  ];
}
