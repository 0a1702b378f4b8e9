// test/attacks/table-files.ts: attempts on files of the host, from inside. See attack.ts for what the fields mean.
import type { Attack } from './attack.ts';

const perl = String.raw;

export const FILE_ATTACKS: readonly Attack[] = [
  {
    id: 'A1',
    what: 'read keys and sign-ins in the home',
    perl: perl`get("$V{HOME}/$_") for qw(.ssh/id_ed25519 .aws/credentials .netrc .bash_history .config/gh/hosts.yml)`,
    expect: ['ENOENT'],
  },
  {
    id: 'A1',
    what: 'find anything of the real home',
    perl: perl`look("$V{HOME}/$_") for qw(.ssh .aws .netrc .bashrc .profile code/sibling .gnupg marker.txt)`,
    expect: ['ENOENT'],
  },
  {
    id: 'A1',
    what: 'read accounts and passwords of the machine',
    perl: perl`get($_) for qw(/etc/shadow /etc/gshadow /etc/sudoers /etc/machine-id /etc/ssh/ssh_config /etc/ssl/private /etc/fstab)`,
    expect: ['ENOENT'],
  },
  {
    id: 'A1',
    what: 'learn the accounts of the machine',
    perl: perl`line(join ' ', map { (split /:/)[0] =~ /^(root|nobody|user|agent)$/ ? 'known' : 'other' } split /\n/, slurp('/etc/passwd'))`,
    expect: ['known known known'],
  },
  { id: 'A2', what: 'write in another project', perl: perl`put("$V{SIBLING}/planted.txt", 1)`, expect: ['ENOENT'] },
  {
    id: 'A2',
    what: 'write into start-up files of the shell (harmless: the home is the task’s own)',
    perl: perl`for (qw(.bashrc .profile .zshenv)) { open my $f, '>>', "$V{HOME}/$_" or next; print $f "breach\n" } print "tried\n"`,
    expect: ['tried'],
  },
  {
    id: 'A2',
    what: 'write into programs and settings of the system',
    perl: perl`put($_, 1) for qw(/usr/bin/ags-planted /usr/local/bin/ags-planted /usr/lib/ags-planted /opt/ags-planted /etc/ags-planted); put($_) for qw(/etc/passwd /etc/ld.so.cache /usr/bin/env)`,
    expect: ['EROFS', 'EACCES'],
  },
  {
    id: 'A2',
    what: "write into the user's own tools",
    perl: perl`put("$V{TOOLS}/planted", 1); put("$V{TOOLS}/tool"); tried(unlink("$V{TOOLS}/tool"), 'unlink'); tried(rename("$V{TOOLS}/tool", "$V{TOOLS}/other"), 'rename'); tried(chmod(0777, "$V{TOOLS}/tool"), 'chmod'); tried(utime(1, 1, "$V{TOOLS}/tool"), 'utime')`,
    expect: ['EROFS'],
  },
  {
    id: 'A2',
    what: 'write where bubblewrap keeps its own root',
    perl: perl`put("$_/planted", 1) for '', qw(/dev /run /var /etc /run/ags /run/ags/objects)`,
    expect: ['EROFS'],
  },
  {
    id: 'A2',
    what: "write into the repository's objects",
    perl: perl`put("/run/ags/objects/0/planted", 1); put("/run/ags/objects/0/pack/planted", 1); tried(mkdir("/run/ags/objects/0/zz"), 'mkdir')`,
    expect: ['EROFS'],
  },
  {
    id: 'A2',
    what: 'change the project itself (harmless: copy-on-write)',
    perl: perl`chdir $V{PROJECT}; open my $f, '>>', 'src/a.txt' or die $!; print $f "breach\n"; close $f; chmod 0755, 'src/a.txt'; open $f, '>', 'planted.txt'; close $f; open $f, '>>', '.git/config'; print $f "\n# breach\n"; close $f; open $f, '>', '.git/hooks/post-checkout'; close $f; unlink '.git/hooks/post-checkout'; unlink 'planted.txt'; print "tried\n"`,
    expect: ['tried'],
  },
  {
    id: 'A3',
    what: 'write through a link out of the workspace',
    perl: perl`chdir $V{PROJECT}; for my $to ($V{SIBLING}, $V{STATE}, '/root') { unlink 'lnk'; symlink $to, 'lnk' or die $!; put('lnk/f', 1) } unlink 'lnk'`,
    expect: ['ENOENT', 'EROFS', 'EACCES'],
  },
  {
    id: 'A6',
    what: 'leave by /proc/*/root, /proc/*/cwd and open directories',
    perl: perl`for my $way (glob('/proc/[0-9]*/root /proc/[0-9]*/cwd /proc/[0-9]*/fd/*'), '/proc/self/root/../..', '/proc/thread-self/root') { for my $up ('', '/..', '/../../../../../..') { print "$way$up = found\n" if -e "$way$up$V{SIBLING}" || -e "$way$up$V{HOST_TMP}" } } print "searched\n"`,
    expect: ['searched'],
  },
  {
    id: 'A6',
    what: 'go up from the mounts of the repository',
    perl: perl`look($_) for '/run/ags/objects/0/../config', '/run/ags/objects/0/../HEAD', '/run/ags/objects/../../../HEAD', "$V{PROJECT}/.git/../../sibling", "$V{TOOLS}/../../.ssh"`,
    expect: ['ENOENT'],
  },
  {
    id: 'A7',
    what: 'use a descriptor that the caller left open',
    perl: perl`get("/proc/self/fd/9"); get("/proc/1/fd/9"); for my $p ('self', 1) { opendir my $d, "/proc/$p/fd"; for (readdir $d) { my $to = readlink "/proc/$p/fd/$_" // next; print "/proc/$p/fd/$_ -> $to = open\n" if $_ > 2 && $to =~ m{^/} && $to !~ m{^(/proc/|/dev/(null|shm)|/tmp/)} } }`,
    expect: ['ENOENT'],
  },
  {
    id: 'A9',
    what: 'find the state, the settings or the memory of ags',
    perl: perl`look($_) for $V{STATE}, "$V{HOME}/.cache/ags", "$V{HOME}/.config/ags"`,
    expect: ['ENOENT'],
  },
  {
    id: 'A10',
    what: 'move the git directory or the workspace away',
    perl: perl`chdir $V{PROJECT}; tried(rename('.git', '.g'), '.git'); tried(rename($V{PROJECT}, "$V{PROJECT}.away"), 'project'); tried(rmdir($V{PROJECT}), 'rmdir')`,
    expect: ['EBUSY', 'EXDEV'],
  },
  {
    id: 'A10',
    what: 'gain from moving a parent of the workspace (harmless: the home is the task’s own)',
    perl: perl`rename("$V{HOME}/code", "$V{HOME}/edoc"); look("$V{HOME}/edoc/sibling", 'sibling'); mkdir "$V{HOME}/code"; put("$V{HOME}/code/project", 1); unlink "$V{HOME}/code/project"; rmdir "$V{HOME}/code"; rename("$V{HOME}/edoc", "$V{HOME}/code"); line(-e "$V{PROJECT}/README.md" ? 'ENOENT' : 'lost', 'back again')`,
    expect: ['ENOENT', 'opened for writing'],
  },
  {
    id: 'A11',
    what: 'link a file of the host into the workspace',
    perl: perl`chdir $V{PROJECT}; for my $from ("$V{SIBLING}/private.txt", $V{HOST_TMP}, '/usr/bin/env', "$V{TOOLS}/tool", '/etc/passwd', glob('/run/ags/objects/0/??/*')) { tried(link($from, 'hard'), $from); unlink 'hard' }`,
    expect: ['ENOENT', 'EXDEV'],
  },
  {
    id: 'A13',
    what: 'make device nodes, the whiteout of an overlay among them',
    perl: perl`for my $dir ($V{PROJECT}, "$V{PROJECT}/.git", $V{HOME}, '/tmp', '/dev/shm') { for ([S_IFBLK, 8 * 256], [S_IFCHR, 1 * 256 + 1], [S_IFCHR, 0]) { my $at = "$dir/node"; tried(call('mknodat', -100, $at, $_->[0] | 0600, $_->[1]) == 0, "$dir $_->[1]"); unlink $at } }`,
    expect: ['EPERM'],
  },
  {
    id: 'A13',
    what: 'leave a whiteout behind by renaming',
    perl: perl`chdir $V{PROJECT}; open my $f, '>', 'moved'; my ($from, $to) = ("moved", "there"); tried(call('renameat2', -100, $from, -100, $to, 4) == 0); unlink 'moved', 'there'`,
    expect: ['EPERM'],
  },
  {
    id: 'A14',
    what: 'gain from a set-user-id program of the system',
    perl: perl`my @found = grep { -u } glob('/usr/bin/* /usr/sbin/* /usr/lib/*/*'); print "none = no gain\n" unless @found; for my $program (@found[0 .. ($#found > 1 ? 1 : $#found)]) { pipe my $r, my $w; my $pid = fork; if (!$pid) { open STDIN, '<&', $r; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null'; exec $program; POSIX::_exit(1) } select undef, undef, undef, 0.05; my ($uids) = (slurp("/proc/$pid/status") // '') =~ /^Uid:\s+(.*)$/m; kill 9, $pid; waitpid $pid, 0; my %all = map { $_ => 1 } split ' ', $uids // $<; line(join(' ', keys %all) eq $< ? 'no gain' : "gained $uids", $program) }`,
    expect: ['no gain'],
  },
  {
    id: 'A14',
    what: 'run with new privileges allowed',
    perl: perl`line(slurp('/proc/self/status') =~ /^NoNewPrivs:\s+(\d)/m ? $1 : 'unknown')`,
    expect: ['1'],
  },
  {
    id: 'A14',
    what: 'find a mount on which set-user-id or devices count',
    perl: perl`for (split /\n/, slurp('/proc/self/mountinfo')) { my @f = split / /; my %o = map { $_ => 1 } split /,/, $f[5]; print "$f[4] = $f[5]\n" unless $o{nosuid} && ($o{nodev} || $f[4] =~ m{^/dev(/|$)}) } print "searched\n"`,
    expect: ['searched'],
  },
  {
    id: 'A15',
    what: 'open settings of the kernel for writing',
    perl: perl`put($_) for grep { -e } qw(/proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/hostname /proc/sys/kernel/sysrq /proc/sysrq-trigger /proc/sys/vm/drop_caches /proc/sys/fs/suid_dumpable /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/user/max_user_namespaces /proc/sys/fs/binfmt_misc/register /proc/irq/default_smp_affinity)`,
    expect: ['EROFS', 'EACCES', 'EPERM'],
  },
  {
    id: 'A15',
    what: 'read the memory or the log of the kernel',
    perl: perl`get($_) for grep { -e } qw(/proc/kcore /proc/kmsg /dev/mem /dev/kmsg /dev/core)`,
    expect: ['EACCES', 'EPERM'],
  },
  {
    id: 'A34',
    what: 'read what only the root of the machine may read',
    perl: perl`get($_) for grep { -e } qw(/proc/slabinfo /proc/vmallocinfo /proc/pagetypeinfo /proc/timer_list /proc/sys/kernel/cad_pid)`,
    expect: ['EACCES', 'EPERM'],
  },
  {
    id: 'A15',
    what: 'find a directory that nobody named',
    perl: perl`my ($top) = $V{HOME} =~ m{^/([^/]+)}; my %may = map { $_ => 1 } qw(. .. bin dev etc lib lib32 lib64 libx32 nix opt proc run sbin tmp usr var), $top; my %in = ('/run' => 'ags', '/var' => 'tmp', '/run/ags' => 'objects'); opendir my $d, '/'; for (readdir $d) { print "/$_ = there\n" unless $may{$_} } for my $dir (keys %in) { opendir $d, $dir; for (readdir $d) { print "$dir/$_ = there\n" unless /^\.\.?$/ || $_ eq $in{$dir} } } print "searched\n"`,
    expect: ['searched'],
  },
  {
    id: 'A15',
    what: 'find /sys or another part of the host',
    perl: perl`look($_) for qw(/sys /root /boot /mnt /media /srv /lost+found /var/lib /var/log /var/run /run/user /run/systemd /run/dbus /run/docker.sock /dev/mqueue /dev/disk /dev/net /dev/kvm /dev/fuse /dev/vsock /dev/vda /dev/sda /dev/loop0 /dev/console /dev/input)`,
    expect: ['ENOENT'],
  },
  {
    id: 'A15',
    what: 'find a device beyond the harmless ones',
    perl: perl`opendir my $d, '/dev'; for (sort readdir $d) { next if /^(\.\.?|null|zero|full|random|urandom|tty|pts|ptmx|shm|fd|stdin|stdout|stderr|core)$/; print "/dev/$_ = there\n" } print "searched\n"`,
    expect: ['searched'],
  },
  {
    id: 'A17',
    what: "read or list the host's temporary files",
    perl: perl`get($V{HOST_TMP}); my ($name) = $V{HOST_TMP} =~ m{([^/]+)$}; for my $dir ('/tmp', '/var/tmp') { opendir my $d, $dir; print "$dir = listed\n" if grep { $_ eq $name } readdir $d }`,
    expect: ['ENOENT'],
  },
  {
    id: 'A17',
    what: 'use more temporary space than was granted',
    perl: perl`for (split /\n/, slurp('/proc/self/mounts')) { my @f = split / /; next unless $f[2] eq 'tmpfs' && $f[3] =~ /(^|,)rw(,|$)/; line($f[3] =~ /size=\d+k/ ? 'bounded' : "unbounded", $f[1]) }`,
    expect: ['bounded'],
  },
  {
    id: 'A33',
    what: 'mount, unmount, remount writable, pivot, chroot',
    perl: perl`chdir $V{PROJECT}; my ($none, $usr, $dot, $tmpfs, $git) = ("none", "/usr", ".", "tmpfs", ".git"); tried(call('mount', $none, $dot, $tmpfs, 0, 0) == 0, 'mount'); tried(call('mount', $none, $usr, $none, 0x1020, 0) == 0, 'remount'); tried(call('umount2', $git, 2) == 0, 'umount'); tried(call('pivot_root', $dot, $dot) == 0, 'pivot_root'); tried(chroot('.'), 'chroot'); tried(call('open_tree', -100, $usr, 1) >= 0, 'open_tree'); tried(call('fsopen', $tmpfs, 0) >= 0, 'fsopen'); my $attr = "\0" x 32; tried(call('mount_setattr', -100, $usr, 0, $attr, 32) == 0, 'mount_setattr'); tried(call('move_mount', -100, $dot, -100, $git, 0) == 0, 'move_mount')`,
    expect: ['EPERM'],
  },
  {
    id: 'A2',
    what: 'write to a read-only file through /proc/self/fd',
    perl: perl`for my $path ("$V{TOOLS}/tool", '/usr/bin/env', '/etc/passwd', glob('/run/ags/objects/0/??/*')) { open my $f, '<', $path or next; put('/proc/self/fd/' . fileno $f); put('/dev/fd/' . fileno $f) }`,
    expect: ['EROFS', 'EACCES'],
  },
  {
    id: 'A2',
    what: 'find a writable mount beyond workspace, home and scratch space',
    perl: perl`my %may = map { $_ => 1 } '/proc', '/dev/pts', '/dev/shm', '/tmp', $V{HOME}, $V{PROJECT}, "$V{PROJECT}/.git", map { "/dev/$_" } qw(null zero full random urandom tty); for (split /\n/, slurp('/proc/self/mountinfo')) { my @f = split / /; (my $at = $f[4]) =~ s/\\(\d{3})/chr oct $1/ge; print "$at = writable\n" if $f[5] =~ /(^|,)rw(,|$)/ && !$may{$at} } print "searched\n"`,
    expect: ['searched'],
  },
  {
    id: 'A3',
    what: 'open a file by its handle, past every mount',
    perl: perl`my $handle = pack('Ii', 8, 1) . pack('II', 2, 0) . "\0" x 120; tried(call('open_by_handle_at', -100, $handle, 0) >= 0)`,
    expect: ['EPERM'],
  },
  {
    id: 'A109',
    what: 'mark a directory for the overlay with the marks of root',
    perl: perl`chdir $V{PROJECT}; mkdir 'marked'; for my $name (qw(trusted.overlay.opaque trusted.overlay.redirect security.capability)) { my ($at, $key, $value) = ('marked', $name, 'y'); tried(call('setxattr', $at, $key, $value, 1, 0) == 0, $name) } rmdir 'marked'`,
    expect: ['EPERM', 'EINVAL', 'EOPNOTSUPP'],
  },
  {
    id: 'A141',
    what: 'read secrets that lie in the project',
    perl: perl`look("$V{PROJECT}/$_", $_) for qw(.env .env.local config/server.pem .npmrc .netrc deploy/id_rsa terraform.tfstate .kube .docker/config.json)`,
    expect: ['ENOENT'],
  },
  {
    id: 'A141',
    what: 'read untracked secrets that lie beside a tracked file',
    perl: perl`look("$V{PROJECT}/$_", $_) for qw(.aws/credentials .ssh/id_ed25519)`,
    expect: ['ENOENT'],
  },
  {
    id: 'A153',
    what: "read or write another task's files",
    perl: perl`look("$V{STATE}/tasks"); look("$V{STATE}/tasks/$_") for qw(neighbour neighbour/run/home neighbour/run/upper); for (split /\n/, slurp('/proc/self/mountinfo')) { print "neighbour = mounted\n" if /neighbour/ }`,
    expect: ['ENOENT'],
  },
];

/** Last of a batch: the sandbox's own world is still whole, so that nothing above failed only because its place was gone. */
export const CONTROL: Attack = {
  id: 'control',
  what: 'break what it may use: its workspace, home, tools, scratch space, loopback and processes still work',
  perl: perl`get("$V{PROJECT}/README.md"); get("$V{TOOLS}/tool"); put("$_/control", 1) for $V{PROJECT}, $V{HOME}, '/tmp', '/dev/shm', "$V{PROJECT}/.git"; unlink "$_/control" for $V{PROJECT}, $V{HOME}, '/tmp', '/dev/shm', "$V{PROJECT}/.git"; look("$V{PROJECT}/sub/file.txt"); look("$V{PROJECT}/.aws/config"); socket(my $s, PF_INET, SOCK_STREAM, 0); bind($s, pack_sockaddr_in(0, inet_aton('127.0.0.1'))); listen $s, 1; reach(PF_INET, SOCK_STREAM, 0, getsockname $s, 'loopback'); my $unix = '/tmp/own.sock'; socket(my $u, PF_UNIX, SOCK_STREAM, 0); bind($u, pack_sockaddr_un($unix)); listen $u, 1; reach(PF_UNIX, SOCK_STREAM, 0, pack_sockaddr_un($unix), 'unix'); unlink $unix; chdir $V{PROJECT}; line(system('git log -1 --format=%s > /dev/null 2>&1') == 0 ? 'works' : 'broken', 'git'); line(defined shmget(99, 4096, 01666) ? 'works' : why(), 'shared memory')`,
  expect: ['read 10 bytes', 'read 20 bytes', 'opened for writing', 'exists', 'connected', 'works'],
};
