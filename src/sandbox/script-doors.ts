// sandbox/script-doors.ts: the doors of a sandbox, in Perl: parts of the launcher and of the holder of a container's network.
// Invariant: every socket is bound before anything of the sandbox runs, and handed over without being read.

/**
 * With a gateway the network namespace is made here and not by bwrap, because the doors must stand in it before anything runs.
 * Each is a socket that is bound here and then handed to Node, over the channel that Node has opened for its own messages, in
 * the words in which Node hands sockets to Node.
 *
 * Node says when it has them all, and only then we hang up: what it has not read by then, it would drop.
 *
 * Connections into the sandbox can only be made in its namespace: if there may be any, a process stays that makes them and
 * hands them over. It has no right and no other descriptor, and ends with the channel or with bwrap, whichever is first.
 * A server that takes no connection from its queue must not keep it from making others. It also opens doors that are asked for
 * later, and tells, once asked to, which ports somebody listens at.
 */
export const DOOR_SUBS = `sub pass {
  my ($line, $socket) = @_;
  my $rights = pack 'Qiiix4', 20, 1, 1, fileno $socket;
  my $data = pack 'PQ', $line, length $line;
  my $message = pack 'QLx4PQPQlx4', 0, 0, $data, 1, $rights, length $rights, 0;
  syscall($sendmsg, $channel, $message, 0x4000) == length $line;
}
sub open_doors {
  my ($first, @doors) = @_;
  for my $n (0 .. $#doors) {
    my ($protocol, $address, $port) = split /,/, $doors[$n];
    my ($kind, $type) = $protocol eq 'tcp' ? (1, '"net.Server"') : (2, '"dgram.Native"');
    socket(my $door, 2, $kind, 0) or fail('open a socket');
    bind($door, pack 'SnC4x8', 2, $port, split /\\./, $address) && ($kind == 2 || listen $door, 4096) or fail("open a door at $address, port $port");
    pass(qq({"cmd":"NODE_HANDLE","type":$type,"msg":{"door":@{[$first + $n]}}}\\n), $door) or fail('hand a door over');
  }
}
sub hang_up { return if !$channel; open(my $node, '<&=', $channel); close $node; $channel = 0 }
sub serve {
  my ($bwrap) = @_;
  open STDIN, '<', '/dev/null'; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null';
  opendir(my $list, '/proc/self/fd') or exit 1;
  my @open = grep { /^\\d+$/ && $_ > 2 && $_ != $channel } readdir $list;
  closedir $list;
  for (@open) { open(my $one, '<&=', $_) or next; close $one }
  if (defined $uid) {
    $) = "$gid $gid";
    exit 1 if $) ne "$gid $gid" || syscall($setgid, ($gid + 0) x 3) || syscall($setuid, ($uid + 0) x 3);
  }
  my ($whose, $nothing) = (pack('LL', 0x20080522, 0), pack 'L6', (0) x 6);
  exit 1 if syscall($capset, $whose, $nothing) || syscall($prctl, 38, 1, 0, 0, 0) || syscall($prctl, 1, 9, 0, 0, 0) || getppid() != $bwrap;
  open(my $in, '+<&=', $channel) or exit 1;
  my ($text, $watch, $told, %begun) = ('', 0, '');
  my $tell = sub {
    my %ports;
    for my $kind ('tcp', 'tcp6') {
      open(my $list, '<', "/proc/self/net/$kind") or next;
      while (<$list>) { $ports{hex $1} = 1 if /^\\s*\\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:0000 0A / }
      close $list;
    }
    my @ports = sort { $a <=> $b } keys %ports;
    splice @ports, 256 if @ports > 256;
    my $line = '{"ports":[' . join(',', @ports) . "]}\\n";
    syswrite $in, $told = $line if $line ne $told;
  };
  my $answer = sub {
    my ($id, $socket, $kind) = @_;
    pass(qq({"cmd":"NODE_HANDLE","type":"net.$kind","msg":{"connected":$id}}\\n), $socket) if $socket;
    my $line = qq({"refused":$id}\\n);
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
      vec($writable, $fd, 1) && !unpack('i', getsockopt $socket, 1, 4) ? $answer->($id, $socket, 'Socket') : $begin->($id, @places);
    }
    next if !vec $readable, $channel, 1;
    sysread($in, $text, 4096, length $text) or exit 0;
    while ($text =~ s/^(.*)\\n//) {
      exit 0 if $1 eq '"done"';
      $watch = 1 if $1 eq '"watch"';
      my ($what, $port, $id, @at) = $1 =~ /^\\{"(connect|listen)":(\\d+),"id":(\\d+),"at":"(\\d+)\\.(\\d+)\\.(\\d+)\\.(\\d+)"\\}$/ or next;
      if ($what eq 'listen') {
        my $door;
        my $open = socket($door, 2, 1, 0) && setsockopt($door, 1, 2, pack 'i', 1) && bind($door, pack 'SnC4x8', 2, $port, @at) && listen $door, 4096;
        $answer->($id, $open ? ($door, 'Server') : ());
        next;
      }
      $begin->($id, pack('SnC4x8', 2, $port, @at), "@at" eq '127 0 0 1' ? pack('SnNx15CN', 10, $port, 0, 1, 0) : ());
    }
  }
}
`;

export const LOOPBACK_UP = `  socket(my $any, 2, 2, 0) or fail('open a socket');
  my $loopback = pack 'a16sx22', 'lo', 0;
  ioctl $any, 0x8913, $loopback or fail('look at the loopback interface');
  $loopback = pack 'a16sx22', 'lo', 1 | unpack 'x16s', $loopback;
  ioctl $any, 0x8914, $loopback or fail('bring the loopback interface up');
  close $any;
`;

/** A network namespace with its loopback up. */
export const OWN_NETWORK = `  syscall($unshare, 0x40000000) == 0 or fail('make a network');
${LOOPBACK_UP}`;

/** Expects to stand in the sandbox's network, and Node's channel at $channel. */
export const OPEN_DOORS = `  open_doors(0, @doors);
  delete @ENV{'NODE_CHANNEL_FD', 'NODE_CHANNEL_SERIALIZATION_MODE'};
  if ($reach) { my $bwrap = $$; serve($bwrap) if !(fork() // fail('fork')); hang_up() }
`;
