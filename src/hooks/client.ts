// hooks/client.ts: the program inside that an agent's own hooks are: it asks at the door and ends with the answer.
// Invariant: it ends with 0 only if the door said yes, and with 2 whatever else happens: most agents go on after any other status.
// It needs no more of Perl than the smallest installation has.
import { PLAIN_YES } from './door.ts';

export const CLIENT_PATH = '/run/ags/hook';

/** -T: Perl takes no options or libraries from the environment. */
export function clientCommand(perl: readonly string[]): readonly string[] {
  return [...perl, '-T', CLIENT_PATH];
}

export function hookClient(port: number, seconds: number): string {
  return `#!/usr/bin/perl -T
# Asks the hooks outside about what an agent does: its JSON on stdin, the event's name as the argument. Exit 0: yes. 2: no.
use strict;
sub refuse { my ($why) = @_; $why =~ s/\\s+\\z//; print STDERR "$why\\n"; exit 2 }
$SIG{PIPE} = 'IGNORE';
$SIG{ALRM} = sub { refuse('The hooks gave no answer within ${seconds} s, so this is refused.') };
$SIG{$_} = sub { refuse('The hooks were not asked to the end, so this is refused.') } for qw(HUP INT QUIT TERM);
alarm ${seconds};
my $reason = eval { ask() };
refuse("The hooks could not be asked, so this is refused: $@") unless defined $reason;
refuse($reason) if $reason ne '';
exit 0;

# Empty: yes.
sub ask {
  require Socket;
  my ($event) = ($ARGV[0] // '') =~ /\\A([A-Za-z0-9_.-]{1,64})\\z/ or die "the event has no name\\n";
  my $json = slurp(\\*STDIN, ${8 * 2 ** 20});
  socket(my $door, Socket::PF_INET(), Socket::SOCK_STREAM(), 0) or die "$!\\n";
  connect($door, Socket::pack_sockaddr_in(${port}, Socket::INADDR_LOOPBACK())) or die "$!\\n";
  my $request = join("\\r\\n", "POST /hook/$event HTTP/1.1", 'Host: 127.0.0.1', 'Accept: text/plain',
    'Content-Type: application/json', 'Content-Length: ' . length($json), 'Connection: close', '', $json);
  for (my $at = 0; $at < length $request;) {
    my $sent = syswrite $door, $request, 65536, $at;
    last unless defined $sent; # It may have answered already.
    $at += $sent;
  }
  my ($head, $text) = split /\\r\\n\\r\\n/, slurp($door, 1048576), 2;
  die "there was no answer\\n" unless defined $text && $head =~ m{\\AHTTP/1\\.1 (\\d{3}) };
  return '' if $1 eq '200' && $text eq ${perlText(PLAIN_YES)};
  die "the answer makes no sense\\n" if $1 eq '200';
  return $text eq '' ? 'This is refused.' : $text;
}

sub slurp {
  my ($from, $most) = @_;
  my $all = '';
  while (1) {
    my $read = sysread $from, $all, 65536, length $all;
    die "$!\\n" unless defined $read;
    return $all if $read == 0;
    die "it has more than $most bytes\\n" if length $all > $most;
  }
}
`;
}

function perlText(text: string): string {
  return `"${text.replace('\n', '\\n')}"`;
}
