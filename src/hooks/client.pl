# client.pl: runs inside as the agent's own hook. It asks the hooks outside about an action: JSON on stdin, the name of the event
# as argument. Started as perl -T /run/ags/hook <event>.
# Always: it exits with 0 only if the listener allowed the action, and with 2 in every other case, because most agents continue
# after any other status. It uses only modules of the smallest Perl installation.
use strict; use warnings;
our ($PORT, $SECONDS, $YES);
sub refuse { my ($why) = @_; $why =~ s/\s+\z//; print STDERR "$why\n"; exit 2 }
$SIG{PIPE} = 'IGNORE';
$SIG{ALRM} = sub { refuse("The hooks gave no answer within $SECONDS s, so this is refused.") };
$SIG{$_} = sub { refuse('The hooks were interrupted, so this is refused.') } for qw(HUP INT QUIT TERM);
alarm $SECONDS;
my $reason = eval { ask() };
refuse("The hooks could not be asked, so this is refused: $@") unless defined $reason;
refuse($reason) if $reason ne '';
exit 0;

# An empty reason means yes.
sub ask {
  require Socket;
  my ($event) = ($ARGV[0] // '') =~ /\A([A-Za-z0-9_.-]{1,64})\z/ or die "the event has no name\n";
  my $json = slurp(\*STDIN, 8 << 20);
  socket(my $listener, Socket::PF_INET(), Socket::SOCK_STREAM(), 0) or die "$!\n";
  connect($listener, Socket::pack_sockaddr_in($PORT, Socket::INADDR_LOOPBACK())) or die "$!\n";
  my $request = join("\r\n", "POST /hook/$event HTTP/1.1", 'Host: 127.0.0.1', 'Accept: text/plain',
    'Content-Type: application/json', 'Content-Length: ' . length($json), 'Connection: close', '', $json);
  for (my $at = 0; $at < length $request;) {
    my $sent = syswrite $listener, $request, 65536, $at;
    # The listener may have answered already.
    last unless defined $sent;
    $at += $sent;
  }
  my ($head, $text) = split /\r\n\r\n/, slurp($listener, 1048576), 2;
  die "there was no answer\n" unless defined $text && $head =~ m{\AHTTP/1\.1 (\d{3}) };
  return '' if $1 eq '200' && $text eq $YES;
  die "the answer is not valid\n" if $1 eq '200';
  return $text eq '' ? 'This is refused.' : $text;
}

sub slurp {
  my ($from, $most) = @_;
  my $all = '';
  while (1) {
    my $read = sysread $from, $all, 65536, length $all;
    die "$!\n" unless defined $read;
    return $all if $read == 0;
    die "it has more than $most bytes\n" if length $all > $most;
  }
}
