// test/faults/carried.ts: exports a task to a file and imports it. Invariant: the file is complete or absent, and so is the imported task.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { giveTo, type Result } from '../harness.ts';
import type { Begun } from './acts.ts';
import { baseOf, list, taskNames } from './checker.ts';
import type { Ground } from './ground.ts';

export function exportTask(ground: Ground, task: string, name: string): Begun {
  const dir = placeFor(ground, name);
  const file = join(dir, 'work.ags');
  return {
    running: ground.start('export', task, file),
    task,
    async end({ code }) {
      const wrong = [...(await tidied(ground)), ...orphans(dir, ['work.ags'])];
      const made = list(dir).includes('work.ags');
      if (code === 0 && !made) return [...wrong, `the export of ${task} was reported as done, but the file is missing`];
      // An existing file is complete; a missing one can be written now.
      if (!made) wrong.push(...failed(await ground.ags('export', task, file)));
      return [...wrong, ...(await takeIn(ground, task, ['import', file]))];
    },
  };
}

/** `anew`: ags creates the repository for it. */
export async function importTask(ground: Ground, task: string, name: string, anew: boolean): Promise<Begun> {
  const dir = placeFor(ground, name);
  const file = join(dir, 'work.ags');
  const exported = await ground.ags('export', task, file);
  if (exported.code !== 0) throw new Error(`an export without a fault: ${exported.stderr}`);
  const place = anew ? ['--into', join(dir, 'made')] : [];
  const before = new Set(taskNames(ground.stateDir));
  return {
    running: ground.start('import', file, ...place),
    task,
    async end({ code }) {
      const wrong = [...(await tidied(ground)), ...orphans(dir, ['work.ags', 'made'])];
      const made = taskNames(ground.stateDir).filter((one) => !before.has(one));
      if (made.length !== 1 && (code === 0 || made.length > 1)) wrong.push(`the import made ${made.length} tasks`);
      for (const one of made) wrong.push(...(await lookAt(ground, task, one)));
      // The import succeeds now; into a new repository, unless that directory already exists.
      const next = anew && !list(dir).includes('made') ? place : [];
      return [...wrong, ...(await takeIn(ground, task, ['import', file, ...next]))];
    },
  };
}

function placeFor({ machine }: Ground, name: string): string {
  const dir = join(machine.root, name);
  mkdirSync(dir);
  giveTo(dir, machine.uid);
  return dir;
}

/** Runs the clean-up that removes interrupted work. */
const tidied = async (ground: Ground): Promise<string[]> => failed(await ground.ags('cleanup', '--yes'));

const orphans = (dir: string, known: readonly string[]): string[] =>
  list(dir)
    .filter((name) => !known.includes(name))
    .map((name) => `left: ${name} beside a file of an export`);

async function takeIn(ground: Ground, task: string, args: readonly string[]): Promise<string[]> {
  const before = new Set(taskNames(ground.stateDir));
  const done = await ground.ags(...args);
  if (done.code !== 0) return failed(done);
  const made = taskNames(ground.stateDir).filter((name) => !before.has(name));
  if (made.length !== 1) return [`${args.join(' ')} made ${made.length} tasks`];
  return lookAt(ground, task, made[0] ?? '');
}

/** Compares the work, reads the task's changes, then removes the task. */
async function lookAt(ground: Ground, task: string, copy: string): Promise<string[]> {
  const tip = (name: string): string =>
    ground.machine.git('-C', projectOf(ground, name), 'rev-parse', `refs/heads/ags/${name}`);
  const same = tip(task) === tip(copy);
  const base = baseOf(ground.stateDir, task) ?? '';
  const shown = await ground.ags('diff', copy, '--name-only');
  const whole = shown.stdout === ground.machine.git('diff', '--name-only', base, `ags/${task}`);
  const gone = await ground.ags('rm', '--yes', copy);
  return [
    ...(same && whole ? [] : [`${copy} differs from ${task}: ${shown.stdout}`]),
    ...failed(shown),
    ...failed(gone),
  ];
}

function projectOf({ stateDir }: Ground, task: string): string {
  const text = readFileSync(join(stateDir, 'tasks', task, 'task.json'), 'utf8');
  return (JSON.parse(text) as { project: string }).project;
}

const failed = ({ code, stderr }: Result): string[] => (code === 0 ? [] : [`${code}: ${stderr}`]);
