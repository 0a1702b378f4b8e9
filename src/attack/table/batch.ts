// attack/table/batch.ts: many attempts in one sandbox: a Perl program that runs each of them in a process of its own and
// prints what it answered. Starting a sandbox costs more than a hundred attempts.
// Invariants: an attempt that dies, hangs or ends its process is an answer too, and never takes the others with it. What it said counts only
// if it came to its end, here and wherever else it had something done: one that was cut off has not been refused everything it tried.
import { NUMBERS } from '../../sandbox/spec/seccomp-table.ts';
import type { Attack, Places } from './attack.ts';

const MARK = 'attempt';
/** The last line of whoever came to the end of an attempt. */
const END = 'the attempt has come to its end';

export function batchProgram(arch: string): string {
  const numbers = Object.entries({ ...NUMBERS, ...MORE_NUMBERS }).map(
    ([name, [x64, arm64]]) => `${name} => ${(arch === 'arm64' ? arm64 : x64) ?? -1}`,
  );
  return `our %NR = (${numbers.join(', ')});\nour $HELPERS = <<'END_OF_HELPERS';\n${HELPERS}END_OF_HELPERS\n${RUNNER}`;
}

/** Goes to the program's standard input. */
export function batchInput(attacks: readonly Attack[], places: Places): string {
  const given = Object.entries(places).map(([name, value]) => `${name}=${value}`);
  return [String(given.length), ...given, ...attacks.map((attack) => attack.perl)].join('\0');
}

/** One answer per attack, in order; '' where there is none. */
export function parseAnswers(stdout: string, attacks: readonly Attack[]): string[] {
  const found = new Map(
    stdout
      .split('\n')
      .filter((line) => line.startsWith(`${MARK}\t`))
      .map((line) => {
        const [, index = '', hex = ''] = line.split('\t');
        return [Number(index), Buffer.from(hex, 'hex').toString('utf8').trim()];
      }),
  );
  return attacks.map((_, i) => found.get(i) ?? '');
}

/** [x64, arm64] */
const MORE_NUMBERS = {
  mq_open: [240, 180],
  pidfd_open: [434, 434],
  setxattr: [188, 5],
  sethostname: [170, 161],
  capset: [126, 91],
  setresuid: [117, 147],
  prctl: [157, 167],
  inotify_init1: [294, 26],
  kill: [62, 129],
  splice: [275, 76],
  sched_setscheduler: [144, 119],
  ioprio_set: [251, 30],
  memfd_create: [319, 279],
  mlockall: [151, 230],
  name_to_handle_at: [303, 264],
  seccomp: [317, 277],
  landlock_create_ruleset: [444, 444],
  openat2: [437, 437],
  setpriority: [141, 140],
  adjtimex: [159, 171],
  settimeofday: [164, 170],
  lookup_dcookie: [212, 18],
  vhangup: [153, 58],
} as const;

const RUNNER = String.raw`
our %V;
eval $HELPERS; die $@ if $@;
{ local $/; our @in = split /\0/, <STDIN>, -1 }
for (1 .. shift @in) { my ($name, $value) = split /=/, shift(@in), 2; $V{$name} = $value }
$| = 1;
for my $index (0 .. $#in) {
  my $file = "/dev/shm/answer.$$.$index";
  my $pid = fork // die "fork: $!";
  if (!$pid) {
    alarm 20;
    open STDIN, '<', '/dev/null'; open STDOUT, '>', $file or POSIX::_exit(3); open STDERR, '>&', \*STDOUT; $| = 1; $! = 0;
    my $own = $$; eval $in[$index]; print "program error = $@\n" if $@;
    finish() if $$ == $own; POSIX::_exit(0);
  }
  waitpid $pid, 0; my $how = $?;
  my $said = ''; if (open my $answer, '<', $file) { read $answer, $said, 1 << 20; close $answer }
  $said = whole($said, 'the attempt') . ended($how, 'the attempt');
  unlink $file;
  print "attempt\t$index\t", unpack('H*', $said), "\n";
}
`;

/** Of every attempt; programs elsewhere, in a service or a container, are sent them. */
const HELPERS = String.raw`use Errno; use Fcntl qw(:DEFAULT :mode); use Socket; use POSIX ();
# The name of the last error. Each is looked up once, before there are a hundred processes that would.
our %WHY; { no strict 'refs'; for (reverse sort keys %!) { $WHY{&{"Errno::$_"}()} = $_ unless /^(EWOULDBLOCK|EDEADLOCK|ENOTSUP)$/ } }
sub why { my $n = $! + 0; $WHY{$n} // "error $n" }
# One line of answer; with a label when there are several.
sub line { my ($what, $label) = @_; print defined $label ? "$label = $what\n" : "$what\n" }
# "done" where success is the breach, the error's name otherwise.
sub tried { my ($ok, $label) = @_; line($ok ? 'done' : why(), $label) }
sub look { my ($path, $label) = @_; line(lstat($path) ? 'exists' : why(), $label // $path) }
sub get { my ($path) = @_; sysopen(my $f, $path, O_RDONLY | O_NONBLOCK) or return line(why(), $path); my $n = sysread $f, my $text, 80; line(defined $n ? "read $n bytes" : why(), $path) }
# Opens for writing; writes only where "write" says so, so that a hole shows without harm.
sub put { my ($path, $write) = @_; sysopen(my $f, $path, O_WRONLY | O_APPEND | O_NONBLOCK | ($write ? O_CREAT : 0)) or return line(why(), $path); syswrite $f, "breach\n" if $write; line('opened for writing', $path) }
sub call { my ($name, @rest) = @_; $! = 0; return syscall($NR{$name}, @rest) }
# An engine hides files of the kernel behind the null device.
sub covered { my ($path) = @_; return $path =~ m{^/proc/} && -c $path && (stat _)[6] == 0x103 }
sub slurp { my ($path) = @_; open my $f, '<', $path or return undef; local $/; my $text = <$f>; $text }
# An attempt has an end, which it says: what was cut off before may have been about to succeed.
sub finish { print "\n${END}\n" }
sub whole { my ($text, $label) = @_; return $text =~ s/\n${END}\n\z//r if $text =~ /\n${END}\n\z/; return "$text\n$label = was cut off\n" }
# In words, if a process did not end by itself and well.
sub ended { my ($how, $label) = @_; return $how & 127 ? "\n$label = ended by signal " . ($how & 127) . "\n" : $how ? "\n$label = ended with status " . ($how >> 8) . "\n" : '' }
# A part of an attempt in a process of its own, which has to come to its end as well.
sub apart { my ($part, $label) = @_; my $pid = fork // return line('no process: ' . why(), $label); if (!$pid) { $part->(); POSIX::_exit(0) } waitpid $pid, 0; print ended($?, $label) }
# Connects without waiting longer than a second.
sub reach { my ($domain, $type, $protocol, $address, $label) = @_;
  socket(my $s, $domain, $type, $protocol) or return line(why(), $label);
  my $flags = fcntl($s, F_GETFL, 0); fcntl($s, F_SETFL, $flags | O_NONBLOCK);
  if (connect $s, $address) { return line('connected', $label) }
  return line(why(), $label) unless $!{EINPROGRESS};
  my $set = ''; vec($set, fileno $s, 1) = 1; my $found = select(undef, $set, undef, 1);
  return line('no answer', $label) unless $found; $! = unpack 'i', getsockopt($s, SOL_SOCKET, SO_ERROR); line($! + 0 ? why() : 'connected', $label) }
# A connection to a door of the gateway: by default the proxy's, on loopback. Undefined: nobody listens.
sub enter { my ($port, $to) = @_; socket(my $s, PF_INET, SOCK_STREAM, 0) or return undef;
  connect($s, pack_sockaddr_in($port // $V{DOOR}, inet_aton($to // '127.0.0.1'))) or return undef;
  $SIG{PIPE} = 'IGNORE'; return $s }
# Where the network is off there is no door. Where it is on, an attempt that found none was never made.
sub shut { $!{ECONNREFUSED} && $V{NETWORK} eq 'off' ? 'no network' : 'no door: ' . why() }
# What comes until the other side closes, the text matches, or three seconds are over.
sub hear { my ($s, $until) = @_; my $text = ''; my $end = time + 3; our $OVER = 0;
  while (length $text < 200000) { last if defined $until && $text =~ $until; my $set = ''; vec($set, fileno $s, 1) = 1; if (time >= $end || !select $set, undef, undef, $end - time) { $OVER = 1; last } sysread $s, $text, 16384, length $text or last }
  return $text }
# In one word: the status, "closed" when it hung up without an answer, what TLS said, "no answer".
sub kind { my ($text) = @_; our $OVER;
  return $1 if $text =~ m{^HTTP/1\.[01] (\d\d\d)}; return $OVER ? 'no answer' : 'closed' if $text eq '';
  return 'denied' if $text eq "\x15\x03\x03\0\x02\x02\x31"; return 'alert' if $text =~ /^\x15/; return $text =~ /^\x16/ ? 'greeted' : 'answered' }
# One request to a door, and the kind of its answer, which is in $ANSWER.
sub knock { my ($bytes, $port, $to) = @_; my $s = enter($port, $to) or return shut();
  syswrite $s, $bytes; our $ANSWER = hear($s, $bytes =~ /^CONNECT / ? qr/\r\n\r\n/ : $bytes =~ /^\x16/ ? qr/^(?:\x15.{6}|\x16)/s : $bytes =~ /^\x05/ ? qr/^\x05(?:\xff|\0\x05.|\x02\x01\x01|\x02\x01\0\x05.)/s : undef); return kind($ANSWER) }
sub door { my ($bytes, $label, $port, $to) = @_; line(knock($bytes, $port, $to), $label) }
# The same through a tunnel, once it is open.
sub through { my ($place, $bytes) = @_; my $s = enter() or return shut(); syswrite $s, "CONNECT $place HTTP/1.1\r\nHost: $place\r\n\r\n";
  our $ANSWER = hear($s, qr/\r\n\r\n/); return kind($ANSWER) unless $ANSWER =~ m{^HTTP/1\.1 200 };
  syswrite $s, $bytes; $ANSWER = hear($s); return kind($ANSWER) }
# That the way is open for what is allowed: without this, nothing else that an attempt saw would mean much.
sub works { my ($got, $like, $label) = @_; line($got =~ /^(?:$like)$/ ? 'works' : "does not work: $got", $label) }
# One question to the name service of the sandbox; its answer, or undefined.
sub ask { my ($name, $type) = @_; my $q = pack('n6', 7, 0x100, 1, 0, 0, 0) . join('', map { pack 'C/a*', $_ } split /\./, $name) . "\0" . pack('nn', $type // 1, 1);
  socket(my $s, PF_INET, SOCK_DGRAM, 0); connect $s, pack_sockaddr_in($V{NAMES}, inet_aton('127.0.0.1')); defined send($s, $q, 0) or return undef;
  my $set = ''; vec($set, fileno $s, 1) = 1; select($set, undef, undef, 5) or return undef; defined recv($s, my $answer, 4096, 0) or return undef; return $answer }
# How many addresses it gave, or "none". Silence is an answer only where there is no network.
sub name { my ($name, $type) = @_; my $a = ask($name, $type); return line($V{NETWORK} eq 'off' ? 'none' : 'no answer', $name) unless defined $a;
  my $n = (unpack 'n6', $a)[3]; line($n ? "$n answers" : 'none', $name) }
# The address that stands for a name inside; one where nobody is if there is none.
sub place { my $a = ask($_[0]); defined $a && (unpack 'n6', $a)[3] == 1 ? join('.', unpack 'C4', substr $a, -4) : '127.255.255.254' }
# The greeting of a TLS client that names these hosts, and records around what it is cut into.
sub extension { pack('nn', $_[0], length $_[1]) . $_[1] }
sub named { join '', map { my $list = pack('Cn', 0, length) . $_; extension(0, pack('n', length $list) . $list) } @_ }
sub hello { my $more = join('', @_) . extension(10, "\0\x04\0\x17\0\x1d") . extension(11, "\x01\0") . extension(13, "\0\x06\x04\x03\x08\x04\x04\x01"); my $body = "\x03\x03" . 'r' x 32 . "\0" . "\0\x04\xc0\x2b\xc0\x2f" . "\x01\0" . pack('n', length $more) . $more; "\x01" . substr(pack('N', length $body), 1) . $body }
sub record { join '', map { "\x16\x03\x01" . pack('n', length) . $_ } @_ }
# The value of the secret that was set out, also where it is in base64.
sub leaked { my ($text) = @_; for my $word ($text =~ m{[A-Za-z0-9+/]{24,}={0,2}}g) { (my $s = $word) =~ tr|A-Za-z0-9+/||cd; $s =~ tr|A-Za-z0-9+/| -_|; $text .= join '', map { unpack 'u', chr(32 + int(length($_) * 3 / 4)) . $_ . "\n" } $s =~ /(.{1,60})/g } return $text =~ /CANARY-[0-9a-f]{16}/ }
# The same attempt as a program by itself, for another place.
sub elsewhere { my ($code) = @_; my $hex = sub { 'map { pack "H*", $_ } qw(' . join(' ', map { unpack 'H*', $_ } @_) . ')' };
  'our %NR = ' . $hex->(%NR) . '; our %V = ' . $hex->(map { $_ => $V{$_} eq '' ? ' ' : $V{$_} } keys %V) . "; for (values %V) { \$_ = '' if \$_ eq ' ' } our \$HELPERS = '';\n$HELPERS\n\$| = 1; my \$own = \$\$; eval { $code\n; 1 } or print \"program error = \$@\\n\"; finish() if \$\$ == \$own; 1" }
`;
