# stage.pl: for a caller that is root, mounts everything a container will see where the engine finds it, for the moment in
# which it starts; "off" takes it away again, and the container keeps its own mounts of it. Node runs it by perl -e.
# Always: the directory above the stage is closed to others: a mount brings its own mode along, and in there are root's files
# and the socket at which streams are handed over.
#
# Arguments: syscall numbers; on or off, the engine's socket, run directory and its identity, stage; the ids of the sandbox's
# user and of the project's owner; overlay options; layers; staged paths.
use strict; use warnings;
my ($mount, $unshare, $setns, $umount) = map { $_ + 0 } split /,/, shift @ARGV;
my ($how, $engine, $dir, $identity, $stage) = splice @ARGV, 0, 5;
my ($closed) = $stage =~ m{^(.+)/};
sub fail { my $why = $!; clear() if $how eq 'on'; $! = $why; print STDERR "$_[0]: $!\n"; exit 96 }
sub clear { my $at = "$stage\0"; chdir '/'; syscall($umount, $at, 2); rmdir $stage; rmdir $closed }
my ($to, $theirs);
socket($to, 1, 1, 0) && connect($to, pack 'Sa108', 1, $engine) or fail("reach $engine");
my ($pid) = unpack 'i', getsockopt $to, 1, 17;
open($theirs, '<', "/proc/$pid/ns/mnt") && syscall($setns, fileno $theirs, 0x20000) == 0
  or fail('enter the file systems of the engine');
if ($how eq 'off') { clear(); exit 0 }
if (join(',', (stat $dir)[0, 1]) ne $identity) { print STDERR "the engine does not see $dir\n"; exit 96 }
my ($uid, $gid, $owner, $group) = split /,/, shift @ARGV;
my $overlay = shift @ARGV;
my @layers = splice @ARGV, 0, 2 * shift @ARGV;
my @staged = splice @ARGV, 0, 3 * shift @ARGV;
# include mount.pl
# include mounts.pl
mkdir($closed, 0700) && mkdir($stage, 0700) or fail("make $stage");
mount($dir, $stage, '', 4096, '') && mount('', $stage, '', 0x40000, '') or fail('mount the run directory');
chdir $stage or fail('enter the run directory');
mount_all();
