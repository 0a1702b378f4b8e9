# file-sync-out.pl: sends back what is new, changed or gone in the volume of a sandbox on another machine: first what is gone,
# innermost first. The engine there runs it by perl -e, as the sandbox's user, in a container without a network.
# Always: it sends files, directories and links alone, and changes no mode for longer than it needs to read.
#
# Arguments after those of file-sync.pl: the places to look below.
use strict; use warnings;
our $REMOTE_PLACE;
# include file-sync.pl
my $mark = (facts('mark') // fail('read the mark'))->{changed};
my (%sent, %seen, @new);
open(my $list, '<', 'sent') or fail('read what was sent');
binmode $list; binmode STDOUT;
while (read $list, my $length, 2) {
  read $list, my $path, unpack 'n', $length; read $list, my $inode, 8;
  $sent{$path} = unpack 'Q', $inode;
}
my @todo = map { "d/$_" } @ARGV;
my $roots = join '|', map { quotemeta } @todo;
while (defined(my $path = pop @todo)) {
  my $facts = facts($path) or next;
  my $type = $facts->{mode} >> 12;
  next if $type != 4 && $type != 8 && $type != 10;
  $seen{$path} = 1;
  push @new, $path if ($sent{$path} // -1) != $facts->{inode} || $facts->{changed} gt $mark;
  next if $type != 4;
  chmod 0700 | $facts->{mode} & 07777, $path if ($facts->{mode} & 0500) != 0500;
  my $more;
  if (opendir $more, $path) { push @todo, map { "$path/$_" } grep { $_ ne '.' && $_ ne '..' } readdir $more; closedir $more }
  chmod $facts->{mode} & 07777, $path if ($facts->{mode} & 0500) != 0500;
}
sub record {
  my ($kind, $path, $facts, $size) = @_;
  print pack 'aNq>NQ>n/a*', $kind, $facts->{mode} & 0777, @{$facts->{written}}, $size, substr $path, 2;
}
my $nothing = { mode => 0, written => [0, 0] };
for (sort { $b cmp $a } grep { /^(?:$roots)\// && !$seen{$_} } keys %sent) { record('x', $_, $nothing, 0) }
for my $path (sort @new) {
  my $facts = facts($path) or next;
  my $type = $facts->{mode} >> 12;
  if ($type == 4) { record('d', $path, $facts, 0); next }
  if ($type == 10) { my $to = readlink $path; record('l', $path, $facts, length $to); print $to; next }
  my $file;
  if (!sysopen $file, $path, 0400000) {
    chmod 0400 | $facts->{mode} & 07777, $path;
    my $open = sysopen $file, $path, 0400000;
    chmod $facts->{mode} & 07777, $path;
    next if !$open;
  }
  record('f', $path, $facts, $facts->{size});
  my $left = $facts->{size};
  while ($left > 0) {
    my $size = sysread $file, my $part, $left < 1048576 ? $left : 1048576;
    fail("read $path") if !$size;
    print $part; $left -= $size;
  }
}
record('z', 'd/', $nothing, 0);
close STDOUT or fail('send the files');
stay();
