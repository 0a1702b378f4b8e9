// test/attacks/table-network.ts: attempts to reach anything over a network. There is none but the sandbox's own loopback.
import type { Attack } from './attack.ts';

const perl = String.raw;

export const NETWORK_ATTACKS: readonly Attack[] = [
  {
    id: 'A42',
    what: 'connect to the Internet, to private networks and to cloud metadata',
    perl: perl`for my $to (qw(1.1.1.1 93.184.216.34 10.0.0.1 192.168.0.1 172.17.0.1 169.254.169.254 100.64.0.1)) { for my $port (443, 80) { reach(PF_INET, SOCK_STREAM, 0, pack_sockaddr_in($port, inet_aton($to)), "$to:$port") } }`,
    expect: ['ENETUNREACH'],
  },
  {
    id: 'A42',
    what: 'connect over IPv6',
    perl: perl`for my $to ('2606:4700:4700::1111', 'fd00::1', 'fe80::1', 'fd00:ec2::254', '::ffff:1.1.1.1') { reach(PF_INET6, SOCK_STREAM, 0, Socket::pack_sockaddr_in6(443, Socket::inet_pton(PF_INET6, $to)), $to) }`,
    expect: ['ENETUNREACH', 'EADDRNOTAVAIL', 'EINVAL', 'EAFNOSUPPORT'],
  },
  {
    id: 'A42',
    what: 'connect to a server on the loopback of the host',
    perl: perl`for my $port ($V{LOOPBACK_PORT}, $V{ANY_PORT}) { for my $to ('127.0.0.1', '127.1.2.3', '0.0.0.0') { reach(PF_INET, SOCK_STREAM, 0, pack_sockaddr_in($port, inet_aton($to)), "$to:$port") } reach(PF_INET6, SOCK_STREAM, 0, Socket::pack_sockaddr_in6($port, Socket::inet_pton(PF_INET6, '::1')), "::1 $port") }`,
    expect: ['ECONNREFUSED', 'EADDRNOTAVAIL'],
  },
  {
    id: 'A42',
    what: 'connect to a server on every other address of the host',
    perl: perl`for my $to (split(' ', $V{ADDRESSES}), '224.0.0.1') { reach(PF_INET, SOCK_STREAM, 0, pack_sockaddr_in($V{ANY_PORT}, inet_aton($to)), $to) }`,
    expect: ['ENETUNREACH'],
  },
  {
    id: 'A42',
    what: 'resolve a name',
    perl: perl`for my $name (qw(example.com localhost.example.com metadata.google.internal)) { line(defined gethostbyname($name) ? 'resolved' : 'no name', $name) }`,
    expect: ['no name'],
  },
  {
    id: 'A42',
    what: 'learn of another proxy than the gateway, or use curl without one',
    perl: perl`for (sort keys %ENV) { print "$_ = a proxy\n" if /proxy/i && !/^no_proxy$/i && $ENV{$_} !~ m{^(1|http://127\.0\.0\.1:3128)$} } my $code = system('curl', '-s', '--noproxy', '*', '-m', '3', '-o', '/dev/null', 'https://1.1.1.1/') >> 8; line($code == 0 ? 'fetched' : 'failed', 'curl')`,
    expect: ['failed'],
  },
  {
    id: 'A42',
    what: 'have another interface, route or name server',
    perl: perl`my @names = slurp('/proc/net/dev') =~ /^\s*([^\s:]+):/mg; line("@names", 'interfaces'); my @routes = split /\n/, slurp('/proc/net/route'); line(@routes > 1 ? 'routes' : 'none', 'routes'); line(join(',', slurp('/etc/resolv.conf') =~ /^nameserver (.*)/mg) || 'none', 'name server')`,
    expect: ['lo', 'none', '127.0.0.1'],
  },
  {
    id: 'A69',
    what: 'send UDP and QUIC',
    perl: perl`for my $to ('1.1.1.1', '8.8.8.8', '169.254.169.254', split ' ', $V{ADDRESSES}) { socket(my $s, PF_INET, SOCK_DGRAM, 0) or die $!; tried(defined send($s, 'breach', 0, pack_sockaddr_in(53, inet_aton($to))), $to) } socket(my $s, PF_INET, SOCK_DGRAM, 0); setsockopt($s, SOL_SOCKET, 6, pack('i', 1)); tried(defined send($s, 'breach', 0, pack_sockaddr_in(9, inet_aton('255.255.255.255'))), 'broadcast')`,
    expect: ['ENETUNREACH'],
  },
  {
    id: 'A69',
    what: 'send ICMP, raw packets, SCTP',
    perl: perl`for ([PF_INET, SOCK_RAW, 1], [PF_INET, SOCK_RAW, 255], [PF_INET6, SOCK_RAW, 58], [PF_INET, SOCK_DGRAM, 1], [PF_INET6, SOCK_DGRAM, 58], [PF_INET, SOCK_STREAM, 132], [PF_INET, SOCK_SEQPACKET, 132], [PF_INET, SOCK_STREAM, 262]) { tried(socket(my $s, $_->[0], $_->[1], $_->[2]), "@$_") }`,
    expect: ['EPERM', 'EPROTONOSUPPORT'],
  },
  {
    id: 'A69',
    what: 'open families of sockets that no namespace confines, or that few people test',
    perl: perl`my %family = (VSOCK => 40, PACKET => 17, ALG => 38, BLUETOOTH => 31, XDP => 44, KEY => 15, RDS => 21, CAN => 29, TIPC => 30, NFC => 39, KCM => 41, SMC => 43, QIPCRTR => 42, AX25 => 3, LLC => 26, PPPOX => 24); for my $name (sort keys %family) { for my $type (SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET) { tried(socket(my $s, $family{$name}, $type, 0), "$name $type") } }`,
    expect: ['EAFNOSUPPORT'],
  },
  {
    id: 'A69',
    what: 'talk to the kernel over netlink beyond listing interfaces',
    perl: perl`for my $protocol (2, 4, 5, 6, 9, 12, 15, 16, 21) { tried(socket(my $s, 16, SOCK_RAW, $protocol), $protocol) } tried(socketpair(my $a, my $b, 16, SOCK_RAW, 0), 'pair')`,
    expect: ['EAFNOSUPPORT', 'EOPNOTSUPP'],
  },
  {
    id: 'A69',
    what: 'change loopback or make an interface',
    perl: perl`socket(my $s, PF_INET, SOCK_DGRAM, 0) or die $!; my $request = pack('a16', 'lo') . pack_sockaddr_in(0, inet_aton('10.9.9.9')) . "\0" x 16; tried(ioctl($s, 0x8916, $request), 'address'); $request = pack('a16S', 'lo', 0) . "\0" x 32; tried(ioctl($s, 0x8914, $request), 'flags'); socket(my $n, 16, SOCK_RAW, 0) or die $!; my $message = pack('LSSLL', 32, 16, 0x605, 1, 0) . pack('CxSlLL', 0, 0, 0, 0, 0); send $n, $message, 0; recv $n, my $reply, 4096, 0; my $error = unpack 'l', substr $reply, 16, 4; $! = -$error; tried($error == 0, 'new link')`,
    expect: ['EPERM', 'EACCES'],
  },
];
