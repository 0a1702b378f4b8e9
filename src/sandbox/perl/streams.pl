# streams.pl: the standard streams of a command on their way into a sandbox. A part of the launcher and stream-broker.pl.
# Expects $dup, hang_up() and fail().
# Always: no descriptor of a file of the host gets in.
#
# A descriptor can be opened again through /proc/self/fd, with rights that it does not have: a file given for reading could be
# written, a file given for appending could be emptied. Pipes without a name, sockets, terminals and devices like /dev/null
# are safe from that; anything else is put behind a pipe, and a process outside copies.
#
# The process that copies the input leaves the file at the offset that the command reached, for the next reader: a shell's
# loop, for example. Bytes still in the pipe count as not read; the sandbox may have put more in, so the offset is never
# before the first one. It ends with its parent. The process that copies output ends when the last writer has gone; a failed
# write makes an exit code of 0 a 1, by its own line on the status descriptor. Both keep the descriptor of the word to go
# open, so Node waits for them.
sub copy_in {
  my ($from, $read, $write) = @_;
  my $parent = $$;
  return if fork() // fail('fork');
  hang_up();
  my $life = syscall(434, $parent, 0);
  open(my $in, '<&=', $from);
  my $begin = sysseek $in, 0, 1;
  my ($ended, $have, $given, $total, $chunk) = (0, 0, 0, 0);
  $SIG{PIPE} = 'IGNORE';
  fcntl $write, 4, 04001;
  my $await = sub {
    my ($readable, $writable) = @_;
    my ($in_set, $out_set) = ('', '');
    vec($in_set, $life, 1) = 1 if $life >= 0;
    vec($in_set, fileno $in, 1) = 1 if $readable;
    vec($out_set, fileno $write, 1) = 1 if $writable;
    my $some = select $in_set, $out_set, undef, 0.5;
    $ended = 1 if getppid() != $parent || ($some > 0 && $life >= 0 && vec $in_set, $life, 1);
    return $some > 0 && (($readable && vec $in_set, fileno $in, 1) || ($writable && vec $out_set, fileno $write, 1));
  };
  until ($ended) {
    if ($given == $have) {
      next if !$await->(1, 0) || $ended;
      ($have, $given) = (sysread($in, $chunk, 65536), 0);
      last if !$have;
    }
    next if !$await->(0, 1) || $ended;
    my $size = syswrite($write, $chunk, $have - $given, $given) // next;
    $given += $size; $total += $size;
  }
  close $write;
  $await->(0, 0) until $ended;
  my $waiting = pack 'i', 0; ioctl $read, 0x541b, $waiting;
  my $used = $total - unpack 'i', $waiting;
  sysseek $in, $begin + ($used < 0 ? 0 : $used), 0 if $begin;
  exit 0;
}
sub copy_out {
  my ($to, $read, $write) = @_;
  return if fork() // fail('fork');
  hang_up();
  close $write;
  open(my $out, '>&=', $to);
  $SIG{PIPE} = $SIG{XFSZ} = 'IGNORE';
  while (my $size = sysread $read, my $chunk, 65536) {
    for (my $done = 0; $done < $size;) {
      $done += syswrite($out, $chunk, $size - $done, $done) // do {
        print STDERR "ags: the output could not be written: $!\n";
        open(my $report, '>&=', 5); syswrite $report, qq({ "output-lost": 1 }\n); exit 1;
      };
    }
  }
  exit 0;
}
sub put_files_behind_pipes {
  my %copied;
  for my $fd (7, 0, 1, 2) {
    my ($device, $inode, $mode, $special) = (stat "/proc/self/fd/$fd")[0, 1, 2, 6] or next;
    my ($type, $major) = ($mode >> 12, $special >> 8);
    next if $type == 12 || ($type == 1 && readlink("/proc/self/fd/$fd") =~ /^pipe:/);
    next if $type == 2 && ($major == 4 || $major == 5 || ($major >= 136 && $major <= 143));
    next if $type == 2 && grep { $special == 0x100 + $_ } 3, 5, 7, 8, 9;
    if ($type == 4) { print STDERR "ags: a directory cannot be standard input or output of a sandbox\n"; exit 96 }
    my $twin = $copied{"$device,$inode"};
    if (defined $twin && $fd == 2) { syscall($dup, $twin, $fd, 0) >= 0 or fail('pass the output on'); next }
    pipe(my $read, my $write) or fail('pipe');
    $fd % 7 ? copy_out($fd, $read, $write) : copy_in($fd, $read, $write);
    syscall($dup, fileno($fd % 7 ? $write : $read), $fd, 0) >= 0 or fail('pass a stream on');
    $copied{"$device,$inode"} = $fd if $fd == 1;
  }
}
