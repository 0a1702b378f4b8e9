// sandbox/nested/egress-network.ts: the hall, a network between the containers of an engine inside and the gateway. Nothing is in it but doors.
// Invariant: whatever a container sends there comes to a door of the runner or to nobody. It leads nowhere else: of the two
// interfaces one is the way in, and the other its own loopback.
import type { Door } from '../../protocol/spec.ts';

/**
 * 100.64.0.0/10 is for whoever stands between a network and its customers (RFC 6598): no engine makes networks of it. The first half
 * is the hall, all of whose addresses are its own (FIRST_CONTAINER_NAME is the first that stands for a name); the way between the two
 * is in the second. The engine finds all of it at its end, and so needs no route.
 */
const HALL = { address: '100.64.0.1', mask: '255.224.0.0' } as const;
const HALL_END = { name: 'engine', address: '100.96.0.1', mask: '255.255.255.252' } as const;
const ENGINE_END = { name: 'ags0', address: '100.96.0.2', mask: '255.192.0.0' } as const;

/** What the engine may have of a network before it starts. */
export const ENGINE_INTERFACES = ['lo', ENGINE_END.name] as const;

/** Where containers ask for names. */
export const HALL_NAMES = HALL.address;

/** As in a sandbox: a proxy for whoever knows of one, names, and what they lead to. */
export const HALL_DOORS: readonly Door[] = [
  { name: 'proxy', protocol: 'tcp', address: HALL.address, port: 3128 },
  { name: 'tls', protocol: 'tcp', address: '0.0.0.0', port: 443 },
  { name: 'web', protocol: 'tcp', address: '0.0.0.0', port: 80 },
  { name: 'names', protocol: 'udp', address: HALL.address, port: 53 },
];

/** An address of an interface, which is then up. With it the loopback has a whole range, each address of which is its own. */
const INTERFACE = `sub interface {
  my ($name, $address, $mask) = @_;
  socket(my $any, 2, 2, 0) or fail('open a socket');
  for ([0x8916, $address], [0x891c, $mask]) {
    my $set = pack 'a16SnC4x16', $name, 2, 0, split /\\./, $_->[1];
    ioctl $any, $_->[0], $set or fail("give $name an address");
  }
  my $flags = pack 'a16sx22', $name, 0;
  ioctl $any, 0x8913, $flags or fail("look at $name");
  $flags = pack 'a16sx22', $name, 1 | unpack 'x16s', $flags;
  ioctl $any, 0x8914, $flags or fail("bring $name up");
}
`;

/** A pair of interfaces: one here, the other in the network that a descriptor stands for. In the words of rtnetlink(7) and veth(4). */
const PAIR = `sub attribute { my ($type, $data) = @_; my $all = pack('SS', 4 + length $data, $type) . $data; $all . "\\0" x (-length($all) % 4) }
sub pair {
  my ($here, $there, $network) = @_;
  my $peer = "\\0" x 16 . attribute(3, "$there\\0") . attribute(28, pack 'i', fileno $network);
  my $link = "\\0" x 16 . attribute(3, "$here\\0") . attribute(18, attribute(1, 'veth') . attribute(2, attribute(1, $peer)));
  my ($kernel, $answer);
  socket($kernel, 16, 3, 0) && syswrite($kernel, pack('LSSLL', 16 + length $link, 16, 0x605, 1, 0) . $link) && sysread($kernel, $answer, 4096) or fail('make a way to the hall');
  $! = -unpack 'x16l', $answer; fail('make a way to the hall') if $!;
}
`;

/**
 * `make_hall` leaves this process in it, with its doors handed over; they keep it. The engine's end waits in its network for
 * `join_hall`, from there.
 */
export const HALL_SUBS = `${INTERFACE}${PAIR}sub make_hall {
  my ($network, @doors) = @_;
  syscall($unshare, 0x40000000) == 0 or fail('make a hall');
  interface('lo', '${HALL.address}', '${HALL.mask}');
  pair('${HALL_END.name}', '${ENGINE_END.name}', $network);
  interface('${HALL_END.name}', '${HALL_END.address}', '${HALL_END.mask}');
  open_doors(0, @doors);
}
sub join_hall { interface('${ENGINE_END.name}', '${ENGINE_END.address}', '${ENGINE_END.mask}') }
`;
