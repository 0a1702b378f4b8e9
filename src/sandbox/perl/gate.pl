# gate.pl: the first process in the container of a sandbox. The engine runs it by perl -e. It takes the streams, the filter
# and the command from the stream broker or the relay, starts the command, and reports how it ended.
# Always: it ends when its connection to the broker ends, and everything in the container with it; no engine is asked to. The
# command starts only after the word to go, under the filter, which lies over the engine's own: what either refuses is refused.
# No process inside may look into this one, whose memory decides that everything ends with the runner.
#
# Arguments: syscall numbers. On another machine ($REMOTE) nobody outside can look at it: it reports what the kernel says of
# it before the word is given. Elsewhere it stays until the broker has read in its control group how it ended.
use strict; use warnings; use POSIX ();
our ($MEETING_PLACE, $REMOTE);
my ($prctl, $dup, $recvmsg) = map { $_ + 0 } split /,/, shift @ARGV;
# include sockets.pl
# include broker-client.pl
my $broker = meet($MEETING_PLACE);
my ($given, $filter, $workdir, $kind, $env, @command) = receive($broker);
sub refuse { syswrite $broker, "f$_[0]: $!\n"; sysread $broker, my $end, 1; exit 96 }
sub text { open(my $file, '<', $_[0]) or refuse("read $_[0]"); local $/; scalar <$file> }
syscall($dup, $given->[$_], $_, 0) >= 0 or refuse('take the streams') for 0 .. 2;
my $input = $given->[3];
chdir $workdir or refuse("enter $workdir");
syscall($prctl, 38, 1, 0, 0, 0) == 0 or refuse('give privileges up');
my $program = pack 'Sx6P', length($filter) / 8, $filter;
syscall($prctl, 22, 2, $program, 0, 0) == 0 or refuse('take the filter');
if ($REMOTE) {
  my @facts = map { text("/proc/self/$_") } qw(status mountinfo net/dev);
  my @namespaces = map { readlink("/proc/self/ns/$_") // '' } qw(ipc uts mnt pid cgroup net);
  write_all($broker, 's' . pack 'N/a*', pack '(N/a*)*', $$, @facts, @namespaces) or exit 96;
}
syswrite $broker, "r\n";
my $go;
sysread($broker, $go, 1) && $go eq 'g' or exit 96;
syscall($prctl, 4, 0, 0, 0, 0) == 0 or refuse('close this process');
pipe(my $woken, my $wake) or exit 96;
fcntl $_, 4, 04001 for $woken, $wake;
$SIG{CHLD} = sub { syswrite $wake, '.' };
my $main = fork() // exit 96;
if (!$main) {
  $SIG{$_} = 'DEFAULT' for qw(HUP INT QUIT TERM PIPE CHLD USR1 USR2 TSTP TTIN TTOU XFSZ);
  POSIX::setsid();
  if ($kind ne 'plain') { ioctl STDIN, 0x540e, 0 or die "ags: the terminal cannot be taken: $!\n" }
  if ($kind eq 'apart') { syscall($dup, $input, 0, 0) >= 0 or die }
  for ($woken, $wake, $broker) { close $_ }
  POSIX::close($_) for @$given;
  %ENV = map { split /=/, $_, 2 } split /\0/, $env;
  exec { $command[0] } @command or print STDERR "ags: $command[0]: $!\n";
  POSIX::_exit($!{ENOENT} ? 127 : 126);
}
POSIX::close($_) for 0 .. 2, @$given;
silence();
while (1) {
  while ((my $pid = waitpid -1, 1) > 0) {
    next if $pid != $main;
    my $code = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    syswrite $broker, "e$code\n";
    if (!$REMOTE) { 1 while sysread $broker, my $drop, 64 }
    POSIX::_exit($code);
  }
  my $set = ''; vec($set, fileno $woken, 1) = 1; vec($set, fileno $broker, 1) = 1;
  my $some = select $set, undef, undef, undef;
  sysread $woken, my $drop, 4096;
  if ($some > 0 && vec $set, fileno $broker, 1) {
    sysread($broker, my $word, 64) or POSIX::_exit(137);
    while ($word =~ /k(\d+)/g) { kill $1, $1 == 2 || $1 == 3 ? -$main : $main }
  }
}
