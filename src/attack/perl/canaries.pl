# canaries.pl: the targets outside the sandbox of ags doctor --attack: sockets, memory, queues and a process. Node runs it with
# perl -e; it ends with its input.
# Always: it answers every caller with the secret, and logs every connection and every signal.
#
# Arguments: the user to become; the log; a pipe to create; the secret; names and keys of what it creates; the architecture;
# paths of stream sockets; "--"; paths of datagram sockets.
use strict; use warnings; use Socket; use POSIX ();
my ($uid, $log, $pipe, $word, $abstract, $key, $queue, $arch) = splice @ARGV, 0, 8;
open my $out, '>>', $log or die "$log: $!"; { my $old = select $out; $| = 1; select $old }
my %listening; my %quiet;
umask 0;
POSIX::mkfifo($pipe, 0666) or die $!; sysopen(my $reader, $pipe, POSIX::O_RDWR() | POSIX::O_NONBLOCK()) or die $!;
sub unix {
  my ($type, $name, $title) = @_;
  socket(my $s, PF_UNIX, $type, 0) or die $!; bind($s, pack_sockaddr_un($name)) or die "$name: $!";
  if ($type == SOCK_STREAM) { listen $s, 5; $listening{fileno $s} = [$s, $title] } else { $quiet{fileno $s} = [$s, $title] }
}
while (defined(my $path = shift @ARGV)) { last if $path eq '--'; unix(SOCK_STREAM, $path, $path) }
for my $path (@ARGV) { unix(SOCK_DGRAM, $path, $path) }
unix(SOCK_STREAM, "\0$abstract", 'the abstract socket');
unix(SOCK_DGRAM, "\0$abstract.dgram", 'the abstract datagram socket');
my @ports;
for my $address ('127.0.0.1', '0.0.0.0') {
  socket(my $s, PF_INET, SOCK_STREAM, 0) or die $!; bind($s, pack_sockaddr_in(0, inet_aton($address))) or die $!;
  listen $s, 5; push @ports, (unpack_sockaddr_in(getsockname $s))[0]; $listening{fileno $s} = [$s, "TCP on $address"];
}
if ($> == 0 && $uid != 0) { $) = "$uid $uid"; $( = $uid; $< = $uid; $> = $uid }
my $shm = shmget($key, 4096, 01666) // die "shmget: $!"; shmwrite($shm, $word, 0, length $word);
my $msg = msgget($key, 01666) // die "msgget: $!"; my $sem = semget($key, 1, 01666) // die "semget: $!";
my ($open, $unlink) = $arch eq 'arm64' ? (180, 181) : (240, 241);
syscall($open, $queue, 0102, 0666, 0) >= 0 or die "mq_open: $!";
for my $name (qw(HUP INT QUIT TERM USR1 USR2 CONT WINCH IO ALRM)) { $SIG{$name} = sub { print $out "signal $name\n" } }
$SIG{PIPE} = 'IGNORE';
$| = 1; print "@ports\n";
for (;;) {
  my $set = ''; vec($set, $_, 1) = 1 for 0, keys %listening, keys %quiet;
  select(my $ready = $set, undef, undef, undef) > 0 or next;
  last if vec $ready, 0, 1;
  for (grep { vec $ready, $_, 1 } keys %listening) {
    accept(my $c, $listening{$_}[0]); print $out "connection to $listening{$_}[1]\n"; syswrite $c, "$word\n";
  }
  for (grep { vec $ready, $_, 1 } keys %quiet) {
    recv $quiet{$_}[0], my $text, 4096, 0; print $out "datagram to $quiet{$_}[1]\n";
  }
}
shmctl($shm, 0, 0); msgctl($msg, 0, 0); semctl($sem, 0, 0, 0); syscall($unlink, $queue);
