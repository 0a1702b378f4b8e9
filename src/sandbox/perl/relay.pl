# relay.pl: stands on the machine of a remote engine for the stream broker: the gate and the pause process meet it, and
# everything they exchange goes over its standard streams. The engine runs it by perl -e, in a container without a network or
# a right.
# Always: it ends with the connection, and the gate and the pause process with it, so everything.
#
# Arguments: syscall numbers. Its input begins with a list of words: ids; with or without a network and reach; what the
# streams are; which of the three are pipes; listeners; filter; working directory; environment; command. Then come frames: a
# letter, a number, a length, so many bytes. Streams 1 to 3 are the standard ones, $TERMINAL is the terminal, connections have
# numbers above 15.
use strict; use warnings; use POSIX ();
our ($MEETING_PLACE, $WINDOW, $MAX_FRAME, $MAX_STREAMS, $TERMINAL);
my ($sendmsg, $recvmsg) = map { $_ + 0 } split /,/, shift @ARGV;
sub fail { print STDERR "ags: $_[0]: $!\n"; exit 96 }
# include sockets.pl
# include broker-server.pl
my $size = unpack 'N', read_exactly(*STDIN, 4) // exit 96;
my ($uid, $gid, $network, $kind, $pipes, $listeners, $filter, $workdir, $env, @command) =
  unpack '(N/a*)*', read_exactly(*STDIN, $size) // exit 96;
my @listeners = split / /, $listeners;
$SIG{PIPE} = 'IGNORE';
chdir $MEETING_PLACE or fail('enter the meeting place');
my ($said, $heard) = ('', '');
sub frame { my ($what, $id, $body) = @_; $said .= pack 'aNN/a*', $what, $id, $body }
sub flush {
  while (length $said) {
    my $size = syswrite STDOUT, $said;
    if (defined $size) { substr $said, 0, $size, ''; next }
    exit 96 if !$!{EAGAIN};
    select undef, my $set = "\2", undef, undef;
  }
}
sub take {
  my ($text, $fd) = receive_message($recvmsg, $_[0], 65536) or return;
  my $socket;
  if (defined $fd) { open($socket, '+<&=', $fd) or fail('take a socket') }
  return $text, $socket;
}
my ($gating, $pausing) = (expect('gate'), $network eq '' ? undef : expect('pause'));
frame('l', 0, ''); flush();
my ($pause, $channel, @open);
if ($pausing) {
  socketpair($channel, my $theirs, 1, 1, 0) or fail('make a channel');
  $pause = welcome('pause', $pausing, [fileno $theirs], $uid, $gid, $network, @listeners);
  close $theirs;
  while (@open < @listeners) {
    my ($line, $socket) = take($channel) or hear($pause, 'pause');
    $line =~ /"listener":(\d+)/ && $socket && $1 == @open or fail('take the listeners');
    push @open, $socket;
  }
  if (!$network) { syswrite $channel, qq("done"\n); close $channel; undef $channel }
  hear($pause, 'pause');
}
my (%streams, @theirs, $master);
sub stream {
  my ($id, $from, $to) = @_;
  for ($from, $to) { fcntl $_, 4, 04002 if $_ }
  $streams{$id} = { from => $from, to => $to, may => $WINDOW, queue => '', last => 0 };
}
my $slave;
if ($kind ne 'plain') {
  sysopen($master, '/dev/ptmx', 0402) && ioctl($master, 0x40045431, my $no = pack 'i', 0) or fail('make a terminal');
  my $number = ioctl($master, 0x5441, 0402) or fail('open the terminal');
  open($slave, '+<&=', $number + 0) or fail('open the terminal');
  stream($TERMINAL, $master, $master);
}
for my $n (0 .. 2) {
  if (substr($pipes, $n, 1) eq 't') { $theirs[$n] = $slave; next }
  pipe(my $read, my $write) or fail('pipe');
  $theirs[$n] = $n == 0 ? $read : $write;
  $n == 0 ? stream(1, undef, $write) : stream($n + 1, $read, undef);
}
@theirs = ($slave, @theirs[1, 2, 0]) if $kind eq 'apart';
my $gate = welcome('gate', $gating, [map { fileno $_ } @theirs], $filter, $workdir, $kind, $env, @command);
close $_ for @theirs; @theirs = (); undef $slave;
sub from_gate { read_exactly($gate, $_[0]) // fail('hear the gate') }
my $first = from_gate(1);
if ($first ne 's') { my $why = <$gate>; print STDERR 'ags: ', $first eq 'f' ? $why : "the gate ended too early\n"; exit 96 }
my $facts = from_gate(unpack 'N', from_gate(4));
frame('p', 0, substr $facts, 0, $MAX_FRAME / 2, '') while length $facts;
from_gate(2) eq "r\n" or fail('hear the gate');
frame('r', 0, ''); flush();
fcntl $_, 4, 04002 for *STDIN, *STDOUT, @open, $channel // ();
my ($told, $next) = ('', 16);
sub gone { my ($id) = @_; my $one = delete $streams{$id} or return; close $_ for grep { $_ } $one->{from}, $one->{to} }
sub ended { my ($id) = @_; my $one = $streams{$id}; gone($id) if !$one->{from} && !$one->{to} }
sub pour {
  my ($id) = @_;
  my $one = $streams{$id} or return;
  while (length $one->{queue}) {
    my $size = syswrite $one->{to}, $one->{queue}, 65536;
    if (!defined $size) {
      return if $!{EAGAIN};
      if ($id == $TERMINAL) { return $one->{queue} = '' }
      frame('x', $id, ''); return gone($id);
    }
    substr $one->{queue}, 0, $size, '';
    frame('w', $id, pack 'N', $size);
  }
  return if !$one->{last};
  if (($one->{from} // '') eq $one->{to}) { shutdown $one->{to}, 1 } else { close $one->{to} }
  undef $one->{to}; ended($id);
}
sub arrived { my ($socket) = @_; my $id = $next++; stream($id, $socket, $socket); return $id }
sub ask {
  my ($what, $id, $body) = @_;
  my (@at) = unpack 'C4n', $body;
  syswrite $channel, sprintf qq({"%s":%d,"id":%d,"at":"%s"}\n), $what, pop @at, $id, join '.', @at if $channel;
}
my %on = (
  d => sub {
    my ($id, $body) = @_;
    my $one = $streams{$id};
    if ($one && $one->{to}) { $one->{queue} .= $body; length $one->{queue} <= $WINDOW or exit 96; pour($id) }
  },
  e => sub { my ($id) = @_; my $one = $streams{$id}; if ($one && $one->{to}) { $one->{last} = 1; pour($id) } },
  x => sub { gone($_[0]) },
  w => sub { my ($id, $body) = @_; $streams{$id}{may} += unpack 'N', $body if $streams{$id} },
  g => sub { syswrite $gate, 'g' if $gate },
  k => sub { syswrite $gate, 'k' . unpack('N', $_[1]) . "\n" if $gate },
  z => sub { if ($master) { my $size = pack 'S4', unpack('nn', $_[1]), 0, 0; ioctl $master, 0x5414, $size } },
  q => sub { my ($id) = @_; close $open[$id] if $open[$id]; undef $open[$id] },
  c => sub { ask('connect', @_) },
  b => sub { ask('listen', @_) },
  u => sub {
    my ($id, $body) = @_;
    my ($address, $port, $data) = unpack 'a4na*', $body;
    send $open[$id], $data, 0, pack 'Sna4x8', 2, $port, $address if $open[$id];
  },
);
sub answers {
  my ($text, $socket) = take($channel);
  if (!defined $text) { return if $!{EAGAIN}; close $channel; return undef $channel }
  for (split /\n/, $text) {
    if (/"refused":(\d+)/) { frame('n', $1, '') }
    elsif (/"connected":(\d+)/ && $socket) {
      my $asked = $1;
      if (/net.Server/) { fcntl $socket, 4, 04002; push @open, $socket; frame('B', $#open, pack 'N', $asked) }
      else { frame('o', arrived($socket), pack 'N', $asked) }
    }
  }
}
sub visit {
  my ($n) = @_;
  if (($listeners[$n] // '') =~ /^udp/) {
    my $peer = recv($open[$n], my $data, 4096, 0) or return;
    my (undef, $port, $address) = unpack 'Sna4', $peer;
    return frame('u', $n, pack 'a4na*', $address, $port, $data);
  }
  my $peer = accept(my $socket, $open[$n]) or return;
  my (undef, $port, $address) = unpack 'Sna4', getsockname $socket;
  frame('a', arrived($socket), pack 'Na4nn', $n, $address, $port, unpack 'x2n', $peer);
}
while (1) {
  my ($readable, $writable) = ('', '');
  vec($readable, 0, 1) = 1;
  vec($writable, 1, 1) = 1 if length $said;
  vec($readable, fileno $_, 1) = 1 for grep { $_ } $gate, $pause, $channel;
  if (length $said < 1048576) {
    vec($readable, fileno $_->{from}, 1) = 1 for grep { $_->{from} && $_->{may} > 0 } values %streams;
    vec($readable, fileno $_, 1) = 1 for scalar(keys %streams) < $MAX_STREAMS ? grep { $_ } @open : ();
  }
  vec($writable, fileno $_->{to}, 1) = 1 for grep { $_->{to} && length $_->{queue} } values %streams;
  next if select($readable, $writable, undef, undef) < 0;
  if (vec $readable, 0, 1) {
    my $size = sysread STDIN, $heard, 262144, length $heard;
    exit 0 if defined $size && $size == 0;
    while (length $heard >= 9) {
      my ($what, $id, $length) = unpack 'aNN', $heard;
      last if length $heard < 9 + $length;
      my $body = substr $heard, 9, $length;
      substr $heard, 0, 9 + $length, '';
      ($on{$what} // sub { exit 96 })->($id, $body);
    }
  }
  for my $id (keys %streams) {
    my $one = $streams{$id} or next;
    pour($id) if $one->{to} && length $one->{queue} && vec $writable, fileno $one->{to}, 1;
    next if !$streams{$id} || !$one->{from} || !vec $readable, fileno $one->{from}, 1;
    my $most = $one->{may} < 32768 ? $one->{may} : 32768;
    my $size = sysread($one->{from}, my $data, $most);
    next if !defined $size && $!{EAGAIN};
    if ($size) { $one->{may} -= $size; frame('d', $id, $data); next }
    if (!defined $size && $id > 15) { frame('x', $id, ''); gone($id); next }
    frame('e', $id, '');
    if ($id == $TERMINAL) { gone($id); next }
    close $one->{from} if !$one->{to};
    undef $one->{from}; ended($id);
  }
  for my $n (0 .. $#open) { visit($n) if $open[$n] && vec $readable, fileno $open[$n], 1 }
  answers() if $channel && vec $readable, fileno $channel, 1;
  exit 96 if $pause && vec $readable, fileno $pause, 1;
  if ($gate && vec $readable, fileno $gate, 1) { sysread($gate, $told, 64, length $told) or undef $gate }
  if (length $said) {
    my $size = syswrite STDOUT, $said;
    if ($size) { substr $said, 0, $size, '' } elsif (!$!{EAGAIN}) { exit 96 }
  }
  next if $gate || grep { $streams{$_} && $streams{$_}{from} } 2, 3, $TERMINAL;
  frame('v', 0, pack 'N', $told =~ /e(\d+)/ ? $1 : 137); flush();
  fcntl STDIN, 4, 0;
  # An engine under load may forget the last output of a container that is gone: it stays until its input ends, when Node has
  # it.
  1 while sysread STDIN, my $drop, 65536;
  exit 0;
}
