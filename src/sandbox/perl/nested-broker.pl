# nested-broker.pl: hands the container of nested Docker what it needs, shows its engine to the runner before it starts, and
# reports its end. Node runs it by perl -e on the host.
# Always: it dies with the runner, and everything in the container ends when it does.
#
# Arguments: syscall numbers; the runner's process; directory of the meeting; the words for the user-namespace helper.
# Descriptors: 3 takes what is found out, 4 gives the filter and whom to trust, 5 is the word to go, 6 is Node's channel.
use strict; use warnings; use POSIX ();
# However busy the machine is. A container that ended before it came would be waited for until the end of the run.
my $started_seconds = 120;
my ($prctl, $sendmsg) = map { $_ + 0 } split /,/, shift @ARGV;
my ($runner, $dir, @words) = @ARGV;
sub fail { print STDERR "$_[0]: $!\n"; exit 96 }
# include sockets.pl
# include broker-server.pl
syscall($prctl, 1, 9, 0, 0, 0); exit 96 if getppid() != $runner;
open(my $status, '>&=', 3); open(my $plan, '<&=', 4); open(my $word, '<&=', 5);
my ($filter, $trust) = unpack 'N/a* N/a*', do { local $/; binmode $plan; <$plan> };
splice @words, 3, 0, $filter, $trust;
chdir $dir or fail('enter the run directory');
my $listening = listen_at('s', 2) // fail('listen for the container');
$SIG{PIPE} = 'IGNORE';
syswrite $status, "l\n";
my $waiting = ''; vec($waiting, fileno $listening, 1) = 1;
select($waiting, undef, undef, $started_seconds) or do { print STDERR "its container did not start\n"; exit 96 };
accept(my $helper, $listening) or fail('wait for the container');
give($helper, [6], @words) or fail('hand the channel over');
POSIX::close(6); delete @ENV{'NODE_CHANNEL_FD', 'NODE_CHANNEL_SERIALIZATION_MODE'};
my ($gate, $said) = (undef, '');
while (!$gate) {
  my $set = ''; vec($set, fileno $_, 1) = 1 for $helper, $listening;
  select $set, undef, undef, undef;
  if (vec $set, fileno $helper, 1) {
    sysread($helper, $said, 1000, length $said) or do { print STDERR "it ended too early\n"; exit 96 };
    if ($said =~ /^f(.*)/m) { print STDERR "$1\n"; exit 96 }
  }
  accept($gate, $listening) if vec $set, fileno $listening, 1;
}
close $listening; unlink 's';
my ($pid) = unpack 'i', getsockopt $gate, 1, 17;
sysread($gate, my $ready, 2) or do { print STDERR "the engine ended too early\n"; exit 96 };
syswrite $status, "p$pid\n";
sysread($word, my $go, 1) or exit 96;
syswrite $gate, 'g';
my $set = ''; vec($set, fileno $_, 1) = 1 for $helper, $gate;
while (1) {
  select my $some = $set, undef, undef, undef;
  if (vec $some, fileno $gate, 1) { my $why; print STDERR $why if sysread $gate, $why, 600; exit 1 }
  if (vec $some, fileno $helper, 1) { sysread($helper, my $word, 600) or do { print STDERR "its container ended\n"; exit 1 } }
}
