// review/journal.ts: applies many changes so that a crash between two of them loses nothing, and all can be undone.
// Invariant: before the first file is touched, the journal on disk names every step and holds a copy of every file that
// a step replaces or deletes. Recovery judges each step by content, so it does not depend on a last write to the journal.
// The copies are not synced to disk: they survive the death of the process, and after a power failure each file of the
// project is still complete, in its old or new version.
import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { errorCode, isDiskFull } from '../lib/error-code.ts';
import { openDirectory, type Directory } from '../lib/descend.ts';
import { AgsError } from '../protocol/errors.ts';
import {
  applyChange,
  withBytes,
  writeAhead,
  TEMPORARY,
  temporaryName,
  type ApplyOp,
  type ApplyOutcome,
} from './apply.ts';
import { hostState, openRoute, type HostState, type Route } from './host.ts';
import { inspectName } from './names.ts';
import { inOrder } from './order.ts';

export interface PlannedChange {
  readonly op: ApplyOp;
  readonly expect: HostState | null;
  /** Path of another change of this list that must succeed first: the new name of a renamed file. */
  readonly requires?: string;
}

export interface AppliedChange {
  readonly path: string;
  readonly outcome: ApplyOutcome;
}

export type Recovery =
  /** No file of the project was touched. */
  | { readonly kind: 'nothing-begun' }
  | { readonly kind: 'complete'; readonly changes: readonly AppliedChange[] }
  /** The apply was interrupted. Changes that are not "applied" here were not made, and temporary files are removed. */
  | { readonly kind: 'interrupted'; readonly changes: readonly AppliedChange[] };

export interface UndoneChange {
  readonly path: string;
  readonly outcome: 'restored' | { readonly refused: string } | { readonly changed: string };
}

/** `journal` is a directory that does not exist yet; its parent does. It is kept for `undoJournal`. */
export async function applyAll(input: {
  project: string;
  changes: readonly PlannedChange[];
  journal: string;
}): Promise<AppliedChange[]> {
  const ordered = inOrder(input.changes);
  const steps = await record(input.project, ordered, input.journal);
  const early = findEarly(steps);
  const byPath = new Map(steps.map((step, index) => [step.path, { step, index }]));
  let ahead: ReadonlySet<string> = new Set();
  for (const [index, { op, expect, requires }] of ordered.entries()) {
    const step = steps[index];
    if (!step) throw new Error('a change without its step');
    if (index % AHEAD === 0)
      ahead = await writeAhead(
        input.project,
        ordered.slice(index, index + AHEAD).flatMap((change, i) => tried(change, steps[index + i])),
      );
    const needed = requires === undefined ? undefined : byPath.get(requires);
    if (requires !== undefined && (needed?.index ?? -1) < index && needed?.step.outcome !== 'applied')
      step.outcome = TOGETHER;
    const { temporary } = step;
    step.outcome ??= await applyChange({
      project: input.project,
      op,
      expect,
      temporary,
      written: ahead.has(temporary),
    });
    const from = early.get(step);
    if (from !== undefined && step.outcome !== 'applied')
      await rollBack(input.project, input.journal, steps.slice(from, index));
  }
  markDone(input.journal, { version: 1, state: 'done', project: input.project, steps });
  return report(steps);
}

const AHEAD = 64;

/** The changes that will be tried in any case and need no other change. */
function tried(
  { op, expect, requires }: PlannedChange,
  step: Step | undefined,
): { op: ApplyOp; expect: HostState | null; temporary: string }[] {
  return step === undefined || step.outcome !== null || requires !== undefined
    ? []
    : [{ op, expect, temporary: step.temporary }];
}

/** Call with the journal of an earlier apply before its project is reviewed again. Removes only temporary files and
    directories made for files that were never written, and restores the old name of a file whose new one was never written. */
export async function recover(journal: string): Promise<Recovery> {
  const file = load(journal);
  if (!file) return { kind: 'nothing-begun' };
  if (file.state !== 'applying') return { kind: 'complete', changes: report(file.steps) };
  for (const step of file.steps) {
    if (step.outcome !== null) continue;
    clean(file.project, step);
    const now = contentAt(file.project, step.path);
    if (same(now, step.after)) step.outcome = 'applied';
    else if (same(now, step.before)) step.outcome = { refused: 'The apply was interrupted before this change.' };
    else step.outcome = { changed: 'it was changed on your side' };
  }
  const early = findEarly(file.steps);
  for (const [index, step] of [...file.steps.entries()].toReversed()) {
    const from = early.get(step);
    if (from !== undefined && step.outcome !== 'applied')
      await rollBack(file.project, journal, file.steps.slice(from, index));
  }
  markDone(journal, { ...file, state: 'done' });
  return { kind: 'interrupted', changes: report(file.steps) };
}

/** Restores every file that is still as the apply left it. May be called again; restored files stay. */
export async function undoJournal(journal: string): Promise<UndoneChange[]> {
  await recover(journal);
  const file = load(journal);
  const done: UndoneChange[] = [];
  for (const step of file?.steps.toReversed() ?? []) {
    if (!file || step.outcome !== 'applied') continue;
    clean(file.project, step);
    done.push({ path: step.path, outcome: await putBack(file.project, journal, step) });
  }
  return done;
}

interface Content {
  readonly type: 'file' | 'symlink' | 'other';
  /** SHA-256 of a file's bytes; the target of a link. */
  readonly value: string;
  readonly mode: number;
}

interface Step {
  readonly path: string;
  readonly temporary: string;
  /** Directories that the step must create. */
  readonly made: readonly string[];
  readonly before: Content | null;
  /** Name of the copy of the former file, in the journal's directory. */
  readonly copy: string;
  readonly after: Content | null;
  /** As in the planned change. */
  readonly requires?: string;
  /** Null until known; during an apply, only a change that will not be tried has one. */
  outcome: ApplyOutcome | null;
}

interface JournalFile {
  readonly version: 1;
  readonly state: 'applying' | 'done';
  readonly project: string;
  readonly steps: readonly Step[];
}

async function record(project: string, changes: readonly PlannedChange[], journal: string): Promise<Step[]> {
  fs.mkdirSync(journal, { mode: 0o700 });
  try {
    using directory = openDirectory(journal);
    const steps: Step[] = [];
    for (const [index, { op, requires }] of changes.entries()) {
      const step = await planStep(project, op, directory, String(index));
      steps.push(requires === undefined ? step : { ...step, requires });
    }
    save(journal, { version: 1, state: 'applying', project, steps });
    return steps;
  } catch (cause) {
    fs.rmSync(journal, { recursive: true });
    if (!isDiskFull(cause)) throw cause;
    throw new AgsError(
      'disk.full',
      'There is no room for a copy of the files that would be replaced. Nothing was changed.',
      {
        hint: 'Free some disk space, then review again.',
        cause,
      },
    );
  }
}

async function planStep(project: string, op: ApplyOp, journal: Directory, copy: string): Promise<Step> {
  const step: Step = {
    path: op.path,
    temporary: temporaryName(),
    made: [],
    before: null,
    copy,
    after: await contentOf(op),
    outcome: null,
  };
  const refuse = inspectName(op.path).refuse;
  if (refuse !== null) return { ...step, outcome: { refused: refuse } };
  using route = openRoute(project, op.path);
  if (route.blocked !== null || route.missing.length > 0) return { ...step, made: [...route.missing] };
  try {
    const before = contentOn(route, () => route.parent.copyTo(route.name, journal, copy));
    return before?.type === 'other' ? { ...step, outcome: NO_COPY } : { ...step, before };
  } catch (error) {
    if (errorCode(error) !== 'EACCES') throw error;
    return { ...step, outcome: NO_COPY };
  }
}

/** Finds deletions that make room for the file they depend on; maps the step of that file to the index of the deletion. */
function findEarly(steps: readonly Step[]): Map<Step, number> {
  const at = new Map(steps.map((step, index) => [step.path, index]));
  const found = new Map<Step, number>();
  for (const [index, { requires }] of steps.entries()) {
    const needed = requires === undefined ? undefined : at.get(requires);
    const step = needed !== undefined && needed > index ? steps[needed] : undefined;
    if (step && !found.has(step)) found.set(step, index);
  }
  return found;
}

// Every step between the two depends on the room that the deletion made.
async function rollBack(project: string, journal: string, steps: readonly Step[]): Promise<void> {
  for (const step of steps.toReversed()) {
    if (step.outcome !== 'applied') continue;
    const back = await putBack(project, journal, step);
    step.outcome =
      back === 'restored'
        ? TOGETHER
        : { refused: `${TOGETHER.refused} The former file is kept in ${journal}, named ${step.copy}.` };
  }
}

const TOGETHER = { refused: 'It belongs to a change that could not be made.' } as const;

const NO_COPY = { refused: 'No copy can be kept of what is on your side, because it cannot be read.' } as const;

async function putBack(project: string, journal: string, step: Step): Promise<UndoneChange['outcome']> {
  const now = contentAt(project, step.path);
  if (same(now, step.before)) return 'restored';
  if (!same(now, step.after)) return { changed: 'it was changed on your side since' };
  const op = restoring(journal, step);
  if (!op) return { refused: `It is too large to be put back; the copy is in ${journal}, named ${step.copy}.` };
  const outcome = await applyChange({
    project,
    op,
    expect: hostState(project, step.path),
    temporary: step.temporary,
    ...(step.before ? { exactMode: step.before.mode } : {}),
  });
  return outcome === 'applied' ? 'restored' : outcome;
}

function restoring(journal: string, { path, before, made, copy }: Step): ApplyOp | null {
  if (!before) return { kind: 'delete', path, prune: made };
  if (before.type === 'symlink') return { kind: 'symlink', path, target: before.value };
  using directory = openDirectory(journal);
  if ((directory.lstat(copy)?.size ?? 0n) > MAX_BUFFER) return null;
  return {
    kind: 'write',
    path,
    mode: (before.mode & 0o100) === 0 ? '100644' : '100755',
    bytes: directory.readFile(copy, MAX_BUFFER),
  };
}

const MAX_BUFFER = 2 ** 31 - 1;

function clean(project: string, step: Step): void {
  using route = openRoute(project, step.path);
  if (route.missing.length === 0 && route.parent.lstat(step.temporary)) route.parent.unlink(step.temporary);
  route.prune((path) => step.made.includes(path));
}

async function contentOf(given: ApplyOp): Promise<Content | null> {
  const op = await withBytes(given);
  if (op.kind === 'delete') return null;
  if (op.kind === 'symlink') return { type: 'symlink', value: op.target, mode: 0 };
  const digest = createHash('sha256').update(op.bytes).digest('hex');
  return { type: 'file', value: digest, mode: op.mode === '100755' ? 0o755 : 0o644 };
}

function contentAt(project: string, path: string): Content | null {
  using route = openRoute(project, path);
  return route.blocked === null && route.missing.length === 0
    ? contentOn(route, () => route.parent.digest(route.name))
    : null;
}

// A directory counts as no file: other steps handle the files in it.
function contentOn({ parent, name }: Route, digest: () => string): Content | null {
  const stats = parent.lstat(name);
  if (!stats || stats.isDirectory()) return null;
  if (stats.isFile()) return { type: 'file', value: digest(), mode: Number(stats.mode) & 0o777 };
  const target = stats.isSymbolicLink() ? parent.readlink(name) : null;
  // The journal is text, so a target that is not UTF-8 could not be restored.
  return target && isUtf8(target)
    ? { type: 'symlink', value: target.toString(), mode: 0 }
    : { type: 'other', value: '', mode: 0 };
}

function same(one: Content | null, other: Content | null): boolean {
  if (!one || !other) return one === other;
  return one.type === other.type && one.value === other.value && (one.mode & 0o100) === (other.mode & 0o100);
}

function report(steps: readonly Step[]): AppliedChange[] {
  return steps.flatMap(({ path, outcome }) => (outcome === null ? [] : [{ path, outcome }]));
}

const FILE = 'journal.json';

function save(journal: string, file: JournalFile): void {
  using directory = openDirectory(journal);
  if (directory.lstat(`${FILE}.new`)) directory.unlink(`${FILE}.new`);
  directory.writeNew(`${FILE}.new`, Buffer.from(JSON.stringify(file)), 0o600);
  directory.rename(`${FILE}.new`, FILE);
  directory.fsync();
}

// If the journal cannot be closed, for example on a full disk, the next recovery judges it by content.
function markDone(journal: string, file: JournalFile): void {
  try {
    save(journal, file);
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
  }
}

function load(journal: string): JournalFile | null {
  try {
    using directory = openDirectory(journal);
    if (!directory.lstat(FILE)) return null;
    const file = JSON.parse(directory.readFile(FILE, MAX_BUFFER).toString('utf8')) as JournalFile;
    if (file.version !== 1 || !file.steps.every((step) => TEMPORARY.test(step.temporary)))
      throw new SyntaxError('not a journal');
    return file;
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return null;
    throw new AgsError('state.damaged', `The journal of an earlier apply cannot be read: ${journal}`, {
      hint: 'The copies of the files it replaced are beside it. Put back what you need, then remove the directory.',
      cause,
    });
  }
}
