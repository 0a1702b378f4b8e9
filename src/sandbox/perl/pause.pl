# pause.pl: the one process of the pause container, whose network the container of a sandbox joins. The engine runs it by perl
# -e. It hands Node the listeners over Node's own channel, which the stream broker gave it; with reach, a child stays at the
# channel.
# Always: it gives root up when the listeners are open, and ends when its connection to the broker ends.
#
# Arguments: syscall numbers.
use strict; use warnings;
our $MEETING_PLACE;
my ($prctl, $capset, $sendmsg, $recvmsg, $setgid, $setuid) = map { $_ + 0 } split /,/, shift @ARGV;
# include sockets.pl
# include broker-client.pl
my $broker = meet($MEETING_PLACE);
my ($given, $uid, $gid, $reach, @listeners) = receive($broker);
my $channel = $given->[0];
sub fail { syswrite $broker, "f$_[0]: $!\n"; sysread $broker, my $end, 1; exit 96 }
# include listeners.pl
hand_over($reach, @listeners);
await_taken();
become($uid, $gid) or fail('give root up');
capabilities(0) or fail('give privileges up');
syswrite $broker, "r\n";
sysread $broker, my $end, 1;
