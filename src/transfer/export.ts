// transfer/export.ts: a task as one file, for another machine: its commits, what it did and said, and the rules that it had.
// Invariant: nothing of the agent's own files is read here, only what was brought out of them and checked; no secret, credential, variable or
// path of this machine is in what ags itself writes into the file. The file is there whole, or not at all.
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { dataMember, MANIFEST, MEMBERS } from '../protocol/export.ts';
import { createArchive, type HashedMember } from '../lib/archive.ts';
import { errorCode, isDiskFull } from '../lib/error-code.ts';
import { removeTree } from '../lib/files.ts';
import { tryLock } from '../lib/process/lock.ts';
import type { ConfigFlags, EffectiveConfig } from '../config/effective.ts';
import { loadConfig } from '../config/load.ts';
import { realFile } from '../git/copy-real.ts';
import type { Repository } from '../git/inspect.ts';
import { packOut, pathsInHistory } from '../git/staging/pack-out.ts';
import { createStaging } from '../git/staging/staging.ts';
import type { TaskPaths } from '../store/layout.ts';
import { beginTask, type StoredTask } from '../store/tasks.ts';
import { readCapture } from '../results/capture.ts';
import { tellDiskTrouble } from '../run/disk-errors.ts';
import { exportData, servicesWithData } from './export-data.ts';
import { eventsOut, networkOut, zipped } from './export-history.ts';
import { writeJournal } from './import-journal.ts';
import { describeExport, leftOut, type Work } from './export-manifest.ts';
import { hiddenAmong } from '../workspace/prepare-snapshot.ts';
import { repositoryOf } from '../merge/merge-tree.ts';
import { toPortable } from './portable-text.ts';
import { isLive, requireAgent } from '../agent-run/control.ts';
import { configInput, sandboxUser, type World } from '../run/host-context.ts';

export interface ExportWish {
  /** Absolute. */
  readonly file: string;
  /** Without what the repository had before the task. */
  readonly thin: boolean;
  /** With the data of its services. */
  readonly data: boolean;
  readonly overwrite: boolean;
  /** Of ags. */
  readonly version: string;
}

export interface Exported {
  readonly bytes: number;
  readonly members: readonly HashedMember[];
  /** It runs: what it did since its last turn is not in the file. */
  readonly running: boolean;
  /** Whose data is not in the file. */
  readonly withoutData: readonly string[];
  /** Of its flags, those that stay here. */
  readonly leftOut: readonly string[];
}

export function exportTask(world: World, stored: StoredTask, wish: ExportWish): Promise<Exported> {
  return tellDiskTrouble(world, async () => {
    requireAgent(stored);
    const running = isLive(stored);
    if (running && wish.data)
      throw new AgsError('task.busy', `${stored.task.name} is running: its services write on what would be read.`, {
        hint: `Stop it first: ags stop ${stored.task.name}. Or leave the data out: no --data`,
      });
    // Nobody sends, restarts or removes it meanwhile; a runner holds the lock itself.
    using lock = running ? { [Symbol.dispose]: () => undefined } : tryLock(stored.paths.lock);
    if (lock === null)
      throw new AgsError('task.busy', `Another ags command is working on ${stored.task.name}.`, {
        hint: 'Try again when it is done.',
      });
    return await carryOut(world, stored, wish, running);
  });
}

async function carryOut(world: World, stored: StoredTask, wish: ExportWish, running: boolean): Promise<Exported> {
  const goal = requireAgent(stored);
  const work = workOf(stored, running);
  const repository = await repositoryOf(world, stored.task.project);
  const flags = goal.flags as ConfigFlags;
  const config = await loadConfig(configInput(world, stored.task.project, flags));
  const portable = toPortable(world, stored.task.project, flags.envSet ?? {});
  const making = beginTask(world.stateDir);
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
        await archive.add(MEMBERS.network, networkOut(world.stateDir, stored.task.id, portable)),
      ];
      const given = { user: sandboxUser(world, config), outDir: join(making.root, 'out') };
      const services = !wish.data
        ? []
        : await exportData(world, stored, given, async (name, content) => {
            added.push(await archive.add(dataMember(name), zipped(content)));
          });
      const manifest = describeExport(world, stored, {
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

/** As it was brought out last: after its last turn, for one that runs. */
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
      hint: `Wait for its end, or stop it first: ags stop ${stored.task.name}`,
    });
  return { root, base: goal.base, commit: goal.base, notKept: null, refused: [] };
}

/** A repository of ours that finds the objects of the task and of the user, and has none of their settings. */
function borrowing({ paths, run }: StoredTask, repository: Repository, directory: string): string {
  const stores = [join(paths.staging, 'objects'), join(repository.commonDir, 'objects')].filter(existsSync);
  createStaging(directory, run.objectFormat, { bare: true, borrows: stores });
  return directory;
}

/** The history goes into the file only if it is all there, and has nothing in it that the user hides from agents. */
async function requireCarriable(
  { commonDir }: Repository,
  staging: string,
  commit: string,
  config: EffectiveConfig,
): Promise<void> {
  if (realFile(commonDir, 'shallow') !== null)
    throw new AgsError('project.unsuitable', 'This repository is a shallow clone: its history is not all here.', {
      hint: 'Fetch the rest (git fetch --unshallow), or leave it out, for a machine that has it: --thin',
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
      { hint: 'Leave the history out, for a machine that has the repository: --thin' },
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
  // Killed from here on, it is removed by whoever finds what we were about to do.
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
      hint: 'Leave the history of the repository out: --thin. Or the data of its services: no --data',
    });
  const code = errorCode(error) ?? '';
  if (isDiskFull(error))
    return new AgsError('disk.full', `There is no room left on the disk of ${dirname(file)}.`, {
      hint: 'Free some space, or write the file elsewhere. Nothing was left there.',
    });
  if (!['ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES', 'EPERM', 'EROFS', 'ENAMETOOLONG'].includes(code)) return null;
  return new AgsError('path.not-found', `${file} cannot be written.`, { hint: 'Name a place that you may write.' });
}
