# launcher.pl: starts a sandbox of the native backend. Node runs it by perl -e; it stands between Node and bwrap, because Node
# can neither mount nor change its identity in a child's namespace.
# Always: it takes data as arguments only, and the last thing it does is exec bwrap in the same process, so the process that
# Node watches is bwrap itself.
#
# Arguments: syscall numbers; for root the sandbox's ids and those of the project's owner (shown as the sandbox's user); run
# directory, stage, overlay options; the layers of the workspace, each with its identity; cgroup files; staged paths; with a
# gateway the channel's descriptor and the listeners; bwrap and its arguments.
#
# It has its own mount namespace, from which no mount comes back: unshare started a user's launcher in one, root's makes it
# (one program less to start). Where a user cannot have one there is nothing to mount either. Root's run directory is mounted
# over the stage, because the sandbox's user cannot walk down to it through root's home.
#
# It does not ask the kernel to be ended with Node: bwrap would be ended between making the sandbox's first process and
# telling it to go on, and that process would wait for ever. Until the word to go has come nothing need be ended, because
# without it all of this ends by itself; bwrap asks for it (--die-with-parent) when next to nothing is left to be told.
#
# Programs of the host learn nothing of crashes inside (core_pattern): the filter inside lets nobody change that limit
# (seccomp-table.ts). When the machine runs out of memory, the kernel looks here first (oom_score_adj). A user's watches on
# files are counted across namespaces: the sandbox may have a quarter of them. Pipes and the terminal are given to the
# sandbox's user, who could not open /dev/stderr otherwise.
use strict;
my ($mount, $unshare, $prctl, $dup, $sendmsg, $capset, $setgid, $setuid, $prlimit) = split /,/, shift @ARGV;
my ($uid, $gid, $owner, $group) = split /,/, shift @ARGV;
my ($dir, $stage, $overlay) = splice @ARGV, 0, 3;
my @layers = splice @ARGV, 0, 2 * shift @ARGV;
my @groups = splice @ARGV, 0, shift @ARGV;
my @staged = splice @ARGV, 0, 3 * shift @ARGV;
my ($channel, $reach) = map { $_ + 0 } split /,/, shift @ARGV;
my @listeners = splice @ARGV, 0, shift @ARGV;
sub fail { print STDERR "ags: $_[0]: $!\n"; exit 96 }
# include mount.pl
# include mounts.pl
# include sockets.pl
# include listeners.pl
# include streams.pl
# The listeners must stand in the network before anything runs, so it is made here and not by bwrap.
if ($channel) {
  syscall($unshare, 0x40000000) == 0 or fail('make a network');
  bring_up('lo');
  hand_over($reach, @listeners);
}
put_files_behind_pipes();
for my $file (@groups) { open(my $f, '>', $file) or fail("enter $file"); syswrite($f, '0') or fail("enter $file"); close $f }
if (open(my $f, '>', '/proc/self/oom_score_adj')) { syswrite $f, '800'; close $f }
my $core = pack('QQ', 1, 1);
syscall($prlimit, 0, 4, $core, 0);
if (defined $uid) {
  syscall($unshare, 0x20000) == 0 or fail('unshare failed');
  mount('', '/', '', 0x44000, '') or fail('make the mounts private');
  mount($dir, $stage, '', 4096, '') or fail('mount the run directory');
  $dir = $stage;
} else {
  for ('instances', 'watches') {
    open(my $all, '<', "/proc/sys/fs/inotify/max_user_$_") or next;
    open(my $own, '>', "/proc/sys/user/max_inotify_$_") or next;
    syswrite $own, int(<$all> / 4) + 1;
  }
}
chdir $dir or fail('enter the run directory');
mount_all();
@held = ();
chdir '/';
if (defined $uid) {
  for my $stream (*STDIN, *STDOUT, *STDERR) { chown $uid, $gid, $stream if -p $stream || -t $stream }
  $) = "$gid $gid"; $( = $gid; $< = $uid; $> = $uid;
  fail('give root up') if $< != $uid || $> != $uid || $( + 0 != $gid || $) ne "$gid $gid";
}
await_taken();
exec { $ARGV[0] } @ARGV or fail("start $ARGV[0]");
