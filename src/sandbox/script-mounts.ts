// sandbox/script-mounts.ts: what a sandbox stands on, mounted by Perl: a part of what starts it.
// Invariant: it works in a directory of one run; every name in a mount option is one of ours.

export const MOUNT_SUBS = `my $none = "\\0";
my @held;
sub mount { my ($what, $at, $type, $flags, $options) = map { "$_\\0" } @_; syscall($mount, $what, $at, $type, $_[3], $options) == 0 }
sub lay { mount('overlay', $_[0], 'overlay', 0, "userxattr,$_[1]") }
sub hold { sysopen(my $it, $_[0], 010200000) or fail("open $_[0]"); push @held, $it; '/proc/self/fd/' . fileno $it }
`;

/**
 * The layers of a workspace may belong to several owners: the project's to whoever owns it, those that ags made to root, what a
 * sandbox made to the sandbox's user. Each is mapped by whom its directory belongs to.
 * Of staged paths, "map" shows the owner's files as the sandbox user's; over a directory lies an overlay, if it must or may:
 * files can be read through it, but what others made there to be spoken to, sockets and pipes, is dead.
 * open_tree, mount_setattr and move_mount have the same numbers on every architecture.
 */
export const MOUNT_ALL = `if (@staged || (defined $uid && @layers)) { mount('tmpfs', 'stage', 'tmpfs', 6, 'size=1m,mode=755') or fail('make the stage'); mkdir 'stage/none' or fail('make the stage') }
my %owners;
sub owners {
  my ($owner, $group) = @_;
  return fileno $owners{"$owner,$group"} if $owners{"$owner,$group"};
  pipe(my $ready, my $say) or fail('pipe'); pipe(my $wait, my $go) or fail('pipe');
  my $pid = fork() // fail('fork');
  if (!$pid) { close $go; syscall($unshare, 0x10000000) == 0 or exit 1; syswrite $say, 'x'; sysread $wait, my $x, 1; exit 0 }
  close $say; close $wait;
  sysread($ready, my $x, 1) or fail('make a user namespace');
  for (['uid_map', $owner, $uid], ['gid_map', $group, $gid]) {
    open(my $f, '>', "/proc/$pid/$_->[0]") or fail('map ids'); syswrite($f, "$_->[1] $_->[2] 1\\n") or fail('map ids'); close $f;
  }
  open($owners{"$owner,$group"}, '<', "/proc/$pid/ns/user") or fail('open the user namespace');
  close $go; waitpid $pid, 0;
  fileno $owners{"$owner,$group"};
}
sub mapped {
  my ($from, $at) = map { "$_\\0" } @_[0, 1];
  my ($below, @whose) = ($_[2] ? 0x8000 : 0, $_[3] // $owner, $_[4] // $group);
  my $fd = syscall(428, -100, $from, 0x80001 | $below); $fd >= 0 or fail("open $_[0]");
  my $attr = pack('QQQQ', 0x100000, 0, 0, owners(@whose));
  syscall(442, $fd, $none, 0x1000 | $below, $attr, 32) == 0 or fail("map the owner of $_[0]");
  syscall(429, $fd, $none, -100, $at, 4) == 0 or fail("mount $_[0]");
  open(my $closing, '<&=', $fd); close $closing;
}
while (my ($from, $at, $how) = splice @staged, 0, 3) {
  my ($map, $veil) = ($how =~ s/^map,//, $how);
  if (-d $from) { mkdir $at or fail("make $at") } else { open(my $f, '>', $at) or fail("make $at"); $veil = 'no' }
  mapped($from, $at, $veil eq 'no') if $map;
  next if $veil ne 'no' && lay($at, 'lowerdir=' . ($map ? $at : hold($from)) . ':stage/none');
  fail("$from cannot lie under an overlay; name it in mounts: to show it as it is") if $veil eq 'must';
  if (!$map) { mount($from, $at, '', 0x5000, '') or fail("mount $from") }
}
my @lowers;
while (my ($layer, $identity) = splice @layers, 0, 2) {
  my $lower = defined $uid ? 'stage/l' . @lowers : hold($layer);
  if (defined $uid) { mkdir $lower or fail("make $lower"); mapped($layer, $lower, 0, (stat $layer)[4, 5]) }
  if (join(',', (stat $lower)[0, 1]) ne $identity) { print STDERR "ags: $layer is not the directory any more that it was a moment ago\\n"; exit 96 }
  push @lowers, $lower;
}
if (@lowers) { lay('merged', sprintf $overlay, join ':', @lowers) or fail('lay the workspace over the project, try --workspace copy') }
`;
