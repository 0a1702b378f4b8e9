// scripts/low-ports.mjs: ports below 1024 on loopback, for tests whose servers listen where the real ones do (80, 443). Root has them;
// an ordinary user gets a network of their own, in a user namespace, in which they may be opened.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const START = '/proc/sys/net/ipv4/ip_unprivileged_port_start';
// Brings loopback up (SIOCSIFFLAGS: up, running), opens the ports, and gives the rights over that network up again.
const PERL = `socket(my $s, 2, 2, 0) or die; my $up = pack('a16 s x14', 'lo', 0x41); ioctl($s, 0x8914, $up) or die "lo: $!";
open my $f, '>', '${START}' or die "ports: $!"; print $f 0; close $f;
exec 'setpriv', '--inh-caps=-all', '--ambient-caps=-all', '--', @ARGV`;
const OWN_NETWORK = ['unshare', '--user', '--map-current-user', '--net', '--keep-caps', 'perl', '-e', PERL, '--'];

/** What goes in front of a command so that it has them; null: they cannot be had. */
export function lowPorts() {
  if (process.getuid() === 0 || Number(readFileSync(START, 'utf8')) <= 22) return [];
  const [program, ...rest] = [...OWN_NETWORK, 'true'];
  return spawnSync(program, rest, { stdio: 'ignore' }).status === 0 ? OWN_NETWORK : null;
}
