# stream-broker.pl: hands the command and its standard streams into a container, and reports how it ended. Node runs it by
# perl -e beside the engine's command.
# Always: it dies with the runner, and the processes in the containers end when it does. It closes its own copies of the
# streams, so that the other side hears their end.
#
# Arguments: syscall numbers; the runner's process; whether the streams are given to the sandbox's user, and its ids; what the
# streams are; run directory; working directory; with a gateway the channel's descriptor, whether ports are reached, and the
# listeners; the command. Descriptors: 3 gives the environment, 4 the filter, 5 takes the report, 6 gives the word to go.
use strict; use warnings; use POSIX ();
my ($prctl, $dup, $sendmsg) = map { $_ + 0 } split /,/, shift @ARGV;
my ($runner, $ids, $kind, $dir, $workdir) = splice @ARGV, 0, 5;
my ($channel, $reach) = map { $_ + 0 } split /,/, shift @ARGV;
my @listeners = splice @ARGV, 0, shift @ARGV;
sub fail { print STDERR "ags: $_[0]: $!\n"; exit 96 }
sub hang_up { return if !$channel; open(my $node, '<&=', $channel); close $node; $channel = 0 }
syscall($prctl, 1, 9, 0, 0, 0); exit 96 if getppid() != $runner;
# include sockets.pl
# include streams.pl
# include broker-server.pl
put_files_behind_pipes();
my ($give, $uid, $gid) = split /,/, $ids;
if ($give eq 'give') { for my $stream (*STDIN, *STDOUT, *STDERR) { chown $uid, $gid, $stream if -p $stream || -t $stream } }
sub all { open(my $from, '<&=', $_[0]) or fail('read the plan'); local $/; binmode $from; my $text = <$from> // ''; $text }
my ($env, $filter) = (all(3), all(4));
chdir $dir or fail('enter the run directory');
# How many of a container's processes the kernel ended for want of memory: its control group knows, and goes with it. A group
# that is not its own would tell of others.
sub groups { open(my $list, '<', "/proc/$_[0]/cgroup") or return; <$list> }
sub counters {
  my %shared = map { $_ => 1 } groups('self');
  map { !/^\d+:(|memory):(.*)$/ || $shared{$_} ? ()
    : $1 ? "/sys/fs/cgroup/memory$2/memory.oom_control" : "/sys/fs/cgroup$2/memory.events" } groups($_[0]);
}
sub killed {
  my $all = 0;
  for (@_) { open(my $counter, '<', $_) or next; for (<$counter>) { $all += $1 if /^oom_kill (\d+)/ } }
  $all;
}
$SIG{PIPE} = 'IGNORE';
my $pausing = $channel ? expect('pause') : undef;
my $gating = expect('gate');
my $pause;
if ($channel) {
  $pause = welcome('pause', $pausing, [$channel], $uid, $gid, $reach, @listeners);
  hang_up(); hear($pause, 'pause');
}
my $gate = welcome('gate', $gating, [0 .. 2, $kind eq 'apart' ? 7 : ()], $filter, $workdir, $kind, $env, @ARGV);
hear($gate, 'gate');
POSIX::close($_) for 0 .. 2, $kind eq 'apart' ? 7 : ();
silence();
open(my $status, '>&=', 5); my ($pid) = unpack 'i', getsockopt $gate, 1, 17;
my @counters = counters($pid); my $before = killed(@counters);
syswrite $status, qq({ "child-pid": $pid }\n);
open(my $word, '<&=', 6); sysread($word, my $go, 1) or exit 96;
syswrite $gate, 'g';
my $said = '';
1 while $said !~ /^e\d+\n/m && sysread $gate, $said, 64, length $said;
my $code = $said =~ /^e(\d+)$/m ? $1 : 137;
my $starved = killed(@counters) - $before;
syswrite $status, qq({ "starved": $starved }\n) if $starved > 0;
syswrite $status, qq({ "exit-code": $code }\n);
