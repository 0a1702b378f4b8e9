// sandbox/docker-scripts.ts: three small programs in Perl around a container. The usher runs on the host and hands the command's
// own streams in; the gate is the first process inside; the holder opens doors in the network that the container joins.
// Invariant: each lives as long as the one outside it: the usher dies with the runner, gate and holder die when the usher's
// connection to them ends, and with the gate everything in its container. No engine is asked to end anything.
import { MOUNT_ALL, MOUNT_SUBS } from './script-mounts.ts';
import { DOOR_SUBS, OPEN_DOORS, OWN_NETWORK } from './script-doors.ts';
import { STREAMS } from './script-streams.ts';

/** Where gate and holder find the usher; the sandbox sees an empty directory there afterwards. */
export const MEETING_PLACE = '/sys/ags';

// The container may be faster than the usher.
export const MEET = `sub meet {
  for (1 .. 1000) {
    socket(my $usher, 1, 1, 0) or exit 96;
    return $usher if connect $usher, pack 'Sa108', 1, "$_[0]/s";
    select undef, undef, undef, 0.01;
  }
  exit 96;
}
sub receive {
  my ($from) = @_;
  my ($byte, $rights) = ("\\0" x 2, "\\0" x 64);
  my $data = pack 'PQ', $byte, 1;
  my $message = pack 'QLx4PQPQlx4', 0, 0, $data, 1, $rights, length $rights, 0;
  syscall($recvmsg, fileno $from, $message, 0) == 1 or exit 96;
  my @given = unpack 'i*', substr $rights, 16, unpack('Q', $rights) - 16;
  my ($size, $all) = (whole($from, 4), '');
  return \\@given, unpack '(N/a*)*', whole($from, unpack 'N', $size);
}
sub whole { my ($from, $size) = @_; my $all = ''; while (length $all < $size) { sysread($from, $all, $size - length $all, length $all) or exit 96 } $all }
`;

/**
 * Nobody inside may look into this process, whose memory decides that everything ends with us. The filter lies over the
 * engine's own: what either refuses is refused.
 */
export const GATE = gateWith('', '1 while sysread $usher, my $drop, 64; ');

/** On another machine nobody outside can look at it: what the kernel says of it is told before the word is given. */
export const FAR_GATE = gateWith(
  `sub text { open(my $file, '<', $_[0]) or refuse("read $_[0]"); local $/; scalar <$file> }
my @facts = map { text("/proc/self/$_") } qw(status mountinfo net/dev);
my $report = pack '(N/a*)*', $$, @facts, map { readlink("/proc/self/ns/$_") // '' } qw(ipc uts mnt pid cgroup net);
$report = 's' . pack('N', length $report) . $report;
for (my $at = 0; $at < length $report;) { $at += syswrite($usher, $report, length($report) - $at, $at) // exit 96 }
`,
  '',
);

/** `stay`: its control group goes with it, and the usher wants to read there how it ended. */
function gateWith(report: string, stay: string): string {
  return `use strict; use POSIX ();
my ($prctl, $dup, $recvmsg) = map { $_ + 0 } split /,/, shift @ARGV;
${MEET}my $usher = meet('${MEETING_PLACE}');
my ($given, $filter, $workdir, $kind, $env, @command) = receive($usher);
sub refuse { syswrite $usher, "f$_[0]: $!\\n"; sysread $usher, my $end, 1; exit 96 }
syscall($dup, $given->[$_], $_, 0) >= 0 or refuse('take the streams') for 0 .. 2;
my $input = $given->[3];
chdir $workdir or refuse("enter $workdir");
syscall($prctl, 38, 1, 0, 0, 0) == 0 or refuse('give privileges up');
my $program = pack 'Sx6P', length($filter) / 8, $filter;
syscall($prctl, 22, 2, $program, 0, 0) == 0 or refuse('take the filter');
${report}syswrite $usher, "r\\n";
my $go;
sysread($usher, $go, 1) && $go eq 'g' or exit 96;
syscall($prctl, 4, 0, 0, 0, 0) == 0 or refuse('close this process');
pipe(my $woken, my $wake) or exit 96;
fcntl $_, 4, 04001 for $woken, $wake;
$SIG{CHLD} = sub { syswrite $wake, '.' };
my $main = fork() // exit 96;
if (!$main) {
  $SIG{$_} = 'DEFAULT' for qw(HUP INT QUIT TERM PIPE CHLD USR1 USR2 TSTP TTIN TTOU XFSZ);
  POSIX::setsid();
  if ($kind ne 'plain') { ioctl STDIN, 0x540e, 0 or die "ags: the terminal cannot be taken: $!\\n" }
  if ($kind eq 'apart') { syscall($dup, $input, 0, 0) >= 0 or die }
  for ($woken, $wake, $usher) { close $_ }
  POSIX::close($_) for @$given;
  %ENV = map { split /=/, $_, 2 } split /\\0/, $env;
  exec { $command[0] } @command; print STDERR "ags: $command[0]: $!\\n"; POSIX::_exit($!{ENOENT} ? 127 : 126);
}
POSIX::close($_) for 0 .. 2, @$given;
open STDIN, '<', '/dev/null'; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null';
while (1) {
  while ((my $pid = waitpid -1, 1) > 0) {
    next if $pid != $main;
    my $code = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    syswrite $usher, "e$code\\n"; ${stay}POSIX::_exit($code);
  }
  my $set = ''; vec($set, fileno $woken, 1) = 1; vec($set, fileno $usher, 1) = 1;
  my $some = select $set, undef, undef, undef;
  sysread $woken, my $drop, 4096;
  if ($some > 0 && vec $set, fileno $usher, 1) {
    sysread($usher, my $word, 64) or POSIX::_exit(137);
    while ($word =~ /k(\\d+)/g) { kill $1, $1 == 2 || $1 == 3 ? -$main : $main }
  }
}
`;
}

// Node says when it has them all; what it has not read when we hang up, it would drop.
const UNTIL_TAKEN = `if ($channel) { open(my $node, '<&=', $channel); my $heard = ''; 1 while $heard !~ /"done"/ && sysread $node, $heard, 4096, length $heard; close $node }
`;

/** Hands Node the doors over Node's own channel, which the usher has given it; with \`reach\` a child of it stays at the channel. */
export const HOLDER = `use strict; use POSIX ();
my ($prctl, $capset, $sendmsg, $recvmsg, $setgid, $setuid) = map { $_ + 0 } split /,/, shift @ARGV;
${MEET}my $usher = meet('${MEETING_PLACE}');
my ($given, $uid, $gid, $reach, @doors) = receive($usher);
my $channel = $given->[0];
sub fail { syswrite $usher, "f$_[0]: $!\\n"; sysread $usher, my $end, 1; exit 96 }
${DOOR_SUBS}${OPEN_DOORS}${UNTIL_TAKEN}my ($whose, $nothing) = (pack('LL', 0x20080522, 0), pack 'L6', (0) x 6);
$) = "$gid $gid";
$) eq "$gid $gid" && syscall($setgid, ($gid + 0) x 3) == 0 && syscall($setuid, ($uid + 0) x 3) == 0 or fail('give root up');
syscall($capset, $whose, $nothing) == 0 or fail('give privileges up');
syswrite $usher, "r\\n";
sysread $usher, my $end, 1;
`;

/** How the usher receives gate and holder: it listens, hands descriptors and words over, and hears whether they are ready. */
export const WELCOME = `sub expect {
  my ($name) = @_;
  unlink "$name/s";
  my $listening;
  socket($listening, 1, 1, 0) && bind($listening, pack 'Sa108', 1, "$name/s") && chmod(0666, "$name/s") && listen($listening, 1) or fail("listen for the $name");
  $listening;
}
sub welcome {
  my ($name, $listening, $given, @words) = @_;
  accept(my $guest, $listening) or fail("wait for the $name");
  close $listening; unlink "$name/s";
  my ($byte, $body) = ('.', pack '(N/a*)*', @words);
  my $rights = pack 'Qii' . 'i' x @$given, 16 + 4 * @$given, 1, 1, @$given;
  my $data = pack 'PQ', $byte, 1;
  my $message = pack 'QLx4PQPQlx4', 0, 0, $data, 1, $rights, length $rights, 0;
  syscall($sendmsg, fileno $guest, $message, 0x4000) == 1 or fail("hand the streams to the $name");
  $body = pack('N', length $body) . $body;
  for (my $at = 0; $at < length $body;) { $at += syswrite($guest, $body, length($body) - $at, $at) // fail("talk to the $name") }
  $guest;
}
sub hear {
  my ($guest, $name) = @_;
  my $said = '';
  while ($said !~ /\\n/) { sysread($guest, $said, 4096, length $said) or last }
  return if $said =~ /^r/;
  print STDERR 'ags: ', $said =~ /^f(.*)/ ? $1 : "the $name ended too early", "\\n"; exit 96;
}
`;

/**
 * How many of a container's processes the kernel has ended for want of memory: its control group knows, and goes with it. A group
 * that is not its own would tell of others.
 */
const COUNTERS = `sub groups { open(my $list, '<', "/proc/$_[0]/cgroup") or return; <$list> }
sub counters {
  my %shared = map { $_ => 1 } groups('self');
  map { /^\\d+:(|memory):(.*)$/ && !$shared{$_} ? $1 ? "/sys/fs/cgroup/memory$2/memory.oom_control" : "/sys/fs/cgroup$2/memory.events" : () } groups($_[0]);
}
sub killed {
  my $all = 0;
  for (@_) { open(my $counter, '<', $_) or next; for (<$counter>) { $all += $1 if /^oom_kill (\\d+)/ } }
  $all;
}
`;

/**
 * Arguments: syscall numbers; the runner's process; the sandbox's ids, and whether the streams are given to them; what the streams are; run directory; working
 * directory; with a gateway the channel's descriptor, whether ports are reached, and the doors; the command.
 * It closes its own copies of the streams, so that the other side hears their end.
 */
export const USHER = `use strict; use POSIX ();
my ($prctl, $dup, $sendmsg) = map { $_ + 0 } split /,/, shift @ARGV;
my ($runner, $ids, $kind, $dir, $workdir) = splice @ARGV, 0, 5;
my ($channel, $reach) = map { $_ + 0 } split /,/, shift @ARGV;
my @doors = splice @ARGV, 0, shift @ARGV;
sub fail { print STDERR "ags: $_[0]: $!\\n"; exit 96 }
sub hang_up { return if !$channel; open(my $node, '<&=', $channel); close $node; $channel = 0 }
syscall($prctl, 1, 9, 0, 0, 0); exit 96 if getppid() != $runner;
${STREAMS}my ($give, $uid, $gid) = split /,/, $ids;
if ($give eq 'give') { for my $stream (*STDIN, *STDOUT, *STDERR) { chown $uid, $gid, $stream if -p $stream || -t $stream } }
sub all { open(my $from, '<&=', $_[0]) or fail('read the plan'); local $/; binmode $from; my $text = <$from> // ''; close $from; $text }
my ($env, $filter) = (all(3), all(4));
chdir $dir or fail('enter the run directory');
${WELCOME}${COUNTERS}$SIG{PIPE} = 'IGNORE';
my $holding = $channel ? expect('holder') : undef;
my $gating = expect('gate');
my $holder;
if ($channel) { $holder = welcome('holder', $holding, [$channel], $uid, $gid, $reach, @doors); hang_up(); hear($holder, 'holder') }
my $gate = welcome('gate', $gating, [0 .. 2, $kind eq 'apart' ? 7 : ()], $filter, $workdir, $kind, $env, @ARGV);
hear($gate, 'gate');
POSIX::close($_) for 0 .. 2, $kind eq 'apart' ? 7 : ();
open STDIN, '<', '/dev/null'; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null';
open(my $status, '>&=', 5); my ($pid) = unpack 'i', getsockopt $gate, 1, 17;
my @counters = counters($pid); my $before = killed(@counters);
syswrite $status, qq({ "child-pid": $pid }\\n);
open(my $word, '<&=', 6); sysread($word, my $go, 1) or exit 96;
syswrite $gate, 'g';
my $said = '';
1 while $said !~ /^e\\d+\\n/m && sysread $gate, $said, 64, length $said;
my $code = $said =~ /^e(\\d+)$/m ? $1 : 137;
my $starved = killed(@counters) - $before;
syswrite $status, qq({ "starved": $starved }\\n) if $starved > 0;
syswrite $status, qq({ "exit-code": $code }\\n);
`;

/**
 * For a caller that is root: everything the container will see is mounted where the engine finds it, for the moment in which
 * it starts. "off" takes it away again; the container keeps its own mounts of it. What is mounted brings its own mode along, so the
 * directory that is closed to others is the one above: in there are root's files, and the socket at which streams are handed over.
 */
export const STAGE = `use strict;
my ($mount, $unshare, $setns, $umount) = map { $_ + 0 } split /,/, shift @ARGV;
my ($how, $engine, $dir, $identity, $stage) = splice @ARGV, 0, 5;
my ($closed) = $stage =~ m{^(.+)/};
sub fail { my $why = $!; clear() if $how eq 'on'; $! = $why; print STDERR "$_[0]: $!\\n"; exit 96 }
sub clear { my $at = "$stage\\0"; chdir '/'; syscall($umount, $at, 2); rmdir $stage; rmdir $closed }
my ($to, $theirs);
socket($to, 1, 1, 0) && connect($to, pack 'Sa108', 1, $engine) or fail("reach $engine");
my ($pid) = unpack 'i', getsockopt $to, 1, 17;
open($theirs, '<', "/proc/$pid/ns/mnt") && syscall($setns, fileno $theirs, 0x20000) == 0 or fail('enter the file systems of the engine');
if ($how eq 'off') { clear(); exit 0 }
if (join(',', (stat $dir)[0, 1]) ne $identity) { print STDERR "the engine does not see $dir\\n"; exit 96 }
my ($uid, $gid, $owner, $group) = split /,/, shift @ARGV;
my $overlay = shift @ARGV;
my @layers = splice @ARGV, 0, 2 * shift @ARGV;
my @staged = splice @ARGV, 0, 3 * shift @ARGV;
${MOUNT_SUBS}mkdir($closed, 0700) && mkdir($stage, 0700) or fail("make $stage");
mount($dir, $stage, '', 4096, '') && mount('', $stage, '', 0x40000, '') or fail('mount the run directory');
chdir $stage or fail('enter the run directory');
${MOUNT_ALL}`;

/**
 * For an engine without a daemon: everything the container will see is mounted in a mount namespace that goes with the engine's
 * command and the container, and then the engine is started in it. With a gateway it also has a network namespace; a process of
 * ours stays there for the doors, without any right, until the usher's connection ends.
 */
export const ROOM = `use strict; use POSIX ();
my ($mount, $unshare, $prctl, $capset, $sendmsg, $recvmsg, $setgid, $setuid) = map { $_ + 0 } split /,/, shift @ARGV;
my ($dir, $identity) = splice @ARGV, 0, 2;
my ($uid, $gid, $owner, $group) = split /,/, shift @ARGV;
my $overlay = shift @ARGV;
my @layers = splice @ARGV, 0, 2 * shift @ARGV;
my @staged = splice @ARGV, 0, 3 * shift @ARGV;
my @memory = splice @ARGV, 0, shift @ARGV;
my $network = shift @ARGV;
my ($usher, $channel, $reach, @doors);
sub fail {
  if ($usher) { syswrite $usher, "f$_[0]: $!\\n"; sysread $usher, my $end, 1 } else { print STDERR "$_[0]: $!\\n" }
  exit 96;
}
${MEET}${DOOR_SUBS}sub keep_network {
  open STDIN, '<', '/dev/null'; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null';
  $usher = meet('holder');
  (my $given, undef, undef, $reach, @doors) = receive($usher);
  $channel = $given->[0];
${OPEN_DOORS}${UNTIL_TAKEN}  if (defined $uid) {
    $) = "$gid $gid";
    $) eq "$gid $gid" && syscall($setgid, ($gid + 0) x 3) == 0 && syscall($setuid, ($uid + 0) x 3) == 0 or fail('give root up');
  }
  my ($whose, $nothing) = (pack('LL', 0x20080522, 0), pack 'L6', (0) x 6);
  syscall($capset, $whose, $nothing) == 0 && syscall($prctl, 38, 1, 0, 0, 0) == 0 or fail('give privileges up');
  syswrite $usher, "r\\n"; sysread $usher, my $end, 1; exit 0;
}
${MOUNT_SUBS}chdir $dir or fail('enter the run directory');
if (join(',', (stat '.')[0, 1]) ne $identity) { print STDERR "$dir is not the directory any more that it was a moment ago\\n"; exit 96 }
if ($network eq 'own') {
${OWN_NETWORK}  keep_network() if !(fork() // fail('fork'));
}
syscall($unshare, 0x20000) == 0 && mount('', '/', '', 0x44000, '') && chdir $dir or fail('make a mount namespace');
${MOUNT_ALL}if (@memory) { mount('tmpfs', 'memory', 'tmpfs', 6, 'size=1m,mode=755') or fail('make places in memory') }
for my $at (0 .. $#memory) { mkdir("memory/$at") && mount('tmpfs', "memory/$at", 'tmpfs', 6, $memory[$at]) or fail('make places in memory') }
chdir '/';
exec { $ARGV[0] } @ARGV; fail("start $ARGV[0]");
`;
