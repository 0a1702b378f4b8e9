// attack/table/services.ts: attempts on and from the services of a task: a service of ours, made like the user's, runs whatever it receives.
// See attack.ts for what the fields mean.
import type { Attack } from './attack.ts';
import { FILE_ATTACKS } from './files.ts';
import { KERNEL_ATTACKS } from './kernel.ts';
import { NETWORK_ATTACKS } from './network.ts';

const perl = String.raw;

/** Its name, a declared port, and an undeclared one. */
export const SPY = { name: 'ags-attack', port: 4848, undeclared: 4849 } as const;

/** Runs each program that it receives, and answers with its output. */
export const SPY_PROGRAM = perl`use Socket; $| = 1; $SIG{CHLD} = 'IGNORE';
my @all = map { socket(my $s, PF_INET, SOCK_STREAM, 0); setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1); bind($s, pack_sockaddr_in($_, INADDR_LOOPBACK)) or die "bind: $!"; listen $s, 20; $s } 4848, 4849;
while (accept(my $c, $all[0])) { next if fork; my ($size, $text) = ('', ''); 1 while length $size < 8 && sysread $c, $size, 8 - length $size, length $size; 1 while length $text < hex $size && sysread $c, $text, hex($size) - length $text, length $text; open STDOUT, '>&', $c; open STDERR, '>&', $c; alarm 7; $SIG{CHLD} = 'DEFAULT'; eval $text; exit }`;

/** For an attempt in the task's sandbox: the given program runs in the service. */
const SERVICE = perl`sub service { my $text = elsewhere($_[0]); socket(my $s, PF_INET, SOCK_STREAM, 0) or die $!; connect($s, pack_sockaddr_in(4848, inet_aton($V{SERVICE}))) or return line(why(), 'service'); $text = sprintf('%08x', length $text) . $text; for (my $at = 0; $at < length $text;) { $at += syswrite($s, $text, length($text) - $at, $at) // die $! } my $said = ''; 1 while sysread $s, $said, 4096, length $said; print whole($said, 'the service') } `;
export const fromService = (program: string): string =>
  `${SERVICE}service(<<'OF_THE_SERVICE');\n${program}\nOF_THE_SERVICE\n`;

/** Attempts whose answers depend on no project, no variable of the task and no gateway. */
const FILES_FROM_SERVICE: readonly string[] =
  'fs-home-keys fs-machine-accounts fs-account-names fs-other-project fs-system-programs fs-setuid-program fs-new-privileges fs-mount-flags fs-kernel-settings fs-kernel-memory fs-root-only-files fs-host-directories fs-covered-places fs-odd-devices fs-host-tmp fs-file-handles fs-engine-files fs-proc-magic-links fs-namespace-files fs-own-setuid'.split(
    ' ',
  );

const AS_OTHERS: readonly Attack[] = [
  ...FILE_ATTACKS.filter(({ id }) => FILES_FROM_SERVICE.includes(id)),
  ...KERNEL_ATTACKS,
  ...NETWORK_ATTACKS,
].map((attack) => ({
  ...attack,
  id: `service-${attack.id}`,
  // The repeated attempt refers to the original one.
  references: [attack.id],
  area: 'services',
  what: `from a service: ${attack.what}`,
  perl: fromService(attack.perl),
  needs: 'services',
}));

export const SERVICE_ATTACKS: readonly Attack[] = [
  {
    id: 'service-undeclared-port',
    area: 'services',
    references: ['A154'],
    what: 'connect to a port of a service that was not declared',
    perl: perl`reach(PF_INET, SOCK_STREAM, 0, pack_sockaddr_in(4849, inet_aton($_)), $_) for $V{SERVICE}, '127.0.0.1'`,
    expect: ['ECONNREFUSED'],
    needs: 'services',
  },
  {
    id: 'service-processes',
    area: 'services',
    references: ['A153'],
    what: 'see or signal the process of a service',
    perl: perl`for my $file (glob '/proc/[0-9]*/cmdline') { print "$file = a service\n" if (slurp($file) // '') =~ /INADDR_LOOPBACK.*4848, 4849/ } print "searched\n"`,
    expect: ['searched'],
    needs: 'services',
  },
  {
    id: 'service-data-from-task',
    area: 'services',
    references: ['A153'],
    what: 'find the data, the home or the log of a service as files',
    perl: perl`look($_) for '/run/ags/data', '/run/ags/home', '/run/ags/seed', "$V{STATE}/tasks"; for (split /\n/, slurp('/proc/self/mountinfo')) { print "services = mounted\n" if m{/services/} }`,
    expect: ['ENOENT'],
    needs: 'services',
  },
  {
    id: 'service-files',
    area: 'services',
    references: ['A1', 'A141'],
    what: 'from a service: find the project, the home, what of it sandboxes are shown, other tasks or the state of ags',
    perl: fromService(
      perl`look($_) for $V{PROJECT}, "$V{HOME}/.config", "$V{HOME}/.local/state", $V{SIBLING}, $V{HOST_TMP}, $V{STATE}, '/run/ags/objects', '/run/ags/ca.pem', grep { index($_, "$V{HOME}/") == 0 } split ' ', $V{SHOWN}`,
    ),
    expect: ['ENOENT'],
    needs: 'services',
  },
  {
    id: 'service-writable-mounts',
    area: 'services',
    references: ['A2'],
    what: 'from a service: find a writable mount beyond its data, its home and scratch space',
    perl: fromService(
      perl`my %may = map { $_ => 1 } '/proc', '/dev/pts', '/dev/shm', '/tmp', $ENV{DATA}, $ENV{HOME}, map { "/dev/$_" } qw(null zero full random urandom tty); for (split /\n/, slurp('/proc/self/mountinfo')) { my @f = split / /; (my $at = $f[4]) =~ s/\\(\d{3})/chr oct $1/ge; next if covered($at); print "$at = writable\n" if $f[5] =~ /(^|,)rw(,|$)/ && $f[-1] !~ /^ro(,|$)/ && !$may{$at} } print "searched\n"`,
    ),
    expect: ['searched'],
    inContainer: /^\/dev = writable$/,
    needs: 'services',
  },
  {
    id: 'service-secrets',
    area: 'services',
    references: ['A142'],
    what: 'from a service: find a secret, a placeholder or a variable of the user or of the task',
    perl: fromService(
      perl`my $word = 'CANARY' . '-'; for my $file (glob '/proc/[0-9]*/environ /proc/[0-9]*/cmdline /run/ags/* /etc/* /tmp/*') { next unless -f $file && -s _ < 1 << 20 || $file =~ m{^/proc}; print "$file = found\n" if (slurp($file) // '') =~ /$word[0-9a-f]{16}/ } for (sort keys %ENV) { print "$_ = there\n" if /TOKEN|SECRET|KEY|PROXY|proxy|SOCK|DBUS|^AGS_(?!SANDBOX$|TASK$)|DOCKER_HOST/ && !/^SERVICE_/ } print "searched\n"`,
    ),
    expect: ['searched'],
    needs: 'services',
  },
  {
    id: 'service-doors',
    area: 'services',
    references: ['A42', 'A154'],
    what: 'from a service: reach the gateway, the name service or another listener of its task',
    perl: fromService(
      perl`for my $port ($V{LISTENER}, $V{NAMES}, 2375, 3129, 3130, 3132, 3133) { for my $to ('127.0.0.1', $V{SERVICE}) { reach(PF_INET, SOCK_STREAM, 0, pack_sockaddr_in($port, inet_aton($to)), "$to:$port") } }`,
    ),
    expect: ['ECONNREFUSED'],
    needs: 'services',
  },
  ...AS_OTHERS,
];

/** Files that the neighbour leaves in its own service. */
export const WITH_NEIGHBOURS_SERVICE = perl`if (my @spy = gethostbyname 'ags-attack') { socket(my $s, PF_INET, SOCK_STREAM, 0); connect($s, pack_sockaddr_in(4848, $spy[4])) or die "service: $!"; my $text = 'for ("$ENV{DATA}/neighbour.txt", "$ENV{HOME}/neighbour.txt", "/tmp/neighbour.txt", "/dev/shm/neighbour.txt") { open my $f, ">", $_ or die $!; print $f "the neighbour" } $0 = "the-neighbour"; alarm 0; print "kept"; sleep 300'; syswrite $s, sprintf('%08x', length $text) . $text; sysread $s, my $said, 4; $said eq 'kept' or die "service: $said"; }
`;

/** While a neighbour with its own service runs, and after it has ended. */
export const LASTING_SERVICE_ATTACKS: readonly Attack[] = [
  {
    id: 'service-of-another-task',
    area: 'services',
    references: ['A154', 'A159'],
    what: "find data, scratch files or processes of another task's service in one's own",
    perl: fromService(
      perl`look($_) for "$ENV{DATA}/neighbour.txt", "$ENV{HOME}/neighbour.txt", '/tmp/neighbour.txt', '/dev/shm/neighbour.txt'; print "a process = there\n" if grep { (slurp($_) // '') =~ /the-neighbour/ } glob '/proc/[0-9]*/cmdline'`,
    ),
    expect: ['ENOENT'],
    needs: 'services',
  },
];
