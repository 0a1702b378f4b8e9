// test/workspace/cleanup.test.ts: `ags cleanup` removes unneeded layers, and no others.
// needs: sandbox
import { mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMachine, giveTo, type Machine, USUAL } from '../harness.ts';
import { layersDirOf, runTask } from './task.ts';

const DAY_S = 86_400;

describe.each(USUAL)('as %s', (caller) => {
  test('layers unused for 14 days that no task needs are removed, with all leftovers of their creation', async () => {
    using machine = createMachine(caller, {
      files: {
        'ags.yaml': 'setup:\n  run: [echo made > made]\n  inputs: [lock.txt]\n',
        'lock.txt': '1\n',
        'a.txt': '1\n',
      },
    });
    const one = await runTask(machine, { task: 'one', commands: ['echo work > work'] });
    machine.write('lock.txt', '2\n');
    machine.git('commit', '-qam', 'second');
    const two = await runTask(machine, { task: 'two', commands: ['echo work > work'] });
    machine.write('a.txt', '2\n');
    machine.git('commit', '-qam', 'third');
    await runTask(machine, { task: 'three' });
    forget(machine, 'three');
    const dir = join(layersDirOf(machine), readdirSync(layersDirOf(machine))[0] ?? '');
    const all = layers(dir);
    expect(all).toHaveLength(5);
    mkdirSync(join(dir, '.new-999999999-abc/files'), { recursive: true });
    writeFileSync(join(dir, 'lock-setup-x'), JSON.stringify({ pid: 999_999_999, startTicks: 'x' }));
    giveTo(dir, machine.uid);

    expect((await machine.ags(['cleanup'])).code).toBe(0);
    expect({ left: layers(dir), others: others(dir) }).toEqual({ left: all, others: [] });

    age(dir, all, 15);
    // A task uses the second layer, which is based on the first; the third layer is unused.
    const dry = await machine.ags(['cleanup', '--dry-run']);
    expect(dry.stdout).toContain('snapshot that no task uses');
    expect(layers(dir)).toEqual(all);
    expect((await machine.ags(['cleanup'])).code).toBe(0);
    const named = [...(one.ready?.layers ?? []), ...(two.ready?.layers ?? [])].map(
      (path) => path.split('/').at(-2) ?? '',
    );
    expect(layers(dir)).toEqual([...new Set(named)].toSorted());

    forget(machine, 'one');
    forget(machine, 'two');
    expect((await machine.ags(['cleanup'])).code).toBe(0);
    expect(layers(dir)).toEqual([]);
    const again = await runTask(machine, { task: 'again', commands: ['cat a.txt made; git status --short'] });
    expect(again).toMatchObject({ error: null, ran: [{ code: 0, stdout: '2\nmade\n', stderr: '' }] });
  });

  test('--all removes newer layers, too, except those used within the hour', async () => {
    using machine = createMachine(caller);
    await runTask(machine, { task: 'one' });
    forget(machine, 'one');
    const dir = join(layersDirOf(machine), readdirSync(layersDirOf(machine))[0] ?? '');
    expect((await machine.ags(['cleanup', '--all', '--yes'])).code).toBe(0);
    expect(layers(dir)).toHaveLength(1);
    age(dir, layers(dir), 0.1);
    expect((await machine.ags(['cleanup', '--all', '--yes'])).code).toBe(0);
    expect(layers(dir)).toHaveLength(0);
  });

  test('creating a snapshot removes old ones', async () => {
    using machine = createMachine(caller);
    await runTask(machine, { task: 'one' });
    forget(machine, 'one');
    const dir = join(layersDirOf(machine), readdirSync(layersDirOf(machine))[0] ?? '');
    const [old = ''] = layers(dir);
    age(dir, [old], 15);
    machine.write('src/a.txt', 'other\n');
    machine.git('commit', '-qam', 'second');
    const two = await runTask(machine, { task: 'two', commands: ['cat src/a.txt'] });
    expect(two.ran).toEqual([{ code: 0, stdout: 'other\n', stderr: '' }]);
    expect(layers(dir)).not.toContain(old);
  });
});

function layers(dir: string): string[] {
  return readdirSync(dir)
    .filter((name) => /^(base|setup)-/.test(name))
    .toSorted();
}

function others(dir: string): string[] {
  return readdirSync(dir).filter((name) => !/^(base|setup)-|^git$/.test(name));
}

function age(dir: string, names: readonly string[], days: number): void {
  const then = Date.now() / 1000 - days * DAY_S;
  for (const name of names) utimesSync(join(dir, name, 'used'), then, then);
}

function forget(machine: Machine, task: string): void {
  expect(readFileSync(join(machine.stateDir, 'tasks', task, 'run.json'), 'utf8')).toContain('"layers":');
  rmSync(join(machine.stateDir, 'tasks', task), { recursive: true });
}
