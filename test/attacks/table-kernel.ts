// test/attacks/table-kernel.ts: attempts on the kernel, on other processes and on what processes share. See attack.ts.
import type { Attack } from './attack.ts';

const perl = String.raw;

export const KERNEL_ATTACKS: readonly Attack[] = [
  {
    id: 'A21',
    what: 'trace or read the first process',
    perl: perl`my $local = pack('QQ', 0, 0); tried(call('ptrace', 0x4206, 1, 0, 0) == 0, 'seize'); tried(call('process_vm_readv', 1, $local, 0, $local, 0, 0) >= 0, 'readv'); tried(call('process_vm_writev', 1, $local, 0, $local, 0, 0) >= 0, 'writev'); my $fd = call('pidfd_open', 1, 0); tried(call('pidfd_getfd', $fd, 0, 0) >= 0, 'getfd')`,
    expect: ['EPERM'],
  },
  {
    id: 'A21',
    what: 'write into the memory of the first process',
    perl: perl`for ('/proc/1/mem', '/proc/1/task/1/mem', '/proc/self/../1/mem') { tried(sysopen(my $f, $_, O_RDWR), $_) }`,
    expect: ['ENOENT'],
  },
  {
    id: 'A21',
    what: 'see a process that is not of this sandbox',
    perl: perl`opendir my $d, '/proc'; my @pids = grep { /^\d+$/ } readdir $d; line(@pids < 40 ? 'few' : scalar(@pids), 'processes'); line(kill(0, $V{VICTIM}) ? 'visible' : why(), 'victim'); line(-e '/proc/1/status' ? 'visible' : 'few', 'pid 1'); line(-e "/proc/$V{VICTIM}/environ" && (slurp("/proc/$V{VICTIM}/cmdline") // '') =~ /perl/ ? 'visible' : 'few', 'by number')`,
    expect: ['few', 'ESRCH'],
  },
  {
    id: 'A22',
    what: 'signal a process of the host',
    perl: perl`tried(kill(0, $V{VICTIM}), 'by number'); tried(kill('USR1', -$V{VICTIM}), 'group'); my $fd = call('pidfd_open', $V{VICTIM} + 0, 0); tried($fd >= 0, 'pidfd')`,
    expect: ['ESRCH'],
  },
  {
    id: 'A22',
    what: 'be in a process group or session that begins outside',
    perl: perl`line(getpgrp() == 0 ? 'outside' : 'own', 'group'); my $sid = POSIX::getpid(); my @stat = split ' ', (slurp('/proc/self/stat') =~ s/.*\) //r); line($stat[3] == 0 ? 'outside' : 'own', 'session')`,
    expect: ['own'],
  },
  {
    id: 'A25',
    what: 'set up io_uring',
    perl: perl`my $p = "\0" x 120; tried(call('io_uring_setup', 1, $p) >= 0); tried(call('io_uring_register', 0, 0, 0, 0) >= 0, 'register')`,
    expect: ['EPERM', 'ENOSYS'],
  },
  {
    id: 'A26',
    what: 'connect to sockets of the host: engine, message bus, key agent, printers',
    perl: perl`for my $path (qw(/run/docker.sock /var/run/docker.sock /run/podman/podman.sock /run/containerd/containerd.sock /run/dbus/system_bus_socket /run/systemd/private /run/cups/cups.sock /tmp/.X11-unix/X0), glob('/run/user/*/bus /tmp/ssh-*/agent.*')) { reach(PF_UNIX, SOCK_STREAM, 0, pack_sockaddr_un($path), $path) }`,
    expect: ['ENOENT'],
  },
  {
    id: 'A26',
    what: 'connect to a server of the host by its path',
    perl: perl`reach(PF_UNIX, SOCK_STREAM, 0, pack_sockaddr_un($_), $_) for split ' ', $V{STREAMS}`,
    expect: ['ENOENT', 'ECONNREFUSED'],
  },
  {
    id: 'A27',
    what: 'send a datagram to a server of the host by its path',
    perl: perl`for my $path (split ' ', $V{DATAGRAMS}) { socketpair(my $a, my $b, PF_UNIX, SOCK_DGRAM, 0) or do { line(why(), $path); next }; tried(defined send($a, 'breach', 0, pack_sockaddr_un($path)), $path); reach(PF_UNIX, SOCK_DGRAM, 0, pack_sockaddr_un($path), $path) }`,
    expect: ['ENOENT', 'ECONNREFUSED', 'EPERM', 'EISCONN'],
  },
  {
    id: 'A26',
    what: 'reach a server of the host through a read-only tool directory',
    perl: perl`my $path = "$V{TOOLS}/agent"; reach(PF_UNIX, SOCK_STREAM, 0, pack_sockaddr_un("$path.sock"), 'stream'); reach(PF_UNIX, SOCK_DGRAM, 0, pack_sockaddr_un("$path.dgram"), 'datagram'); tried(sysopen(my $f, "$path.fifo", O_WRONLY | O_NONBLOCK), 'pipe')`,
    expect: ['ECONNREFUSED', 'ENXIO'],
  },
  {
    id: 'A29',
    what: 'connect to an abstract socket of the host',
    perl: perl`reach(PF_UNIX, SOCK_STREAM, 0, pack_sockaddr_un("\0$V{ABSTRACT}")); reach(PF_UNIX, SOCK_DGRAM, 0, pack_sockaddr_un("\0$V{ABSTRACT}.dgram")); reach(PF_UNIX, SOCK_STREAM, 0, pack_sockaddr_un("\0/tmp/.X11-unix/X0"))`,
    expect: ['ECONNREFUSED'],
  },
  {
    id: 'A30',
    what: 'attach shared memory, queues and semaphores of the host',
    perl: perl`tried(defined shmget($V{IPC_KEY}, 0, 0), 'memory'); tried(defined msgget($V{IPC_KEY}, 0), 'queue'); tried(defined semget($V{IPC_KEY}, 0, 0), 'semaphore'); my $name = $V{QUEUE}; tried(call('mq_open', $name, 0, 0, 0) >= 0, 'posix queue'); for my $kind (qw(shm msg sem)) { my @rows = split /\n/, slurp("/proc/sysvipc/$kind"); line(@rows > 1 ? 'listed' : 'ENOENT', "list of $kind") }`,
    expect: ['ENOENT'],
  },
  {
    id: 'A31',
    what: 'read keyrings',
    perl: perl`tried(call('keyctl', 0, $_, 0) >= 0, $_) for -1, -3, -4, -5; my ($type, $name, $value) = ('user', 'ags', 'x'); tried(call('add_key', $type, $name, $value, 1, -3) >= 0, 'add'); tried(call('request_key', $type, $name, 0, 0) >= 0, 'request')`,
    expect: ['EPERM'],
  },
  {
    id: 'A33',
    what: 'make namespaces with unshare',
    perl: perl`my %flag = (user => 0x10000000, mount => 0x20000, pid => 0x20000000, net => 0x40000000, ipc => 0x8000000, uts => 0x4000000, cgroup => 0x2000000, time => 0x80); for my $name (sort keys %flag) { my $pid = fork; if (!$pid) { tried(call('unshare', $flag{$name}) == 0, $name); POSIX::_exit(0) } waitpid $pid, 0 }`,
    expect: ['EPERM'],
  },
  {
    id: 'A33',
    what: 'make namespaces with clone',
    perl: perl`for my $flag (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x10020000) { my $pid = call('clone', $flag | 17, 0, 0, 0, 0); POSIX::_exit(0) if $pid == 0; waitpid $pid, 0 if $pid > 0; tried($pid > 0, sprintf '%x', $flag) } my $args = pack 'Q8', 0x10000000, 0, 0, 0, 17, 0, 0, 0; my $pid = call('clone3', $args, 64); POSIX::_exit(0) if $pid == 0; tried($pid > 0, 'clone3')`,
    expect: ['EPERM', 'ENOSYS'],
  },
  {
    id: 'A33',
    what: 'enter another namespace',
    perl: perl`for my $name (qw(user mnt pid net ipc uts cgroup)) { for my $pid (1, 'self') { open my $f, '<', "/proc/$pid/ns/$name" or do { line(why(), $name); next }; tried(call('setns', fileno $f, 0) == 0, $name) } }`,
    expect: ['EPERM', 'ENOENT'],
  },
  {
    id: 'A33',
    what: 'nest the tools that make sandboxes',
    perl: perl`for (['unshare', '-Ur', 'true'], ['bwrap', '--dev-bind', '/', '/', 'true'], ['nsenter', '-t', '1', '-m', 'true']) { my $ok = system("@$_ > /dev/null 2>&1") == 0; line($ok ? 'done' : 'failed', $_->[0]) }`,
    expect: ['failed'],
  },
  {
    id: 'A34',
    what: 'hold a capability',
    perl: perl`my $status = slurp('/proc/self/status'); line($status =~ /^$_:\s+0+$/m ? 'none' : 'some', $_) for qw(CapInh CapPrm CapEff CapBnd CapAmb)`,
    expect: ['none'],
  },
  {
    id: 'A34',
    what: 'be root, or become it',
    perl: perl`line($< && $> ? 'not root' : 'root', 'uid'); line(join(' ', map { $_ == 0 ? 'root' : () } split ' ', $() || 'not root', 'groups'); tried(call('setresuid', 0, 0, 0) == 0, 'setresuid'); my ($head, $data) = (pack('Ii', 0x20080522, 0), pack('I6', (0xffffffff) x 6)); tried(call('capset', $head, $data) == 0, 'capset')`,
    expect: ['not root', 'EPERM', 'EINVAL'],
  },
  {
    id: 'A34',
    what: 'run without a filter for system calls',
    perl: perl`my $status = slurp('/proc/self/status'); line($status =~ /^Seccomp:\s+(\d)/m ? $1 : 'unknown')`,
    expect: ['2'],
  },
  {
    id: 'A35',
    what: 'type into a terminal',
    perl: perl`my $char = 'x'; for my $cmd (0x5412, 0x100005412, 0xffffffff00005412) { tried(call('ioctl', 0, $cmd, $char) == 0, sprintf 'TIOCSTI %x', $cmd) } tried(call('ioctl', 0, 0x541c, $char) == 0, 'TIOCLINUX'); tried(call('ioctl', 0, 0x541d, 0) == 0, 'TIOCCONS'); my $n = pack 'i', 2; tried(call('ioctl', 0, 0x5423, $n) == 0, 'TIOCSETD')`,
    expect: ['EPERM'],
  },
  {
    id: 'A35',
    what: 'open the terminal of whoever started it',
    perl: perl`tried(sysopen(my $f, '/dev/tty', O_RDWR), '/dev/tty')`,
    expect: ['ENXIO'],
  },
  {
    id: 'A25',
    what: 'use bpf, perf, userfaultfd, fanotify, kcmp',
    perl: perl`my $attr = "\0" x 128; tried(call('bpf', 0, $attr, 72) >= 0, 'bpf'); tried(call('perf_event_open', $attr, 0, -1, -1, 0) >= 0, 'perf'); tried(call('userfaultfd', 1) >= 0, 'userfaultfd'); tried(call('fanotify_init', 0, 0) >= 0, 'fanotify'); tried(call('kcmp', $$, $$, 0, 0, 0) >= 0, 'kcmp')`,
    expect: ['EPERM'],
  },
  {
    id: 'A25',
    what: 'act on the machine: modules, swap, clock, log, accounting, restart',
    perl: perl`my ($path, $zeros) = ('/nonexistent', "\0" x 64); tried(call('init_module', $zeros, 0, $path) == 0, 'init_module'); tried(call('finit_module', 0, $path, 0) == 0, 'finit_module'); tried(call('delete_module', $path, 0) == 0, 'delete_module'); tried(call('swapon', $path, 0) == 0, 'swapon'); tried(call('swapoff', $path) == 0, 'swapoff'); tried(call('reboot', 0, 0, 0, 0) == 0, 'reboot'); tried(call('kexec_load', 0, 0, 0, 0) == 0, 'kexec'); tried(call('syslog', 3, $zeros, 64) >= 0, 'syslog'); tried(call('clock_settime', 99, $zeros) == 0, 'clock'); tried(call('acct', $path) == 0, 'acct'); tried(call('quotactl', 0x80000700, $path, 0, $zeros) == 0, 'quotactl')`,
    expect: ['EPERM'],
  },
  {
    id: 'A25',
    what: 'make data executable for later programs',
    perl: perl`tried(call('personality', 0x400000) >= 0, 'READ_IMPLIES_EXEC'); tried(call('personality', 0x100000) >= 0, 'MMAP_PAGE_ZERO')`,
    expect: ['EPERM'],
  },
  {
    id: 'A25',
    what: 'call by numbers of another architecture or of a newer kernel',
    perl: perl`tried(syscall(0x40000000 + 39) >= 0, 'x32 getpid'); tried(syscall(999) >= 0, '999'); tried(syscall(400) >= 0, '400')`,
    expect: ['ENOSYS'],
  },
  {
    id: 'A35',
    what: 'change the name of the machine',
    perl: perl`my $name = 'breached'; tried(call('sethostname', $name, 8) == 0); line((POSIX::uname())[1] eq $V{HOSTNAME} ? 'the name of the host' : 'EPERM', 'uname')`,
    expect: ['EPERM'],
  },
  {
    id: 'A145',
    what: 'run without limits',
    perl: perl`my %limit = map { /^(Max (?:processes|open files|file size|core file size))\s+(\S+)\s+(\S+)/ ? ($1 => $3) : () } split /\n/, slurp('/proc/self/limits'); line($limit{$_} eq 'unlimited' ? 'unlimited' : 'limited', $_) for sort keys %limit; my $n = slurp('/proc/1/limits') && $limit{'Max core file size'}; line($n <= 1 ? 'limited' : $n, 'core')`,
    expect: ['limited'],
  },
  {
    id: 'A145',
    what: 'raise a limit',
    perl: perl`for my $flag ('-n 1048576', '-u 1000000', '-c unlimited', '-f unlimited') { my $ok = system("ulimit $flag 2>/dev/null") == 0; line($ok ? 'raised' : 'refused', $flag) }`,
    expect: ['refused'],
  },
  {
    id: 'A145',
    what: 'see or change the control group',
    perl: perl`for (split /\n/, slurp('/proc/self/cgroup')) { line((split /:/, $_, 3)[2] eq '/' ? 'own root' : $_) } look('/sys/fs/cgroup')`,
    expect: ['own root', 'ENOENT'],
  },
];
