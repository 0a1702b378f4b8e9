// sandbox/far-scripts.ts: two small programs in Perl on the machine of a far engine, where nobody of ours is. The relay stands there for the
// usher: gate and holder meet it, and everything that they exchange goes over its standard streams. The ferry carries files in and out.
// Invariant: both end with the connection, and with the relay the gate and the holder, so everything. Neither has a network or a right.
import { MEETING_PLACE, WELCOME } from './docker-scripts.ts';

/** Where the volume of a run is, in a container of ours. */
export const FAR_PLACE = '/far';

/** How much of a stream may be on its way before the other side has taken it. */
export const WINDOW = 128 * 1024;
/** Of one frame. */
export const MAX_FRAME = 64 * 1024;
/** Streams at once: the rest waits at its door. */
export const MAX_STREAMS = 800;

/** Streams that every sandbox has; what comes to a door gets numbers above. */
export const STREAM = { stdin: 1, stdout: 2, stderr: 3, terminal: 4 } as const;

/** Its input ends when its last word has been heard: an engine under load may forget what a container has said that is gone. */
const STAY = `1 while sysread STDIN, my $drop, 65536;
`;

/**
 * Arguments: syscall numbers. Its input begins with a list of words: with or without a network and reach; what the streams are; which
 * of the three are pipes; doors; filter; working directory; environment; command. Then come frames: a letter, a number, a length, so many bytes.
 */
export const RELAY = `use strict; use POSIX ();
my ($sendmsg, $recvmsg) = map { $_ + 0 } split /,/, shift @ARGV;
sub fail { print STDERR "ags: $_[0]: $!\\n"; exit 96 }
sub first { my ($size) = @_; my $all = ''; while (length $all < $size) { sysread(STDIN, $all, $size - length $all, length $all) or exit 96 } $all }
my ($uid, $gid, $network, $kind, $pipes, $doors, $filter, $workdir, $env, @command) = unpack '(N/a*)*', first(unpack 'N', first(4));
my @doors = split / /, $doors;
$SIG{PIPE} = 'IGNORE';
chdir '${MEETING_PLACE}' or fail('enter the meeting place');
my ($said, $heard) = ('', '');
sub frame { my ($what, $id, $body) = @_; $said .= pack 'aNN/a*', $what, $id, $body }
sub flush {
  while (length $said) {
    my $size = syswrite STDOUT, $said;
    if (defined $size) { substr $said, 0, $size, ''; next }
    exit 96 if !$!{EAGAIN};
    select undef, my $set = "\\2", undef, undef;
  }
}
${WELCOME}sub take {
  my ($from) = @_;
  my ($text, $rights) = ("\\0" x 65536, "\\0" x 64);
  my $data = pack 'PQ', $text, length $text;
  my $message = pack 'QLx4PQPQlx4', 0, 0, $data, 1, $rights, length $rights, 0;
  my $size = syscall($recvmsg, fileno $from, $message, 0);
  return if $size <= 0;
  my $socket;
  if (unpack('x40Q', $message) >= 20) { open($socket, '+<&=', unpack 'x16i', $rights) or fail('take a socket') }
  return substr($text, 0, $size), $socket;
}
my ($gating, $holding) = (expect('gate'), $network eq '' ? undef : expect('holder'));
frame('l', 0, ''); flush();
my ($holder, $channel, @open);
if ($holding) {
  socketpair($channel, my $theirs, 1, 1, 0) or fail('make a channel');
  $holder = welcome('holder', $holding, [fileno $theirs], $uid, $gid, $network, @doors);
  close $theirs;
  while (@open < @doors) {
    my ($line, $socket) = take($channel) or hear($holder, 'holder');
    $line =~ /"door":(\\d+)/ && $socket && $1 == @open or fail('take the doors');
    push @open, $socket;
  }
  if (!$network) { syswrite $channel, qq("done"\\n); close $channel; undef $channel }
  hear($holder, 'holder');
}
my (%streams, @theirs, $master);
sub stream { my ($id, $from, $to) = @_; for ($from, $to) { fcntl $_, 4, 04002 if $_ } $streams{$id} = { from => $from, to => $to, may => ${WINDOW}, queue => '', last => 0 } }
my $slave;
if ($kind ne 'plain') {
  sysopen($master, '/dev/ptmx', 0402) && ioctl($master, 0x40045431, my $no = pack 'i', 0) or fail('make a terminal');
  my $number = ioctl($master, 0x5441, 0402) or fail('open the terminal');
  open($slave, '+<&=', $number + 0) or fail('open the terminal');
  stream(${STREAM.terminal}, $master, $master);
}
for my $n (0 .. 2) {
  if (substr($pipes, $n, 1) eq 't') { $theirs[$n] = $slave; next }
  pipe(my $read, my $write) or fail('pipe');
  $theirs[$n] = $n == 0 ? $read : $write;
  $n == 0 ? stream(${STREAM.stdin}, undef, $write) : stream($n + 1, $read, undef);
}
@theirs = ($slave, @theirs[1, 2, 0]) if $kind eq 'apart';
my $gate = welcome('gate', $gating, [map { fileno $_ } @theirs], $filter, $workdir, $kind, $env, @command);
close $_ for @theirs; @theirs = (); undef $slave;
sub from_gate { my ($size) = @_; my $all = ''; while (length $all < $size) { sysread($gate, $all, $size - length $all, length $all) or fail('hear the gate') } $all }
my $first = from_gate(1);
if ($first ne 's') { my $why = <$gate>; print STDERR 'ags: ', $first eq 'f' ? $why : "the gate ended too early\\n"; exit 96 }
my $facts = from_gate(unpack 'N', from_gate(4));
frame('p', 0, substr $facts, 0, ${MAX_FRAME / 2}, '') while length $facts;
from_gate(2) eq "r\\n" or fail('hear the gate');
frame('r', 0, ''); flush();
fcntl $_, 4, 04002 for *STDIN, *STDOUT, @open, $channel // ();
my ($told, $next, %asked) = ('', 16);
sub gone { my ($id) = @_; my $one = delete $streams{$id} or return; close $_ for grep { $_ } $one->{from}, $one->{to} }
sub ended { my ($id) = @_; my $one = $streams{$id}; gone($id) if !$one->{from} && !$one->{to} }
sub pour {
  my ($id) = @_;
  my $one = $streams{$id} or return;
  while (length $one->{queue}) {
    my $size = syswrite $one->{to}, $one->{queue}, 65536;
    if (!defined $size) { return if $!{EAGAIN}; if ($id == ${STREAM.terminal}) { return $one->{queue} = '' } frame('x', $id, ''); return gone($id) }
    substr $one->{queue}, 0, $size, '';
    frame('w', $id, pack 'N', $size);
  }
  return if !$one->{last};
  if (($one->{from} // '') eq $one->{to}) { shutdown $one->{to}, 1 } else { close $one->{to} }
  undef $one->{to}; ended($id);
}
sub arrived { my ($socket) = @_; my $id = $next++; stream($id, $socket, $socket); return $id }
sub ask { my ($what, $id, $body) = @_; my (@at) = unpack 'C4n', $body; syswrite $channel, sprintf qq({"%s":%d,"id":%d,"at":"%s"}\\n), $what, pop @at, $id, join '.', @at if $channel }
my %on = (
  d => sub { my ($id, $body) = @_; my $one = $streams{$id}; if ($one && $one->{to}) { $one->{queue} .= $body; length $one->{queue} <= ${WINDOW} or exit 96; pour($id) } },
  e => sub { my ($id) = @_; my $one = $streams{$id}; if ($one && $one->{to}) { $one->{last} = 1; pour($id) } },
  x => sub { gone($_[0]) },
  w => sub { my ($id, $body) = @_; $streams{$id}{may} += unpack 'N', $body if $streams{$id} },
  g => sub { syswrite $gate, 'g' if $gate },
  k => sub { syswrite $gate, 'k' . unpack('N', $_[1]) . "\\n" if $gate },
  z => sub { ioctl $master, 0x5414, my $size = pack 'S4', unpack('nn', $_[1]), 0, 0 if $master },
  q => sub { my ($id) = @_; close $open[$id] if $open[$id]; undef $open[$id] },
  c => sub { ask('connect', @_) },
  b => sub { ask('listen', @_) },
  u => sub { my ($id, $body) = @_; my ($address, $port, $data) = unpack 'a4na*', $body; send $open[$id], $data, 0, pack 'Sna4x8', 2, $port, $address if $open[$id] },
);
sub answers {
  my ($text, $socket) = take($channel);
  if (!defined $text) { return if $!{EAGAIN}; close $channel; return undef $channel }
  for (split /\\n/, $text) {
    if (/"refused":(\\d+)/) { frame('n', $1, '') }
    elsif (/"connected":(\\d+)/ && $socket) {
      my $asked = $1;
      if (/net.Server/) { fcntl $socket, 4, 04002; push @open, $socket; frame('B', $#open, pack 'N', $asked) }
      else { frame('o', arrived($socket), pack 'N', $asked) }
    }
  }
}
sub visit {
  my ($n) = @_;
  if (($doors[$n] // '') =~ /^udp/) {
    my $peer = recv $open[$n], my $data, 4096, 0 or return;
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
  vec($readable, fileno $_, 1) = 1 for grep { $_ } $gate, $holder, $channel;
  if (length $said < 1048576) {
    vec($readable, fileno $_->{from}, 1) = 1 for grep { $_->{from} && $_->{may} > 0 } values %streams;
    vec($readable, fileno $_, 1) = 1 for scalar(keys %streams) < ${MAX_STREAMS} ? grep { $_ } @open : ();
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
    my $size = sysread $one->{from}, my $data, $most;
    next if !defined $size && $!{EAGAIN};
    if ($size) { $one->{may} -= $size; frame('d', $id, $data); next }
    if (!defined $size && $id > 15) { frame('x', $id, ''); gone($id); next }
    frame('e', $id, '');
    if ($id == ${STREAM.terminal}) { gone($id); next }
    close $one->{from} if !$one->{to};
    undef $one->{from}; ended($id);
  }
  for my $n (0 .. $#open) { visit($n) if $open[$n] && vec $readable, fileno $open[$n], 1 }
  answers() if $channel && vec $readable, fileno $channel, 1;
  exit 96 if $holder && vec $readable, fileno $holder, 1;
  if ($gate && vec $readable, fileno $gate, 1) { sysread($gate, $told, 64, length $told) or undef $gate }
  if (length $said) { my $size = syswrite STDOUT, $said; if ($size) { substr $said, 0, $size, '' } elsif (!$!{EAGAIN}) { exit 96 } }
  next if $gate || grep { $streams{$_} && $streams{$_}{from} } ${STREAM.stdout}, ${STREAM.stderr}, ${STREAM.terminal};
  frame('v', 0, pack 'N', $told =~ /e(\\d+)/ ? $1 : 137); flush();
  fcntl STDIN, 4, 0;
  ${STAY}  exit 0;
}
`;

const RECORDS = `my ($statx, $utimensat, $setgid, $setuid) = map { $_ + 0 } split /,/, shift @ARGV;
my ($uid, $gid) = splice @ARGV, 0, 2;
sub fail { print STDERR "ags: $_[0]: $!\\n"; exit 96 }
sub facts {
  my $facts = "\\0" x 256; my $path = "$_[0]\\0";
  return if syscall $statx, -100, $path, 0x100, 0xfff, $facts;
  my ($mode, $inode, $size) = unpack 'x28Sx2QQ', $facts;
  my ($changed, $changed_n, $written, $written_n) = unpack 'x96qLx4qL', $facts;
  return { mode => $mode, inode => $inode, size => $size, changed => sprintf('%020d.%09d', $changed, $changed_n), written => [$written, $written_n] };
}
`;

/**
 * Carries files in: records of a letter, a mode, a time, a size and a path, and so many bytes after them. What it has written is
 * remembered by inode, beside the files, so that later only what was changed need come back.
 */
export const FERRY_IN = `use strict;
${RECORDS}chdir '${FAR_PLACE}' or fail('enter the volume');
my @places = ('d', 'meet', 'meet/gate', 'meet/holder');
for (@places) { mkdir $_ or fail("make $_") }
for (reverse '.', @places) { chmod(0755, $_) && chown($uid, $gid, $_) or fail("give $_ away") }
$) = "$gid $gid";
$) eq "$gid $gid" && syscall($setgid, ($gid + 0) x 3) == 0 && syscall($setuid, ($uid + 0) x 3) == 0 or fail('give root up');
umask 0;
binmode STDIN;
sub whole { my ($size) = @_; my $all = ''; while (length $all < $size) { read(STDIN, $all, $size - length $all, length $all) or fail('the files did not all arrive') } $all }
sub date { my ($path, $seconds, $rest) = @_; my $times = pack 'qqqq', $seconds, $rest, $seconds, $rest; $path .= "\\0"; syscall $utimensat, -100, $path, $times, 0x100 }
my (@dirs, @sent);
while (1) {
  my ($kind, $mode, $seconds, $rest, $size, $length) = unpack 'aNq>NQ>n', whole(27);
  last if $kind eq 'z';
  my $path = 'd/' . whole($length);
  push @sent, $path;
  if ($kind eq 'd') { mkdir $path, 0700 or fail("make $path"); push @dirs, [$path, $mode, $seconds, $rest]; next }
  if ($kind eq 'l') { symlink whole($size), $path or fail("make $path"); date($path, $seconds, $rest); next }
  sysopen(my $file, $path, 0301, 0600) or fail("write $path");
  while ($size > 0) { my $part = whole($size < 1048576 ? $size : 1048576); $size -= length $part; print $file $part or fail("write $path") }
  close $file or fail("write $path");
  chmod $mode, $path; date($path, $seconds, $rest);
}
for (reverse @dirs) { my ($path, $mode, @time) = @$_; chmod $mode, $path; date($path, @time) }
open(my $list, '>', 'sent') or fail('remember what was sent');
print $list pack 'n/a*Q', $_, facts($_)->{inode} for @sent;
close $list or fail('remember what was sent');
open($list, '>', 'mark') && close $list or fail('remember when');
syswrite STDOUT, "ok\\n";
${STAY}`;

/** Carries out what is new, changed or gone below the places that are named: first what is gone, innermost first. */
export const FERRY_OUT = `use strict;
${RECORDS}chdir '${FAR_PLACE}' or fail('enter the volume');
my $mark = (facts('mark') // fail('read the mark'))->{changed};
my (%sent, %seen, @new);
open(my $list, '<', 'sent') or fail('read what was sent');
binmode $list; binmode STDOUT;
while (read $list, my $length, 2) { read $list, my $path, unpack 'n', $length; read $list, my $inode, 8; $sent{$path} = unpack 'Q', $inode }
my @todo = map { "d/$_" } @ARGV;
my $roots = join '|', map { quotemeta } @todo;
while (defined(my $path = pop @todo)) {
  my $facts = facts($path) or next;
  my $type = $facts->{mode} >> 12;
  next if $type != 4 && $type != 8 && $type != 10;
  $seen{$path} = 1;
  push @new, $path if ($sent{$path} // -1) != $facts->{inode} || $facts->{changed} gt $mark;
  next if $type != 4;
  chmod 0700 | $facts->{mode} & 07777, $path if ($facts->{mode} & 0500) != 0500;
  my $more;
  if (opendir $more, $path) { push @todo, map { "$path/$_" } grep { $_ ne '.' && $_ ne '..' } readdir $more; closedir $more }
  chmod $facts->{mode} & 07777, $path if ($facts->{mode} & 0500) != 0500;
}
sub record { my ($kind, $path, $facts, $size) = @_; print pack 'aNq>NQ>n/a*', $kind, $facts->{mode} & 0777, @{$facts->{written}}, $size, substr $path, 2 }
my $nothing = { mode => 0, written => [0, 0] };
for (sort { $b cmp $a } grep { /^(?:$roots)\\// && !$seen{$_} } keys %sent) { record('x', $_, $nothing, 0) }
for my $path (sort @new) {
  my $facts = facts($path) or next;
  my $type = $facts->{mode} >> 12;
  if ($type == 4) { record('d', $path, $facts, 0); next }
  if ($type == 10) { my $to = readlink $path; record('l', $path, $facts, length $to); print $to; next }
  my $file;
  if (!sysopen $file, $path, 0400000) {
    chmod 0400 | $facts->{mode} & 07777, $path;
    my $open = sysopen $file, $path, 0400000;
    chmod $facts->{mode} & 07777, $path;
    next if !$open;
  }
  record('f', $path, $facts, $facts->{size});
  my $left = $facts->{size};
  while ($left > 0) { my $size = sysread $file, my $part, $left < 1048576 ? $left : 1048576; fail("read $path") if !$size; print $part; $left -= $size }
}
record('z', 'd/', $nothing, 0);
close STDOUT or fail('send the files');
${STAY}`;
