# mounts.pl: mounts the workspace and the staged paths below the current directory, which belongs to this run alone. A part of
# the launcher, stage.pl and namespace-wrapper.pl. Expects mount.pl, $unshare, @staged, @layers, $overlay, and for a caller
# that is root $uid, $gid, $owner, $group.
# Always: a layer is the directory that ags looked at, by device and inode, or nothing starts.
#
# Layers can have different owners: the project's owner, root for what ags made, the sandbox's user for what a sandbox made.
# Each layer is mapped by the owner of its directory. A staged path marked "map" shows the owner's files as the sandbox
# user's. An overlay lies over a directory where it must or may: its files can be read, but sockets and pipes that others made
# there are dead. open_tree (428), move_mount (429) and mount_setattr (442) have the same numbers on every architecture.
my $none = "\0";
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
    open(my $f, '>', "/proc/$pid/$_->[0]") or fail('map ids');
    syswrite($f, "$_->[1] $_->[2] 1\n") or fail('map ids'); close $f;
  }
  open($owners{"$owner,$group"}, '<', "/proc/$pid/ns/user") or fail('open the user namespace');
  close $go; waitpid $pid, 0;
  fileno $owners{"$owner,$group"};
}
sub mapped {
  my ($from, $at) = map { "$_\0" } @_[0, 1];
  my ($below, @whose) = ($_[2] ? 0x8000 : 0, $_[3] // $owner, $_[4] // $group);
  my $fd = syscall(428, -100, $from, 0x80001 | $below); $fd >= 0 or fail("open $_[0]");
  my $attr = pack('QQQQ', 0x100000, 0, 0, owners(@whose));
  syscall(442, $fd, $none, 0x1000 | $below, $attr, 32) == 0 or fail("map the owner of $_[0]");
  syscall(429, $fd, $none, -100, $at, 4) == 0 or fail("mount $_[0]");
  open(my $closing, '<&=', $fd); close $closing;
}
sub mount_all {
  if (@staged || (defined $uid && @layers)) {
    mount('tmpfs', 'stage', 'tmpfs', 6, 'size=1m,mode=755') && mkdir 'stage/none' or fail('make the stage');
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
    if (join(',', (stat $lower)[0, 1]) ne $identity) {
      print STDERR "ags: $layer is not the directory any more that it was a moment ago\n"; exit 96;
    }
    push @lowers, $lower;
  }
  return if !@lowers;
  lay('merged', sprintf $overlay, join ':', @lowers) or fail('lay the workspace over the project, try --workspace copy');
}
