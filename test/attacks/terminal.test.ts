// test/attacks/terminal.test.ts: the user's terminal is not passed in, so programs inside cannot type into it.
// needs: sandbox
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { AGS, CALLERS, createMachine, type Machine } from '../harness.ts';
import { identity } from './run-inside.ts';

/** Runs a shell on a terminal of its own, as a user does; returns its output without carriage returns. */
function onTerminal(machine: Machine, script: string, input = ''): string {
  const { stdout } = spawnSync('script', ['-qefc', `sh -c '${script.replaceAll("'", "'\\''")}'`, '/dev/null'], {
    cwd: machine.project,
    env: { ...machine.env, NODE: process.execPath, AGS },
    ...identity(machine),
    encoding: 'utf8',
    input,
    timeout: 40_000,
  });
  return stdout.replaceAll('\r', '');
}

const TYPE = String.raw`use Fcntl; for my $path (undef, "/dev/tty", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2") { my $t; if (defined $path) { sysopen $t, $path, O_RDWR or do { print "$path: cannot open\n"; next } } else { $t = \*STDIN } for my $cmd (0x5412, 0x541c) { for (split //, "echo TYPED\n") { my $c = $_; my $ok = ioctl $t, $cmd, $c; print "typed\n" if $ok } } } print "tried\n"`;

describe.each(CALLERS)('as %s', (caller) => {
  test.for([
    ['with everything on it', ''],
    ['with the output elsewhere', '> /dev/null 2>&1'],
    ['with the input elsewhere', '< /dev/null'],
    ['with everything elsewhere', '< /dev/null > /dev/null 2>&1'],
  ] as const)("A35: nothing can be typed into the caller's terminal, %s", ([, redirections]) => {
    using machine = createMachine(caller);
    const screen = onTerminal(
      machine,
      `"$NODE" "$AGS" exec --review later -- perl -e '${TYPE}' ${redirections}; stty -icanon -echo min 0 time 5; dd bs=100 count=1 2>/dev/null | od -c | head -3; echo END`,
    );
    expect(screen).not.toContain('typed');
    expect(screen).not.toContain('TYPED');
    // od shows the bytes that wait to be read: none, or the end of input that "script" itself types.
    expect(screen).toMatch(/0000000(  \\0\n0000001)?\nEND\n$/);
  });

  test('A35: the sandbox has another terminal and another session', () => {
    using machine = createMachine(caller);
    const screen = onTerminal(
      machine,
      `tty; ps -o sid= -p $$; "$NODE" "$AGS" exec --review later -- sh -c 'readlink /proc/self/fd/0; perl -e "print getpgrp() == 0 ? q(outside) : q(inside), qq(\\n)"; : > /dev/tty && echo has a terminal'`,
    );
    const [outside, , inside, group] = screen.split('\n');
    expect(outside).toMatch(/^\/dev\/pts\//);
    expect(inside).not.toBe(outside);
    expect(group).toBe('inside');
  });
});
