// test/attacks/neighbours.test.ts: two sandboxes of one user at the same time, and one after the other: neither finds the other.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ChildProcess } from 'node:child_process';
import { CALLERS, createMachine, type Machine } from '../harness.ts';
import { breaches, type Attack } from './attack.ts';
import { startReady } from './host-view.ts';
import { runInside, type Inside } from './run-inside.ts';
import { createVictims, type Victims } from './victims.ts';

const perl = String.raw;

/** What the neighbour has: a server on every kind of socket, memory, and files in each place it can write. */
const NEIGHBOUR = perl`use Socket; $| = 1;
socket(my $t, PF_INET, SOCK_STREAM, 0); setsockopt($t, SOL_SOCKET, SO_REUSEADDR, 1); bind($t, pack_sockaddr_in(4747, INADDR_ANY)) or die "bind: $!"; listen $t, 5;
socket(my $a, PF_UNIX, SOCK_STREAM, 0); bind($a, pack_sockaddr_un("\0neighbour")) or die $!; listen $a, 5;
socket(my $u, PF_UNIX, SOCK_STREAM, 0); bind($u, pack_sockaddr_un("/tmp/neighbour.sock")) or die $!; listen $u, 5;
socket(my $w, PF_UNIX, SOCK_STREAM, 0); bind($w, pack_sockaddr_un("neighbour.sock")) or die $!; listen $w, 5;
my $id = shmget(4747, 4096, 01666) // die $!; mkdir '.git/hooks';
for my $path ("/tmp/neighbour.txt", "/dev/shm/neighbour.txt", "$ENV{HOME}/neighbour.txt", "$ENV{HOME}/.bashrc", "neighbour.txt", ".git/neighbour.txt", ".git/hooks/post-checkout") { open my $f, '>', $path or die "$path: $!"; print $f "the neighbour\n" }
open my $f, '>>', '.git/config'; print $f "[core]\n\tfsmonitor = /tmp/neighbour\n[alias]\n\tplanted = !true\n"; close $f;
system 'git -c core.fsmonitor=false -c user.name=x -c user.email=x\@y commit -q --allow-empty -m planted 2>/dev/null; git branch planted 2>/dev/null; git tag planted 2>/dev/null';
print "ready\n"; sleep 300`;

const FILES: Attack = {
  id: 'A153',
  what: 'files in any place',
  perl: perl`chdir $V{PROJECT}; look($_) for '/tmp/neighbour.txt', '/dev/shm/neighbour.txt', "$V{HOME}/neighbour.txt", "$V{HOME}/.bashrc", 'neighbour.txt', '.git/neighbour.txt', '.git/hooks/post-checkout', '/tmp/neighbour.sock', 'neighbour.sock'`,
  expect: ['ENOENT'],
};
const GIT: Attack = {
  id: 'A157',
  what: 'settings, commits, branches and tags in git',
  perl: perl`chdir $V{PROJECT}; line(slurp('.git/config') =~ /fsmonitor|planted/ ? 'planted' : 'ENOENT', 'config'); line(system('git rev-parse -q --verify planted > /dev/null 2>&1') == 0 ? 'planted' : 'ENOENT', 'branch'); line(qx(git log --format=%s -1) eq "planted\n" ? 'planted' : 'ENOENT', 'commit')`,
  expect: ['ENOENT'],
};
const LIVE: readonly Attack[] = [
  {
    id: 'A154',
    what: 'ports',
    perl: perl`reach(PF_INET, SOCK_STREAM, 0, pack_sockaddr_in(4747, inet_aton($_)), $_) for '127.0.0.1', '0.0.0.0', '127.0.0.2'`,
    expect: ['ECONNREFUSED'],
  },
  {
    id: 'A154',
    what: 'abstract sockets, and sockets by path',
    perl: perl`reach(PF_UNIX, SOCK_STREAM, 0, pack_sockaddr_un($_)) for "\0neighbour", '/tmp/neighbour.sock', "$V{PROJECT}/neighbour.sock"`,
    expect: ['ECONNREFUSED', 'ENOENT'],
  },
  { id: 'A154', what: 'shared memory', perl: perl`tried(defined shmget(4747, 0, 0))`, expect: ['ENOENT'] },
  {
    id: 'A153',
    what: 'processes',
    perl: perl`for my $file (glob '/proc/[0-9]*/cmdline') { print "$file = the neighbour\n" if (slurp($file) // '') =~ /pack_sockaddr_in\(4747, INADDR_ANY/ } print "searched\n"`,
    expect: ['searched'],
  },
  FILES,
  GIT,
];
const LATER = [FILES, GIT];

describe.each(CALLERS)('as %s, a task does not find', (caller) => {
  let machine: Machine;
  let victims: Victims;
  let neighbour: ChildProcess | undefined;
  let [live, later, fresh]: readonly (Inside | null)[] = [null, null, null];

  beforeAll(async () => {
    machine = createMachine(caller);
    victims = await createVictims(machine);
    const other = await startReady(machine, ['perl', '-e', NEIGHBOUR], ['--name', 'neighbour']);
    neighbour = other;
    live = await runInside(machine, victims, LIVE);
    const ended = new Promise((resolve) => other.on('close', resolve));
    other.kill('SIGTERM');
    await ended;
    later = await runInside(machine, victims, LATER);
    fresh = await runInside(machine, victims, LATER, ['--name', 'neighbour']);
  });
  afterAll(async () => {
    neighbour?.kill('SIGKILL');
    await victims[Symbol.asyncDispose]();
    machine[Symbol.dispose]();
  });

  test.for(LIVE.map((attack, i) => [attack.what, attack, i] as const))('its neighbour: %s', ([, attack, i]) => {
    expect(breaches(attack, live?.answers[i] ?? '')).toEqual([]);
  });
  test.for(LATER.map((attack, i) => [attack.what, attack, i] as const))(
    'what a task before it left (A159): %s',
    ([, attack, i]) => {
      expect(breaches(attack, later?.answers[i] ?? '')).toEqual([]);
    },
  );
  test.for(LATER.map((attack, i) => [attack.what, attack, i] as const))(
    'what a task of the same name left (A159): %s',
    ([, attack, i]) => {
      expect(breaches(attack, fresh?.answers[i] ?? '')).toEqual([]);
    },
  );
  test('anything of the host', () => {
    expect(victims.touched()).toEqual([]);
  });
});
