// test/faults/checker.ts: finds lost and duplicated work. It reads plain git and plain files and runs no code of ags.
// Invariant: it changes nothing, and checker.proof.test.ts plants and finds each kind of damage.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Machine } from '../harness.ts';
import { OWN, readIfThere } from './ground.ts';
import { logDamage } from './served.ts';

/** Observations and promises from before the fault. */
export interface Ledger {
  /** The user's first commit. */
  readonly begin: string;
  /** Events that were observed, by file. They must persist. */
  readonly seen: Map<string, string>;
  /** Messages that ags accepted for an agent, by task. */
  readonly messages: { readonly task: string; readonly text: string }[];
  /** Merges and undos that ags reported as done, in order. */
  readonly moves: { readonly kind: 'merge' | 'undo'; readonly task: string }[];
  /** Tasks with unreviewed work. */
  readonly precious: Set<string>;
  /** Tasks whose agent continued after a merge and has more to merge. Remembered after the task is removed. */
  readonly wentOn: Set<string>;
}

export interface Place {
  readonly machine: Pick<Machine, 'git' | 'has' | 'read' | 'project'>;
  readonly stateDir: string;
}

export interface Event {
  readonly seq: number;
  readonly type: string;
  readonly prev: string;
  readonly [field: string]: unknown;
}

/** Returns one sentence per problem. `applied`: paths that the work tree may have beside the user's changes, all or none. */
export function findDamage(place: Place, ledger: Ledger, applied: readonly string[] = []): string[] {
  return [
    ...[...ledger.precious]
      .filter((name) => !taskNames(place.stateDir).includes(name))
      .map((name) => `${name} is gone with its work; last event: ${lastSeen(place, ledger, name)}`),
    ...eventFiles(place.stateDir).flatMap((file) => chainDamage(file, ledger.seen)),
    ...taskNames(place.stateDir).flatMap((name) => workDamage(place, name)),
    ...list(join(place.stateDir, 'network')).flatMap((name) => logDamage(join(place.stateDir, 'network', name))),
    ...messageDamage(place, ledger),
    ...mergeDamage(place, ledger),
    ...fileDamage(place, applied),
  ];
}

/** The last known events of a task whose files are gone. */
function lastSeen({ stateDir }: Place, { seen }: Ledger, name: string): string {
  const events = parse(seen.get(join(stateDir, 'tasks', name, 'events.jsonl')) ?? '') ?? [];
  const told = events.filter(({ type }) => !/^(?:tool|agent)\./.test(type)).slice(-6);
  return told.map(({ type, state }) => (typeof state === 'string' ? `${type} ${state}` : type)).join(', ');
}

/** Records everything in the files as observed. */
export function remember(place: Place, ledger: Ledger): void {
  for (const file of eventFiles(place.stateDir)) ledger.seen.set(file, wholeLines(file));
  for (const name of taskNames(place.stateDir)) {
    const events = eventsOf(place.stateDir, name);
    const at = (type: string): number => events.findLastIndex((event) => event.type === type);
    // Merged, applied to the work tree, or on main another way.
    const isTaken =
      at('merge.done') > at('merge.undone') || at('review.taken') > at('turn.ended') || isOnMain(place, events);
    if (doneWork(events).subjects.length > 0 && !isTaken) ledger.precious.add(name);
    else ledger.precious.delete(name);
    if (hasGoneOn(events)) ledger.wentOn.add(name);
  }
}

/** For example, through a copy or a fork. */
function isOnMain({ machine }: Place, events: readonly Event[]): boolean {
  return [...doneWork(events).files].every(([path, text]) => show(machine, `refs/heads/main:${path}`) === text);
}

function hasGoneOn(events: readonly Event[]): boolean {
  const merged = events.findIndex(({ type }) => type === 'merge.done');
  return merged !== -1 && merged < events.findLastIndex(({ type }) => type === 'turn.ended');
}

export function taskNames(stateDir: string): string[] {
  return list(join(stateDir, 'tasks')).filter((name) => !name.startsWith('.'));
}

/** Events of the task's current run. */
export function eventsOf(stateDir: string, task: string): Event[] {
  return parse(wholeLines(join(stateDir, 'tasks', task, 'events.jsonl'))) ?? [];
}

/** The commit that its work is compared with: the start of its branch, or of the task that it continues. */
export function baseOf(stateDir: string, task: string): string | null {
  const file = json(join(stateDir, 'tasks', task, 'task.json')) as { goal?: { base: string; origin?: string } } | null;
  return file?.goal?.origin ?? file?.goal?.base ?? null;
}

function eventFiles(stateDir: string): string[] {
  return taskNames(stateDir).flatMap((name) => {
    const root = join(stateDir, 'tasks', name);
    const runs = list(join(root, 'earlier')).map((number) => join(root, 'earlier', number));
    return [root, ...runs].map((dir) => join(dir, 'events.jsonl')).filter((file) => existsSync(file));
  });
}

/** Drops an unfinished last line. */
function wholeLines(file: string): string {
  const text = readIfThere(file) ?? '';
  return text.slice(0, text.lastIndexOf('\n') + 1);
}

function parse(text: string): Event[] | null {
  try {
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Event);
  } catch {
    return null;
  }
}

function chainDamage(file: string, seen: Ledger['seen']): string[] {
  const text = wholeLines(file);
  const events = parse(text);
  if (events === null) return [`${file}: a line is not an event`];
  const lines = text.split('\n');
  const wrong = events.flatMap((event, i) => {
    const before =
      i === 0
        ? ''
        : createHash('sha256')
            .update(lines[i - 1] ?? '')
            .digest('hex');
    if (event.seq !== i + 1) return [`${file}: event ${i + 1} has the number ${event.seq}`];
    return event.prev === before ? [] : [`${file}: event ${event.seq} does not match the hash of the one before`];
  });
  const moved = seen.get(file) ?? '';
  // A restarted task keeps its earlier events elsewhere.
  const lost = !text.startsWith(moved) && !isKept(file, moved);
  return [...wrong.slice(0, 1), ...(lost ? [`${file}: observed events are missing`] : [])];
}

function isKept(file: string, text: string): boolean {
  const earlier = join(file, '../earlier');
  return list(earlier).some((number) => wholeLines(join(earlier, number, 'events.jsonl')).startsWith(text));
}

/** The branch has everything that the agent reported as committed or written, once. */
function workDamage({ machine, stateDir }: Place, name: string): string[] {
  const task = json(join(stateDir, 'tasks', name, 'task.json')) as { goal?: { base: string } } | null;
  if (task?.goal === undefined) return [];
  const { subjects, files } = doneWork(eventsOf(stateDir, name));
  if (subjects.length + files.size === 0) return [];
  const branch = `refs/heads/ags/${name}`;
  const tip = machine.git('for-each-ref', '--format=%(objectname)', branch).trim();
  if (tip === '') return [`${name}: the branch is missing, although the agent has worked`];
  const log = machine.git('log', '--format=%s', `${task.goal.base}..${tip}`).split('\n');
  const wrong = subjects.flatMap((subject) => {
    const times = log.filter((line) => line === subject).length;
    return times === 1 ? [] : [`${name}: the commit "${subject}" is ${times} times on its branch`];
  });
  const texts = [...files].flatMap(([path, text]) =>
    show(machine, `${tip}:${path}`) === text ? [] : [`${name}: ${path} has the wrong content on its branch`],
  );
  return [...wrong, ...texts];
}

function doneWork(events: readonly Event[]): { subjects: string[]; files: Map<string, string> } {
  const [subjects, files] = [[] as string[], new Map<string, string>()];
  const begun = new Map<unknown, { kind: string; path?: string; content?: string; command?: string }>();
  for (const event of events) {
    if (event.type === 'tool.started') begun.set(event['id'], event['action'] as never);
    const action = begun.get(event['id']);
    if (event.type !== 'tool.finished' || event['outcome'] !== 'done' || action === undefined) continue;
    if (action.kind === 'write') files.set(action.path ?? '', action.content ?? '');
    const subject = /git commit -qm '(.*)'/.exec(action.command ?? '')?.[1];
    if (subject !== undefined) subjects.push(subject);
  }
  return { subjects, files };
}

/** Each message is queued or was delivered. */
function messageDamage({ stateDir }: Place, { messages }: Ledger): string[] {
  return messages.flatMap(({ task, text }) => {
    const root = join(stateDir, 'tasks', task);
    if (!existsSync(root)) return [];
    const waiting = list(join(root, 'inbox')).map((name) => readIfThere(join(root, 'inbox', name)) ?? '');
    const given = eventFiles(stateDir)
      .filter((file) => file.startsWith(`${root}/`))
      .flatMap((file) => parse(wholeLines(file)) ?? [])
      .flatMap((event) => (event.type === 'run.started' ? [String(event['prompt'])] : []));
    return [...waiting, ...given].some((one) => one.includes(text)) ? [] : [`${task}: the message "${text}" is lost`];
  });
}

interface MergeRecord {
  readonly kind: 'merge' | 'undo';
  readonly task: string;
  readonly from: string;
  readonly to: string;
}

/** Records, branch, events and history agree, and include every reported merge. */
function mergeDamage({ machine, stateDir }: Place, { begin, moves, wentOn }: Ledger): string[] {
  const [dir] = list(join(stateDir, 'merges'));
  const root = join(stateDir, 'merges', dir ?? 'none');
  const numbers = list(root)
    .filter((name) => /^\d{6}\.json$/.test(name))
    .toSorted();
  const records = numbers.map((name) => json(join(root, name)) as MergeRecord);
  const wrong: string[] = [];
  if (existsSync(join(root, 'pending.json'))) wrong.push('a merge is unfinished');
  numbers.forEach((name, i) => {
    if (Number.parseInt(name, 10) !== i + 1) wrong.push(`the merge ${name} is number ${i + 1}`);
  });
  let at = begin;
  for (const { kind, task, from, to } of records) {
    if (from !== at) wrong.push(`the ${kind} of ${task} does not start at the end of the one before`);
    if (from === to || machine.git('diff', '--name-only', from, to) === '')
      wrong.push(`the ${kind} of ${task} has no content`);
    at = to;
  }
  const tip = machine.git('rev-parse', 'refs/heads/main').trim();
  if (tip !== at) wrong.push(`main is at ${tip}, expected ${at} after the last merge`);
  const told = moves.filter((move, i) => count(moves.slice(0, i + 1), move) > count(records, move));
  wrong.push(...told.map(({ kind, task }) => `the ${kind} of ${task} was reported as done, but is missing`));
  const merged = machine
    .git('log', '--first-parent', '--format=%(trailers:key=Ags-Task,valueonly)', 'main')
    .split('\n');
  const names = merged.filter((name) => name !== '');
  for (const name of new Set(names))
    if (names.filter((one) => one === name).length > 1 && !wentOn.has(name) && !hasGoneOn(eventsOf(stateDir, name)))
      wrong.push(`${name} is on main more than once: ${records.map(({ kind, task }) => `${kind} ${task}`).join(', ')}`);
  return [...wrong, ...taskNames(stateDir).flatMap((task) => tellDamage(stateDir, task, records))];
}

const count = (list: readonly Pick<MergeRecord, 'kind' | 'task'>[], one: Pick<MergeRecord, 'kind' | 'task'>): number =>
  list.filter(({ kind, task }) => kind === one.kind && task === one.task).length;

function tellDamage(stateDir: string, task: string, records: readonly MergeRecord[]): string[] {
  const all = eventFiles(stateDir).filter((file) => file.includes(`/tasks/${task}/`));
  const types = all.flatMap((file) => (parse(wholeLines(file)) ?? []).map(({ type }) => type));
  return (['merge', 'undo'] as const).flatMap((kind) => {
    const told = types.filter((type) => type === (kind === 'merge' ? 'merge.done' : 'merge.undone')).length;
    const done = count(records, { kind, task });
    return told === done ? [] : [`${task}: ${kind} is reported ${told} times, done ${done} times`];
  });
}

/** The user's changes are intact; applied files are there completely or not at all. */
function fileDamage({ machine }: Place, applied: readonly string[]): string[] {
  const own = Object.entries(OWN).flatMap(([path, text]) =>
    machine.has(path) && machine.read(path) === text ? [] : [`${path} of the user was changed`],
  );
  const changed = machine
    .git('status', '--porcelain', '-uall')
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [line.slice(3)]))
    .filter((path) => !(path in OWN));
  const whole = changed.length === 0 || changed.toSorted().join() === [...applied].toSorted().join();
  const staged = machine.git('diff', '--cached', '--name-only').trim();
  const broken = machine.git('fsck', '--no-dangling', '--no-progress').trim();
  return [
    ...own,
    ...(whole
      ? []
      : [`the work tree has unexpected changes: ${changed.join(' ')}; allowed: ${applied.join(' ') || 'none'}`]),
    ...(staged === '' ? [] : [`the index differs from main: ${staged}`]),
    ...(broken === '' ? [] : [`git fsck: ${broken}`]),
  ];
}

function show(machine: Place['machine'], what: string): string | null {
  try {
    return machine.git('show', what);
  } catch {
    return null;
  }
}

function json(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}

export function list(dir: string): string[] {
  return existsSync(dir) ? readdirSync(dir) : [];
}
