// test/merge/resolve.test.ts: a conflict becomes a new task with both sides marked in one tree, on the current branch.
// needs: sandbox
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { USUAL } from '../harness.ts';
import { createServerMachine, type ServerMachine } from '../server/place.ts';

const FIX = `cat > /tmp/goal
grep -q 'Resolve change against main' /tmp/goal || exit 3
grep -q '^- a.txt$' /tmp/goal || exit 4
grep -c '^<<<<<<<' a.txt > seen.txt
sed -i -e '/^<<<<<<</d' -e '/^=======/d' -e '/^>>>>>>>/d' a.txt
`;

describe.each(USUAL)('as %s', (caller) => {
  let machine: ServerMachine;
  beforeAll(async () => {
    machine = await createServerMachine(caller, { 'a.txt': 'one\ntwo\nthree\n', 'b.txt': 'b\n', 'fix.sh': FIX });
    await machine.runDemo('change', "Change two\nrun: sed -i 's/two/TASK/' a.txt // write: new.txt new");
    machine.write('a.txt', 'one\nMINE\nthree\n');
    machine.git('commit', '-qam', 'mine');
  });
  afterAll(() => machine[Symbol.dispose]());

  test('an agent gets both sides, and its result merges without a conflict', async () => {
    const refused = await machine.ags(['merge', 'change', '--yes']);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain('ags resolve change');
    const before = machine.git('rev-parse', 'main', 'ags/change');
    const made = await machine.ags(['resolve', 'change', '--agent', 'sh fix.sh']);
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^resolve-change-against-main/) });
    const name = made.stdout.trim();
    await machine.until(name, ['ready']);
    // The branch and the first task stay.
    expect(machine.git('rev-parse', 'main', 'ags/change')).toBe(before);
    expect(machine.git('status', '--porcelain')).toBe('');
    expect(machine.git('show', `ags/${name}.0:a.txt`)).toContain('<<<<<<<');
    const { json } = await machine.server.call<{ files: { path: string; conflict: boolean }[] }>(
      'GET',
      `/api/tasks/${name}/changes`,
    );
    expect(json.files.map(({ path, conflict }) => [path, conflict])).toEqual([
      ['a.txt', false],
      ['new.txt', false],
      ['seen.txt', false],
    ]);
    expect(await machine.ags(['merge', name, '--yes'])).toMatchObject({ code: 0 });
    expect([machine.read('a.txt'), machine.read('new.txt'), machine.read('seen.txt')]).toEqual([
      'one\nMINE\nTASK\nthree\n',
      'new\n',
      '1\n',
    ]);
    expect(
      machine
        .git('log', '--format=%s', `${before.split('\n')[0] ?? ''}..main`)
        .trim()
        .split('\n'),
    ).toHaveLength(1);
    await machine.ags(['rm', name, '--force', '--yes']);
    expect(machine.git('branch', '--list', `ags/${name}*`)).toBe('');
  });

  test('without a conflict, or for a command, the error says what to do instead', async () => {
    await machine.runDemo('clean', 'write: other.txt x');
    const clean = await machine.ags(['resolve', 'clean']);
    expect(clean).toMatchObject({ code: 2, stderr: expect.stringContaining('clean has no conflict with main') });
    expect(machine.tasks()).not.toContain('resolve-clean-against-main');
    expect((await machine.ags(['resolve'])).stderr).toContain('ags resolve <task>');
    expect((await machine.ags(['resolve', 'change', '--into', 'nowhere'])).stderr).toContain(
      'There is no branch nowhere',
    );
  });
});
