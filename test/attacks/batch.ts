// test/attacks/batch.ts: many attempts in one sandbox: a Perl program that runs each of them in a process of its own and
// prints what it answered. Starting a sandbox costs more than a hundred attempts.
// Invariant: an attempt that dies, hangs or ends its process is an answer too, and never takes the others with it.
import { NUMBERS } from '../../src/sandbox/seccomp-table.ts';
import type { Attack, Places } from './attack.ts';

const MARK = 'attempt';

export function batchProgram(arch: string): string {
  const numbers = Object.entries({ ...NUMBERS, ...MORE_NUMBERS }).map(
    ([name, [x64, arm64]]) => `${name} => ${(arch === 'arm64' ? arm64 : x64) ?? -1}`,
  );
  return `our %NR = (${numbers.join(', ')});\n${RUNNER}`;
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
} as const;

const RUNNER = String.raw`
use Errno; use Fcntl qw(:DEFAULT :mode); use Socket; use POSIX ();
our %V;
{ local $/; our @in = split /\0/, <STDIN>, -1 }
for (1 .. shift @in) { my ($name, $value) = split /=/, shift(@in), 2; $V{$name} = $value }
$| = 1;
for my $index (0 .. $#in) {
  my $file = "/dev/shm/answer.$index";
  my $pid = fork // die "fork: $!";
  if (!$pid) {
    alarm 8;
    open STDIN, '<', '/dev/null'; open STDOUT, '>', $file or POSIX::_exit(3); open STDERR, '>&', \*STDOUT; $| = 1; $! = 0;
    eval $in[$index]; print "program error = $@\n" if $@;
    POSIX::_exit(0);
  }
  waitpid $pid, 0;
  my $said = ($? & 127) ? 'ended by signal ' . ($? & 127) . "\n" : '';
  if (open my $answer, '<', $file) { local $/; read $answer, my $text, 4096; $said = ($text // '') . $said; close $answer }
  unlink $file;
  print "attempt\t$index\t", unpack('H*', $said), "\n";
}

# The name of the last error.
sub why { my $n = $! + 0; for (sort keys %!) { next if /^(EWOULDBLOCK|EDEADLOCK|ENOTSUP)$/; no strict 'refs'; return $_ if &{"Errno::$_"}() == $n } "error $n" }
# One line of answer; with a label when there are several.
sub line { my ($what, $label) = @_; print defined $label ? "$label = $what\n" : "$what\n" }
# "done" where success is the breach, the error's name otherwise.
sub tried { my ($ok, $label) = @_; line($ok ? 'done' : why(), $label) }
sub look { my ($path, $label) = @_; line(lstat($path) ? 'exists' : why(), $label // $path) }
sub get { my ($path) = @_; sysopen(my $f, $path, O_RDONLY | O_NONBLOCK) or return line(why(), $path); my $n = sysread $f, my $text, 80; line(defined $n ? "read $n bytes" : why(), $path) }
# Opens for writing; writes only where "write" says so, so that a hole shows without harm.
sub put { my ($path, $write) = @_; sysopen(my $f, $path, O_WRONLY | O_APPEND | O_NONBLOCK | ($write ? O_CREAT : 0)) or return line(why(), $path); syswrite $f, "breach\n" if $write; line('opened for writing', $path) }
sub call { my ($name, @rest) = @_; $! = 0; return syscall($NR{$name}, @rest) }
sub slurp { my ($path) = @_; open my $f, '<', $path or return undef; local $/; my $text = <$f>; $text }
# Connects without waiting longer than a second.
sub reach { my ($domain, $type, $protocol, $address, $label) = @_;
  socket(my $s, $domain, $type, $protocol) or return line(why(), $label);
  my $flags = fcntl($s, F_GETFL, 0); fcntl($s, F_SETFL, $flags | O_NONBLOCK);
  if (connect $s, $address) { return line('connected', $label) }
  return line(why(), $label) unless $!{EINPROGRESS};
  my $set = ''; vec($set, fileno $s, 1) = 1; my $found = select(undef, $set, undef, 1);
  return line('no answer', $label) unless $found; $! = unpack 'i', getsockopt($s, SOL_SOCKET, SO_ERROR); line($! + 0 ? why() : 'connected', $label) }
`;
