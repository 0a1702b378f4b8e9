// sandbox/native-scripts.ts: the launcher, run by a program every system has. It stands between Node and bwrap because Node
// can neither mount nor change its identity in a child's namespace.
// When the machine runs out of memory, the kernel should look here first.
// Invariant: it takes data as arguments only, and the last thing it does is exec bwrap in the same process, so the process
// that Node watches is bwrap itself.
import { DOOR_SUBS, OPEN_DOORS, OWN_NETWORK } from './script-doors.ts';
import { MOUNT_ALL, MOUNT_SUBS } from './script-mounts.ts';
import { STREAMS } from './script-streams.ts';

/**
 * Arguments: syscall numbers; for root the sandbox's ids and those of the project's owner (who is shown as the sandbox's
 * user); run directory, stage, overlay options; the layers of the workspace, each with its identity; cgroup files; staged paths; with a gateway the
 * channel's descriptor and the doors; bwrap and its arguments.
 *
 * It has a mount namespace of its own, from which nothing comes back: a user's launcher was started in one by unshare, root's
 * makes it (one program less to start). Only where a user cannot have one there is nothing to mount either. Root's run directory is mounted over the stage, because the sandbox's user cannot walk
 * down to it through root's home.
 *
 * It does not ask the kernel to end it with us: bwrap would be ended between having made the sandbox's first process and telling it to go
 * on, and that would wait for ever. Until our word to go has come nothing need be ended, because without it all of this ends by itself;
 * bwrap asks for it (--die-with-parent) when next to nothing is left to be told.
 *
 * What crashes inside is nothing for programs of the host (core_pattern): inside, the filter lets nobody change that limit (seccomp-table.ts).
 * A user's watches on files are counted across namespaces: a quarter of them, the sandbox may have.
 * Pipes and the terminal are given to the sandbox's user, who could not open /dev/stderr otherwise.
 */
export const LAUNCHER = `use strict;
my ($mount, $unshare, $prctl, $dup, $sendmsg, $capset, $setgid, $setuid, $prlimit) = split /,/, shift @ARGV;
my ($uid, $gid, $owner, $group) = split /,/, shift @ARGV;
my ($dir, $stage, $overlay) = splice @ARGV, 0, 3;
my @layers = splice @ARGV, 0, 2 * shift @ARGV;
my @groups = splice @ARGV, 0, shift @ARGV;
my @staged = splice @ARGV, 0, 3 * shift @ARGV;
my ($channel, $reach) = map { $_ + 0 } split /,/, shift @ARGV;
my @doors = splice @ARGV, 0, shift @ARGV;
sub fail { print STDERR "ags: $_[0]: $!\\n"; exit 96 }
${MOUNT_SUBS}${DOOR_SUBS}if ($channel) {
${OWN_NETWORK}${OPEN_DOORS}}
${STREAMS}for my $file (@groups) { open(my $f, '>', $file) or fail("enter $file"); syswrite($f, '0') or fail("enter $file"); close $f }
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
    open(my $all, '<', "/proc/sys/fs/inotify/max_user_$_") or next; open(my $own, '>', "/proc/sys/user/max_inotify_$_") or next;
    syswrite $own, int(<$all> / 4) + 1;
  }
}
chdir $dir or fail('enter the run directory');
${MOUNT_ALL}@held = ();
chdir '/';
if (defined $uid) {
  for my $stream (*STDIN, *STDOUT, *STDERR) { chown $uid, $gid, $stream if -p $stream || -t $stream }
  $) = "$gid $gid"; $( = $gid; $< = $uid; $> = $uid;
  fail('give root up') if $< != $uid || $> != $uid || $( + 0 != $gid || $) ne "$gid $gid";
}
if ($channel) { open(my $node, '<&=', $channel); my $heard = ''; 1 while $heard !~ /"done"/ && sysread $node, $heard, 4096, length $heard; close $node }
exec { $ARGV[0] } @ARGV or fail("start $ARGV[0]");
`;
