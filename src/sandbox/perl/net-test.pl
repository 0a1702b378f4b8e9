# net-test.pl: which hosts can a program in a sandbox reach? ags net test runs it inside, by perl -e, and it does what every other
# program there would do.
# Always: each answer is one line of plain text: host:port, verdict, milliseconds, reason.
#
# Arguments: the port of the proxy, then host:port. Eight at a time.
use strict; use warnings; use Socket; use Time::HiRes 'time'; $| = 1;
my ($proxy, @places) = @ARGV;
sub ask {
  my ($place) = @_;
  my $began = time;
  my $say = sub {
    my ($kind, $text) = @_;
    $text =~ s/[^\x20-\x7e]/ /g;
    printf "%s\t%s\t%d\t%s\n", $place, $kind, (time - $began) * 1000, $text;
  };
  $SIG{ALRM} = sub { $say->('unreachable', 'no answer in 30 seconds'); exit };
  alarm 30;
  my $s;
  socket($s, PF_INET, SOCK_STREAM, 0) && connect($s, pack_sockaddr_in($proxy, INADDR_LOOPBACK))
    or return $say->('refused', 'there is no gateway: the network is off');
  select((select($s), $| = 1)[0]);
  print $s $place =~ /:80$/ ? "HEAD http://$place/ HTTP/1.1\r\nHost: $place\r\nConnection: close\r\n\r\n"
    : "CONNECT $place HTTP/1.1\r\nHost: $place\r\n\r\n";
  my $head = '';
  while ($head !~ /\r\n\r\n/ && sysread $s, my $more, 4096) { $head .= $more }
  my ($status, $reason) = $head =~ m{^HTTP/1\.[01] (\d+) ?([^\r]*)} or return $say->('unreachable', 'no answer');
  return $say->('refused', $reason) if $head =~ /^X-Ags: policy/mi;
  return $say->('unreachable', $reason) if $head =~ /^X-Ags: gateway/mi;
  $say->('reachable', '');
}
my $running = 0;
for my $place (@places) {
  if ($running >= 8) { wait; $running-- }
  $running++;
  next if fork;
  ask($place); exit;
}
1 while wait != -1;
