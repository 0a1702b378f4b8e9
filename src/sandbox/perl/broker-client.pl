# broker-client.pl: how a program in a container finds the stream broker and takes what it hands over. A part of gate.pl,
# pause.pl, namespace-wrapper.pl and user-namespace-helper.pl. Expects sockets.pl and $recvmsg.
# Always: a program that does not find the broker, or hears only a part, ends with 96.
#
# The container may be faster than the broker.
sub meet {
  for (1 .. 1000) {
    socket(my $broker, 1, 1, 0) or exit 96;
    return $broker if connect $broker, pack 'Sa108', 1, "$_[0]/s";
    select undef, undef, undef, 0.01;
  }
  exit 96;
}
sub receive {
  my ($from) = @_;
  my (undef, @given) = receive_message($recvmsg, $from, 1) or exit 96;
  my $size = unpack 'N', read_exactly($from, 4) // exit 96;
  return \@given, unpack '(N/a*)*', read_exactly($from, $size) // exit 96;
}
