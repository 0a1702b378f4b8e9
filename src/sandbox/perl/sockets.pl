# sockets.pl: descriptors and exact amounts of bytes over sockets. A part of several programs; expects nothing.
# Always: a call tells by its result whether everything went over; the caller decides what a failure means.
#
# One message with these descriptors; $number is that of sendmsg. A peer that is gone makes no signal.
sub send_message {
  my ($number, $to, $text, @descriptors) = @_;
  my $rights = pack 'Qii' . 'i' x @descriptors, 16 + 4 * @descriptors, 1, 1, @descriptors;
  my $data = pack 'PQ', $text, length $text;
  my $message = pack 'QLx4PQPQlx4', 0, 0, $data, 1, $rights, length $rights, 0;
  syscall($number, $to, $message, 0x4000) == length $text;
}
# The text and the descriptors of one message; nothing if there is none. $number is that of recvmsg.
sub receive_message {
  my ($number, $from, $size, $space) = (@_, 64);
  my ($text, $rights) = ("\0" x $size, "\0" x $space);
  my $data = pack 'PQ', $text, $size;
  my $message = pack 'QLx4PQPQlx4', 0, 0, $data, 1, $rights, $space, 0;
  my $got = syscall($number, fileno $from, $message, 0);
  return if $got <= 0;
  my $has_rights = unpack('x40Q', $message) >= 20;
  return substr($text, 0, $got), $has_rights ? unpack 'i*', substr $rights, 16, unpack('Q', $rights) - 16 : ();
}
sub read_exactly {
  my ($from, $size) = @_;
  my $all = '';
  while (length $all < $size) { sysread($from, $all, $size - length $all, length $all) or return undef }
  $all;
}
sub write_all {
  my ($to, $text) = @_;
  for (my $at = 0; $at < length $text;) { $at += syswrite($to, $text, length($text) - $at, $at) // return 0 }
  1;
}
sub silence { open STDIN, '<', '/dev/null'; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null' }
