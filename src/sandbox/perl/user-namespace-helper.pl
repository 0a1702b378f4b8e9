# user-namespace-helper.pl: the first process in the container of nested Docker. The engine of this machine runs it by perl -e.
# Always: everything ends when its connection to nested-broker.pl ends. No process that an agent can command shares a user, or
# a user namespace, with one that holds a descriptor of ours.
#
# Three processes in three user namespaces:
# - the user-namespace helper stands outside, maps the users, gives everything up and waits for the end;
# - the network helper, in the first namespace inside, makes the egress network, enters the engine's network, hands Node the
#   listeners of both, and stays at the channel (serve);
# - the engine, in a second one below that, owns its network and its mounts. It can do to the network helper what any user can
#   do to a stranger: nothing.
# Before the engine starts it is shown to the runner, by its own connection.
#
# Arguments: syscall numbers.
use strict; use warnings; use POSIX ();
our ($MEETING_PLACE, $USERS, $TRUST, $EGRESS, $EGRESS_END, $ENGINE_END);
my ($prctl, $capset, $sendmsg, $recvmsg, $setgid, $setuid, $unshare, $setns, $mount) = map { $_ + 0 } split /,/, shift @ARGV;
# include sockets.pl
# include broker-client.pl
my $broker = meet($MEETING_PLACE);
my ($given, $base, $tmp, $port, $filter, $trust, $env, $egress, $listeners, @engine) = receive($broker);
my $channel = $given->[0];
my @egress = split / /, $egress;
my @listeners = split / /, $listeners;
my ($uid, $gid) = ($USERS, $USERS);
my $helper = $$;
sub fail { syswrite $broker, "f$_[0]: $!\n"; sysread $broker, my $end, 1; POSIX::_exit(96) }
# include listeners.pl
# include egress-network.pl
sub turn_into { my ($id) = @_; become($id, $id) or fail('change the user') }
sub keep_rights { capabilities($_[0]) or fail('give privileges up') }
sub apart {
  my ($flags, $up, $down) = @_;
  syscall($prctl, 4, 1, 0, 0, 0);
  syscall($unshare, $flags) == 0 or fail('make a user namespace');
  syscall($prctl, 4, 1, 0, 0, 0);
  syswrite $up, 'a'; sysread $down, my $go, 1 or POSIX::_exit(96);
  $) = '0 0';
}
sub map_users {
  my ($pid, $from, $count) = @_;
  for my $kind ('uid_map', 'gid_map') {
    my $map;
    open($map, '>', "/proc/$pid/$kind") && syswrite($map, "0 $from $count\n") or fail('map users');
  }
}
sub pipes { pipe(my $a, my $b) && pipe(my $c, my $d) or fail('make a pipe'); ($a, $b, $c, $d) }
sub mount {
  my ($what, $to, undef, $options) = map { "$_\0" } @_;
  syscall($mount, $what, $to, $what, $_[2] + 0, $options) == 0 or fail("mount $_[1]");
}
sub engine {
  my ($up, $down) = @_;
  hang_up();
  apart(0x10000000 | 0x40000000 | 0x20000, $up, $down);
  my $root = "/\0"; syscall($mount, 0, $root, 0, 0x4000 | 0x80000, 0) == 0 or fail('keep mounts apart');
  mount('tmpfs', '/run', 6, 'mode=755,size=64m'); mount('tmpfs', '/etc/docker', 6, 'mode=755,size=1m');
  mkdir('/run/tmp') or fail('make /run/tmp'); mount('tmpfs', '/run/tmp', 6, "mode=1777,size=$tmp");
  if ($trust ne '') {
    my $bundle;
    mkdir('/run/ags') && open($bundle, '>', $TRUST) && print($bundle $trust) && close $bundle or fail('write whom to trust');
  }
  my $api;
  socket($api, 2, 1, 0) && bind($api, pack 'SnC4x8', 2, $port, 127, 0, 0, 1) && listen($api, 4096) or fail('listen for clients');
  my $gate = meet($MEETING_PLACE);
  my $program = pack 'Sx6P', length($filter) / 8, $filter;
  syscall($prctl, 22, 2, $program, 0, 0) == 0 or fail('take the filter');
  syswrite $gate, "e\n"; sysread $gate, my $go, 1 or POSIX::_exit(96);
  close $broker;
  open(my $log, '+>', '/run/engine.log') or POSIX::_exit(96);
  my $pid = fork() // POSIX::_exit(96);
  if (!$pid) {
    close $gate; close $up; close $down;
    open STDIN, '<', '/dev/null'; open STDOUT, '>&', $log; open STDERR, '>&', $log; close $log;
    my $fd = fileno $api;
    if ($fd == 3) { fcntl $api, 2, 0 } else { POSIX::dup2($fd, 3); close $api }
    %ENV = ((map { split /=/, $_, 2 } split /\n/, $env), LISTEN_PID => $$, LISTEN_FDS => 1);
    exec { $engine[0] } @engine or print STDERR "$engine[0]: $!\n";
    POSIX::_exit(127);
  }
  close $api;
  1 while waitpid($pid, 0) == -1 && $!{EINTR};
  seek $log, -(-s $log > 2000 ? 2000 : -s $log), 2; local $/; my $said = <$log> // '';
  my ($last) = reverse grep { /\S/ } split /\n/, $said;
  syswrite $gate, substr($last // 'it said nothing', 0, 500) . "\n"; POSIX::_exit(0);
}
sub network_helper {
  my ($up, $down) = @_;
  apart(0x10000000, $up, $down);
  my ($told, $tell, $heard, $say) = pipes();
  my $engine = fork() // fail('fork');
  if (!$engine) { close $_ for $told, $say, $up, $down; engine($tell, $heard) }
  close $_ for $tell, $heard;
  sysread $told, my $apart, 1 or fail('start the engine');
  map_users($engine, 0, $USERS);
  my $network; open($network, '<', "/proc/$engine/ns/net") or fail('find the network of the engine');
  make_egress($network, @egress) if @egress;
  syscall($setns, fileno $network, 0x40000000) == 0 or fail('enter the network of the engine');
  join_egress() if @egress;
  bring_up('lo');
  open_listeners(scalar @egress, @listeners);
  delete @ENV{'NODE_CHANNEL_FD', 'NODE_CHANNEL_SERIALIZATION_MODE'};
  syswrite $say, 'g';
  close $_ for $broker, $say, $told, $up, $down;
  serve($helper);
}
my ($told, $tell, $heard, $say) = pipes();
my $child = fork() // fail('fork');
if (!$child) { close $_ for $told, $say; turn_into($base); network_helper($tell, $heard) }
hang_up(); close $_ for $tell, $heard;
sysread $told, my $apart, 1 or fail('start the network helper');
syscall($prctl, 8, 1, 0, 0, 0); turn_into($base); keep_rights(0xc0);
map_users($child, $base, $USERS + 1);
syscall($prctl, 8, 1, 0, 0, 0); turn_into($base + $USERS); keep_rights(0);
syscall($prctl, 38, 1, 0, 0, 0) == 0 && syscall($prctl, 4, 0, 0, 0, 0) == 0 or fail('close this process');
syswrite $say, 'g'; close $_ for $told, $say;
pipe(my $woken, my $wake) or fail('make a pipe');
fcntl $_, 4, 04001 for $woken, $wake;
$SIG{CHLD} = sub { syswrite $wake, '.' };
syswrite $broker, "r\n";
while (1) {
  1 while waitpid(-1, 1) > 0;
  my $set = ''; vec($set, fileno $woken, 1) = 1; vec($set, fileno $broker, 1) = 1;
  my $some = select $set, undef, undef, undef;
  sysread $woken, my $drop, 4096;
  if ($some > 0 && vec $set, fileno $broker, 1) { sysread($broker, my $word, 64) or POSIX::_exit(137) }
}
