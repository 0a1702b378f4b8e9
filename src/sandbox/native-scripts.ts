// sandbox/native-scripts.ts: the launcher, run by a program every system has. It stands between Node and bwrap because Node
// can neither mount nor change its identity in a child's namespace.
// When the machine runs out of memory, the kernel should look here first.
// Invariant: it takes data as arguments only, and the last thing it does is exec bwrap in the same process, so the process
// that Node watches is bwrap itself.

/**
 * A descriptor can be opened again through /proc/self/fd, with rights that it does not have: what was given to be read could
 * be written, and what was given to be added to could be emptied. That does no harm to a pipe without a name, a socket, a
 * terminal and devices like /dev/null; anything else is put behind a pipe, and a process out here copies.
 *
 * Who copies the input leaves the file where the command left it, for whoever reads on: a shell's loop, for example. What is
 * still in the pipe counts as not read; the sandbox may have put more in, so the place is never before the one where it began.
 * It ends with bwrap, whatever else it waits for. Who copies output ends when nobody can write any more; what it could not
 * write makes an exit code of 0 a 1, by a line of its own among what bwrap reports. Both hold on to the descriptor of our word,
 * so Node waits for them.
 */
const STREAMS = `sub copy_in {
  my ($from, $read, $write) = @_;
  my $bwrap = $$;
  return if fork() // fail('fork');
  hang_up();
  my $life = syscall(434, $bwrap, 0);
  open(my $in, '<&=', $from);
  my $begin = sysseek $in, 0, 1;
  my ($ended, $have, $given, $total, $chunk) = (0, 0, 0, 0);
  $SIG{PIPE} = 'IGNORE';
  fcntl $write, 4, 04001;
  my $await = sub {
    my ($readable, $writable) = @_;
    my ($in_set, $out_set) = ('', '');
    vec($in_set, $life, 1) = 1 if $life >= 0;
    vec($in_set, fileno $in, 1) = 1 if $readable;
    vec($out_set, fileno $write, 1) = 1 if $writable;
    my $some = select $in_set, $out_set, undef, 0.5;
    $ended = 1 if getppid() != $bwrap || ($some > 0 && $life >= 0 && vec $in_set, $life, 1);
    return $some > 0 && (($readable && vec $in_set, fileno $in, 1) || ($writable && vec $out_set, fileno $write, 1));
  };
  until ($ended) {
    if ($given == $have) {
      next if !$await->(1, 0) || $ended;
      ($have, $given) = (sysread($in, $chunk, 65536), 0);
      last if !$have;
    }
    next if !$await->(0, 1) || $ended;
    my $size = syswrite($write, $chunk, $have - $given, $given) // next;
    $given += $size; $total += $size;
  }
  close $write;
  $await->(0, 0) until $ended;
  my $waiting = pack 'i', 0; ioctl $read, 0x541b, $waiting;
  my $used = $total - unpack 'i', $waiting;
  sysseek $in, $begin + ($used < 0 ? 0 : $used), 0 if $begin;
  exit 0;
}
sub copy_out {
  my ($to, $read, $write) = @_;
  return if fork() // fail('fork');
  hang_up();
  close $write;
  open(my $out, '>&=', $to);
  $SIG{PIPE} = $SIG{XFSZ} = 'IGNORE';
  while (my $size = sysread $read, my $chunk, 65536) {
    for (my $done = 0; $done < $size;) {
      $done += syswrite($out, $chunk, $size - $done, $done) // do {
        print STDERR "ags: the output could not be written: $!\\n";
        open(my $report, '>&=', 5); syswrite $report, qq({ "output-lost": 1 }\\n); exit 1;
      };
    }
  }
  exit 0;
}
my %copied;
for my $fd (7, 0, 1, 2) {
  my ($device, $inode, $mode, $special) = (stat "/proc/self/fd/$fd")[0, 1, 2, 6] or next;
  my ($type, $major) = ($mode >> 12, $special >> 8);
  next if $type == 12 || ($type == 1 && readlink("/proc/self/fd/$fd") =~ /^pipe:/);
  next if $type == 2 && ($major == 4 || $major == 5 || ($major >= 136 && $major <= 143) || grep { $special == 0x100 + $_ } 3, 5, 7, 8, 9);
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
 * With a gateway the network namespace is made here and not by bwrap, because the doors must stand in it before anything runs.
 * Each is a socket that is bound here and then handed to Node, over the channel that Node has opened for its own messages, in
 * the words in which Node hands sockets to Node.
 *
 * Node says when it has them all, and only then we hang up: what it has not read by then, it would drop.
 *
 * Connections into the sandbox can only be made in its namespace: if there may be any, a process stays that makes them and
 * hands them over. It has no right and no other descriptor, and ends with the channel or with bwrap, whichever is first.
 * A server that takes no connection from its queue must not keep it from making others.
 */
const DOORS = `sub pass {
  my ($line, $socket) = @_;
  my $rights = pack 'Qiiix4', 20, 1, 1, fileno $socket;
  my $data = pack 'PQ', $line, length $line;
  my $message = pack 'QLx4PQPQlx4', 0, 0, $data, 1, $rights, length $rights, 0;
  syscall($sendmsg, $channel, $message, 0x4000) == length $line;
}
sub hang_up { return if !$channel; open(my $node, '<&=', $channel); close $node; $channel = 0 }
sub serve {
  my ($bwrap) = @_;
  open STDIN, '<', '/dev/null'; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null';
  opendir(my $list, '/proc/self/fd') or exit 1;
  my @open = grep { /^\\d+$/ && $_ > 2 && $_ != $channel } readdir $list;
  closedir $list;
  for (@open) { open(my $one, '<&=', $_) or next; close $one }
  if (defined $uid) {
    $) = "$gid $gid";
    exit 1 if $) ne "$gid $gid" || syscall($setgid, ($gid + 0) x 3) || syscall($setuid, ($uid + 0) x 3);
  }
  my ($whose, $nothing) = (pack('LL', 0x20080522, 0), pack 'L6', (0) x 6);
  exit 1 if syscall($capset, $whose, $nothing) || syscall($prctl, 38, 1, 0, 0, 0) || syscall($prctl, 1, 9, 0, 0, 0) || getppid() != $bwrap;
  open(my $in, '+<&=', $channel) or exit 1;
  my ($text, %begun) = ('');
  my $answer = sub {
    my ($id, $socket) = @_;
    pass(qq({"cmd":"NODE_HANDLE","type":"net.Socket","msg":{"connected":$id}}\\n), $socket) if $socket;
    my $line = qq({"refused":$id}\\n);
    syswrite $in, $line if !$socket;
  };
  my $begin = sub {
    my ($id, @places) = @_;
    while (my $place = shift @places) {
      socket(my $socket, unpack('S', $place), 04001, 0) or next;
      return $answer->($id, $socket) if connect $socket, $place;
      return $begun{fileno $socket} = [$id, $socket, time + 10, @places] if $! == 115;
    }
    $answer->($id);
  };
  while (1) {
    my ($readable, $writable) = ('', '');
    vec($readable, $channel, 1) = 1;
    vec($writable, $_, 1) = 1 for keys %begun;
    select $readable, $writable, undef, %begun ? 1 : undef;
    for my $fd (keys %begun) {
      my ($id, $socket, $until, @places) = @{$begun{$fd}};
      next if !vec($writable, $fd, 1) && time < $until;
      delete $begun{$fd};
      vec($writable, $fd, 1) && !unpack('i', getsockopt $socket, 1, 4) ? $answer->($id, $socket) : $begin->($id, @places);
    }
    next if !vec $readable, $channel, 1;
    sysread($in, $text, 4096, length $text) or exit 0;
    while ($text =~ s/^(.*)\\n//) {
      exit 0 if $1 eq '"done"';
      my ($port, $id) = $1 =~ /^\\{"connect":(\\d+),"id":(\\d+)\\}$/ or next;
      $begin->($id, pack('SnC4x8', 2, $port, 127, 0, 0, 1), pack('SnNx15CN', 10, $port, 0, 1, 0));
    }
  }
}
if ($channel) {
  syscall($unshare, 0x40000000) == 0 or fail('make a network');
  socket(my $any, 2, 2, 0) or fail('open a socket');
  my $loopback = pack 'a16sx22', 'lo', 0;
  ioctl $any, 0x8913, $loopback or fail('look at the loopback interface');
  $loopback = pack 'a16sx22', 'lo', 1 | unpack 'x16s', $loopback;
  ioctl $any, 0x8914, $loopback or fail('bring the loopback interface up');
  close $any;
  for my $n (0 .. $#doors) {
    my ($protocol, $address, $port) = split /,/, $doors[$n];
    my ($kind, $type) = $protocol eq 'tcp' ? (1, '"net.Server"') : (2, '"dgram.Native"');
    socket(my $door, 2, $kind, 0) or fail('open a socket');
    bind($door, pack 'SnC4x8', 2, $port, split /\\./, $address) && ($kind == 2 || listen $door, 4096) or fail("open a door at $address, port $port");
    pass(qq({"cmd":"NODE_HANDLE","type":$type,"msg":{"door":$n}}\\n), $door) or fail('hand a door over');
  }
  delete @ENV{'NODE_CHANNEL_FD', 'NODE_CHANNEL_SERIALIZATION_MODE'};
  if ($reach) { my $bwrap = $$; serve($bwrap) if !(fork() // fail('fork')); hang_up() }
}
`;

/**
 * Arguments: syscall numbers; for root the sandbox's ids and those of the project's owner (who is shown as the sandbox's
 * user); run directory, stage, overlay options; the layers of the workspace, each with its identity; cgroup files; staged paths; with a gateway the
 * channel's descriptor and the doors; bwrap and its arguments.
 *
 * It has a mount namespace of its own, from which nothing comes back: a user's launcher was started in one by unshare, root's
 * makes it (one program less to start). Only where a user cannot have one there is nothing to mount either. Root's run directory is mounted over the stage, because the sandbox's user cannot walk
 * down to it through root's home.
 *
 * The layers of a workspace may belong to several owners: the project's to whoever owns it, those that ags made to root, what a
 * sandbox made to the sandbox's user. Each is mapped by whom its directory belongs to.
 * Of staged paths, "map" shows the owner's files as the sandbox user's; over a directory lies an overlay, if it must or may:
 * files can be read through it, but what others made there to be spoken to, sockets and pipes, is dead.
 * A user's watches on files are counted across namespaces: a quarter of them, the sandbox may have.
 * Pipes and the terminal are given to the sandbox's user, who could not open /dev/stderr otherwise.
 * open_tree, mount_setattr and move_mount have the same numbers on every architecture.
 */
export const LAUNCHER = `use strict;
my ($mount, $unshare, $prctl, $dup, $sendmsg, $capset, $setgid, $setuid) = split /,/, shift @ARGV;
my ($uid, $gid, $owner, $group) = split /,/, shift @ARGV;
my ($dir, $stage, $overlay) = splice @ARGV, 0, 3;
my @layers = splice @ARGV, 0, 2 * shift @ARGV;
my @groups = splice @ARGV, 0, shift @ARGV;
my @staged = splice @ARGV, 0, 3 * shift @ARGV;
my ($channel, $reach) = map { $_ + 0 } split /,/, shift @ARGV;
my @doors = splice @ARGV, 0, shift @ARGV;
my $none = "\\0";
my @held;
sub fail { print STDERR "ags: $_[0]: $!\\n"; exit 96 }
sub mount { my ($what, $at, $type, $flags, $options) = map { "$_\\0" } @_; syscall($mount, $what, $at, $type, $_[3], $options) == 0 }
sub lay { mount('overlay', $_[0], 'overlay', 0, "userxattr,$_[1]") }
sub hold { sysopen(my $it, $_[0], 010200000) or fail("open $_[0]"); push @held, $it; '/proc/self/fd/' . fileno $it }
${DOORS}${STREAMS}syscall($prctl, 1, 9, 0, 0, 0);
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
if (@staged || (defined $uid && @layers)) { mount('tmpfs', 'stage', 'tmpfs', 6, 'size=1m,mode=755') or fail('make the stage'); mkdir 'stage/none' or fail('make the stage') }
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
@held = ();
chdir '/';
if (defined $uid) {
  for my $stream (*STDIN, *STDOUT, *STDERR) { chown $uid, $gid, $stream if -p $stream || -t $stream }
  $) = "$gid $gid"; $( = $gid; $< = $uid; $> = $uid;
  fail('give root up') if $< != $uid || $> != $uid || $( + 0 != $gid || $) ne "$gid $gid";
}
if ($channel) { open(my $node, '<&=', $channel); my $heard = ''; 1 while $heard !~ /"done"/ && sysread $node, $heard, 4096, length $heard; close $node }
exec { $ARGV[0] } @ARGV or fail("start $ARGV[0]");
`;
