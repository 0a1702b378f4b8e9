# build-wrapper.pl: starts an engine without a daemon in the network of a sandbox, which it takes for that of its host, and in
# its own process namespace, to build an image. Node runs it by perl -e.
# Always: neither a step nor the engine has another network than the sandbox's; when the sandbox ends, so does the build.
#
# Arguments: syscall numbers; the sandbox's first process; the network of this machine; a file of host names for the steps;
# the engine's command line. Steps see the /sys and the host names of their host, so those are replaced here too. When the
# sandbox ends, steps are killed at once and the engine has a moment to remove what it made for them: killed itself, it would
# leave it behind. For the same reason it writes to this process and not to ags, whose end would be its own at the next line.
use strict; use warnings; use POSIX ();
my ($mount, $unshare, $setns, $prctl) = map { $_ + 0 } split /,/, shift @ARGV;
my ($pid, $machine, $hosts) = splice @ARGV, 0, 3;
sub fail { print STDERR "ags: $_[0]: $!\n"; POSIX::_exit(96) }
# include mount.pl
my $sandbox = syscall(434, $pid + 0, 0);
my ($network, $groups);
$sandbox >= 0 && open($network, '<', "/proc/$pid/ns/net") && syscall($setns, fileno $network, 0x40000000) == 0
  or fail('enter the network of the build');
close $network;
if ((readlink('/proc/self/ns/net') // $machine) eq $machine) {
  print STDERR "ags: the network of the build is that of this machine\n"; exit 96;
}
syscall($unshare, 0x20020000) == 0 && mount('', '/', '', 0x44000, '') or fail('make namespaces for the build');
$groups = hold('/sys/fs/cgroup') if -d '/sys/fs/cgroup';
mount('sysfs', '/sys', 'sysfs', 15, '') or fail('mount /sys');
if ($groups) { mount($groups, '/sys/fs/cgroup', '', 0x5000, '') or fail('mount control groups') }
mount($hosts, '/etc/hosts', '', 4096, '') or fail('mount host names') if -e '/etc/hosts';
sub code { $? & 127 ? 128 + ($? & 127) : $? >> 8 }
my $first = fork() // fail('fork');
if ($first) { open STDIN, '<', '/dev/null'; waitpid $first, 0; exit code() }
syscall($prctl, 1, 9, 0, 0, 0);
mount('proc', '/proc', 'proc', 14, '') or fail('mount /proc');
my ($said, $say);
pipe($said, $say) && fcntl($said, 4, 04000) or fail('pipe');
my $engine = fork() // fail('fork');
if (!$engine) { open(STDOUT, '>&', $say) && open(STDERR, '>&', $say) && exec { $ARGV[0] } @ARGV; fail("start $ARGV[0]") }
close $say; open STDIN, '<', '/dev/null';
$SIG{PIPE} = 'IGNORE';
sub pass_on {
  while (sysread $said, my $text, 65536) {
    for (my $at = 0; $at < length $text;) { $at += syswrite(STDOUT, $text, length($text) - $at, $at) // last }
  }
}
my $late = 0;
while ($late < 150) {
  pass_on();
  while ((my $ended = waitpid -1, 1) > 0) {
    if ($ended == $engine) { my $code = code(); pass_on(); POSIX::_exit($late ? 137 : $code) }
  }
  my $over = ''; vec($over, $sandbox, 1) = 1;
  next if !$late && select($over, undef, undef, 0.1) <= 0;
  $late += 1;
  opendir(my $all, '/proc') or last;
  kill 9, grep { /^\d+$/ && $_ != 1 && $_ != $engine } readdir $all;
  select undef, undef, undef, 0.1;
}
POSIX::_exit(137);
