// attack/table/neighbours.ts: what one task can find of another that runs beside it, or ran before it. See attack.ts.
import type { Attack } from './attack.ts';
import { WITH_NEIGHBOURS_SERVICE } from './services.ts';

const perl = String.raw;

/** Where a careless caller left a file with a secret open: one number that Node closes for its children, and one that Node does not know. */
export const LEFT_OPEN = [9, 40] as const;
/** The attempt that the neighbour makes too: a process that only Node started inherits nothing to find. */
export const USES_LEFT_OPEN = 'fs-leaked-descriptor';
const FOUND_OPEN = 'left open: ';

/** Prints which of the descriptors can be read. */
export const FIND_LEFT_OPEN = perl`opendir my $open, '/proc/self/fd' or die $!; for my $fd (sort grep { /^\d+$/ && $_ > 2 } readdir $open) { open(my $f, '<&', $fd) or next; sysseek $f, 0, 0; sysread($f, my $text, 4096) or next; print "${FOUND_OPEN}$fd\n" if $text =~ /CANARY-[0-9a-f]{16}/ } closedir $open;
`;

export function foundOpen(said: string): string[] {
  const lines = said.split('\n').filter((line) => line.startsWith(FOUND_OPEN));
  return lines.map((line) => `descriptor ${line.slice(FOUND_OPEN.length)} = left open by the caller, and read`);
}

/** The neighbour: a server on every kind of socket, memory, and files in every writable place. It prints "ready", and stays until its input ends. */
export const NEIGHBOUR = perl`use Socket; $| = 1; ${FIND_LEFT_OPEN}socket(my $t, PF_INET, SOCK_STREAM, 0); setsockopt($t, SOL_SOCKET, SO_REUSEADDR, 1); bind($t, pack_sockaddr_in(4747, INADDR_ANY)) or die "bind: $!"; listen $t, 5;
socket(my $a, PF_UNIX, SOCK_STREAM, 0); bind($a, pack_sockaddr_un("\0neighbour")) or die $!; listen $a, 5;
socket(my $u, PF_UNIX, SOCK_STREAM, 0); bind($u, pack_sockaddr_un("/tmp/neighbour.sock")) or die $!; listen $u, 5;
socket(my $w, PF_UNIX, SOCK_STREAM, 0); bind($w, pack_sockaddr_un("neighbour.sock")) or die $!; listen $w, 5;
my $id = shmget(4747, 4096, 01666) // die $!; mkdir '.git/hooks';
for my $path ("/tmp/neighbour.txt", "/dev/shm/neighbour.txt", "$ENV{HOME}/neighbour.txt", "$ENV{HOME}/.bashrc", "neighbour.txt", ".git/neighbour.txt", ".git/hooks/post-checkout") { open my $f, '>', $path or die "$path: $!"; print $f "the neighbour\n" }
open my $f, '>>', '.git/config'; print $f "[core]\n\tfsmonitor = /tmp/neighbour\n[alias]\n\tplanted = !true\n"; close $f;
system 'git -c core.fsmonitor=false -c user.name=x -c user.email=x\@y commit -q --allow-empty -m planted 2>/dev/null; git branch planted 2>/dev/null; git tag planted 2>/dev/null';
${WITH_NEIGHBOURS_SERVICE}print "ready\n"; alarm 300; 1 while sysread STDIN, my $more, 64`;

/** While the neighbour runs. */
export const LIVE_NEIGHBOUR_ATTACKS: readonly Attack[] = [
  {
    id: 'task-ports',
    area: 'tasks',
    references: ['A154'],
    what: 'connect to a port of its neighbour',
    perl: perl`reach(PF_INET, SOCK_STREAM, 0, pack_sockaddr_in(4747, inet_aton($_)), $_) for '127.0.0.1', '0.0.0.0', '127.0.0.2'`,
    expect: ['ECONNREFUSED'],
  },
  {
    id: 'task-proxied-ports',
    area: 'tasks',
    references: ['A154', 'A155'],
    what: 'reach its neighbour through the gateway',
    perl: perl`door("CONNECT $_:4747 HTTP/1.1\r\nHost: $_:4747\r\n\r\n", $_) for '127.0.0.1', 'localhost', 'neighbour'`,
    expect: ['403', 'no network'],
  },
  {
    id: 'task-sockets',
    area: 'tasks',
    references: ['A154'],
    what: 'connect to sockets of its neighbour: abstract, and by path',
    perl: perl`reach(PF_UNIX, SOCK_STREAM, 0, pack_sockaddr_un($_)) for "\0neighbour", '/tmp/neighbour.sock', "$V{PROJECT}/neighbour.sock"`,
    expect: ['ECONNREFUSED', 'ENOENT'],
  },
  {
    id: 'task-memory',
    area: 'tasks',
    references: ['A154'],
    what: 'attach the shared memory of its neighbour',
    perl: perl`tried(defined shmget(4747, 0, 0))`,
    expect: ['ENOENT'],
  },
  {
    id: 'task-processes',
    area: 'tasks',
    references: ['A153'],
    what: 'see a process of its neighbour',
    perl: perl`for my $file (glob '/proc/[0-9]*/cmdline') { print "$file = the neighbour\n" if (slurp($file) // '') =~ /pack_sockaddr_in\(4747, INADDR_ANY/ } print "searched\n"`,
    expect: ['searched'],
  },
];

/** While the neighbour runs, and after it has ended. */
export const LASTING_NEIGHBOUR_ATTACKS: readonly Attack[] = [
  {
    id: 'task-files',
    area: 'tasks',
    references: ['A153', 'A159'],
    what: 'find files that another task has left in any place',
    perl: perl`chdir $V{PROJECT}; look($_) for '/tmp/neighbour.txt', '/dev/shm/neighbour.txt', "$V{HOME}/neighbour.txt", 'neighbour.txt', '.git/neighbour.txt', '.git/hooks/post-checkout', '/tmp/neighbour.sock', 'neighbour.sock'; line((slurp("$V{HOME}/.bashrc") // '') =~ /neighbour/ ? 'planted' : 'ENOENT', 'start-up file')`,
    expect: ['ENOENT'],
  },
  {
    id: 'task-git',
    area: 'tasks',
    references: ['A157', 'A159'],
    what: 'find settings, commits, branches and tags that another task has made in git',
    perl: perl`chdir $V{PROJECT}; line(slurp('.git/config') =~ /fsmonitor|planted/ ? 'planted' : 'ENOENT', 'config'); line(system('git rev-parse -q --verify planted > /dev/null 2>&1') == 0 ? 'planted' : 'ENOENT', 'branch'); line(qx(git log --format=%s -1) eq "planted\n" ? 'planted' : 'ENOENT', 'commit')`,
    expect: ['ENOENT'],
  },
];
