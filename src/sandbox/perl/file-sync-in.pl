# file-sync-in.pl: brings files into the volume of a sandbox on another machine. The engine there runs it by perl -e, in a
# container without a network.
# Always: it gives root up before it reads the first record. It remembers by inode, beside the files, what it has written, so
# that later only what was changed need come back.
#
# Its input is records of a letter, a mode, a time, a size and a path, and so many bytes after them.
use strict; use warnings;
our $REMOTE_PLACE;
# include file-sync.pl
my @places = ('d', 'meet', 'meet/gate', 'meet/pause');
for (@places) { mkdir $_ or fail("make $_") }
for (reverse '.', @places) { chmod(0755, $_) && chown($uid, $gid, $_) or fail("give $_ away") }
$) = "$gid $gid";
$) eq "$gid $gid" && syscall($setgid, ($gid + 0) x 3) == 0 && syscall($setuid, ($uid + 0) x 3) == 0 or fail('give root up');
umask 0;
binmode STDIN;
sub whole {
  my ($size) = @_;
  my $all = '';
  while (length $all < $size) { read(STDIN, $all, $size - length $all, length $all) or fail('the files did not all arrive') }
  $all;
}
sub date {
  my ($path, $seconds, $rest) = @_;
  my $times = pack 'qqqq', $seconds, $rest, $seconds, $rest; $path .= "\0";
  syscall $utimensat, -100, $path, $times, 0x100;
}
my (@dirs, @sent);
while (1) {
  my ($kind, $mode, $seconds, $rest, $size, $length) = unpack 'aNq>NQ>n', whole(27);
  last if $kind eq 'z';
  my $path = 'd/' . whole($length);
  push @sent, $path;
  if ($kind eq 'd') { mkdir $path, 0700 or fail("make $path"); push @dirs, [$path, $mode, $seconds, $rest]; next }
  if ($kind eq 'l') { symlink whole($size), $path or fail("make $path"); date($path, $seconds, $rest); next }
  sysopen(my $file, $path, 0301, 0600) or fail("write $path");
  while ($size > 0) {
    my $part = whole($size < 1048576 ? $size : 1048576);
    $size -= length $part; print $file $part or fail("write $path");
  }
  close $file or fail("write $path");
  chmod $mode, $path; date($path, $seconds, $rest);
}
for (reverse @dirs) { my ($path, $mode, @time) = @$_; chmod $mode, $path; date($path, @time) }
open(my $list, '>', 'sent') or fail('remember what was sent');
print $list pack 'n/a*Q', $_, facts($_)->{inode} for @sent;
close $list or fail('remember what was sent');
open($list, '>', 'mark') && close $list or fail('remember when');
syswrite STDOUT, "ok\n";
stay();
