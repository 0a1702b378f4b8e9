// sandbox/native-scripts.ts: the launcher, run by a program every system has. It stands between Node and bwrap because Node
// can neither mount nor change its identity in a child's namespace.
// When the machine runs out of memory, the kernel should look here first.
// Invariant: it takes data as arguments only, and the last thing it does is exec bwrap in the same process, so the process
// that Node watches is bwrap itself.

/**
 * A descriptor can be opened again through /proc/self/fd, with rights that it does not have: what was given to be read could
 * be written, and what was given to be added to could be emptied. That does no harm to a pipe, a socket, a terminal and
 * devices like /dev/null; anything else is put behind a pipe, and a process out here copies.
 *
 * Who copies the input keeps account of what the command has not taken, and leaves the file where the command left it, for
 * whoever reads on: a shell's loop, for example. It ends with bwrap, whose death the kernel tells it. Who copies output ends
 * when nobody can write any more. Both hold on to the descriptor of our word, so Node waits for them.
 */
const STREAMS = `sub copy_in {
  my ($from, $read, $write) = @_;
  my ($parent, $end, $have, $given, $chunk) = ($$, 0, 0, 0);
  return if fork() // fail('fork');
  $SIG{USR1} = sub { $end = 1 }; $SIG{PIPE} = 'IGNORE';
  syscall($prctl, 1, 10, 0, 0, 0);
  open(my $in, '<&=', $from);
  until ($end || getppid() != $parent) {
    if ($given == $have) { ($have, $given) = (sysread($in, $chunk, 65536), 0); last if !$have }
    vec(my $room = '', fileno $write, 1) = 1;
    next if select(undef, $room, undef, 0.5) < 1;
    $given += syswrite($write, $chunk, $have - $given > 4096 ? 4096 : $have - $given, $given) // 0;
  }
  close $write;
  select undef, undef, undef, 0.5 until $end || getppid() != $parent;
  my $waiting = pack 'i', 0; ioctl $read, 0x541b, $waiting;
  sysseek $in, $given - ($have // $given) - unpack('i', $waiting), 1;
  exit 0;
}
sub copy_out {
  my ($to, $read, $write) = @_;
  return if fork() // fail('fork');
  close $write;
  open(my $out, '>&=', $to);
  while (my $size = sysread $read, my $chunk, 65536) {
    for (my $done = 0; $done < $size;) { $done += syswrite($out, $chunk, $size - $done, $done) // do { print STDERR "ags: the output could not be written: $!\\n"; exit 1 } }
  }
  exit 0;
}
my %copied;
for my $fd (7, 0, 1, 2) {
  my ($device, $inode, $mode, $special) = (stat "/proc/self/fd/$fd")[0, 1, 2, 6] or next;
  my ($type, $major) = ($mode >> 12, $special >> 8);
  next if $type == 1 || $type == 12 || ($type == 2 && ($major == 4 || $major == 5 || ($major >= 136 && $major <= 143) || grep { $special == 0x100 + $_ } 3, 5, 7, 8, 9));
  if ($type == 4) { print STDERR "ags: a directory cannot be standard input or output of a sandbox\\n"; exit 96 }
  my $twin = $copied{"$device,$inode"};
  if (defined $twin && $fd == 2) { syscall($dup, $twin, $fd, 0) >= 0 or fail('pass the output on'); next }
  pipe(my $read, my $write) or fail('pipe');
  $fd % 7 ? copy_out($fd, $read, $write) : copy_in($fd, $read, $write);
  syscall($dup, fileno($fd % 7 ? $write : $read), $fd, 0) >= 0 or fail('pass a stream on');
  $copied{"$device,$inode"} = $fd if $fd == 1;
}
`;

/**
 * Arguments: syscall numbers; for root the sandbox's ids and those of the project's owner (who is shown as the sandbox's
 * user); run directory, stage, project, its identity, overlay options; cgroup files; staged paths; bwrap and its arguments.
 *
 * It has a mount namespace of its own, from which nothing comes back: a user's launcher was started in one by unshare, root's
 * makes it (one program less to start). Only where a user cannot have one there is nothing to mount either. Root's run directory is mounted over the stage, because the sandbox's user cannot walk
 * down to it through root's home.
 *
 * Of staged paths, "map" shows the owner's files as the sandbox user's, "veil" lays an overlay over a directory: files can be
 * read through it, but what others made there to be spoken to, sockets and pipes, is dead.
 * A user's watches on files are counted across namespaces: a quarter of them, the sandbox may have.
 * Pipes and the terminal are given to the sandbox's user, who could not open /dev/stderr otherwise.
 * open_tree, mount_setattr and move_mount have the same numbers on every architecture.
 */
export const LAUNCHER = `use strict;
my ($mount, $unshare, $prctl, $dup) = split /,/, shift @ARGV;
my ($uid, $gid, $owner, $group) = split /,/, shift @ARGV;
my ($dir, $stage, $project, $identity, $overlay) = splice @ARGV, 0, 5;
my @groups = splice @ARGV, 0, shift @ARGV;
my @staged = splice @ARGV, 0, 3 * shift @ARGV;
my $none = "\\0";
my @held;
sub fail { print STDERR "ags: $_[0]: $!\\n"; exit 96 }
sub mount { my ($what, $at, $type, $flags, $options) = map { "$_\\0" } @_; syscall($mount, $what, $at, $type, $_[3], $options) == 0 }
sub lay { mount('overlay', $_[0], 'overlay', 0, "userxattr,$_[1]") }
sub hold { sysopen(my $it, $_[0], 010200000) or fail("open $_[0]"); push @held, $it; '/proc/self/fd/' . fileno $it }
${STREAMS}syscall($prctl, 1, 9, 0, 0, 0);
for my $file (@groups) { open(my $f, '>', $file) or fail("enter $file"); syswrite($f, '0') or fail("enter $file"); close $f }
if (open(my $f, '>', '/proc/self/oom_score_adj')) { syswrite $f, '800'; close $f }
if (defined $uid) {
  syscall($unshare, 0x20000) == 0 or fail('unshare failed');
  mount('', '/', '', 0x44000, '') or fail('make the mounts private');
  mount($dir, $stage, '', 4096, '') or fail('mount the run directory');
  $dir = $stage;
} else {
  for ('instances', 'watches') {
    open(my $all, '<', "/proc/sys/fs/inotify/max_user_$_") or next; open(my $own, '>', "/proc/sys/user/max_inotify_$_") or next;
    syswrite $own, int(<$all> / 4) + 1;
  }
}
chdir $dir or fail('enter the run directory');
if (@staged || (defined $uid && $project ne '')) { mount('tmpfs', 'stage', 'tmpfs', 6, 'size=1m,mode=755') or fail('make the stage'); mkdir 'stage/none' or fail('make the stage') }
my $owners;
sub owners {
  return fileno $owners if $owners;
  pipe(my $ready, my $say) or fail('pipe'); pipe(my $wait, my $go) or fail('pipe');
  my $pid = fork() // fail('fork');
  if (!$pid) { close $go; syscall($unshare, 0x10000000) == 0 or exit 1; syswrite $say, 'x'; sysread $wait, my $x, 1; exit 0 }
  close $say; close $wait;
  sysread($ready, my $x, 1) or fail('make a user namespace');
  for (['uid_map', $owner, $uid], ['gid_map', $group, $gid]) {
    open(my $f, '>', "/proc/$pid/$_->[0]") or fail('map ids'); syswrite($f, "$_->[1] $_->[2] 1\\n") or fail('map ids'); close $f;
  }
  open($owners, '<', "/proc/$pid/ns/user") or fail('open the user namespace');
  close $go; waitpid $pid, 0;
  fileno $owners;
}
sub mapped {
  my ($from, $at) = map { "$_\\0" } @_;
  my $fd = syscall(428, -100, $from, 0x80001); $fd >= 0 or fail("open $_[0]");
  my $attr = pack('QQQQ', 0x100000, 0, 0, owners());
  syscall(442, $fd, $none, 0x1000, $attr, 32) == 0 or fail("map the owner of $_[0]");
  syscall(429, $fd, $none, -100, $at, 4) == 0 or fail("mount $_[0]");
  open(my $closing, '<&=', $fd); close $closing;
}
while (my ($from, $at, $how) = splice @staged, 0, 3) {
  if (!-d $from) {
    open(my $f, '>', $at) or fail("make $at"); close $f;
    if ($how =~ /map/) { mapped($from, $at) } else { mount($from, $at, '', 4096, '') or fail("mount $from") }
    next;
  }
  mkdir $at or fail("make $at");
  mapped($from, $at) if $how =~ /map/;
  next if $how !~ /veil/;
  lay($at, 'lowerdir=' . ($how =~ /map/ ? $at : hold($from)) . ':stage/none') or fail("$from cannot lie under an overlay; take it out of tools: or mounts:");
}
if ($project ne '') {
  my $lower = defined $uid ? 'stage/lower' : hold($project);
  if (defined $uid) { mkdir $lower or fail("make $lower"); mapped($project, $lower) }
  if (join(',', (stat $lower)[0, 1]) ne $identity) { print STDERR "ags: $project is not the directory any more that it was a moment ago\\n"; exit 96 }
  lay('merged', sprintf $overlay, $lower) or fail('mount the workspace');
}
@held = ();
chdir '/';
if (defined $uid) {
  for my $stream (*STDIN, *STDOUT, *STDERR) { chown $uid, $gid, $stream if -p $stream || -t $stream }
  $) = "$gid $gid"; $( = $gid; $< = $uid; $> = $uid;
  fail('give root up') if $< != $uid || $> != $uid || $( + 0 != $gid || $) ne "$gid $gid";
}
exec { $ARGV[0] } @ARGV or fail("start $ARGV[0]");
`;
