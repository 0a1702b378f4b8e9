// scripts/low-ports.mjs: ports below 1024 on loopback, for test servers on real ports (80, 443). Root has them; an ordinary user gets a network
// namespace that allows them.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const START = '/proc/sys/net/ipv4/ip_unprivileged_port_start';
// Brings loopback up (SIOCSIFFLAGS: up, running), opens the ports, and drops the rights over that network.
const PERL = `socket(my $s, 2, 2, 0) or die; my $up = pack('a16 s x14', 'lo', 0x41); ioctl($s, 0x8914, $up) or die "lo: $!";
open my $f, '>', '${START}' or die "ports: $!"; print $f 0; close $f;
exec 'setpriv', '--inh-caps=-all', '--ambient-caps=-all', '--', @ARGV`;
const OWN_NETWORK = ['unshare', '--user', '--map-current-user', '--net', '--keep-caps', 'perl', '-e', PERL, '--'];

/** The prefix of a command that needs such ports; null: not available. */
export function lowPorts() {
  if (process.getuid() === 0 || Number(readFileSync(START, 'utf8')) <= 22) return [];
  const [program, ...rest] = [...OWN_NETWORK, 'true'];
  return spawnSync(program, rest, { stdio: 'ignore' }).status === 0 ? OWN_NETWORK : null;
}
