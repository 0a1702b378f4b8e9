// test/attacks/exhaustion.test.ts: a sandbox takes all it can get. Each has small limits, so that a missing limit shows without hurting the
// machine.
// needs: sandbox
import { execFileSync } from 'node:child_process';
import { appendFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine, USUAL, type Machine } from '../harness.ts';
import { createAgentMachine } from '../agent-run/place.ts';
import { processesWith } from './host-view.ts';
import { identity } from './run-inside.ts';

const SMALL = [
  '--review',
  'later',
  '--limit',
  'time=60s',
  '--limit',
  'processes=100',
  '--limit',
  'memory=256m',
  '--limit',
  'disk=50m',
];
// If files are in memory, a full disk counts as memory too; the memory limit must not end it first.
const SMALL_DISK = [...SMALL, '--limit', 'memory=1g'];

// Concurrent, because most of the time is spent waiting for a limit.
describe.concurrent.each(CALLERS)('as %s', (caller) => {
  test('A145: a fork bomb stops at the limit of processes', async () => {
    using machine = createMachine(caller);
    const count =
      'my $n = 0; while (defined(my $pid = fork)) { if (!$pid) { sleep 60; exit } last if ++$n > 500 } print "$n\\n"; kill 9, -1';
    const run = await machine.ags(['exec', ...SMALL, '--', 'perl', '-e', count]);
    expect(Number(run.stdout)).toBeGreaterThan(20);
    expect(Number(run.stdout)).toBeLessThan(100);
  });

  test('A145: an endless fork bomb is ended, with every process that it started', async () => {
    using machine = createMachine(caller);
    const word = `bomb${Date.now()}${caller}`;
    const run = await machine.ags([
      'exec',
      ...SMALL,
      '--limit',
      'time=3s',
      '--',
      'perl',
      '-e',
      `fork while 1; # ${word}`,
    ]);
    expect(run.stderr).toContain('limits.time');
    expect(processesWith(word)).toEqual([]);
  });

  test.for([
    ['one process', 'my $x = "a" x (600 << 20); sleep 40; print "got it\\n"'],
    [
      'many processes',
      'my @all = map { my $pid = fork; if (!$pid) { my $x = "a" x (60 << 20); sleep 60; exit } $pid } 1 .. 12; sleep 6; my @left = grep { waitpid($_, 1) == 0 } @all; print @left > 6 ? "got it\\n" : "no\\n"; kill 9, @left; exit 1',
    ],
    [
      'a file in memory',
      'my $n = `uname -m` =~ /aarch64/ ? 279 : 319; my $fd = syscall($n, my $name = "x", 0); open my $f, ">&=", $fd; syswrite $f, "a" x (10 << 20) for 1 .. 60; sleep 40; print "got it\\n"',
    ],
    [
      'shared memory that no process has mapped',
      'for (1 .. 12) { my $id = shmget(0, 50 << 20, 01600) // die "shmget: $!"; shmwrite($id, "a" x (50 << 20), 0, 50 << 20) or die "shmwrite: $!" } sleep 40; print "got it\\n"',
    ],
  ] as const)('A146: memory stays within its limit for %s', async ([, program]) => {
    using machine = createMachine(caller);
    const run = await machine.ags(['exec', ...SMALL, '--', 'perl', '-e', program]);
    expect(run.stdout).not.toContain('got it');
    expect(run.code).not.toBe(0);
  });

  test.for([
    ['the home', 'chdir $ENV{HOME}'],
    ['the workspace', '1'],
    ['the git directory', 'chdir ".git"'],
    ['a directory that cannot be listed', 'mkdir "closed"; chmod 0300, "closed"; chdir "closed"'],
  ] as const)('A147: the disk cannot be filled through %s', async ([, where]) => {
    using machine = createMachine(caller);
    const fill = `${where}; for my $i (1 .. 60) { open my $f, '>', "fill$i" or last; syswrite $f, 'a' x (5 << 20); close $f; select undef, undef, undef, 0.1 } sleep 40; print "got it\\n"`;
    const run = await machine.ags(['exec', ...SMALL_DISK, '--', 'perl', '-e', fill]);
    expect(run.stdout).not.toContain('got it');
    expect(run.stderr).toContain('limits.disk');
  });

  test('A147: a sandbox with a closed or a deep directory is not charged for what others write', async () => {
    using machine = createMachine(caller);
    const program = `$| = 1; mkdir 'closed'; open my $f, '>', 'closed/f'; print $f 'x'; close $f; chmod 0300, 'closed'; for (1 .. 250) { mkdir 'd'; chdir 'd' } print "ready\\n"; <STDIN>; print "still here\\n"`;
    const child = machine.start(['exec', ...SMALL_DISK, '--', 'perl', '-e', program]);
    let said = '';
    child.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
    const ended = new Promise((resolve) => child.once('close', resolve));
    await expect.poll(() => said).toBe('ready\n');
    const foreign = join(machine.root, 'foreign');
    for (let written = 0; written < 10; written++) {
      appendFileSync(foreign, Buffer.alloc(20 << 20));
      await sleep(250);
    }
    child.stdin?.end('go on\n');
    expect({ code: await ended, said }).toEqual({ code: 0, said: 'ready\nstill here\n' });
  });

  test('A147: the disk cannot be filled with a file that was deleted but is open', async () => {
    using machine = createMachine(caller);
    const fill = `open my $f, '>', 'fill'; unlink 'fill'; for (1 .. 60) { syswrite $f, 'a' x (5 << 20); select undef, undef, undef, 0.1 } sleep 40; print "got it\\n"`;
    const run = await machine.ags(['exec', ...SMALL_DISK, '--', 'perl', '-e', fill]);
    expect(run.stdout).not.toContain('got it');
    expect(run.stderr).toContain('limits.disk');
  });

  test('A147: the disk cannot be filled with deleted files of which a page is mapped', async () => {
    // On a disk that few others write to: without root, a sandbox is charged for what its disk loses.
    using machine = createMachine(caller, { disk: true });
    const fill = `my $n = \`uname -m\` =~ /aarch64/ ? 222 : 9; for (1 .. 200) { open my $f, '+>', 'fill'; syswrite $f, 'a' x (5 << 20); syscall($n, 0, 4096, 3, 1, fileno $f, 0) > 0 or die "mmap: $!"; unlink 'fill'; close $f; select undef, undef, undef, 0.1 } sleep 40; print "got it\\n"`;
    const run = await machine.ags(['exec', ...SMALL_DISK, '--', 'perl', '-e', fill]);
    expect(run.stdout).not.toContain('got it');
    expect(run.stderr).toContain('limits.disk');
  });

  test('A147: single files and temporary files end at their limits', async () => {
    using machine = createMachine(caller);
    const program = `$SIG{XFSZ} = 'IGNORE'; sub fill { my ($path) = @_; open my $f, '>', $path; my $n = 0; while (my $w = syswrite $f, 'a' x (1 << 20)) { $n += $w } printf "%s %d %s\\n", $path, $n >> 20, $!{EFBIG} ? 'EFBIG' : $!{ENOSPC} ? 'ENOSPC' : $!; unlink $path } fill('one'); fill('/tmp/two')`;
    const run = await machine.ags([
      'exec',
      '--limit',
      'fileSize=8m',
      '--limit',
      'tmp=4m',
      '--limit',
      'time=60s',
      '--',
      'perl',
      '-e',
      program,
    ]);
    expect(run.stdout).toBe('one 8 EFBIG\n/tmp/two 4 ENOSPC\n');
  });

  test('A149: a command that ignores every signal is ended at its deadline', async () => {
    using machine = createMachine(caller);
    const word = `stubborn${Date.now()}${caller}`;
    const program = `$SIG{$_} = 'IGNORE' for qw(TERM INT HUP QUIT USR1 USR2); if (!fork) { require POSIX; POSIX::setsid(); } sleep 1 while 1; # ${word}`;
    const run = await machine.ags(['exec', '--limit', 'time=2s', '--', 'perl', '-e', program]);
    expect({ code: run.code, said: run.stderr.includes('limits.time') }).toEqual({ code: 137, said: true });
    expect(processesWith(word)).toEqual([]);
  });

  test('A145: a sandbox cannot use up the file watches of the host', async () => {
    using machine = createMachine(caller);
    const take = `my $n = \`uname -m\` =~ /aarch64/ ? 26 : 294; my $held = 0; $held++ while syscall($n, 0) >= 0; print "$held\\n"; close STDOUT; sleep 30`;
    const child = machine.start(['exec', '--limit', 'openFiles=4096', '--', 'perl', '-e', take]);
    await new Promise((resolve) => child.stdout?.once('data', resolve));
    const other = await machine.ags(['exec', '--', 'true']);
    const host = watchOnHost(machine);
    child.kill('SIGKILL');
    expect({ other: other.code, host }).toEqual({ other: 0, host: 'ok' });
  });
});

/** Whether a program of the caller can still watch a file, outside every sandbox. */
function watchOnHost(machine: Machine): string {
  const program = 'my $n = `uname -m` =~ /aarch64/ ? 26 : 294; print syscall($n, 0) >= 0 ? "ok" : "refused: $!"';
  return execFileSync('perl', ['-e', program], { ...identity(machine), encoding: 'utf8' });
}

describe.each(USUAL)('as %s', (caller) => {
  test("A147: an agent's output, in all its turns, fills no more of the disk than its limit", async () => {
    using machine = createAgentMachine(caller);
    const talk = Array.from({ length: 40 }, () => 'run: head -c 65536 /dev/zero | tr "\\0" a').join(' // ');
    await machine.runDemo('talk', talk, ['--limit', 'disk=4m']);
    const log = join(machine.stateDir, 'tasks/talk/agent.log');
    expect(statSync(log).size).toBeGreaterThan(40 * 65536);
    const first = await machine.event('talk', 'run.ended');
    await machine.ags(['send', 'talk', talk]);
    await machine.event('talk', 'run.ended', ({ seq }) => seq > first.seq);
    expect(statSync(log).size).toBeLessThan((4 << 20) + (1 << 17));
  });
});
