# file-sync.pl: what both directions of the file sync have in common. A part of file-sync-in.pl and file-sync-out.pl.
# Arguments: syscall numbers; the ids of the sandbox's user. Expects $REMOTE_PLACE, the directory of the volume.
# Always: no link is followed for what is told of a file.
my ($statx, $utimensat, $setgid, $setuid) = map { $_ + 0 } split /,/, shift @ARGV;
my ($uid, $gid) = splice @ARGV, 0, 2;
sub fail { print STDERR "ags: $_[0]: $!\n"; exit 96 }
sub facts {
  my $facts = "\0" x 256; my $path = "$_[0]\0";
  return if syscall $statx, -100, $path, 0x100, 0xfff, $facts;
  my ($mode, $inode, $size) = unpack 'x28Sx2QQ', $facts;
  my ($changed, $changed_n, $written, $written_n) = unpack 'x96qLx4qL', $facts;
  return { mode => $mode, inode => $inode, size => $size,
    changed => sprintf('%020d.%09d', $changed, $changed_n), written => [$written, $written_n] };
}
# An engine under load may forget the last output of a container that is gone: it stays until its input ends, when Node has it.
sub stay { 1 while sysread STDIN, my $drop, 65536 }
chdir $REMOTE_PLACE or fail('enter the volume');
