# listeners.pl: the listeners of a sandbox, and connections into it. A part of whatever stands in the network of a sandbox
# before anything of it runs: the launcher, pause.pl, namespace-wrapper.pl, user-namespace-helper.pl. Expects sockets.pl,
# $channel, $prctl, $capset, $sendmsg, $setgid, $setuid, $uid, $gid and fail().
# Always: every socket is bound before anything of the sandbox runs, and handed over without being read.
#
# Each listener is bound here and handed to Node over the channel that Node opened for its own messages, in the form in which
# Node hands sockets to Node. Node says when it has them all; only then the channel is closed, because Node drops what it has
# not read.
sub pass { my ($line, $socket) = @_; send_message($sendmsg, $channel, $line, fileno $socket) }
sub open_listeners {
  my ($first, @listeners) = @_;
  for my $n (0 .. $#listeners) {
    my ($protocol, $address, $port) = split /,/, $listeners[$n];
    my ($kind, $type) = $protocol eq 'tcp' ? (1, '"net.Server"') : (2, '"dgram.Native"');
    socket(my $listener, 2, $kind, 0) or fail('open a socket');
    bind($listener, pack 'SnC4x8', 2, $port, split /\./, $address) && ($kind == 2 || listen $listener, 4096)
      or fail("listen at $address, port $port");
    pass(qq({"cmd":"NODE_HANDLE","type":$type,"msg":{"listener":@{[$first + $n]}}}\n), $listener) or fail('hand a listener over');
  }
}
sub hang_up { return if !$channel; open(my $node, '<&=', $channel); close $node; $channel = 0 }
# All listeners; with $reach a child stays that makes connections into the sandbox.
sub hand_over {
  my ($reach, @listeners) = @_;
  open_listeners(0, @listeners);
  delete @ENV{'NODE_CHANNEL_FD', 'NODE_CHANNEL_SERIALIZATION_MODE'};
  if ($reach) { my $parent = $$; serve($parent) if !(fork() // fail('fork')); hang_up() }
}
sub await_taken {
  return if !$channel;
  open(my $node, '<&=', $channel); my $heard = '';
  1 while $heard !~ /"done"/ && sysread $node, $heard, 4096, length $heard;
  close $node;
}
sub bring_up {
  my ($name) = @_;
  socket(my $any, 2, 2, 0) or fail('open a socket');
  my $flags = pack 'a16sx22', $name, 0;
  ioctl $any, 0x8913, $flags or fail("look at the interface $name");
  $flags = pack 'a16sx22', $name, 1 | unpack 'x16s', $flags;
  ioctl $any, 0x8914, $flags or fail("bring the interface $name up");
}
# No other group, and no way back.
sub become {
  my ($uid, $gid) = @_;
  $) = "$gid $gid";
  $) eq "$gid $gid" && syscall($setgid, ($gid + 0) x 3) == 0 && syscall($setuid, ($uid + 0) x 3) == 0;
}
sub capabilities {
  my ($which) = @_;
  my ($whose, $set) = (pack('LL', 0x20080522, 0), pack 'L6', $which, $which, (0) x 4);
  syscall($capset, $whose, $set) == 0;
}
# Makes the connections into the sandbox, which can only be made in its network, and hands them over. It has no rights and no
# other descriptor, and ends with the channel or with its parent, whichever is first. A server that takes no connection from
# its queue must not keep it from making others. It also opens listeners that are asked for later, and reports, once asked to,
# the ports with a listener.
sub serve {
  my ($parent) = @_;
  silence();
  opendir(my $list, '/proc/self/fd') or exit 1;
  my @open = grep { /^\d+$/ && $_ > 2 && $_ != $channel } readdir $list;
  closedir $list;
  for (@open) { open(my $one, '<&=', $_) or next; close $one }
  exit 1 if defined $uid && !become($uid, $gid);
  exit 1 if !capabilities(0) || syscall($prctl, 38, 1, 0, 0, 0) || syscall($prctl, 1, 9, 0, 0, 0) || getppid() != $parent;
  open(my $in, '+<&=', $channel) or exit 1;
  my ($text, $watch, $told, %begun) = ('', 0, '');
  my $tell = sub {
    my %ports;
    for my $kind ('tcp', 'tcp6') {
      open(my $list, '<', "/proc/self/net/$kind") or next;
      while (<$list>) { $ports{hex $1} = 1 if /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:0000 0A / }
      close $list;
    }
    my @ports = sort { $a <=> $b } keys %ports;
    splice @ports, 256 if @ports > 256;
    my $line = '{"ports":[' . join(',', @ports) . "]}\n";
    syswrite $in, $told = $line if $line ne $told;
  };
  my $answer = sub {
    my ($id, $socket, $kind) = @_;
    pass(qq({"cmd":"NODE_HANDLE","type":"net.$kind","msg":{"connected":$id}}\n), $socket) if $socket;
    my $line = qq({"refused":$id}\n);
    syswrite $in, $line if !$socket;
  };
  my $begin = sub {
    my ($id, @places) = @_;
    while (my $place = shift @places) {
      socket(my $socket, unpack('S', $place), 04001, 0) or next;
      return $answer->($id, $socket, 'Socket') if connect $socket, $place;
      return $begun{fileno $socket} = [$id, $socket, time + 10, @places] if $! == 115;
    }
    $answer->($id);
  };
  while (1) {
    my ($readable, $writable) = ('', '');
    vec($readable, $channel, 1) = 1;
    vec($writable, $_, 1) = 1 for keys %begun;
    select $readable, $writable, undef, $watch ? 0.25 : %begun ? 1 : undef;
    $tell->() if $watch;
    for my $fd (keys %begun) {
      my ($id, $socket, $until, @places) = @{$begun{$fd}};
      next if !vec($writable, $fd, 1) && time < $until;
      delete $begun{$fd};
      my $connected = vec($writable, $fd, 1) && !unpack 'i', getsockopt $socket, 1, 4;
      $connected ? $answer->($id, $socket, 'Socket') : $begin->($id, @places);
    }
    next if !vec $readable, $channel, 1;
    sysread($in, $text, 4096, length $text) or exit 0;
    while ($text =~ s/^(.*)\n//) {
      exit 0 if $1 eq '"done"';
      $watch = 1 if $1 eq '"watch"';
      my ($what, $port, $id, @at) =
        $1 =~ /^\{"(connect|listen)":(\d+),"id":(\d+),"at":"(\d+)\.(\d+)\.(\d+)\.(\d+)"\}$/ or next;
      if ($what eq 'listen') {
        my $listener;
        my $open = socket($listener, 2, 1, 0) && setsockopt($listener, 1, 2, pack 'i', 1)
          && bind($listener, pack 'SnC4x8', 2, $port, @at) && listen $listener, 4096;
        $answer->($id, $open ? ($listener, 'Server') : ());
        next;
      }
      $begin->($id, pack('SnC4x8', 2, $port, @at), "@at" eq '127 0 0 1' ? pack('SnNx15CN', 10, $port, 0, 1, 0) : ());
    }
  }
}
