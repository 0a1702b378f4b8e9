// sandbox/native-scripts.ts: the two launchers, run by programs every system has (sh, or perl for root).
// They stand between Node and bwrap because Node can neither mount nor change its identity in a child's namespace.
// When the machine runs out of memory, the kernel should look here first.
// Invariant: they take data as arguments only, and the last thing either does is exec bwrap in the same process, so the
// process that Node watches is bwrap itself.

/** Arguments: run directory, overlay options, files to enter, "--", bwrap and its arguments. Runs in a fresh user namespace. */
export const USER_LAUNCHER = `set -eu
dir=$1; overlay=$2; shift 2
echo 800 > /proc/self/oom_score_adj
while [ "$1" != -- ]; do echo 0 > "$1"; shift; done
shift
cd "$dir"
[ -z "$overlay" ] || mount -t overlay overlay -o "$overlay" merged
cd /
exec "$@"
`;

/**
 * Arguments: syscall numbers, the sandbox's ids and those of the project's owner (who is shown as the sandbox's user), run directory, stage, overlay options, cgroup files, staged paths, bwrap and its arguments.
 * It makes its own mount namespace (one program less to start), from which nothing it mounts comes back.
 * The run directory is mounted over the stage, because the sandbox's user cannot walk down to it through root's home.
 * Pipes and the terminal are given to the sandbox's user, who could not open /dev/stderr otherwise; files are left alone.
 * open_tree, mount_setattr and move_mount have the same numbers on every architecture.
 */
export const ROOT_LAUNCHER = `use strict;
my ($mount, $unshare, $prctl) = split /,/, shift @ARGV;
my ($uid, $gid, $owner, $group) = split /,/, shift @ARGV;
my ($dir, $stage, $overlay) = splice @ARGV, 0, 3;
my @groups = splice @ARGV, 0, shift @ARGV;
my @staged = splice @ARGV, 0, 2 * shift @ARGV;
sub fail { print STDERR "ags: $_[0]: $!\\n"; exit 96 }
my $none = "\\0";
syscall($prctl, 1, 9, 0, 0, 0);
for my $file (@groups) { open(my $f, '>', $file) or fail("enter $file"); syswrite($f, '0') or fail("enter $file"); close $f }
my ($top, $bind, $type) = ("/\\0", "$stage\\0", "overlay\\0");
syscall($unshare, 0x20000) == 0 or fail('unshare failed');
syscall($mount, $none, $top, $none, 0x44000, 0) == 0 or fail('make the mounts private');
syscall($mount, "$dir\\0", $bind, $none, 4096, 0) == 0 or fail('mount the run directory');
chdir $stage or fail('enter the stage');
if (open(my $oom, '>', '/proc/self/oom_score_adj')) { syswrite $oom, '800'; close $oom }
if (@staged) {
  my ($tmpfs, $at, $size) = ("tmpfs\\0", "stage\\0", "size=1m,mode=755\\0");
  syscall($mount, $tmpfs, $at, $tmpfs, 6, $size) == 0 or fail('make the stage');
  pipe(my $ready, my $say) or fail('pipe'); pipe(my $wait, my $go) or fail('pipe');
  my $pid = fork() // fail('fork');
  if (!$pid) { close $go; syscall($unshare, 0x10000000) == 0 or exit 1; syswrite $say, 'x'; sysread $wait, my $x, 1; exit 0 }
  close $say; close $wait;
  sysread($ready, my $x, 1) or fail('make a user namespace');
  for (['uid_map', $owner, $uid], ['gid_map', $group, $gid]) {
    open(my $f, '>', "/proc/$pid/$_->[0]") or fail('map ids'); syswrite($f, "$_->[1] $_->[2] 1\\n") or fail('map ids'); close $f;
  }
  open(my $ns, '<', "/proc/$pid/ns/user") or fail('open the user namespace');
  my $attr = pack('QQQQ', 0x100000, 0, 0, fileno $ns);
  while (my ($from, $at) = splice @staged, 0, 2) {
    my ($source, $target) = ("$from\\0", "$at\\0");
    if (-d $from) { mkdir $at or fail("make $at") } else { open(my $f, '>', $at) or fail("make $at") }
    my $fd = syscall(428, -100, $source, 0x80001); $fd >= 0 or fail("open $from");
    syscall(442, $fd, $none, 0x1000, $attr, 32) == 0 or fail("map the owner of $from");
    syscall(429, $fd, $none, -100, $target, 4) == 0 or fail("mount $from");
    open(my $closing, '<&=', $fd); close $closing;
  }
  close $go; waitpid $pid, 0;
}
if ($overlay ne '') {
  my ($options, $at) = ("$overlay\\0", "merged\\0");
  syscall($mount, $type, $at, $type, 0, $options) == 0 or fail('mount the workspace');
}
chdir '/';
for my $stream (*STDIN, *STDOUT, *STDERR) { chown $uid, $gid, $stream if -p $stream || -t $stream }
$) = "$gid $gid"; $( = $gid; $< = $uid; $> = $uid;
fail('give root up') if $< != $uid || $> != $uid || $( + 0 != $gid || $) ne "$gid $gid";
exec { $ARGV[0] } @ARGV or fail("start $ARGV[0]");
`;
