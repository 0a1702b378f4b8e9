// transfer/import.ts: imports a task from a file that `ags export` wrote on another machine, under the rules of this one.
// Invariant: the file is hostile. Everything is checked in a directory that is no task yet; the task appears in one step, complete, or
// not at all. Only the user grants the rights that the file requests.
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readCarriedEvent, type CarriedEvent } from '../protocol/carried-event.ts';
import { AgsError } from '../protocol/errors.ts';
import { MEMBERS, CarriedDecision, EXPORT_LIMITS } from '../protocol/export.ts';
import { removeTree, replaceFile } from '../lib/files.ts';
import { HISTORY_LIMITS, BROUGHT_LIMITS, isAncestor, judgeHistory, requireWhole } from '../git/staging/brought.ts';
import { moveRef, sendPack } from '../git/owner-git.ts';
import { createStaging, treeOf, receivePack } from '../git/staging/staging.ts';
import type { Decision } from '../protocol/network.ts';
import { captureFrom, type Counted } from '../results/agent-tree.ts';
import { inspectName } from '../review/names.ts';
import { openEvents } from '../store/events.ts';
import type { TaskPaths } from '../store/layout.ts';
import { networkLogFile, openNetworkLog, type NetworkRun } from '../store/network-log.ts';
import { beginTask, finishTask, readTask, taskIds, type StoredTask } from '../store/tasks.ts';
import { agentOf, authorOf } from '../agent-run/plan-agent.ts';
import { judgeRules, type RuleWishes } from './carried-rules.ts';
import { explainDiskErrors } from '../run/disk-errors.ts';
import { takeData } from './import-data.ts';
import { dropJournal, takeBackImport, writeJournal } from './import-journal.ts';
import { beginRepository, fillRepository, findPlace, moveRepository, type ImportPlace } from './import-place.ts';
import { openExport, refusedFile, type ExportFile } from './import-read.ts';
import { describeImported, type Given } from './imported-task.ts';
import { branchNames, freeNames } from '../agent-run/start.ts';
import { sandboxUser, type HostContext } from '../run/host-context.ts';
import type { Rewrite } from './portable-text.ts';

export interface Import extends Disposable {
  readonly file: ExportFile;
  readonly place: ImportPlace;
  readonly wishes: RuleWishes;
  /** `trust`: grants the rights that the file requests. */
  carryOut(options: { trust: boolean }): Promise<StoredTask>;
}

/** Checks the file and its destination; changes nothing. */
export async function openImport(context: HostContext, path: string, into: string | undefined): Promise<Import> {
  const file = await openExport(path);
  try {
    const { manifest } = file;
    const place = await findPlace(context, manifest, { into, complete: file.has(MEMBERS.base) });
    requireAgentHere(file);
    const wishes = await judgeRules(context, place.project, manifest.rules);
    return {
      file,
      place,
      wishes,
      carryOut: ({ trust }) =>
        explainDiskErrors(context, () =>
          make(context, { file, place, wishes, path, flags: trust ? wishes.all : wishes.narrow }),
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

/** The parts that the import has made so far. */
interface Made {
  readonly making: TaskPaths;
  readonly branched: boolean;
  readonly counted: Counted | null;
  /** The current git directory of the repository. */
  gitDir: string;
  /** A new repository that is not in its final place yet. */
  part: string | null;
}

async function make(context: HostContext, given: Given): Promise<StoredTask> {
  const { place, file } = given;
  const making = beginTask(context.stateDir);
  let made: Made | null = null;
  try {
    const part = place.kind === 'new' ? `${place.project}.${process.pid}.part` : null;
    writeJournal(making, { branch: null, networkLog: null, part });
    await takeData(file, making, sandboxUser(context, given.wishes.config));
    const gitDir = await takeObjects(given, making, part);
    const counted = await describeWork(making, file);
    const { root, base, commit } = file.manifest.work;
    const hasRoot = place.kind === 'new' || place.hasRoot;
    // A branch must keep the commits that the task needs, even if the task changed nothing.
    const branched = counted !== null || base !== root || !hasRoot;
    if (branched)
      await sendPack(making.staging, `${commit}\n${hasRoot ? `^${root}\n` : ''}`, gitDir, HISTORY_LIMITS.timeoutMs);
    if (part !== null) await fillRepository(part, file.manifest);
    made = { making, gitDir, part, counted, branched };
    const id = await placeTask(context, given, made);
    return (await readTask(context.stateDir, id)) as StoredTask;
  } catch (error) {
    await takeBackImport(making.root);
    if (place.kind === 'new' && made?.part === null) removeTree(place.project);
    throw error;
  } finally {
    removeTree(making.root);
  }
}

/** Returns the git directory of the project's repository, which may still be a new one. */
async function takeObjects({ file, place }: Given, making: TaskPaths, part: string | null): Promise<string> {
  const { staging } = making;
  const gitDir = place.kind === 'new' ? beginRepository(part ?? '', file.manifest) : place.repository.commonDir;
  if (place.kind === 'new') await takeHistory(file, gitDir);
  createStaging(staging, file.manifest.work.objectFormat, { bare: true, borrows: [join(gitDir, 'objects')] });
  if (place.kind === 'repository' && !place.hasRoot) await takeHistory(file, staging);
  await takeWork(file, staging);
  return gitDir;
}

/** Writes capture.json, as if the work had been brought out here. Returns null if the task changed nothing. */
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

/** Places the log, the branch and then the task itself, under the first free name. */
async function placeTask(context: HostContext, given: Given, made: Made): Promise<string> {
  const { file, place } = given;
  const { making } = made;
  const { work, task, run } = file.manifest;
  const taken = new Set([...taskIds(context.stateDir), ...(place.kind === 'new' ? [] : branchNames(place.repository))]);
  for (const id of freeNames(task.name.slice(0, 56).replace(/-+$/, ''), taken)) {
    taken.add(id);
    const ref = `refs/heads/ags/${id}`;
    const networkLog = freeLog(context, id, run.startedAtMs);
    const described = await describeImported(context, given, { id, branched: made.branched, counted: made.counted });
    const branch = made.branched ? { gitDir: made.gitDir, ref, commit: work.commit } : null;
    rmSync(making.events, { force: true });
    await takeEvents(file, { file: making.events, task: id }, described.here, described.lastEvent);
    writeJournal(making, { branch, networkLog, part: made.part });
    await takeDecisions(file, { file: networkLog, run: described.networkRun }, described.here);
    if (branch === null || (await moveRef(made.gitDir, ref, null, work.commit, 'ags: import')) === 'moved') {
      if (made.part !== null) putRepository(place.project, made);
      const paths = finishTask(context.stateDir, making, id, described);
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

/** A log may exist already, because logs outlive their tasks. */
function freeLog({ stateDir }: HostContext, id: string, startedAtMs: number): string {
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

// The commits of an imported task take the same steps as an agent's work: a checked pack into staging, then checks of limits, names and
// texts, and only then into the user's repository.

/** Stores the history from before the task, in a repository of ours or in a new one. */
export function takeHistory(file: ExportFile, gitDir: string): Promise<void> {
  const limits = HISTORY_LIMITS;
  return asImport(gitDir, async () => {
    await file.take(MEMBERS.base, (pack) =>
      receivePack(gitDir, pack, limits.packBytes, limits.timeoutMs, limits.objects),
    );
    await requireWhole(gitDir, file.manifest.work.root, null, limits);
  });
}

/** Stores the work of the task; refuses it unless a task could have brought out all of it. */
export function takeWork(file: ExportFile, staging: string): Promise<void> {
  const { root, base, commit } = file.manifest.work;
  const limits = BROUGHT_LIMITS;
  return asImport(staging, async () => {
    if (file.has(MEMBERS.work)) {
      await file.take(MEMBERS.work, (pack) =>
        receivePack(staging, pack, limits.packBytes, limits.timeoutMs, limits.objects),
      );
      await requireWhole(staging, commit, root);
      const history = await judgeHistory(staging, commit, root, isWrong);
      if (!history.keep) throw refusedFile(`its commits are not those of a task: ${history.why}`);
    }
    if (!(await isAncestor(staging, root, base)) || !(await isAncestor(staging, base, commit)))
      throw refusedFile('its commits do not build on each other');
  });
}

function isWrong(path: string, mode: string): boolean {
  return inspectName(path).refuse !== null || !/^(100644|100755|120000)$/.test(mode);
}

async function asImport(gitDir: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof AgsError) || error.code !== 'capture.refused') throw error;
    if (/No space left|quota/i.test(error.message))
      throw new AgsError('disk.full', `There is no room left on the disk of ${gitDir}.`, {
        hint: 'Free some space, for example with: ags cleanup. Nothing was imported.',
      });
    throw refusedFile(error.message.replace(/^What came out of the sandbox was refused: /, '').replace(/\.$/, ''));
  }
}

// Invariant: it keeps only events that ags itself writes, with their known fields; it counts and drops all else.

/** Appends `last` after the imported events. */
export async function takeEvents(
  file: ExportFile,
  to: { file: string; task: string },
  here: Rewrite,
  last: (dropped: number) => CarriedEvent,
): Promise<void> {
  let now = new Date(0);
  let dropped = 0;
  using log = openEvents(to.file, to.task, () => now);
  const put = ({ at, ...event }: CarriedEvent): void => {
    now = new Date(at);
    log.append(event);
  };
  await file.lines(MEMBERS.events, EXPORT_LIMITS.eventBytes, (line) => {
    const event = readCarriedEvent(parse(line));
    if (event !== null) return put(here(event));
    dropped += 1;
    requireFew(dropped);
  });
  put(last(dropped));
  log.sync();
}

/** Creates no log if there are no decisions. */
export async function takeDecisions(
  file: ExportFile,
  to: { file: string; run: NetworkRun },
  here: Rewrite,
): Promise<void> {
  const log = openNetworkLog(to.file, to.run);
  let dropped = 0;
  try {
    await file.lines(MEMBERS.network, EXPORT_LIMITS.networkBytes, (line) => {
      const decision = CarriedDecision.safeParse(parse(line));
      if (decision.success) return log.append({ ...here(decision.data), run: to.run.task } as Decision);
      dropped += 1;
      requireFew(dropped);
    });
  } finally {
    log.close();
  }
  const trouble = log.trouble();
  if (trouble !== null)
    throw new AgsError('disk.full', `The log of the network could not be written (${trouble}).`, {
      hint: 'Free some space, then try again. Nothing was imported.',
    });
}

/** A newer ags may have written some events that this one does not know, but not millions of empty lines. */
function requireFew(dropped: number): void {
  if (dropped > 10_000) throw refusedFile('its history has too many lines that cannot be read');
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
