// attack/table/flaws.ts: attempts on files that follow published flaws of kernels, containers and their tools. See attack.ts.
import type { Attack } from './attack.ts';

const perl = String.raw;

export const FLAW_ATTACKS: readonly Attack[] = [
  {
    id: 'fs-overwrite-runtime',
    area: 'filesystem',
    references: ['CVE-2019-5736'],
    what: 'overwrite the program that started it, through /proc',
    perl: perl`for my $p (1, getppid()) { tried(sysopen(my $f, "/proc/$p/exe", O_WRONLY), "/proc/$p/exe") } put('/proc/self/exe')`,
    expect: ['ENOENT', 'EACCES', 'ETXTBSY', 'EROFS', 'EPERM'],
  },
  {
    id: 'fs-page-cache',
    area: 'filesystem',
    references: ['CVE-2022-0847'],
    what: 'change a read-only file through a pipe that shares its pages',
    perl: perl`for my $path ("$V{TOOLS}/tool", '/usr/bin/env') { open my $f, '<', $path or next; read $f, my $before, 64; seek $f, 0, 0; pipe my $r, my $w; my $page = 'x' x 4096; for (1 .. 16) { syswrite $w, $page } for (1 .. 16) { sysread $r, my $gone, 4096 } my $at = pack 'q', 0; my $n = call('splice', fileno $f, $at, fileno $w, 0, 1, 0); syswrite $w, 'breach'; open my $g, '<', $path; read $g, my $after, 64; line($before eq $after ? 'unchanged' : 'changed', $path) }`,
    expect: ['unchanged'],
  },
  {
    id: 'fs-private-mapping',
    area: 'filesystem',
    references: ['CVE-2016-5195'],
    what: 'write to a read-only file through its own memory',
    perl: perl`my $path = $V{TOOLS} ? "$V{TOOLS}/tool" : '/etc/passwd'; open my $f, '<', $path or die $!; my $before = slurp($path); sysopen(my $m, '/proc/self/mem', O_RDWR) or return line('unchanged'); my ($at) = slurp('/proc/self/maps') =~ /^([0-9a-f]+)-[0-9a-f]+ r--p .*perl/m; if (defined $at) { sysseek $m, hex $at, 0; syswrite $m, 'x' } line(slurp($path) eq $before ? 'unchanged' : 'changed', $path); line(-s '/usr/bin/perl' && slurp('/usr/bin/perl') =~ /^\x7fELF/ ? 'unchanged' : 'changed', 'perl')`,
    expect: ['unchanged'],
  },
  {
    id: 'fs-own-setuid',
    area: 'filesystem',
    references: ['A14', 'CVE-2023-0386'],
    what: 'gain from a set-user-id file of its own making',
    perl: perl`chdir $V{PROJECT}; system('cp /usr/bin/id own-id && chmod 6755 own-id'); my $ids = qx(./own-id -u 2>&1); chomp $ids; line($ids eq $< ? 'no gain' : $ids); unlink 'own-id'`,
    expect: ['no gain'],
  },
  {
    id: 'fs-root-parent',
    area: 'filesystem',
    references: ['A6'],
    what: 'go above the root by "..", by a link and by an open directory',
    perl: perl`my @top = stat '/'; opendir my $d, '/'; chdir '/'; for (1 .. 40) { chdir '..' } my @up = stat '.'; line("@up[0,1]" eq "@top[0,1]" ? 'the same' : 'above', 'parents'); chdir $d; chdir '..'; @up = stat '.'; line("@up[0,1]" eq "@top[0,1]" ? 'the same' : 'above', 'descriptor'); symlink '/../../../..', '/tmp/up'; @up = stat '/tmp/up'; line("@up[0,1]" eq "@top[0,1]" ? 'the same' : 'above', 'link'); unlink '/tmp/up'`,
    expect: ['the same'],
  },
  {
    id: 'fs-old-root',
    area: 'filesystem',
    references: ['A6', 'CVE-2026-87766'],
    what: 'find the root that was there before the sandbox',
    perl: perl`look($_) for qw(/oldroot /newroot /.old_root /.pivot_root /put_old /host /hostfs /rootfs)`,
    expect: ['ENOENT'],
  },
  {
    id: 'fs-engine-files',
    area: 'filesystem',
    references: ['A38'],
    what: 'find what an engine keeps of its containers',
    perl: perl`look($_) for qw(/var/lib/docker /var/lib/containers /var/lib/containerd /run/containerd /run/runc /run/crun /run/podman)`,
    expect: ['ENOENT'],
    notOverImage: 'its directories are its own',
  },
  {
    id: 'fs-device-numbers',
    area: 'filesystem',
    references: ['A13', 'CVE-2025-31133', 'CVE-2025-52565', 'CVE-2026-88265'],
    what: 'make the terminals and devices it has lead elsewhere',
    perl: perl`for my $name (qw(null zero ptmx tty console)) { tried(unlink("/dev/$name"), "unlink $name"); tried(symlink('/etc/passwd', "/dev/$name.new"), "link $name"); } tried(rename('/dev/null', '/dev/zero'), 'rename')`,
    expect: ['EROFS', 'EACCES', 'EPERM', 'EBUSY', 'ENOENT'],
  },
  {
    id: 'fs-kernel-addresses',
    area: 'filesystem',
    references: ['A15'],
    what: 'learn the addresses of the kernel',
    perl: perl`open my $f, '<', '/proc/kallsyms' or return line('hidden'); my $seen = 0; while (<$f>) { $seen++ if /^0*[1-9a-f]/; last if $. > 200 } line($seen ? 'shown' : 'hidden')`,
    expect: ['hidden'],
  },
  {
    id: 'fs-namespace-files',
    area: 'filesystem',
    references: ['A6', 'A33'],
    what: 'find a process that lives in another mount or network namespace',
    perl: perl`my %own = map { $_ => readlink "/proc/self/ns/$_" } qw(mnt net pid ipc); for my $p (glob '/proc/[0-9]*') { for (keys %own) { my $ns = readlink "$p/ns/$_" // next; print "$p $_ = another\n" if $ns ne $own{$_} } } print "searched\n"`,
    expect: ['searched'],
  },
];
