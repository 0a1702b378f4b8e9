# namespace-wrapper.pl: starts the command of an engine without a daemon in a mount namespace of its own, in which everything
# the container will see is mounted already, and with a gateway in a network namespace that has its listeners. Node runs it by
# perl -e.
# Always: the mounts go with the engine's command and the container. The process that stays in the network has no rights, and
# ends when its connection to the stream broker ends.
#
# Arguments: syscall numbers; run directory and its identity; for root the ids of the sandbox's user and of the project's owner;
# overlay options; layers; staged paths; options of each tmpfs; "own" for a network; the engine's command line.
use strict; use warnings;
my ($mount, $unshare, $prctl, $capset, $sendmsg, $recvmsg, $setgid, $setuid) = map { $_ + 0 } split /,/, shift @ARGV;
my ($dir, $identity) = splice @ARGV, 0, 2;
my ($uid, $gid, $owner, $group) = split /,/, shift @ARGV;
my $overlay = shift @ARGV;
my @layers = splice @ARGV, 0, 2 * shift @ARGV;
my @staged = splice @ARGV, 0, 3 * shift @ARGV;
my @memory = splice @ARGV, 0, shift @ARGV;
my $network = shift @ARGV;
my ($broker, $channel);
sub fail {
  if ($broker) { syswrite $broker, "f$_[0]: $!\n"; sysread $broker, my $end, 1 } else { print STDERR "$_[0]: $!\n" }
  exit 96;
}
# include sockets.pl
# include broker-client.pl
# include listeners.pl
# include mount.pl
# include mounts.pl
sub keep_network {
  silence();
  $broker = meet('pause');
  my ($given, undef, undef, $reach, @listeners) = receive($broker);
  $channel = $given->[0];
  hand_over($reach, @listeners);
  await_taken();
  if (defined $uid) { become($uid, $gid) or fail('give root up') }
  capabilities(0) && syscall($prctl, 38, 1, 0, 0, 0) == 0 or fail('give privileges up');
  syswrite $broker, "r\n"; sysread $broker, my $end, 1; exit 0;
}
chdir $dir or fail('enter the run directory');
if (join(',', (stat '.')[0, 1]) ne $identity) {
  print STDERR "$dir is not the directory any more that it was a moment ago\n"; exit 96;
}
if ($network eq 'own') {
  syscall($unshare, 0x40000000) == 0 or fail('make a network');
  bring_up('lo');
  keep_network() if !(fork() // fail('fork'));
}
syscall($unshare, 0x20000) == 0 && mount('', '/', '', 0x44000, '') && chdir $dir or fail('make a mount namespace');
mount_all();
if (@memory) { mount('tmpfs', 'memory', 'tmpfs', 6, 'size=1m,mode=755') or fail('make places in memory') }
for my $at (0 .. $#memory) {
  mkdir("memory/$at") && mount('tmpfs', "memory/$at", 'tmpfs', 6, $memory[$at]) or fail('make places in memory');
}
chdir '/';
exec { $ARGV[0] } @ARGV or fail("start $ARGV[0]");
