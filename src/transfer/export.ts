// transfer/export.ts: writes a task into one file for another machine: its commits, its history and its rules.
// Invariant: it reads only work that was brought out and checked, never the agent's own files. ags itself writes no secret, credential,
// variable or path of this machine into the file. The file appears complete or not at all.
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { dataMember, MANIFEST, MEMBERS, type CarriedService, type ExportManifest } from '../protocol/export.ts';
import { createArchive, type HashedMember } from '../lib/archive.ts';
import { errorCode, isDiskFull } from '../lib/error-code.ts';
import { removeTree } from '../lib/files.ts';
import { tryLock } from '../lib/process/lock.ts';
import type { ConfigFlags, EffectiveConfig } from '../config/effective.ts';
import { loadConfig } from '../config/load.ts';
import { realFile } from '../git/copy-real.ts';
import type { Repository } from '../git/repository.ts';
import { packOut, pathsInHistory } from '../git/staging/pack-out.ts';
import { createStaging } from '../git/staging/staging.ts';
import { isUnderWay } from '../protocol/run-state.ts';
import type { TaskPaths } from '../store/layout.ts';
import { mergePaths, readMerges } from '../store/merges.ts';
import { beginTask, type StoredTask } from '../store/tasks.ts';
import { readCapture } from '../results/capture.ts';
import { explainDiskErrors } from '../run/disk-errors.ts';
import { rulesOf } from './carried-rules.ts';
import { exportData, servicesWithData } from './export-data.ts';
import { eventsOut, networkOut, zipped } from './export-history.ts';
import { writeJournal } from './import-journal.ts';
import { hiddenAmong } from '../workspace/prepare-snapshot.ts';
import { repositoryOf } from '../merge/merge-tree.ts';
import { toPortable } from './portable-text.ts';
import { isLive, requireAgent } from '../agent-run/control.ts';
import { configInput, sandboxUser, type HostContext } from '../run/host-context.ts';

export interface ExportWish {
  /** An absolute path. */
  readonly file: string;
  /** True to leave out the history from before the task. */
  readonly thin: boolean;
  /** True to include the data of its services. */
  readonly data: boolean;
  readonly overwrite: boolean;
  /** The version of ags. */
  readonly version: string;
}

export interface Exported {
  readonly bytes: number;
  readonly members: readonly HashedMember[];
  /** True if the task is running: the file lacks its work since the last turn. */
  readonly running: boolean;
  /** The services whose data is not in the file. */
  readonly withoutData: readonly string[];
  /** The flags of the task that are not in the file. */
  readonly leftOut: readonly string[];
}

export function exportTask(context: HostContext, stored: StoredTask, wish: ExportWish): Promise<Exported> {
  return explainDiskErrors(context, async () => {
    requireAgent(stored);
    const running = isLive(stored);
    if (running && wish.data)
      throw new AgsError('task.busy', `${stored.task.name} is running: its services are still writing their data.`, {
        hint: `Stop it first: ags stop ${stored.task.name}. Or export without the data: omit --data`,
      });
    // The lock keeps other commands from changing the task meanwhile; a runner holds the lock itself.
    using lock = running ? { [Symbol.dispose]: () => undefined } : tryLock(stored.paths.lock);
    if (lock === null)
      throw new AgsError('task.busy', `Another ags command is working on ${stored.task.name}.`, {
        hint: 'Try again when it is done.',
      });
    return await carryOut(context, stored, wish, running);
  });
}

async function carryOut(
  context: HostContext,
  stored: StoredTask,
  wish: ExportWish,
  running: boolean,
): Promise<Exported> {
  const goal = requireAgent(stored);
  const work = workOf(stored, running);
  const repository = await repositoryOf(context, stored.task.project);
  const flags = goal.flags as ConfigFlags;
  const config = await loadConfig(configInput(context, stored.task.project, flags));
  const portable = toPortable(context, stored.task.project, flags.envSet ?? {});
  const making = beginTask(context.stateDir);
  try {
    const staging = borrowing(stored, repository, making.staging);
    if (!wish.thin) await requireCarriable(repository, staging, work.root, config);
    const { bytes, members } = await writeFile(wish, making, async (archive) => {
      const added = [
        ...(wish.thin ? [] : [await archive.add(MEMBERS.base, packOut(staging, `${work.root}\n`))]),
        ...(work.commit === work.root
          ? []
          : [await archive.add(MEMBERS.work, packOut(staging, `${work.commit}\n^${work.root}\n`))]),
        await archive.add(MEMBERS.events, eventsOut(stored.paths.events, portable)),
        await archive.add(MEMBERS.network, networkOut(context.stateDir, stored.task.id, portable)),
      ];
      const given = { user: sandboxUser(context, config), outDir: join(making.root, 'out') };
      const services = !wish.data
        ? []
        : await exportData(context, stored, given, async (name, content) => {
            added.push(await archive.add(dataMember(name), zipped(content)));
          });
      const manifest = describeExport(context, stored, {
        version: wish.version,
        work,
        repository,
        config,
        members: added,
        services,
      });
      await archive.add(MANIFEST, [Buffer.from(JSON.stringify(portable(manifest), null, 1))]);
      return added;
    });
    const withoutData = wish.data ? [] : servicesWithData(stored);
    return { bytes, members, running, withoutData, leftOut: leftOut(flags) };
  } finally {
    removeTree(making.root);
  }
}

/** The work that was brought out last; for a running task, after its last turn. */
function workOf(stored: StoredTask, running: boolean): Work {
  const goal = requireAgent(stored);
  const root = goal.origin ?? goal.base;
  const capture = readCapture(stored);
  if (capture?.agent !== undefined)
    return {
      root,
      base: goal.base,
      commit: capture.agent.commit,
      notKept: capture.agent.notKept,
      refused: capture.refused.slice(0, 1000).map(({ path, reason }) => ({ path, reason: reason.slice(0, 500) })),
    };
  if (running)
    throw new AgsError('task.busy', `${stored.task.name} is in its first turn: nothing has been brought out yet.`, {
      hint: `Wait until it ends, or stop it first: ags stop ${stored.task.name}`,
    });
  return { root, base: goal.base, commit: goal.base, notKept: null, refused: [] };
}

/** Creates a repository of ours that borrows the objects of the task and of the user, without their settings. */
function borrowing({ paths, run }: StoredTask, repository: Repository, directory: string): string {
  const stores = [join(paths.staging, 'objects'), join(repository.commonDir, 'objects')].filter(existsSync);
  createStaging(directory, run.objectFormat, { bare: true, borrows: stores });
  return directory;
}

/** Throws unless the history is complete and has no file that the user hides from agents. */
async function requireCarriable(
  { commonDir }: Repository,
  staging: string,
  commit: string,
  config: EffectiveConfig,
): Promise<void> {
  if (realFile(commonDir, 'shallow') !== null)
    throw new AgsError('project.unsuitable', 'This repository is a shallow clone: its history is not all here.', {
      hint: 'Fetch the rest (git fetch --unshallow), or export without it, for a machine that has it: --thin',
    });
  const paths = await pathsInHistory(staging, commit);
  const hidden = hiddenAmong(
    paths.map((path) => ({ path, mode: '', oid: '' })),
    config,
  );
  if (hidden.length > 0)
    throw new AgsError(
      'project.unsuitable',
      `The history of this repository has files that you hide from agents: ${hidden.slice(0, 3).join(', ')}${hidden.length > 3 ? ', ...' : ''}`,
      { hint: 'Export without the history, for a machine that has the repository: --thin' },
    );
}

async function writeFile(
  { file, overwrite }: ExportWish,
  making: TaskPaths,
  fill: (archive: ReturnType<typeof createArchive>) => Promise<HashedMember[]>,
): Promise<{ bytes: number; members: HashedMember[] }> {
  if (!overwrite && existsSync(file))
    throw new AgsError('usage.invalid', `${file} exists already.`, { hint: 'Choose another name, or: --force' });
  const part = `${file}.${process.pid}.part`;
  // If ags is killed from here on, the next cleanup finds this journal and removes the partial file.
  writeJournal(making, { branch: null, networkLog: null, part });
  try {
    const fd = openSync(part, 'wx', 0o600);
    try {
      const archive = createArchive(fd);
      const members = await fill(archive);
      archive.end();
      fsyncSync(fd);
      renameSync(part, file);
      return { bytes: statSync(file).size, members };
    } catch (error) {
      rmSync(part, { force: true });
      throw error;
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    throw explain(error, file) ?? error;
  }
}

function explain(error: unknown, file: string): AgsError | null {
  if (error instanceof RangeError)
    return new AgsError('limit.reached', `The task is too large for one file: ${error.message}.`, {
      hint: 'Export without the history (--thin), or without the data of its services (omit --data).',
    });
  const code = errorCode(error) ?? '';
  if (isDiskFull(error))
    return new AgsError('disk.full', `There is no room left on the disk of ${dirname(file)}.`, {
      hint: 'Free some space, or write the file elsewhere. No partial file was left.',
    });
  if (!['ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES', 'EPERM', 'EROFS', 'ENAMETOOLONG'].includes(code)) return null;
  return new AgsError('path.not-found', `${file} cannot be written.`, { hint: 'Name a path that you can write to.' });
}

type Work = Pick<ExportManifest['work'], 'root' | 'base' | 'commit' | 'notKept' | 'refused'>;

function describeExport(
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
      ...(goal.maxTokens === null ? {} : { maxTokens: goal.maxTokens }),
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
      ...(run.used === undefined ? {} : { used: figuresOf(run.used) }),
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
function leftOut({ envSet, mounts, workspace }: ConfigFlags): string[] {
  return [
    ...Object.keys(envSet ?? {}).map((name) => `--env ${name}`),
    ...(mounts ?? []).map((path) => `--mount ${path}`),
    ...(workspace === undefined ? [] : [`--workspace ${workspace}`]),
  ];
}

/** Who counted is of no use elsewhere. */
function figuresOf({ inputTokens, outputTokens, costMicros }: NonNullable<StoredTask['run']['used']>): {
  inputTokens: number;
  outputTokens: number;
  costMicros: number | null;
} {
  return { inputTokens, outputTokens, costMicros };
}
