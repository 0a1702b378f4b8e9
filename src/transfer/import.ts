// transfer/import.ts: a task out of a file that `ags export` wrote on another machine, under the rules of this one.
// Invariant: the file is hostile. Everything is looked at in a directory that is no task yet; the task is there in one step, complete, or
// not at all. Rights that it asks for are the user's to give.
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MEMBERS } from '../protocol/export.ts';
import { removeTree, replaceFile } from '../lib/files.ts';
import type { ConfigFlags } from '../config/effective.ts';
import { HISTORY_LIMITS } from '../git/staging/brought.ts';
import { moveRef, sendPack } from '../git/owner-git.ts';
import { createStaging, treeOf } from '../git/staging/staging.ts';
import type { TaskPaths } from '../store/layout.ts';
import { networkLogFile } from '../store/network-log.ts';
import { beginTask, finishTask, readTask, taskIds, type StoredTask } from '../store/tasks.ts';
import { captureFrom, type Counted } from '../results/agent-capture.ts';
import { agentOf, authorOf } from '../agent-run/plan-agent.ts';
import { judgeRules, type RuleWishes } from './carried-rules.ts';
import { tellDiskTrouble } from '../run/disk-errors.ts';
import { takeData } from './import-data.ts';
import { takeDecisions, takeEvents } from './import-history.ts';
import { dropJournal, takeBackImport, writeJournal } from './import-journal.ts';
import { takeHistory, takeWork } from './import-objects.ts';
import { beginRepository, fillRepository, findPlace, moveRepository, type ImportPlace } from './import-place.ts';
import { openExport, refusedFile, type ExportFile } from './import-read.ts';
import { describeImported } from './imported-task.ts';
import { branchNames, freeNames } from '../agent-run/start.ts';
import { sandboxUser, type World } from '../run/host-context.ts';

export interface Import extends Disposable {
  readonly file: ExportFile;
  readonly place: ImportPlace;
  readonly wishes: RuleWishes;
  /** `trust`: also with the rights that it asks for. */
  carryOut(options: { trust: boolean }): Promise<StoredTask>;
}

/** Looks at the file and at where it would go; nothing is made. */
export async function openImport(world: World, path: string, into: string | undefined): Promise<Import> {
  const file = await openExport(path);
  try {
    const { manifest } = file;
    const place = await findPlace(world, manifest, { into, complete: file.has(MEMBERS.base) });
    requireAgentHere(file);
    const wishes = await judgeRules(world, place.project, manifest.rules);
    return {
      file,
      place,
      wishes,
      carryOut: ({ trust }) =>
        tellDiskTrouble(world, () =>
          make(world, { file, place, wishes, path, flags: trust ? wishes.all : wishes.narrow }),
        ),
      [Symbol.dispose]: () => file[Symbol.dispose](),
    };
  } catch (error) {
    file[Symbol.dispose]();
    throw error;
  }
}

function requireAgentHere({ manifest: { task } }: ExportFile): void {
  if ((task.agent === 'command') !== (task.command !== undefined))
    throw refusedFile('it does not say which agent it had');
  agentOf(task);
}

export interface Given {
  readonly file: ExportFile;
  readonly place: ImportPlace;
  readonly wishes: RuleWishes;
  readonly path: string;
  readonly flags: ConfigFlags;
}

/** What has been made so far. */
interface Made {
  readonly making: TaskPaths;
  readonly branched: boolean;
  readonly counted: Counted | null;
  /** Of the repository: where it is now. */
  gitDir: string;
  /** A repository that is not in its place yet. */
  part: string | null;
}

async function make(world: World, given: Given): Promise<StoredTask> {
  const { place, file } = given;
  const making = beginTask(world.stateDir);
  let made: Made | null = null;
  try {
    const part = place.kind === 'new' ? `${place.project}.${process.pid}.part` : null;
    writeJournal(making, { branch: null, networkLog: null, part });
    await takeData(file, making, sandboxUser(world, given.wishes.config));
    const gitDir = await takeObjects(given, making, part);
    const counted = await describeWork(making, file);
    const { root, base, commit } = file.manifest.work;
    const hasRoot = place.kind === 'new' || place.hasRoot;
    // What the task needs must be kept by something, also where it changed nothing.
    const branched = counted !== null || base !== root || !hasRoot;
    if (branched)
      await sendPack(making.staging, `${commit}\n${hasRoot ? `^${root}\n` : ''}`, gitDir, HISTORY_LIMITS.timeoutMs);
    if (part !== null) await fillRepository(part, file.manifest);
    made = { making, gitDir, part, counted, branched };
    const id = await placeTask(world, given, made);
    return (await readTask(world.stateDir, id)) as StoredTask;
  } catch (error) {
    await takeBackImport(making.root);
    if (place.kind === 'new' && made?.part === null) removeTree(place.project);
    throw error;
  } finally {
    removeTree(making.root);
  }
}

/** Returns the git directory of the repository that is, or will be, the project's. */
async function takeObjects({ file, place }: Given, making: TaskPaths, part: string | null): Promise<string> {
  const { staging } = making;
  const gitDir = place.kind === 'new' ? beginRepository(part ?? '', file.manifest) : place.repository.commonDir;
  if (place.kind === 'new') await takeHistory(file, gitDir);
  createStaging(staging, file.manifest.work.objectFormat, { bare: true, borrows: [join(gitDir, 'objects')] });
  if (place.kind === 'repository' && !place.hasRoot) await takeHistory(file, staging);
  await takeWork(file, staging);
  return gitDir;
}

/** capture.json, as if it had been brought out here. null: it changed nothing. */
async function describeWork(making: TaskPaths, { manifest }: ExportFile): Promise<Counted | null> {
  const { root, commit, notKept, refused } = manifest.work;
  const { agentTitle: name, agentEmail: email } = authorOf(agentOf(manifest.task));
  const { capture, result } = await captureFrom(
    { paths: making },
    {
      base: root,
      commit,
      tree: await treeOf(making.staging, commit),
      refused,
      notKept,
      by: { name, email },
      earlier: null,
    },
  );
  replaceFile(join(making.root, 'capture.json'), JSON.stringify(capture), { durable: true });
  return result;
}

/** The last steps, under the first name that is free: its log, its branch, and then the task itself. */
async function placeTask(world: World, given: Given, made: Made): Promise<string> {
  const { file, place } = given;
  const { making } = made;
  const { work, task, run } = file.manifest;
  const taken = new Set([...taskIds(world.stateDir), ...(place.kind === 'new' ? [] : branchNames(place.repository))]);
  for (const id of freeNames(task.name.slice(0, 56).replace(/-+$/, ''), taken)) {
    taken.add(id);
    const ref = `refs/heads/ags/${id}`;
    const networkLog = freeLog(world, id, run.startedAtMs);
    const described = await describeImported(world, given, { id, branched: made.branched, counted: made.counted });
    const branch = made.branched ? { gitDir: made.gitDir, ref, commit: work.commit } : null;
    rmSync(making.events, { force: true });
    await takeEvents(file, { file: making.events, task: id }, described.here, described.lastEvent);
    writeJournal(making, { branch, networkLog, part: made.part });
    await takeDecisions(file, { file: networkLog, run: described.networkRun }, described.here);
    if (branch === null || (await moveRef(made.gitDir, ref, null, work.commit, 'ags: import')) === 'moved') {
      if (made.part !== null) putRepository(place.project, made);
      const paths = finishTask(world.stateDir, making, id, described);
      if (paths !== null) {
        dropJournal(paths);
        return id;
      }
      if (branch !== null) await moveRef(made.gitDir, ref, work.commit, null, 'ags: not imported');
    }
    rmSync(networkLog, { force: true });
  }
  throw new Error('there is always another name');
}

/** Logs outlive their tasks. */
function freeLog({ stateDir }: World, id: string, startedAtMs: number): string {
  for (let ms = startedAtMs; ; ms++) {
    const file = networkLogFile(stateDir, id, ms);
    if (!existsSync(file)) return file;
  }
}

function putRepository(project: string, made: Made): void {
  moveRepository(made.part ?? '', project);
  made.part = null;
  made.gitDir = join(project, '.git');
  writeFileSync(join(made.making.staging, 'objects/info/alternates'), `${join(made.gitDir, 'objects')}\n`);
}
