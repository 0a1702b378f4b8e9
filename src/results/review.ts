// results/review.ts: one review of one task: show the changes, take some, discard some, leave the rest.
// Invariant: a review holds the task's lock. It takes exactly what was shown; a file that has changed since then is left
// alone and reported. A task with nothing left to decide is removed, unless it is an agent's.
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../config/load.ts';
import { AgsError } from '../protocol/errors.ts';
import type { Change } from '../protocol/changes.ts';
import { advance, isUnderWay } from '../protocol/run-state.ts';
import { replaceFile } from '../lib/files.ts';
import type { ApplyOp, ApplyOutcome } from '../review/apply.ts';
import { applyAll, recover, undoJournal, type AppliedChange, type PlannedChange } from '../review/journal.ts';
import { ancestors } from '../review/order.ts';
import type { ReviewEvent } from '../protocol/event.ts';
import { appendEvent } from '../store/events.ts';
import { removeTask, writeRun, type StoredTask } from '../store/tasks.ts';
import { captureChanges } from './capture.ts';
import { explainDiskErrors } from '../run/disk-errors.ts';
import { compareWithHost, type Compared } from './changes.ts';
import { holdTask } from '../store/task-lock.ts';
import { type HostContext, configInput } from '../run/host-context.ts';
import { readContents, type ContentOf } from './move-files.ts';

export interface Review extends Disposable {
  readonly task: StoredTask;
  readonly compared: Compared;
  /**
   * Writes the changes into the user's tree. `edited` replaces the content of some. `whole` takes all of them or none. `partly` names
   * paths that stay undecided, because some of their lines were not taken.
   */
  take(
    changes: readonly Change[],
    edited?: ReadonlyMap<string, Buffer>,
    options?: { whole: boolean; partly?: ReadonlySet<string> },
  ): Promise<AppliedChange[]>;
  drop(changes: readonly Change[]): void;
  dropIgnored(): void;
  /** Removes the task if nothing is left to decide; returns how many changes are left. */
  finish(): { left: number };
}

export interface ReviewOptions {
  readonly withIgnored?: boolean;
  readonly risky?: readonly string[];
}

export function openReview(context: HostContext, stored: StoredTask, options: ReviewOptions = {}): Promise<Review> {
  return explainDiskErrors(context, () => open(context, stored, options));
}

async function open(context: HostContext, stored: StoredTask, options: ReviewOptions): Promise<Review> {
  if (stored.live && isUnderWay(stored.run.state)) {
    throw new AgsError('task.busy', `${stored.task.name} is still running.`, { hint: 'Review it when it has ended.' });
  }
  const lock = holdTask(stored);
  try {
    if (!existsSync(stored.task.project))
      throw new AgsError('project.unsuitable', `The project ${stored.task.project} is no longer there.`, {
        hint: `Put it back, or throw the changes away: ags rm ${stored.task.name}`,
      });
    await recoverJournals(stored);
    const capture = await captureChanges(context, stored, { withIgnored: options.withIgnored ?? false });
    const compared = await compareWithHost(context, stored, capture, options.risky ?? []);
    // `ags list` counts from this file: it must not look into a sandbox.
    replaceFile(stored.paths.changes, JSON.stringify(compared.changeSet));
    return createReview(context, stored, compared, lock);
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

function createReview(context: HostContext, stored: StoredTask, compared: Compared, lock: Disposable): Review {
  const agent = stored.task.kind === 'agent';
  // An agent's result keeps its state after some of it was taken.
  const kept = agent && ['merged', 'no-changes', 'ready'].includes(stored.run.state);
  // Work that is ready no longer carries the reason why its agent failed or was stopped.
  const { reason: _over, ...ended } = stored.run;
  let run: StoredTask['run'] = kept ? stored.run : { ...ended, state: advance(ended.state, 'ready') };
  const decided = new Set<string>();
  const note = (type: ReviewEvent['type'], paths: readonly string[]): void =>
    appendEvent(stored.paths.events, { task: stored.task.id, at: context.now() }, { type, paths });
  return {
    task: stored,
    compared,
    take: (changes, edited = new Map(), options = { whole: false }) =>
      explainDiskErrors(context, async () => {
        if (changes.length === 0) return [];
        const contentOf = await readContents(
          stored.paths.staging,
          changes.flatMap(({ after }) => (after === null ? [] : [after])),
        );
        const planned: PlannedChange[] = [];
        for (const change of changes)
          planned.push(...(await plan(compared, change, edited.get(change.path), contentOf)));
        mkdirSync(stored.paths.journal, { recursive: true, mode: 0o700 });
        const journal = join(
          stored.paths.journal,
          String(readdirSync(stored.paths.journal).length + 1).padStart(4, '0'),
        );
        const outcome = await applyAll({ project: stored.task.project, changes: planned, journal });
        const failed = new Map(
          outcome.filter((one) => one.outcome !== 'applied').map((one) => [one.path, one.outcome]),
        );
        if (options.whole && failed.size > 0) await undoJournal(journal);
        // A rename is two steps and one change.
        const inTheWay = findInTheWay(compared, failed.size === 0 ? null : new Set(changes));
        const done = changes.map((change) => {
          const outcome = failed.get(change.path) ?? failed.get(change.from ?? change.path) ?? ('applied' as const);
          return { path: change.path, outcome: namePartners(outcome, inTheWay(change)) };
        });
        const taken = options.whole && failed.size > 0 ? [] : changes.filter((_, i) => done[i]?.outcome === 'applied');
        const settled = taken.map(({ path }) => path).filter((path) => options.partly?.has(path) !== true);
        for (const path of settled) decided.add(path);
        // An edited or merged file differs from the capture, so the next review would show it again.
        run = { ...run, settled: [...run.settled, ...settled] };
        writeRun(stored.paths, run, { durable: true });
        note(
          'review.taken',
          taken.map((change) => change.path),
        );
        return done;
      }),
    drop(changes) {
      for (const change of changes) decided.add(change.path);
      run = { ...run, settled: [...run.settled, ...changes.map((change) => change.path)] };
      writeRun(stored.paths, run, { durable: true });
      note(
        'review.dropped',
        changes.map((change) => change.path),
      );
    },
    dropIgnored() {
      run = { ...run, ignoredDiscarded: true };
      writeRun(stored.paths, run, { durable: true });
    },
    finish() {
      const { changes, ignored } = compared.changeSet;
      const left = changes.filter((change) => !decided.has(change.path)).length;
      const ignoredLeft = ignored.files > 0 && !ignored.reviewed && !run.ignoredDiscarded ? 1 : 0;
      // An agent's task stays: the user can send it another message or look at it again.
      if (left + ignoredLeft === 0 && !agent) removeTask(stored.paths);
      else {
        if (left === 0 && decided.size > 0 && run.state === 'ready')
          run = { ...run, state: advance(run.state, 'merged') };
        writeRun(stored.paths, run);
      }
      return { left: left + ignoredLeft };
    },
    [Symbol.dispose]: () => lock[Symbol.dispose](),
  };
}

async function plan(
  compared: Compared,
  change: Change,
  edited: Buffer | undefined,
  contentOf: ContentOf,
): Promise<PlannedChange[]> {
  const expect = compared.host.get(change.path) ?? null;
  const remove = (path: string, requires?: string): PlannedChange => ({
    op: { kind: 'delete', path, prune: compared.removedDirs },
    expect: compared.host.get(path) ?? null,
    ...(requires === undefined ? {} : { requires }),
  });
  if (change.after === null) return [remove(change.path)];
  const { path } = change;
  const { mode, oid } = change.after;
  const bytes = edited ?? compared.merged.get(path) ?? contentOf(oid);
  const op: ApplyOp =
    mode === '120000'
      ? { kind: 'symlink', path, target: (Buffer.isBuffer(bytes) ? bytes : await bytes()).toString('utf8') }
      : { kind: 'write', path, mode, bytes };
  // The old name is removed only after the new one exists.
  return change.from === undefined ? [{ op, expect }] : [{ op, expect }, remove(change.from, path)];
}

/** Old names that block a change, because the change that removes them was not taken with it. */
function findInTheWay(compared: Compared, taking: ReadonlySet<Change> | null): (change: Change) => string[] {
  if (taking === null) return () => [];
  const others = compared.changeSet.changes.filter((change) => !taking.has(change));
  const old = new Set(
    others.flatMap((change) =>
      change.after === null ? [change.path] : change.from === undefined ? [] : [change.from],
    ),
  );
  return (change) =>
    compared.host.get(change.path)?.type === 'directory'
      ? [...old].filter((path) => path.startsWith(`${change.path}/`))
      : ancestors(change.path).filter((path) => old.has(path));
}

function namePartners(outcome: ApplyOutcome, paths: readonly string[]): ApplyOutcome {
  const [first] = paths;
  if (outcome === 'applied' || !('refused' in outcome) || first === undefined) return outcome;
  const more = paths.length === 1 ? '' : ` and ${paths.length - 1} more`;
  return { refused: `${outcome.refused} It can only be taken together with the change of ${first}${more}.` };
}

/** Closes the journals of applies that were killed midway, before a new one begins. */
async function recoverJournals(stored: StoredTask): Promise<void> {
  if (!existsSync(stored.paths.journal)) return;
  for (const name of readdirSync(stored.paths.journal)) await recover(join(stored.paths.journal, name));
}

/** The project's configuration may have changed or lost its approval since; it can only add to the list. */
export async function riskyPatterns(context: HostContext, project: string): Promise<readonly string[]> {
  try {
    const config = await loadConfig(configInput(context, project));
    return config.risky;
  } catch (error) {
    if (error instanceof AgsError && error.code === 'config.untrusted') return [];
    throw error;
  }
}
