// sandbox/inner-scripts.ts: two small programs in Perl around an engine inside. The usher runs on the host; the keeper is the first
// process of the engine's container.
// Invariants: everything ends with the usher, which ends with the runner. No process that an agent can command shares a user, or a
// user namespace, with one that holds a descriptor of ours.
import { MEET } from './docker-scripts.ts';
import { HALL_SUBS } from './nested/egress-network.ts';
import { DOOR_SUBS, LOOPBACK_UP } from './script-doors.ts';

/** Where the keeper finds the usher. */
export const INNER_MEETING = '/ags';

/** For containers whose requests the gateway looks into: `-v` of this file, which has the same name in the sandbox. */
export const TRUST_INSIDE = '/run/ags/ca-bundle.pem';

/** However busy the machine is. A container that ended before it came would be waited for until the end of the run. */
const STARTED_SECONDS = 120;

/** How many users the engine has, from the first on; the one after them is the keeper's own. */
export const INNER_USERS = 65_536;

/**
 * Three processes in three user namespaces:
 * - the keeper stands outside, maps the users, gives everything up and waits for the end;
 * - the porter, in the first namespace inside, makes the hall (inner-hall.ts), enters the engine's network, hands Node the doors of
 *   both, and stays at the channel (serve);
 * - the engine, in a second one below that, owns its network and its mounts. It can do to the porter what any user can do to a
 *   stranger: nothing.
 * Before the engine starts it is shown to the runner, by a connection of its own.
 */
export const KEEPER = `use strict; use POSIX ();
my ($prctl, $capset, $sendmsg, $recvmsg, $setgid, $setuid, $unshare, $setns, $mount) = map { $_ + 0 } split /,/, shift @ARGV;
${MEET}my $usher = meet('${INNER_MEETING}');
my ($given, $base, $tmp, $port, $filter, $trust, $env, $hall, $doors, @engine) = receive($usher);
my $channel = $given->[0];
my $outer = ${INNER_USERS};
my @hall = split / /, $hall;
my @doors = split / /, $doors;
my ($uid, $gid) = ($outer, $outer);
my $keeper = $$;
sub fail { syswrite $usher, "f$_[0]: $!\\n"; sysread $usher, my $end, 1; POSIX::_exit(96) }
sub become { my ($id) = @_; $) = "$id $id"; syscall($setgid, ($id + 0) x 3) == 0 && syscall($setuid, ($id + 0) x 3) == 0 or fail('change the user') }
sub apart {
  my ($flags, $up, $down) = @_;
  syscall($prctl, 4, 1, 0, 0, 0); syscall($unshare, $flags) == 0 or fail('make a user namespace'); syscall($prctl, 4, 1, 0, 0, 0);
  syswrite $up, 'a'; sysread $down, my $go, 1 or POSIX::_exit(96);
  $) = '0 0';
}
sub map_users {
  my ($pid, $from, $count) = @_;
  for my $kind ('uid_map', 'gid_map') { my $map; open($map, '>', "/proc/$pid/$kind") && syswrite($map, "0 $from $count\\n") or fail('map users') }
}
sub capabilities { my ($which) = @_; my ($whose, $set) = (pack('LL', 0x20080522, 0), pack 'L6', $which, $which, 0, 0, 0, 0); syscall($capset, $whose, $set) == 0 or fail('give privileges up') }
sub pipes { pipe(my $a, my $b) && pipe(my $c, my $d) or fail('make a pipe'); ($a, $b, $c, $d) }
${DOOR_SUBS}${HALL_SUBS}sub mount { my ($what, $to, $flags, $options) = map { $_ . "\\0" } @_; syscall($mount, $what, $to, $what, $_[2] + 0, $options) == 0 or fail("mount $_[1]") }
sub engine {
  my ($up, $down) = @_;
  hang_up();
  apart(0x10000000 | 0x40000000 | 0x20000, $up, $down);
  my $root = "/\\0"; syscall($mount, 0, $root, 0, 0x4000 | 0x80000, 0) == 0 or fail('keep mounts apart');
  mount('tmpfs', '/run', 6, 'mode=755,size=64m'); mount('tmpfs', '/etc/docker', 6, 'mode=755,size=1m');
  mkdir('/run/tmp') or fail('make /run/tmp'); mount('tmpfs', '/run/tmp', 6, "mode=1777,size=$tmp");
  if ($trust ne '') { my $bundle; mkdir('/run/ags') && open($bundle, '>', '${TRUST_INSIDE}') && print($bundle $trust) && close $bundle or fail('write whom to trust') }
  my $api; socket($api, 2, 1, 0) && bind($api, pack 'SnC4x8', 2, $port, 127, 0, 0, 1) && listen($api, 4096) or fail('listen for clients');
  my $gate = meet('${INNER_MEETING}');
  my $program = pack 'Sx6P', length($filter) / 8, $filter;
  syscall($prctl, 22, 2, $program, 0, 0) == 0 or fail('take the filter');
  syswrite $gate, "e\\n"; sysread $gate, my $go, 1 or POSIX::_exit(96);
  close $usher;
  open(my $log, '+>', '/run/engine.log') or POSIX::_exit(96);
  my $pid = fork() // POSIX::_exit(96);
  if (!$pid) {
    close $gate; close $up; close $down;
    open STDIN, '<', '/dev/null'; open STDOUT, '>&', $log; open STDERR, '>&', $log; close $log;
    my $fd = fileno $api;
    if ($fd == 3) { fcntl $api, 2, 0 } else { POSIX::dup2($fd, 3); close $api }
    %ENV = ((map { split /=/, $_, 2 } split /\\n/, $env), LISTEN_PID => $$, LISTEN_FDS => 1);
    exec { $engine[0] } @engine; print STDERR "$engine[0]: $!\\n"; POSIX::_exit(127);
  }
  close $api;
  1 while waitpid($pid, 0) == -1 && $!{EINTR};
  seek $log, -(-s $log > 2000 ? 2000 : -s $log), 2; local $/; my $said = <$log> // '';
  my ($last) = reverse grep { /\\S/ } split /\\n/, $said;
  syswrite $gate, substr($last // 'it said nothing', 0, 500) . "\\n"; POSIX::_exit(0);
}
sub porter {
  my ($up, $down) = @_;
  apart(0x10000000, $up, $down);
  my ($told, $tell, $heard, $say) = pipes();
  my $engine = fork() // fail('fork');
  if (!$engine) { close $_ for $told, $say, $up, $down; engine($tell, $heard) }
  close $_ for $tell, $heard;
  sysread $told, my $apart, 1 or fail('start the engine');
  map_users($engine, 0, $outer);
  my $network; open($network, '<', "/proc/$engine/ns/net") or fail('find the network of the engine');
  make_hall($network, @hall) if @hall;
  syscall($setns, fileno $network, 0x40000000) == 0 or fail('enter the network of the engine');
  join_hall() if @hall;
${LOOPBACK_UP}  open_doors(scalar @hall, @doors);
  delete @ENV{'NODE_CHANNEL_FD', 'NODE_CHANNEL_SERIALIZATION_MODE'};
  syswrite $say, 'g';
  close $_ for $usher, $say, $told, $up, $down;
  serve($keeper);
}
my ($told, $tell, $heard, $say) = pipes();
my $porter = fork() // fail('fork');
if (!$porter) { close $_ for $told, $say; become($base); porter($tell, $heard) }
hang_up(); close $_ for $tell, $heard;
sysread $told, my $apart, 1 or fail('start the porter');
syscall($prctl, 8, 1, 0, 0, 0); become($base); capabilities(0xc0);
map_users($porter, $base, $outer + 1);
syscall($prctl, 8, 1, 0, 0, 0); become($base + $outer); capabilities(0);
syscall($prctl, 38, 1, 0, 0, 0) == 0 && syscall($prctl, 4, 0, 0, 0, 0) == 0 or fail('close this process');
syswrite $say, 'g'; close $_ for $told, $say;
pipe(my $woken, my $wake) or fail('make a pipe');
fcntl $_, 4, 04001 for $woken, $wake;
$SIG{CHLD} = sub { syswrite $wake, '.' };
syswrite $usher, "r\\n";
while (1) {
  1 while waitpid(-1, 1) > 0;
  my $set = ''; vec($set, fileno $woken, 1) = 1; vec($set, fileno $usher, 1) = 1;
  my $some = select $set, undef, undef, undef;
  sysread $woken, my $drop, 4096;
  if ($some > 0 && vec $set, fileno $usher, 1) { sysread($usher, my $word, 64) or POSIX::_exit(137) }
}
`;

/**
 * Arguments: syscall numbers; the runner's process; directory of the meeting; the words for the keeper. Descriptors: 3 takes what is
 * found out, 4 gives the filter and whom to trust, 5 is the word to go, 6 is Node's channel.
 */
export const INNER_USHER = `use strict; use POSIX ();
my ($prctl, $sendmsg) = map { $_ + 0 } split /,/, shift @ARGV;
my ($runner, $dir, @words) = @ARGV;
sub fail { print STDERR "$_[0]: $!\\n"; exit 96 }
syscall($prctl, 1, 9, 0, 0, 0); exit 96 if getppid() != $runner;
open(my $status, '>&=', 3); open(my $plan, '<&=', 4); open(my $word, '<&=', 5);
my ($filter, $trust) = unpack 'N/a* N/a*', do { local $/; binmode $plan; <$plan> };
splice @words, 3, 0, $filter, $trust;
chdir $dir or fail('enter the run directory');
unlink 's';
my $listening;
socket($listening, 1, 1, 0) && bind($listening, pack 'Sa108', 1, 's') && chmod(0666, 's') && listen($listening, 2) or fail('listen for the keeper');
$SIG{PIPE} = 'IGNORE';
syswrite $status, "l\\n";
my $waiting = ''; vec($waiting, fileno $listening, 1) = 1;
select($waiting, undef, undef, ${STARTED_SECONDS}) or do { print STDERR "its container did not start\\n"; exit 96 };
accept(my $keeper, $listening) or fail('wait for the keeper');
my ($byte, $body) = ('.', pack '(N/a*)*', @words);
my $rights = pack 'Qiii', 20, 1, 1, 6;
my $data = pack 'PQ', $byte, 1;
my $message = pack 'QLx4PQPQlx4', 0, 0, $data, 1, $rights, length $rights, 0;
syscall($sendmsg, fileno $keeper, $message, 0x4000) == 1 or fail('hand the channel over');
$body = pack('N', length $body) . $body;
for (my $at = 0; $at < length $body;) { $at += syswrite($keeper, $body, length($body) - $at, $at) // fail('talk to the keeper') }
POSIX::close(6); delete @ENV{'NODE_CHANNEL_FD', 'NODE_CHANNEL_SERIALIZATION_MODE'};
my ($gate, $said) = (undef, '');
while (!$gate) {
  my $set = ''; vec($set, fileno $_, 1) = 1 for $keeper, $listening;
  select $set, undef, undef, undef;
  if (vec $set, fileno $keeper, 1) {
    sysread($keeper, $said, 1000, length $said) or do { print STDERR "it ended too early\\n"; exit 96 };
    if ($said =~ /^f(.*)/m) { print STDERR "$1\\n"; exit 96 }
  }
  accept($gate, $listening) if vec $set, fileno $listening, 1;
}
close $listening; unlink 's';
my ($pid) = unpack 'i', getsockopt $gate, 1, 17;
sysread($gate, my $ready, 2) or do { print STDERR "the engine ended too early\\n"; exit 96 };
syswrite $status, "p$pid\\n";
sysread($word, my $go, 1) or exit 96;
syswrite $gate, 'g';
my $set = ''; vec($set, fileno $_, 1) = 1 for $keeper, $gate;
while (1) {
  select my $some = $set, undef, undef, undef;
  if (vec $some, fileno $gate, 1) { my $why; print STDERR $why if sysread $gate, $why, 600; exit 1 }
  if (vec $some, fileno $keeper, 1) { sysread($keeper, my $word, 600) or do { print STDERR "its container ended\\n"; exit 1 } }
}
`;
