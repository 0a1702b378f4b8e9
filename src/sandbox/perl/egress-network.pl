# egress-network.pl: the egress network between the containers of nested Docker and the gateway. A part of
# user-namespace-helper.pl.
# Expects listeners.pl, $unshare, and as "name address mask" $EGRESS, its loopback, and $EGRESS_END and $ENGINE_END, the two
# ends of the way there.
# Always: whatever a container sends there comes to a listener of the runner or to nobody. It leads nowhere else: of its two
# interfaces one is the way in, and the other its own loopback.
#
# Gives an interface an address and brings it up. With a mask the loopback has a whole range, each address of which is its own.
sub interface {
  my ($name, $address, $mask) = @_;
  socket(my $any, 2, 2, 0) or fail('open a socket');
  for ([0x8916, $address], [0x891c, $mask]) {
    my $set = pack 'a16SnC4x16', $name, 2, 0, split /\./, $_->[1];
    ioctl $any, $_->[0], $set or fail("give $name an address");
  }
  bring_up($name);
}
sub attribute {
  my ($type, $data) = @_;
  my $all = pack('SS', 4 + length $data, $type) . $data;
  $all . "\0" x (-length($all) % 4);
}
# A pair of interfaces: one here, the other in the network of a descriptor. In the words of rtnetlink(7) and veth(4).
sub pair {
  my ($here, $there, $network) = @_;
  my $peer = "\0" x 16 . attribute(3, "$there\0") . attribute(28, pack 'i', fileno $network);
  my $link = "\0" x 16 . attribute(3, "$here\0") . attribute(18, attribute(1, 'veth') . attribute(2, attribute(1, $peer)));
  my ($kernel, $answer);
  socket($kernel, 16, 3, 0) && syswrite($kernel, pack('LSSLL', 16 + length $link, 16, 0x605, 1, 0) . $link)
    && sysread($kernel, $answer, 4096) or fail('make a way to the egress network');
  $! = -unpack 'x16l', $answer; fail('make a way to the egress network') if $!;
}
# Leaves this process in it, with its listeners handed over; they keep it. The engine's end waits in its network for
# join_egress.
sub make_egress {
  my ($network, @listeners) = @_;
  my ($here, @place) = split / /, $EGRESS_END;
  my ($there) = split / /, $ENGINE_END;
  syscall($unshare, 0x40000000) == 0 or fail('make the egress network');
  interface(split / /, $EGRESS);
  pair($here, $there, $network);
  interface($here, @place);
  open_listeners(0, @listeners);
}
sub join_egress { interface(split / /, $ENGINE_END) }
