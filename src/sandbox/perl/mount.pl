# mount.pl: a part of every program that mounts. Expects $mount, the number of the system call, and fail().
# Always: no path of a user is part of a mount option. hold() opens it, and the option has a name below /proc/self/fd.
my @held;
sub mount {
  my ($what, $at, $type, undef, $options) = map { "$_\0" } @_;
  syscall($mount, $what, $at, $type, $_[3], $options) == 0;
}
sub lay { mount('overlay', $_[0], 'overlay', 0, "userxattr,$_[1]") }
sub hold { sysopen(my $it, $_[0], 010200000) or fail("open $_[0]"); push @held, $it; '/proc/self/fd/' . fileno $it }
