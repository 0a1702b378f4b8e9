// test/e2e/disks.full.test.ts: read-only and full disks: a clear message, nothing lost, nothing half-written.
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine, giveTo, IS_ROOT, type Machine } from '../harness.ts';
import { openDisk } from './disk.ts';

const saying = (text: string): string => expect.stringContaining(text) as string;
const readOnly = (at: string): string => `mount --bind ${at} ${at}; mount -o remount,bind,ro ${at}`;
const fill = (at: string): string => `dd if=/dev/zero of=${at}/filler bs=4k 2> /dev/null || true`;

function small(machine: Machine, at: string, size: string): string {
  return `cp -a ${at} ${machine.root}/kept; mount -t tmpfs -o size=${size},mode=755,uid=${machine.uid},gid=${machine.uid} tmpfs ${at}; cp -a ${machine.root}/kept/. ${at}`;
}

function prepare(caller: Machine['caller']): Machine {
  const machine = createMachine(caller);
  mkdirSync(machine.stateDir, { recursive: true });
  mkdirSync(join(machine.home, '.cache'));
  giveTo(machine.home, machine.uid);
  return machine;
}

const CHANGES = 'echo new > new.txt; echo x > src/a.txt; rm README.md';

// Only root can mount.
describe.runIf(IS_ROOT).each(CALLERS)('as %s', (caller) => {
  test('a sandbox works over a read-only project; changes that cannot be accepted are kept', async () => {
    using machine = prepare(caller);
    {
      using disk = await openDisk(machine, readOnly(machine.project));
      expect(await disk.ags('exec', '--', 'sh', '-c', `${CHANGES}; git status --short`)).toMatchObject({
        code: 0,
        stdout: ' D README.md\n M src/a.txt\n?? new.txt\n',
      });
      const review = await disk.ags('review', '--accept-all');
      expect(review).toMatchObject({ code: 7, stderr: saying('not taken: new.txt: The file system is read-only.\n') });
      expect(review.stderr).toContain('0 taken, 0 thrown away, 3 left.');
    }
    expect(machine.git('status', '--short')).toBe('');
    expect(await machine.ags(['review', '--accept-all'])).toMatchObject({
      code: 0,
      stderr: saying('3 taken, 0 thrown away, 0 left.\n'),
    });
  });

  test('a read-only state directory is reported with a fix', async () => {
    using machine = prepare(caller);
    await machine.ags(['exec', '--', 'true']);
    using disk = await openDisk(machine, readOnly(machine.home));
    const run = await disk.ags('exec', '--', 'true');
    expect(run).toEqual({
      code: 9,
      signal: null,
      stdout: '',
      stderr: `ags: ags cannot write to ${machine.stateDir}: the file system is read-only.\n     Choose another directory: set XDG_STATE_HOME\n`,
    });
    // With the state elsewhere, read-only caches do not matter.
    expect(disk.sh(`mount -t tmpfs -o mode=1777 tmpfs /mnt; ls -A /mnt`)).toBe('');
    const elsewhere = await disk.with({ XDG_STATE_HOME: '/mnt/state' }, 'exec', '--', 'echo', 'works');
    expect(elsewhere).toEqual({ code: 0, signal: null, stdout: 'works\n', stderr: '' });
  });

  test('a disk that is full before the start is reported, and nothing is left behind', async () => {
    using machine = prepare(caller);
    using disk = await openDisk(machine, `${small(machine, machine.stateDir, '2m')}`);
    expect(await disk.ags('exec', '--', 'true')).toMatchObject({ code: 0 });
    const before = disk.sh(`find ${machine.stateDir}`);
    disk.sh(fill(machine.stateDir));
    const run = await disk.ags('exec', '--', 'true');
    expect(run).toMatchObject({ code: 9, stdout: '', stderr: saying('ags cleanup\n') });
    expect(run.stderr).toMatch(/^ags: .*(is full|no room left).*\n {5}Free some space/);
    disk.sh(`rm ${machine.stateDir}/filler`);
    expect(disk.sh(`find ${machine.stateDir}`)).toBe(before);
    expect(await disk.ags('exec', '--', 'true')).toMatchObject({ code: 0 });
  });

  test('a disk that fills during the run fails the command, whose exit code and changes are kept', async () => {
    using machine = prepare(caller);
    using disk = await openDisk(machine, small(machine, machine.stateDir, '8m'));
    const run = await disk.ags('exec', '--', 'sh', '-c', `${CHANGES}; cat /dev/zero > big.bin; exit 5`);
    expect(run).toMatchObject({ code: 5, stdout: '', stderr: saying('No space left on device') });
    const task = disk.sh(`ls ${machine.stateDir}/tasks`).trim();
    expect(run.stderr).toContain(`ags: Nothing was taken; the changes are kept. Try again: ags review ${task}\n`);
    expect(await disk.ags('review', '--accept-all')).toMatchObject({
      code: 9,
      stderr: saying('no room left on the disk'),
    });
    disk.sh(`mount -o remount,size=64m ${machine.stateDir}`);
    expect(await disk.ags('review', '--accept-all')).toMatchObject({
      code: 0,
      stderr: saying('3 taken, 0 thrown away, 1 left.'),
    });
    expect(machine.git('status', '--short')).toBe(' D README.md\n M src/a.txt\n?? new.txt\n');
  });

  test('with a full state disk a review takes nothing, and works once there is room', async () => {
    using machine = prepare(caller);
    using disk = await openDisk(machine, small(machine, machine.stateDir, '8m'));
    await disk.ags('exec', '--', 'sh', '-c', CHANGES);
    disk.sh(fill(machine.stateDir));
    for (const args of [['review', '--accept-all'], ['review'], ['diff'], ['review', '--discard-all']]) {
      expect(await disk.ags(...args)).toMatchObject({
        code: 9,
        stdout: '',
        stderr: saying('no room left on the disk'),
      });
    }
    expect(machine.git('status', '--short')).toBe('');
    disk.sh(`rm ${machine.stateDir}/filler`);
    expect(await disk.ags('review', '--accept-all')).toMatchObject({
      code: 0,
      stderr: saying('3 taken, 0 thrown away, 0 left.\n'),
    });
    expect(disk.sh(`ls ${machine.stateDir}/tasks`)).toBe('');
  });

  test('with a full project disk each file is old or new, and the rest can be accepted later', async () => {
    using machine = prepare(caller);
    using disk = await openDisk(machine, small(machine, machine.project, '4m'));
    await disk.ags('exec', '--', 'sh', '-c', `${CHANGES}; seq 1 100000 > large.txt`);
    disk.sh(fill(machine.project));
    const review = await disk.ags('review', '--accept-all');
    expect(review).toMatchObject({ code: 7, stderr: saying('not taken: large.txt: The disk is full.\n') });
    expect(disk.sh('cat src/a.txt')).toMatch(/^(one\ntwo\nthree\n|x\n)$/);
    expect(disk.sh('ls -A | grep ags-tmp || true')).toBe('');
    disk.sh('rm filler');
    expect(await disk.ags('review', '--accept-all')).toMatchObject({ code: 0, stderr: saying(' 0 left.\n') });
    expect(disk.sh('cat src/a.txt new.txt; wc -l < large.txt; ls')).toBe('x\nnew\n100000\nlarge.txt\nnew.txt\nsrc\n');
    expect(readdirSync(join(machine.stateDir, 'tasks'))).toEqual([]);
  });

  test('without room for the snapshot of an agent, ags says so, leaves nothing behind, and starts once there is room', async () => {
    using machine = prepare(caller);
    commitLarge(machine);
    using disk = await openDisk(machine, small(machine, machine.stateDir, '8m'));
    const run = await disk.ags('start', 'full', 'write: a.txt 1', '--agent', 'demo');
    expect(run).toMatchObject({ code: 1, stderr: expect.any(String) });
    expect(run.stdout + run.stderr).toContain('no room left on the disk');
    expect(disk.sh(`find ${machine.stateDir}/layers -name '*.bin'`)).toBe('');
    disk.sh(`mount -o remount,size=64m ${machine.stateDir}`);
    expect(await disk.ags('restart', 'full')).toMatchObject({ code: 0 });
    expect(machine.git('show', 'ags/full:a.txt')).toBe('1\n');
  });

  test('when an agent fills the disk, the changes that fit are kept, and are brought out once there is room', async () => {
    using machine = prepare(caller);
    using disk = await openDisk(machine, small(machine, machine.stateDir, '12m'));
    const run = await disk.ags(
      'start',
      'filler',
      'write: a.txt 1 // run: cat /dev/zero > big.bin // run: rm big.bin',
      '--agent',
      'demo',
    );
    expect(run.stdout + run.stderr).toContain('No space left on device');
    disk.sh(`mount -o remount,size=64m ${machine.stateDir}`);
    expect(await disk.ags('diff', 'filler', '--name-only')).toMatchObject({ code: 0, stdout: 'a.txt\n' });
    expect(await disk.ags('merge', 'filler', '-y')).toMatchObject({ code: 0 });
    expect(machine.git('show', 'HEAD:a.txt')).toBe('1\n');
  });
});

function commitLarge(machine: Machine): void {
  writeFileSync(join(machine.project, 'large.bin'), randomBytes(12 * 2 ** 20));
  giveTo(machine.project, machine.uid);
  machine.git('add', '-A');
  machine.git('commit', '-qm', 'large');
}
