# inside-host.pl: starts the programs of a run inside its sandbox: the agent, and whatever joins it later (a shell of the
# user's, a formatter). All of them are its children, so they are under the same filter, limits and namespaces without
# anything having to be applied again. The backend starts it as perl /run/ags/host <port> [command ...].
# Always: it has no more rights than the agent, and nobody outside believes what it says beyond bytes and an exit code.
#
# It runs the command and ends with it; without one it stays until the sandbox is ended. It listens on the sandbox's own
# loopback; the runner comes in by Sandbox.connect. A program inside can connect as well: it gets nothing that it could not do
# by itself. A connection sends a line "tty|pipe|split columns rows count" (split: errors apart from output), then as many
# lines as count says, each a word of the command in hexadecimal, and then frames (lib/stream/frames.ts).
use strict; use warnings; no warnings 'exec'; use IO::Socket::INET; use POSIX ();
my $port = shift;
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 16, ReuseAddr => 1);
pipe(my $woken, my $wake) or die;
fcntl $_, 4, 04001 for $woken, $wake, $listener ? $listener : ();
$SIG{CHLD} = sub { syswrite $wake, '.' };
$SIG{INT} = $SIG{QUIT} = 'IGNORE';
my $main = 0;
$SIG{TERM} = sub { kill 'TERM', $main if $main };
sub status { my ($s) = @_; return $s & 127 ? 128 + ($s & 127) : $s >> 8 }
$main = @ARGV ? fork() // die : 0;
if (@ARGV && !$main) {
  close $listener if $listener; close $woken; close $wake;
  $SIG{$_} = 'DEFAULT' for qw(INT QUIT TERM CHLD);
  exec { $ARGV[0] } @ARGV or print STDERR "ags: $ARGV[0]: $!\n";
  POSIX::_exit($!{ENOENT} ? 127 : 126);
}
while (1) {
  while ((my $pid = waitpid -1, 1) > 0) { POSIX::_exit(status($?)) if $pid == $main }
  my $set = ''; vec($set, fileno $woken, 1) = 1; vec($set, fileno $listener, 1) = 1 if $listener;
  my $some = select $set, undef, undef, undef;
  sysread $woken, my $drop, 4096;
  next unless $some > 0 && $listener && vec $set, fileno $listener, 1;
  my $guest = $listener->accept or next;
  my $pid = fork() // next;
  if (!$pid) { close $listener; close $woken; close $wake; $SIG{CHLD} = 'DEFAULT'; serve($guest); POSIX::_exit(0) }
}
sub serve {
  my ($guest) = @_;
  my @words;
  my $line = sub {
    my $text = '';
    while (sysread $guest, my $c, 1) { return $text if $c eq "\n"; $text .= $c; POSIX::_exit(1) if length $text > 1048576 }
    POSIX::_exit(1);
  };
  my ($mode, $cols, $rows, $count) = $line->() =~ /^(tty|pipe|split) (\d{1,5}) (\d{1,5}) (\d{1,4})$/ or POSIX::_exit(1);
  push @words, pack 'H*', $line->() for 1 .. $count;
  my ($in, $out, $slave);
  if ($mode eq 'tty') {
    open $in, '+<', '/dev/ptmx' or POSIX::_exit(1);
    my ($unlock, $number) = (pack('i', 0), pack 'i', 0);
    ioctl $in, 0x40045431, $unlock; ioctl $in, 0x80045430, $number;
    my $size = pack 'S4', $rows, $cols, 0, 0; ioctl $in, 0x5414, $size;
    open $slave, '+<', '/dev/pts/' . unpack 'i', $number or POSIX::_exit(1);
    $out = $in;
  }
  my ($from_in, $to_in, $from_out, $to_out, $from_err, $to_err);
  if ($mode ne 'tty') { pipe $from_in, $to_in; pipe $from_out, $to_out; ($in, $out) = ($to_in, $from_out) }
  if ($mode eq 'split') { pipe $from_err, $to_err }
  my $pid = fork() // POSIX::_exit(1);
  if (!$pid) {
    POSIX::setsid();
    $SIG{$_} = 'DEFAULT' for qw(INT QUIT TERM PIPE);
    if ($slave) { my $none = 0; ioctl $slave, 0x540e, $none }
    my ($i, $o) = $slave ? ($slave, $slave) : ($from_in, $to_out);
    POSIX::dup2(fileno $i, 0); POSIX::dup2(fileno $o, 1); POSIX::dup2(fileno($to_err // $o), 2);
    POSIX::close($_) for 3 .. 63;
    exec { $words[0] } @words or print STDERR "ags: $words[0]: $!\n";
    POSIX::_exit($!{ENOENT} ? 127 : 126);
  }
  close $_ for grep { $_ } $slave, $from_in, $to_out, $to_err;
  $SIG{PIPE} = 'IGNORE';
  fcntl $_, 4, 04001 | ($_ == $in && $mode eq 'tty' ? 2 : 0) for grep { $_ } $guest, $in, $out, $from_err;
  my ($got, $to_program, $to_guest, $input_over) = ('', '', '', 0);
  # The guest is always read, or nobody would notice that it is gone; it is asked to wait instead.
  my $waits = 0;
  my $flow = sub {
    return if $waits ? length($to_program) >= 65536 : length($to_program) < 262144;
    $waits = 1 - $waits; $to_guest .= 's' . pack('N', 1) . chr(1 - $waits);
  };
  my @outs = ([$out, 'd'], $from_err ? [$from_err, 'r'] : ());
  my $ended;
  while (1) {
    # A program may close its output and go on.
    if (!@outs && !defined $ended) { $ended = $? if waitpid $pid, 1 }
    last if defined $ended && $to_guest eq '';
    my ($read, $write) = ('', '');
    vec($read, fileno $guest, 1) = 1;
    if (length($to_guest) < 262144) { vec($read, fileno $_->[0], 1) = 1 for @outs }
    vec($write, fileno $guest, 1) = 1 if $to_guest ne '';
    vec($write, fileno $in, 1) = 1 if $in && $to_program ne '';
    next unless select($read, $write, undef, @outs ? undef : 0.05) > 0;
    for my $one (my @ready = grep { vec $read, fileno $_->[0], 1 } @outs) {
      my $size = sysread $one->[0], my $chunk, 65536;
      if ($size) { $to_guest .= $one->[1] . pack('N', $size) . $chunk }
      elsif (defined $size || !$!{EAGAIN}) { @outs = grep { $_ != $one } @outs }
    }
    if (vec $read, fileno $guest, 1) {
      my $size = sysread $guest, my $chunk, 65536;
      if (!$size && (defined $size || !$!{EAGAIN})) { kill 'HUP', -$pid, $pid; POSIX::_exit(0) }
      $got .= $chunk // '';
      while (length $got >= 5) {
        my ($kind, $length) = unpack 'aN', $got;
        POSIX::_exit(1) if $length > 1048576;
        last if length $got < 5 + $length;
        my $payload = substr $got, 5, $length; substr $got, 0, 5 + $length, '';
        if ($kind eq 'd') { $to_program .= $payload if $in; $flow->() }
        elsif ($kind eq 'e') { $input_over = 1; $to_program .= "\x04" if $mode eq 'tty' }
        elsif ($kind eq 'h') { kill 'HUP', -$pid, $pid }
        elsif ($kind eq 'w' && $mode eq 'tty') {
          my ($c, $r) = unpack 'nn', $payload;
          my $size = pack 'S4', $r, $c, 0, 0; ioctl $in, 0x5414, $size;
        }
      }
    }
    if ($in && $to_program ne '' && vec $write, fileno $in, 1) {
      my $size = syswrite $in, $to_program;
      if (defined $size) { substr $to_program, 0, $size, ''; $flow->() }
      elsif (!$!{EAGAIN}) { $to_program = ''; $flow->(); if ($mode ne 'tty') { close $in; $in = undef } }
    }
    if ($in && $input_over && $to_program eq '' && $mode ne 'tty') { close $in; $in = undef }
    if ($to_guest ne '' && vec $write, fileno $guest, 1) {
      my $size = syswrite $guest, $to_guest;
      if (defined $size) { substr $to_guest, 0, $size, '' } elsif (!$!{EAGAIN}) { kill 'HUP', -$pid, $pid; POSIX::_exit(0) }
    }
  }
  fcntl $guest, 4, 0;
  syswrite $guest, 'x' . pack('N', 1) . chr status($ended);
  # Who is still talking to a closed connection has it reset, and loses our last word with it.
  shutdown $guest, 1;
  alarm 60;
  1 while sysread $guest, my $drop, 65536;
}
