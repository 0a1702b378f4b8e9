// bench/gateway/remote-place.mjs: a place as in bench/gateway/place.mjs with a remote origin: in its own network namespace behind a veth pair,
// with an unassigned address, because sandboxes refuse to connect to loopback and to the machine's own addresses.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { hostsFile } from './names.mjs';
import { createPrograms, PORTS, prepareNetwork, saysLine } from './place.mjs';

/** From an address block for documentation. */
export const ORIGIN = '203.0.113.10';
const HERE = '203.0.113.1';

export async function openRemotePlace({ dir, load }) {
  prepareNetwork({ dir, load, hosts: hostsFile(ORIGIN) });
  // By default only loopback connections may reuse a port that was closed a second ago.
  writeFileSync('/proc/sys/net/ipv4/tcp_tw_reuse', '1');
  const programs = createPrograms(dir);
  const origin = programs.start(['unshare', '--net', '--', load, 'origin', `0.0.0.0:${PORTS.plain}`]);
  await saysLine(origin, 'ready');
  const there = String(origin.pid);
  ip('link', 'add', 'here', 'type', 'veth', 'peer', 'name', 'there', 'netns', there);
  ip('address', 'add', `${HERE}/24`, 'dev', 'here');
  ip('link', 'set', 'here', 'up');
  const ipThere = (...args) => execFileSync('nsenter', ['--target', there, '--net', '--', 'ip', ...args]);
  ipThere('address', 'add', `${ORIGIN}/24`, 'dev', 'there');
  ipThere('link', 'set', 'there', 'up');
  return { dir, load, ...programs, close: () => programs.stop(origin) };
}

function ip(...args) {
  execFileSync('ip', args);
}
