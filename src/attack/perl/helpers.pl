# helpers.pl: functions for every attempt of ags doctor --attack. batch.pl runs it as text, and attempts send it
# to other places where they run programs: a service, a container.
# Always: an answer counts only if the attempt ran to its end; finish() prints that as the last line.
#
# %V are the places to attack, %NR the numbers of system calls, $HELPERS this text.
use Errno; use Fcntl qw(:DEFAULT :mode); use Socket; use POSIX ();
our (%V, %NR, $HELPERS);
our $END = 'the attempt has come to its end';
# The name of the last error. Each is looked up once, before there are a hundred processes.
our %WHY;
for (reverse sort keys %!) { $WHY{&{"Errno::$_"}()} = $_ unless /^(EWOULDBLOCK|EDEADLOCK|ENOTSUP)$/ }
sub why { my $n = $! + 0; $WHY{$n} // "error $n" }
# Prints one line of the answer; with a label when there are several.
sub line { my ($what, $label) = @_; print defined $label ? "$label = $what\n" : "$what\n" }
# Prints "done" where success is the breach, otherwise the name of the error.
sub tried { my ($ok, $label) = @_; line($ok ? 'done' : why(), $label) }
sub look { my ($path, $label) = @_; line(lstat($path) ? 'exists' : why(), $label // $path) }
sub get {
  my ($path) = @_;
  sysopen(my $f, $path, O_RDONLY | O_NONBLOCK) or return line(why(), $path);
  my $n = sysread($f, my $text, 80);
  line(defined $n ? "read $n bytes" : why(), $path);
}
# Opens for writing; writes only if "write" is given, so that a hole shows without harm.
sub put {
  my ($path, $write) = @_;
  sysopen(my $f, $path, O_WRONLY | O_APPEND | O_NONBLOCK | ($write ? O_CREAT : 0)) or return line(why(), $path);
  syswrite $f, "breach\n" if $write;
  line('opened for writing', $path);
}
sub call { my ($name, @rest) = @_; $! = 0; return syscall($NR{$name}, @rest) }
# An engine hides kernel files behind the null device.
sub covered { my ($path) = @_; return $path =~ m{^/proc/} && -c $path && (stat _)[6] == 0x103 }
sub slurp { my ($path) = @_; open my $f, '<', $path or return undef; local $/; my $text = <$f>; $text }
# Every attempt prints its end: one that was cut off might have been about to succeed.
sub finish { print "\n$END\n" }
sub whole { my ($text, $label) = @_; $text =~ s/\n$END\n\z// or $text .= "\n$label = was cut off\n"; $text }
# Describes how a process ended, if not by itself and with success.
sub ended {
  my ($how, $label) = @_;
  return "\n$label = ended by signal " . ($how & 127) . "\n" if $how & 127;
  return $how ? "\n$label = ended with status " . ($how >> 8) . "\n" : '';
}
# Runs a part of an attempt in its own process, which must run to its end as well.
sub apart {
  my ($part, $label) = @_;
  my $pid = fork // return line('no process: ' . why(), $label);
  if (!$pid) { $part->(); POSIX::_exit(0) }
  waitpid $pid, 0; print ended($?, $label);
}
# Connects, waiting at most a second.
sub reach {
  my ($domain, $type, $protocol, $address, $label) = @_;
  socket(my $s, $domain, $type, $protocol) or return line(why(), $label);
  my $flags = fcntl($s, F_GETFL, 0); fcntl($s, F_SETFL, $flags | O_NONBLOCK);
  if (connect $s, $address) { return line('connected', $label) }
  return line(why(), $label) unless $!{EINPROGRESS};
  my $set = ''; vec($set, fileno $s, 1) = 1; my $found = select(undef, $set, undef, 1);
  return line('no answer', $label) unless $found;
  $! = unpack 'i', getsockopt($s, SOL_SOCKET, SO_ERROR);
  line($! + 0 ? why() : 'connected', $label);
}
# A connection to a listener of the gateway: by default the proxy's, on loopback. Undefined: nothing listens.
sub enter { my ($port, $to) = @_; socket(my $s, PF_INET, SOCK_STREAM, 0) or return undef;
  connect($s, pack_sockaddr_in($port // $V{LISTENER}, inet_aton($to // '127.0.0.1'))) or return undef;
  $SIG{PIPE} = 'IGNORE'; return $s }
# With the network off there is no listener. With the network on, an attempt that found none was never made.
sub shut { $!{ECONNREFUSED} && $V{NETWORK} eq 'off' ? 'no network' : 'no door: ' . why() }
# Reads until the other side closes, the text matches, or three seconds have passed.
sub hear {
  my ($s, $until) = @_; my $text = ''; my $end = time + 3; our $OVER = 0;
  while (length $text < 200000) {
    last if defined $until && $text =~ $until;
    my $set = ''; vec($set, fileno $s, 1) = 1;
    if (time >= $end || !select $set, undef, undef, $end - time) { $OVER = 1; last }
    sysread $s, $text, 16384, length $text or last;
  }
  return $text;
}
# The answer in one word: the status, "closed" if it closed without an answer, the TLS alert, "no answer".
sub kind { my ($text) = @_; our $OVER;
  return $1 if $text =~ m{^HTTP/1\.[01] (\d\d\d)}; return $OVER ? 'no answer' : 'closed' if $text eq '';
  return 'denied' if $text eq "\x15\x03\x03\0\x02\x02\x31"; return 'alert' if $text =~ /^\x15/;
  return $text =~ /^\x16/ ? 'greeted' : 'answered' }
# Sends one request to a listener and returns the kind of its answer; the answer itself is in $ANSWER.
sub knock { my ($bytes, $port, $to) = @_; my $s = enter($port, $to) or return shut();
  syswrite $s, $bytes;
  our $ANSWER = hear($s, $bytes =~ /^CONNECT / ? qr/\r\n\r\n/ : $bytes =~ /^\x16/ ? qr/^(?:\x15.{6}|\x16)/s
    : $bytes =~ /^\x05/ ? qr/^\x05(?:\xff|\0\x05.|\x02\x01\x01|\x02\x01\0\x05.)/s : undef);
  return kind($ANSWER) }
sub door { my ($bytes, $label, $port, $to) = @_; line(knock($bytes, $port, $to), $label) }
# The same through a tunnel, once it is open.
sub through { my ($place, $bytes) = @_; my $s = enter() or return shut();
  syswrite $s, "CONNECT $place HTTP/1.1\r\nHost: $place\r\n\r\n";
  our $ANSWER = hear($s, qr/\r\n\r\n/); return kind($ANSWER) unless $ANSWER =~ m{^HTTP/1\.1 200 };
  syswrite $s, $bytes; $ANSWER = hear($s); return kind($ANSWER) }
# Verifies that allowed traffic works: without this, the other results of an attempt would mean little.
sub works { my ($got, $like, $label) = @_; line($got =~ /^(?:$like)$/ ? 'works' : "does not work: $got", $label) }
# Sends one query to the sandbox's name service; returns its answer, or undefined.
sub ask {
  my ($name, $type) = @_;
  my $labels = join '', map { pack 'C/a*', $_ } split /\./, $name;
  my $q = pack('n6', 7, 0x100, 1, 0, 0, 0) . "$labels\0" . pack 'nn', $type // 1, 1;
  socket(my $s, PF_INET, SOCK_DGRAM, 0);
  connect $s, pack_sockaddr_in($V{NAMES}, inet_aton('127.0.0.1')); defined send($s, $q, 0) or return undef;
  my $set = ''; vec($set, fileno $s, 1) = 1;
  select($set, undef, undef, 5) && defined recv($s, my $answer, 4096, 0) or return undef;
  return $answer;
}
# How many addresses it gave, or "none". Silence is an answer only without a network.
sub name { my ($name, $type) = @_; my $a = ask($name, $type);
  return line($V{NETWORK} eq 'off' ? 'none' : 'no answer', $name) unless defined $a;
  my $n = (unpack 'n6', $a)[3]; line($n ? "$n answers" : 'none', $name) }
# The address of a name inside; if there is none, an address where nothing listens.
sub place {
  my $a = ask($_[0]);
  defined $a && (unpack 'n6', $a)[3] == 1 ? join('.', unpack 'C4', substr $a, -4) : '127.255.255.254';
}
# The greeting of a TLS client that names these hosts, and records around its fragments.
sub extension { pack('nn', $_[0], length $_[1]) . $_[1] }
sub named { join '', map { my $list = pack('Cn', 0, length) . $_; extension(0, pack('n', length $list) . $list) } @_ }
sub hello {
  my $more = join('', @_) . extension(10, "\0\x04\0\x17\0\x1d") . extension(11, "\x01\0")
    . extension(13, "\0\x06\x04\x03\x08\x04\x04\x01");
  my $body = "\x03\x03" . 'r' x 32 . "\0" . "\0\x04\xc0\x2b\xc0\x2f" . "\x01\0" . pack('n', length $more) . $more;
  "\x01" . substr(pack('N', length $body), 1) . $body;
}
sub record { join '', map { "\x16\x03\x01" . pack('n', length) . $_ } @_ }
# Finds the value of the planted secret, also in base64.
sub leaked {
  my ($text) = @_;
  for my $word ($text =~ m{[A-Za-z0-9+/]{24,}={0,2}}g) {
    (my $s = $word) =~ tr|A-Za-z0-9+/||cd; $s =~ tr|A-Za-z0-9+/| -_|;
    $text .= join '', map { unpack 'u', chr(32 + int(length($_) * 3 / 4)) . $_ . "\n" } $s =~ /(.{1,60})/g;
  }
  return $text =~ /CANARY-[0-9a-f]{16}/;
}
# The same attempt as a standalone program, for another place.
sub elsewhere {
  my ($code) = @_;
  my $hex = sub { 'map { pack "H*", $_ } qw(' . join(' ', map { unpack 'H*', $_ } @_) . ')' };
  my $places = $hex->(map { $_ => $V{$_} eq '' ? ' ' : $V{$_} } keys %V);
  'our %NR = ' . $hex->(%NR) . "; our %V = $places; for (values %V) { \$_ = '' if \$_ eq ' ' } our \$HELPERS = '';\n$HELPERS\n"
    . "\$| = 1; my \$own = \$\$; eval { $code\n; 1 } or print \"program error = \$@\\n\"; finish() if \$\$ == \$own; 1";
}
